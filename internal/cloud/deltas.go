package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/blob"
	"snap/internal/delta"
	"snap/internal/disk"
	"snap/internal/store"
)

// deltas makes and keeps the deltas of this replica, in a folder. They are a cache: a delta that is
// not there is made again, or the whole file travels. This file does not know who a caller is.
type deltas struct {
	blobs  blob.Store
	now    func() time.Time
	dir    string
	making blob.Tasks
	busy   chan struct{} // one place for each piece of work at a time
	leave  int64         // bytes of the disk that stay free

	mu      sync.Mutex
	writing int64                // bytes of the files that are being written
	useless map[string]time.Time // deltas that are no smaller than the file, by name
}

const (
	deltaWorkers  = 2 // deltas made or applied at once
	deltaKept     = 24 * time.Hour
	deltaSpace    = 2 << 30   // bytes of kept deltas
	deltaLeast    = 128 << 10 // bytes of a file; smaller ones travel whole
	deltaPatience = 20 * time.Second
)

// openDeltas opens the cache: next to the objects of a folder, else in a temporary folder. It
// removes what an earlier process left.
func openDeltas(c Config, blobs blob.Store, now func() time.Time) (*deltas, error) {
	d := &deltas{blobs: blobs, now: now, busy: make(chan struct{}, deltaWorkers), leave: c.Limits.diskReserve(),
		useless: map[string]time.Time{}}
	var err error
	if c.Blob.URL == "" {
		d.dir = filepath.Join(c.DataDir, "deltas")
		err = errors.Join(os.RemoveAll(d.dir), os.MkdirAll(d.dir, 0o700))
	} else {
		d.dir, err = os.MkdirTemp("", "snapcloud-deltas-")
	}
	if err != nil {
		return nil, fmt.Errorf("open the folder of deltas: %w", err)
	}
	return d, nil
}

func (d *deltas) close() error { return os.RemoveAll(d.dir) }

// errNoDelta means that the whole file must travel.
var errNoDelta = &snap.Error{Code: snap.CodeUnavailable, Detail: "the service cannot work on a delta now",
	Hint: "transfer the whole file"}

// enter takes a place for work, or fails with errNoDelta.
func (d *deltas) enter() (leave func(), err error) {
	select {
	case d.busy <- struct{}{}:
		return func() { <-d.busy }, nil
	default:
		return nil, errNoDelta
	}
}

// room reserves space for a file of this many bytes, until release is called. It removes old deltas
// to make room, and fails with errNoDelta if the disk reserve would still be used.
func (d *deltas) room(bytes int64) (release func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sweep(bytes); !d.fits(bytes) {
		return nil, errNoDelta
	}
	d.writing += bytes
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.writing -= bytes
	}, nil
}

// fits reports whether a file of this many bytes leaves enough of the disk free. The caller holds
// mu.
func (d *deltas) fits(bytes int64) bool {
	free, known := disk.Free(d.dir)
	return !known || bytes+d.writing <= free-d.leave
}

// open opens a snapshot's file for random access. An object that is not on this machine is copied
// first.
func (d *deltas) open(ctx context.Context, b store.Bytes) (r *archive.Reader, done func(), err error) {
	object, err := d.blobs.Open(ctx, b.Blob)
	if err != nil {
		return nil, nil, err
	}
	file, here := object.(*os.File)
	if !here {
		defer object.Close()
		release, err := d.room(b.Size)
		if err != nil {
			return nil, nil, err
		}
		defer release()
		if file, err = os.CreateTemp(d.dir, "copy-*"); err != nil {
			return nil, nil, err
		}
		os.Remove(file.Name()) // the open file remains
		if _, err = io.Copy(file, object); err != nil {
			return nil, nil, errors.Join(err, file.Close())
		}
	}
	if r, err = archive.NewReader(file, b.Size); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return r, func() { file.Close() }, nil
}

