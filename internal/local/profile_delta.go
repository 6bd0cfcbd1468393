package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"

	"snap"
	"snap/api"
	"snap/internal/profile"
	"snap/internal/transfer"
)

// A storage profile has no service that could apply or write a delta. A push therefore stores a
// small delta next to the whole file, for pulls. As with the service, a failed delta does not make
// a push or pull fail.

// storeDelta stores the delta from the newest earlier snapshot that this machine and the profile
// both have. It returns nil if there is no delta of at most a fifth of the file's size.
func (a *Agent) storeDelta(ctx context.Context, store *profile.Profile, s Snapshot, p Progress) (*sentDelta, error) {
	if s.Size < minDeltaFile {
		return nil, nil
	}
	stored, err := a.tryStoreDelta(ctx, store, s, p)
	if err != nil {
		return nil, a.fallBack(ctx, err)
	}
	return stored, nil
}

func (a *Agent) tryStoreDelta(ctx context.Context, store *profile.Profile, s Snapshot, p Progress) (*sentDelta,
	error) {
	base, err := a.earlierIn(ctx, store, s)
	if err != nil {
		return nil, err
	}
	dir, done, err := a.workDir()
	if err != nil {
		return nil, err
	}
	defer done()
	p.phase("compare")
	file, written, err := writeDelta(ctx, filepath.Join(dir, "delta"), base, s, s.Size/5, a.readyIdentities())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err = io.Copy(sum, file); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	p.phase("push")
	err = store.PutDelta(ctx, s.SHA256, base.SHA256, file, written.Size, hex.EncodeToString(sum.Sum(nil)))
	return &sentDelta{written, base}, err
}

// earlierIn returns the newest local snapshot of the same target and type that is also in the
// profile.
func (a *Agent) earlierIn(ctx context.Context, store *profile.Profile, s Snapshot) (Snapshot, error) {
	local, err := a.possibleBases(s.Target, s.Type, s.Encrypted > 0)
	if err != nil {
		return Snapshot{}, err
	}
	var names []string
	for _, b := range local {
		names = append(names, b.Name)
	}
	there, err := store.Earlier(ctx, s.Target, s.Name, names)
	if err != nil {
		return Snapshot{}, err
	}
	for _, b := range local {
		if b.SHA256 == there.SHA256 && b.SHA256 != s.SHA256 {
			return b, nil
		}
	}
	return Snapshot{}, errNoBase
}

// possibleBases is like allBases, but returns at most maxDeltaBases snapshots.
func (a *Agent) possibleBases(target string, typ snap.Type, encrypted bool) ([]Snapshot, error) {
	all, err := a.allBases(target, typ, encrypted)
	return all[:min(len(all), maxDeltaBases)], err
}

// pullStoredDelta makes the file of a snapshot from a delta in the profile and a local snapshot.
func (a *Agent) pullStoredDelta(ctx context.Context, store *profile.Profile, wanted api.Snapshot, path string,
	o transfer.Options) (none pulledDelta, err error) {
	local, err := a.possibleBases(wanted.Target, wanted.Type, true)
	if err != nil {
		return none, err
	}
	bases, sums := map[string]Snapshot{}, []string{}
	for _, s := range local {
		bases[s.SHA256], sums = s, append(sums, s.SHA256)
	}
	base, url, size, err := store.Delta(ctx, wanted.SHA256, sums)
	if err == nil && size >= wanted.Size {
		err = errors.New("the delta is not smaller than the snapshot")
	}
	if err != nil {
		return none, err
	}
	return pulledDelta{fetched: size}, a.fetchDelta(ctx, url, size, bases[base], wanted, path, o)
}
