package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"snap/internal/local"
)

type schemaNode struct {
	Properties map[string]schemaNode `json:"properties"`
	Additional json.RawMessage       `json:"additionalProperties"`
}

// TestConfigSchema: the schema has exactly the settings that exist.
func TestConfigSchema(t *testing.T) {
	t.Parallel()
	var root schemaNode
	if err := json.Unmarshal([]byte(configSchema), &root); err != nil {
		t.Fatal(err)
	}
	sameKeys(t, "", reflect.TypeOf(local.Config{}), root)
}

func sameKeys(t *testing.T, at string, kind reflect.Type, node schemaNode) {
	t.Helper()
	if kind.Kind() == reflect.Map {
		var inner schemaNode
		if err := json.Unmarshal(node.Additional, &inner); err != nil {
			t.Errorf("%s: %v", at, err)
			return
		}
		sameKeys(t, at+".*", kind.Elem(), inner)
		return
	}
	if kind.Kind() != reflect.Struct {
		return
	}
	known := map[string]bool{}
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("yaml"), ",")
		if name == "-" {
			continue
		}
		known[name] = true
		inner, ok := node.Properties[name]
		if !ok {
			t.Errorf("the schema lacks %s.%s", at, name)
			continue
		}
		sameKeys(t, at+"."+name, kind.Field(i).Type, inner)
	}
	for name := range node.Properties {
		if !known[name] {
			t.Errorf("the schema has %s.%s, which is no setting", at, name)
		}
	}
}
