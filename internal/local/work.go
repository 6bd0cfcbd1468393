package local

import (
	"context"
	"errors"
	"time"

	"snap"
	"snap/internal/archive"
)

var errUnwritten = errors.New("not written yet")

type configFile struct{}

func openConfig(path string, env func(string) string) (*configFile, error) {
	return &configFile{}, nil
}

// Config returns the effective configuration.
func (a *Agent) Config() Config { return Config{} }

// ConfigPath returns the configuration file's path, whether it exists or not.
func (a *Agent) ConfigPath() string { return "" }

// Origin says where a configuration key's value is from: "file", "environment"
// or "default".
func (a *Agent) Origin(key string) string { return "default" }

// Targets lists the targets by name.
func (a *Agent) Targets() []Target { return nil }

// Target returns the one of this name; a not_found error suggests a near one.
func (a *Agent) Target(name string) (Target, error) { return Target{}, errUnwritten }

// AddTarget writes a target into config.yaml, or replaces the one of its name.
func (a *Agent) AddTarget(t Target) error { return errUnwritten }

// RemoveTarget takes a target out of config.yaml.
func (a *Agent) RemoveTarget(name string) error { return errUnwritten }

// BuildOptions choose how to build.
type BuildOptions struct {
	Jobs int // 0: the target's, else the number of cores
}

// Build takes a snapshot of the target's source.
func (a *Agent) Build(ctx context.Context, target string, o BuildOptions, p Progress) (Snapshot, error) {
	return Snapshot{}, errUnwritten
}

// SanitizeOptions choose what to sanitize and how. Empty fields take the
// target's configuration, and the newest original.
type SanitizeOptions struct {
	Snapshot string
	SQL      string // path of a SQL file
	Rules    string // path of a rules file
}

// Sanitize makes a masked copy of an original snapshot.
func (a *Agent) Sanitize(ctx context.Context, target string, o SanitizeOptions, p Progress) (Snapshot, error) {
	return Snapshot{}, errUnwritten
}

// LoadOptions choose what to load and what is allowed.
type LoadOptions struct {
	Snapshot  string                // name; "" is the newest
	Type      snap.Type             // "" is either
	Confirm   func(Preflight) error // asked before anything is replaced; nil agrees
	Terminate bool                  // end connections to the destination
	Force     bool                  // load into a destination that is marked or looks like production
	Jobs      int
}

// Preflight is what is known before a load changes anything.
type Preflight struct {
	Snapshot      Snapshot
	Destination   string // URL without its password
	Exists        bool   // a database is there and would be replaced
	Tables        int    // how many tables it has
	Size          int64  // its bytes
	Connections   []string
	ServerVersion string
	Warnings      []string
}

// LoadResult tells what was loaded.
type LoadResult struct {
	Snapshot    Snapshot
	Destination string
	Replaced    bool
	Tables      []archive.Table
	Elapsed     time.Duration
}

// Load replaces the target's destination by a snapshot, whole or not at all.
func (a *Agent) Load(ctx context.Context, target string, o LoadOptions, p Progress) (LoadResult, error) {
	return LoadResult{}, errUnwritten
}
