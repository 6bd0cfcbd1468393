// Package local is the part of the product that runs on the user's machine. It holds the
// configuration with its targets, the local snapshots, and the operations on them: build, sanitize,
// load, push and pull.
//
// Snapshots are stored as <data-dir>/snapshots/<target>/<name>.snap, each with a sidecar
// <name>.json. All files are written atomically.
package local

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"snap"
	"snap/internal/reach"
)

// Options configure [Open].
type Options struct {
	ConfigFile string              // "" is config.yaml in [ConfigDir]
	DataDir    string              // "" is [DataDir]
	Env        func(string) string // nil is os.Getenv
	Now        func() time.Time    // nil is time.Now
	Log        *slog.Logger        // nil discards
	// Passphrase asks the user for the passphrase of the private key at path. Nil means that there
	// is no user to ask.
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
	tunnels    *reach.Tunnels
}

// Open reads the configuration. A missing file counts as an empty configuration. For a file that
// cannot be parsed, Open returns an error of code usage with the line and column.
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
	a.tunnels = &reach.Tunnels{Env: a.env}
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

// ConfigDir returns the directory of config.yaml and credentials.json: $SNAPCLI_CONFIG_DIR,
// otherwise snapcli in the user's configuration directory.
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

// DataDir returns the directory of local snapshots: $SNAPCLI_DATA_DIR, otherwise snapcli in the
// user's data directory.
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
	switch appData := env("LOCALAPPDATA"); {
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "snapcli", "data"), nil
	case runtime.GOOS == "windows" && appData != "":
		return filepath.Join(appData, "snapcli", "data"), nil
	}
	return filepath.Join(home, ".local", "share", "snapcli"), nil
}