// rebuild writes the object of an upload from its base and a delta, and verifies it. It fails with
// corrupt_snapshot if the delta does not give the announced file.
func (d *deltas) rebuild(ctx context.Context, u store.Upload, base store.Bytes, body io.Reader) error {
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	h, err := delta.ReadHeader(body)
	if err != nil {
		return err
	}
	if h.Base != fileOf(base) || h.Result != (delta.File{Size: u.Size, SHA256: u.SHA256}) {
		return snap.Invalid("the delta is not from this base to this snapshot", "push the whole file")
	}
	r, done, err := d.open(ctx, base)
	if err != nil {
		return err
	}
	defer done()
	from, to := io.Pipe()
	var applied error
	var applying sync.WaitGroup
	applying.Go(func() {
		applied = delta.Apply(ctx, to, h, r, body)
		to.CloseWithError(applied)
	})
	err = d.blobs.Put(ctx, u.Blob, from, u.Size, u.SHA256)
	from.CloseWithError(errNoDelta)
	applying.Wait()
	if err == nil || errors.Is(applied, errNoDelta) { // the object store failed first
		return err
	}
	return errors.Join(applied, err)
}

func fileOf(b store.Bytes) delta.File { return delta.File{Size: b.Size, SHA256: b.SHA256} }

// nameOf is the file name of a delta. Blob keys consist of letters, digits and underscores.
func nameOf(base, result store.Bytes) string { return base.SHA256 + "-" + result.SHA256 }

// get returns the file of a delta, or makes it. It returns nil if there is none, and making if it
// is not finished yet.
func (d *deltas) get(ctx context.Context, base, result store.Bytes) (f *os.File, making bool, err error) {
	name := nameOf(base, result)
	if f, err := d.kept(name); f != nil || err != nil || d.isUseless(name) {
		return f, false, err
	}
	ended, err := d.making.Join(ctx, name, deltaPatience, func(ctx context.Context) error {
		return d.make(ctx, name, base, result)
	})
	if err != nil || !ended {
		return nil, !ended && err == nil, err
	}
	f, err = d.kept(name)
	return f, false, err
}

// kept opens a delta that was made, or returns nil.
func (d *deltas) kept(name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(d.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func (d *deltas) isUseless(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, useless := d.useless[name]
	return useless
}

// make makes a delta and keeps it. A delta that saves less than a fifth is not kept.
func (d *deltas) make(ctx context.Context, name string, base, result store.Bytes) error {
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	old, done, err := d.open(ctx, base)
	if err != nil {
		return err
	}
	defer done()
	now, done, err := d.open(ctx, result)
	if err != nil {
		return err
	}
	defer done()
	limit := min(result.Size/5*4, deltaSpace/4)
	release, err := d.room(limit)
	if err != nil {
		return err
	}
	defer release()
	making, err := os.CreateTemp(d.dir, "making-*")
	if err != nil {
		return err
	}
	defer os.Remove(making.Name()) // fails after it got its name
	_, err = delta.Write(ctx, making, old, now, fileOf(base), fileOf(result), limit)
	err = errors.Join(err, making.Close())
	code := snap.CodeOf(err)
	if errors.Is(err, delta.ErrLarge) || code == snap.CodeInvalid || code == snap.CodeCorrupt {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.useless[name] = d.now()
		return nil
	}
	if err != nil {
		return err
	}
	return os.Rename(making.Name(), filepath.Join(d.dir, name))
}

// sweep removes old deltas, and the oldest ones when there are too many or a file of this many bytes
// does not fit. The caller holds mu.
func (d *deltas) sweep(bytes int64) {
	before := d.now().Add(-deltaKept)
	for name, at := range d.useless {
		if at.Before(before) {
			delete(d.useless, name)
		}
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return // the next sweep may succeed
	}
	var files []os.FileInfo
	total := int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && len(e.Name()) == 2*64+1 {
			files, total = append(files, info), total+info.Size()
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if total <= deltaSpace && f.ModTime().After(before) && d.fits(bytes) {
			break
		}
		os.Remove(filepath.Join(d.dir, f.Name()))
		total -= f.Size()
	}
}
