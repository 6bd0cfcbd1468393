package local

import (
	"context"
	"errors"
	"time"

	"snap"
	"snap/internal/archive"
)

var errUnwritten = errors.New("not written yet")

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
