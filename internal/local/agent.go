// Package local is this machine's half of the product: its configuration, the
// targets in it, the snapshots kept here, and what is done with them: build,
// sanitize, load, push and pull.
//
// Snapshots are stored as <data-dir>/snapshots/<target>/<name>.snap, each with
// a sidecar <name>.json. Every file appears whole or not at all.
package local

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"snap"
)

// Options say where the agent finds things.
type Options struct {
	ConfigFile string              // "" is config.yaml in [ConfigDir]
	DataDir    string              // "" is [DataDir]
	Env        func(string) string // nil is os.Getenv
	Now        func() time.Time    // nil is time.Now
	Log        *slog.Logger        // nil discards
	// Passphrase asks for that of a private key; nil when nobody can be asked.
	Passphrase func(path string) ([]byte, error)
}

// Agent is snapcli's view of this machine. It is safe for concurrent use.
type Agent struct {
	file *configFile
	data string
	env  func(string) string
	now  func() time.Time
	log  *slog.Logger

	passphrase func(path string) ([]byte, error)
}

// Open reads the configuration. A missing file is an empty configuration; one
// that cannot be understood is an error of code usage with line and column.
func Open(o Options) (*Agent, error) {
	a := &Agent{data: o.DataDir, env: o.Env, now: o.Now, log: o.Log, passphrase: o.Passphrase}
	if a.env == nil {
		a.env = os.Getenv
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	path := o.ConfigFile
	if path == "" {
		dir, err := ConfigDir(a.env)
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, "config.yaml")
	}
	if a.data == "" {
		dir, err := DataDir(a.env)
		if err != nil {
			return nil, err
		}
		a.data = dir
	}
	file, err := openConfig(path, a.env)
	a.file = file
	return a, err
}

// ConfigDir returns the folder of config.yaml and credentials.json:
// $SNAPCLI_CONFIG_DIR, else snapcli in the user's configuration folder.
func ConfigDir(env func(string) string) (string, error) {
	if dir := env("SNAPCLI_CONFIG_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", snap.Usage("there is no user configuration folder", "set SNAPCLI_CONFIG_DIR")
	}
	return filepath.Join(dir, "snapcli"), nil
}

// DataDir returns the folder of local snapshots: $SNAPCLI_DATA_DIR, else
// snapcli in the user's data folder.
func DataDir(env func(string) string) (string, error) {
	if dir := env("SNAPCLI_DATA_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "snapcli"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", snap.Usage("there is no user data folder", "set SNAPCLI_DATA_DIR")
	}
	return userData(home, env), nil
}
