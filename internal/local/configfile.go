package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
	"github.com/gofrs/flock"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"snap"
	"snap/internal/disk"
)

// keyDelim separates the parts of a configuration key inside koanf. It is not a dot, because target
// names may contain dots.
const keyDelim = "\x00"

// configFile is config.yaml, overridden by the environment.
type configFile struct {
	path string
	env  func(string) string

	mu     sync.Mutex
	text   []byte       // the file's content; nil if it does not exist
	inFile *koanf.Koanf // the settings in the file
	inEnv  *koanf.Koanf // the settings in the environment
	config Config
}

func openConfig(path string, env func(string) string) (*configFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the configuration file: %w", err)
	}
	f := &configFile{path: path, env: env}
	return f, f.read()
}

// read reads the file and the environment. On an error, the configuration does not change.
func (f *configFile) read() error {
	text, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return snap.Usage(fmt.Sprintf("the configuration file %s cannot be read: %s", f.path, reason(err)),
			"check its path and permissions")
	}
	inFile, err := parseConfig(f.path, text)
	if err != nil {
		return err
	}
	set, err := envKeys(inFile, f.env)
	if err != nil {
		return err
	}
	inEnv := koanf.New(keyDelim)
	if err := inEnv.Load(confmap.Provider(set, keyDelim), nil); err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	config, err := merge(inFile, inEnv)
	if err != nil {
		return err
	}
	f.text, f.inFile, f.inEnv, f.config = text, inFile, inEnv, config
	return nil
}

// parseConfig parses the text and checks it against the structure of [Config], so that a misspelled
// key is reported with its position.
func parseConfig(path string, text []byte) (*koanf.Koanf, error) {
	var shape Config
	if err := yaml.UnmarshalWithOptions(text, &shape, yaml.DisallowUnknownField()); err != nil {
		return nil, badConfig(path, err)
	}
	tree := map[string]any{}
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, badConfig(path, err)
	}
	keepTruthOfChecks(tree)
	if err := requireOneDocument(path, text); err != nil {
		return nil, err
	}
	for name := range shape.Targets {
		if clean, err := snap.CleanTarget(name); err != nil || clean != name {
			return nil, snap.Usage(fmt.Sprintf("%s: %q is not a valid target name", path, name),
				"start it with a letter or a digit, and use neither slashes nor surrounding space")
		}
	}
	settings := koanf.New(keyDelim)
	if err := settings.Load(confmap.Provider(tree, ""), nil); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return settings, nil
}

// keepTruthOfChecks replaces the booleans that checks expect by their text. Otherwise koanf would
// convert true to "1", and the error of a failed check would show a value that nobody wrote.
func keepTruthOfChecks(tree map[string]any) {
	targets, _ := tree["targets"].(map[string]any)
	for _, t := range targets {
		target, _ := t.(map[string]any)
		checks, _ := target["checks"].([]any)
		for _, c := range checks {
			check, _ := c.(map[string]any)
			if truth, ok := check["expect"].(bool); ok {
				check["expect"] = strconv.FormatBool(truth)
			}
		}
	}
}

// requireOneDocument rejects a file with several YAML documents, because the parser would ignore
// all but the first.
func requireOneDocument(path string, text []byte) error {
	if !bytes.Contains(text, []byte("\n---")) {
		return nil
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return badConfig(path, err)
	}
	for _, doc := range file.Docs[min(1, len(file.Docs)):] {
		if doc.Body != nil {
			return snap.Usage(fmt.Sprintf("%s:%d:1: a second YAML document begins; the configuration must be one "+
				"document", path, doc.Start.Position.Line), "correct it with `snapcli config edit`")
		}
	}
	return nil
}

// badConfig converts a parser error to an error for the user, with its position.
func badConfig(path string, err error) error {
	return &snap.Error{Code: snap.CodeUsage, Detail: disk.YAMLMistake(path, err),
		Hint: "correct it with `snapcli config edit`", Cause: err}
}

func merge(layers ...*koanf.Koanf) (Config, error) {
	all := koanf.New(keyDelim)
	for _, layer := range layers {
		if err := all.Merge(layer); err != nil {
			return Config{}, fmt.Errorf("merge the configuration: %w", err)
		}
	}
	var c Config
	if err := all.UnmarshalWithConf("", &c, koanf.UnmarshalConf{Tag: "yaml"}); err != nil {
		return Config{}, &snap.Error{Code: snap.CodeUsage,
			Detail: "an environment variable SNAPCLI_... has a value of the wrong kind",
			Hint: "jobs, subset.rows, clones.max and clones.warm take a whole number, subset.percent a number; " +
				"production, sanitize.prove, cloud.plain_storage and trust.own_organization take true or false; " +
				"checks cannot be set by a variable",
			Cause: err}
	}
	for name, t := range c.Targets {
		t.Name = name
		c.Targets[name] = t
	}
	return c, nil
}

// lock waits for the exclusive right to edit the file, so that concurrent edits are not lost. The
// lock is released when the process ends, even if it is killed.
func (f *configFile) lock() (unlock func(), err error) {
	dir, name := filepath.Split(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, diskError(err, "create the configuration folder")
	}
	l := flock.New(filepath.Join(dir, "."+name+".lock"), flock.SetPermissions(0o600))
	if err := l.Lock(); err != nil {
		return nil, diskError(err, "write "+f.path)
	}
	return func() { _ = l.Unlock() }, nil
}

// write atomically replaces the file's content and reads it again. If the path is a symbolic link,
// the link remains.
func (f *configFile) write(text []byte) error {
	path := f.path
	if linked, err := filepath.EvalSymlinks(path); err == nil {
		path = linked
	}
	if err := disk.Replace(path, text, 0o600); err != nil {
		return diskError(err, "write "+f.path)
	}
	return f.read()
}

// Config returns the effective configuration.
func (a *Agent) Config() Config {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	return a.file.config
}

// Reload reads the configuration file again if another program changed it. On an error, the
// configuration does not change.
func (a *Agent) Reload() error {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	text, err := os.ReadFile(a.file.path)
	if err == nil && a.file.text != nil && bytes.Equal(text, a.file.text) {
		return nil
	}
	return a.file.read()
}

// ConfigPath returns the configuration file's path, whether it exists or not.
func (a *Agent) ConfigPath() string { return a.file.path }

// ConfigExists reports whether there is a configuration file.
func (a *Agent) ConfigExists() bool {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	return a.file.text != nil
}

// Origin returns the source of a configuration key's value: "file", "environment" or "default". The
// key has dots, as in cloud.api_key.
func (a *Agent) Origin(key string) string {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	return a.file.origin(strings.ReplaceAll(key, ".", keyDelim))
}

func (f *configFile) origin(key string) string {
	switch {
	case f.inEnv.Exists(key):
		return "environment"
	case f.inFile.Get(key) != nil:
		return "file"
	}
	return "default"
}
