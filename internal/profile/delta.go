package profile

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"

	"snap"
	"snap/api"
)

// deltaPrefix returns the prefix of the keys of the deltas to the file with this SHA-256.
func deltaPrefix(result string) string { return "deltas/" + result + "/" }

func deltaKey(result, base string) string { return deltaPrefix(result) + base + ".snapdelta" }

// Earlier returns the record of the first of the named snapshots of a target that the profile has.
// It fails with [snap.ErrNotFound] if the profile has none of them, or already has the snapshot
// whose name is the parameter except.
func (p *Profile) Earlier(ctx context.Context, target, except string, names []string) (api.Snapshot, error) {
	keys, err := p.store.List(ctx, recordPrefix(target))
	if err != nil {
		return api.Snapshot{}, err
	}
	i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(keys, recordKey(target, name)) })
	if i < 0 || slices.Contains(keys, recordKey(target, except)) {
		return api.Snapshot{}, snap.ErrNotFound
	}
	return p.record(ctx, recordKey(target, names[i]))
}

// PutDelta stores the delta from the file base to the file result, both named by their SHA-256. r,
// size and sum are the content, the length and the SHA-256 of the delta itself.
func (p *Profile) PutDelta(ctx context.Context, result, base string, r io.Reader, size int64, sum string) error {
	return p.store.Put(ctx, deltaKey(result, base), r, size, sum)
}

// Delta finds a delta to the file result from one of the bases, which are in order of preference.
// All files are named by their SHA-256. Delta fails with [snap.ErrNotFound] if there is no such
// delta.
func (p *Profile) Delta(ctx context.Context, result string, bases []string) (base, url string, size int64, err error) {
	if sum, err := hex.DecodeString(result); err != nil || len(sum) != 32 {
		return "", "", 0, snap.ErrNotFound
	}
	keys, err := p.store.List(ctx, deltaPrefix(result))
	if err != nil {
		return "", "", 0, err
	}
	for _, base := range bases {
		if key := deltaKey(result, base); slices.Contains(keys, key) {
			size, err := p.store.Stat(ctx, key)
			return base, inProcess + "/" + key, size, err
		}
	}
	return "", "", 0, snap.ErrNotFound
}

func (p *Profile) serveDelta(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/")
	p.store.Serve(w, r, key, key)
}
