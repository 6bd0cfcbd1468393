package engine

import "context"

// Cleaner is an engine that finds and removes what failed or killed loads left behind. It never
// touches what a running load uses.
type Cleaner interface {
	// Leftovers lists, for display, the scratch databases, journals, roles and files that loads
	// left on the server of the database at url or, if it is a file, in its folder. It changes
	// nothing.
	Leftovers(ctx context.Context, url string) ([]string, error)

	// RemoveLeftovers completes or reverts interrupted loads and removes their remains. It returns
	// the names of the removed objects.
	RemoveLeftovers(ctx context.Context, url string) (removed []string, err error)
}
