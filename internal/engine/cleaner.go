package engine

import "context"

// Cleaner is an engine that finds and removes what loads left behind that
// failed or were killed. What a running load uses is not left behind.
type Cleaner interface {
	// Leftovers lists it, on the server or in the folder of the database at
	// url. Nothing is changed.
	Leftovers(ctx context.Context, url string) ([]Leftover, error)

	// Clean removes what Leftovers lists, and returns what it could not remove.
	Clean(ctx context.Context, url string) ([]Leftover, error)
}

// Leftover is one thing that a load left behind.
type Leftover struct {
	Kind   string // scratch database, journal, role or file
	Name   string
	Reason string // why it is still there; empty when the next load removes it
}
