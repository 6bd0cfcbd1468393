package engine

import "context"

// Mender is an engine that finds and removes what loads left behind that failed
// or were killed. What a running load uses is not left behind.
type Mender interface {
	// Leftovers names it for a person: scratch databases, journals, roles and
	// files on the server, or in the folder, of the database at url. It changes
	// nothing.
	Leftovers(ctx context.Context, url string) ([]string, error)

	// Mend finishes or undoes what ended loads began, and removes the rest. It
	// returns what it removed.
	Mend(ctx context.Context, url string) (removed []string, err error)
}
