package sqlite

import (
	"context"
	"path/filepath"
)

// Leftovers implements engine.Mender: the scratch files of loads that were
// killed, next to the database at url.
func (Engine) Leftovers(_ context.Context, url string) ([]string, error) {
	place, err := Path(url)
	if err != nil {
		return nil, err
	}
	return leftFiles(place), nil
}

// Mend implements engine.Mender: it removes what Leftovers names.
func (Engine) Mend(_ context.Context, url string) (removed []string, err error) {
	place, err := Path(url)
	if err != nil {
		return nil, err
	}
	removed = leftFiles(place)
	sweep(place)
	return removed, nil
}

// leftFiles are the scratch files next to a database that no load writes.
func leftFiles(place string) (left []string) {
	all, _ := filepath.Glob(escape(filepath.Join(filepath.Dir(place), tempPrefix(place))) + "*" + tempSuffix)
	for _, path := range all {
		if stale(path) {
			left = append(left, path)
		}
	}
	return left
}
