package local

import (
	"context"
	"fmt"

	"snap"
	"snap/internal/archive"
)

// Verify reads the whole file and checks every checksum: those inside it, and
// the one it had when it was built or pulled.
func (a *Agent) Verify(ctx context.Context, name string, p Progress) (archive.Manifest, error) {
	s, err := a.Snapshot(name)
	if err != nil {
		return archive.Manifest{}, err
	}
	r, err := a.openVerified(ctx, s, p)
	if err != nil {
		return archive.Manifest{}, err
	}
	defer r.Close()
	return r.Manifest(), nil
}

// Manifest returns what a snapshot file says it holds, without reading all of
// it.
func (a *Agent) Manifest(name string) (archive.Manifest, error) {
	s, err := a.Snapshot(name)
	if err != nil {
		return archive.Manifest{}, err
	}
	r, err := archive.Open(s.Path)
	if err != nil {
		return archive.Manifest{}, err
	}
	defer r.Close()
	return r.Manifest(), nil
}

// openVerified opens a snapshot's file after every byte of it was checked.
func (a *Agent) openVerified(ctx context.Context, s Snapshot, p Progress) (*archive.Reader, error) {
	r, err := archive.Open(s.Path)
	if err != nil {
		return nil, err
	}
	sum, err := r.Verify(ctx, p.bytes("check"))
	if err == nil && (sum.SHA256 != s.SHA256 || sum.Size != s.Size) {
		err = &snap.Error{
			Code:   snap.CodeCorrupt,
			Detail: fmt.Sprintf("the file of the snapshot %s is not the one that was built or pulled: its checksum differs", s.Name),
			Hint:   "get it again: pull it, or build a new one",
		}
	}
	if err == nil {
		err = agree(s, r.Manifest())
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// agree reports whether a record and a manifest speak of the same. A snapshot
// that is listed as sanitized must say so itself.
func agree(s Snapshot, m archive.Manifest) error {
	if m.Type == s.Type && m.Engine == s.Engine {
		return nil
	}
	return &snap.Error{
		Code:   snap.CodeCorrupt,
		Detail: fmt.Sprintf("the file of the snapshot %s holds a %s of %s, and is listed as a %s of %s", s.Name, m.Type, m.Engine, s.Type, s.Engine),
		Hint:   "do not use it; ask who pushed it",
	}
}
