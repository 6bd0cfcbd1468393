package snap_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"snap/internal/cloud"
	"snap/internal/local"
)

// TestConfigurationPage compares docs/configuration.md with the programs: they read its two
// examples without an error, and the examples name every key.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 2 {
		t.Fatalf("%d examples, want one of each program", len(examples))
	}
	dir := t.TempDir()
	var files []string
	for i, name := range []string{"config.yaml", "snapcloud.yaml"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(examples[i][1]), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if _, err := local.Open(local.Options{ConfigFile: files[0], DataDir: dir,
		Env: func(string) string { return "" }}); err != nil {
		t.Errorf("snapcli: %v", err)
	}
	if _, err := cloud.LoadConfig(files[1], []string{"ACME_OIDC_SECRET=x"}); err != nil {
		t.Errorf("snapcloud: %v", err)
	}
	for i, shape := range []reflect.Type{reflect.TypeFor[local.Config](), reflect.TypeFor[cloud.Config]()} {
		for _, key := range yamlKeys(shape) {
			if !strings.Contains(examples[i][1], key+":") {
				t.Errorf("example %d lacks the key %s", i+1, key)
			}
		}
	}
}

// yamlKeys returns the keys of a configuration's shape, at every depth.
func yamlKeys(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer:
		return yamlKeys(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var keys []string
	for field := range t.Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); key != "" && key != "-" {
			keys = append(keys, key)
			keys = append(keys, yamlKeys(field.Type)...)
		}
	}
	return keys
}
