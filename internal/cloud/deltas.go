package cloud

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/blob"
	"snap/internal/delta"
	"snap/internal/disk"
	"snap/internal/store"
)

// deltas makes and keeps the deltas of this replica, in a folder. They are a cache: a missing delta
// is made again, or the whole file is sent. A delta that was pushed is also kept for pulls. The
// service cannot make encrypted deltas; clients push them. This type does not check access.
type deltas struct {
	blobs   blob.Store
	now     func() time.Time
	dir     string
	close   func() error // removes the folder
	making  blob.Tasks
	busy    chan struct{} // a semaphore with one slot for each concurrent piece of work
	reserve int64         // bytes of the disk that must stay free

	timeLimit time.Duration // time limit for the work on one delta
	maxStall  time.Duration // how long a delta that is being received may go without a byte

	mu      sync.Mutex
	writing int64                // bytes of the files that are being written
	useless map[string]time.Time // when each delta turned out not to be worth making, by name
}

// The prefixes of the names of files that are being written.
const (
	makingPrefix  = "making-"
	copyingPrefix = "copy-"
)

const (
	deltaWorkers   = 2 // deltas made or applied at once
	deltaMaxAge    = 24 * time.Hour
	deltaSpace     = 2 << 30   // maximum bytes of all kept deltas
	deltaMinFile   = 128 << 10 // bytes of a file; smaller files are sent whole
	deltaMaxFile   = 128 << 30 // bytes of a file that is rebuilt in S3; up to this size, S3.Put buffers only 16 MiB
	deltaWait      = 20 * time.Second
	deltaTimeLimit = 10 * time.Minute // time limit for the work on one delta
	deltaMaxStall  = time.Minute
)

func openDeltas(c Config, blobs blob.Store, now func() time.Time) (*deltas, error) {
	d := &deltas{blobs: blobs, now: now, busy: make(chan struct{}, deltaWorkers), reserve: c.Limits.diskReserve(),
		timeLimit: deltaTimeLimit, maxStall: deltaMaxStall, useless: map[string]time.Time{}}
	var err error
	d.dir, d.close, err = openFolder(c)
	return d, err
}

// errNoDelta means that the whole file must be sent.
var errNoDelta = &snap.Error{Code: snap.CodeUnavailable, Detail: "the service cannot work on a delta now",
	Hint: "transfer the whole file"}

// acquireSlot acquires a slot for one piece of work, or fails with errNoDelta if none is free.
func (d *deltas) acquireSlot() (leave func(), err error) {
	select {
	case d.busy <- struct{}{}:
		return func() { <-d.busy }, nil
	default:
		return nil, errNoDelta
	}
}

// reserveSpace reserves space for a file of this many bytes, until release is called. It removes
// old deltas to make room. If the file would use the disk reserve even then, it fails with
// errNoDelta.
func (d *deltas) reserveSpace(bytes int64) (release func(), err error) {
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
	return !known || bytes+d.writing <= free-d.reserve
}

// createTemp creates a file to write to. It also creates the folder if another program has removed
// it.
func (d *deltas) createTemp(prefix string) (*os.File, error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(d.dir, prefix+"*")
}

// open opens a snapshot's file for random access. An object that is not on this machine is copied
// first.
func (d *deltas) open(ctx context.Context, b store.Bytes) (r *archive.Reader, done func(), err error) {
	object, err := d.blobs.Open(ctx, b.Blob)
	if err != nil {
		return nil, nil, err
	}
	file, isLocal := object.(*os.File)
	if !isLocal {
		defer object.Close()
		content := bufio.NewReader(object)
		if archive.Sealed(content) {
			return nil, nil, snap.Invalid("the snapshot is encrypted", "transfer the whole file")
		}
		release, err := d.reserveSpace(b.Size)
		if err != nil {
			return nil, nil, err
		}
		defer release()
		if file, err = d.createTemp(copyingPrefix); err != nil {
			return nil, nil, err
		}
		os.Remove(file.Name()) // the open file stays readable
		if _, err = io.Copy(file, content); err != nil {
			return nil, nil, errors.Join(err, file.Close())
		}
	}
	if r, err = archive.NewReader(file, b.Size); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return r, func() { file.Close() }, nil
}

// receive reads an upload's delta, which is size bytes long. It writes the upload's object from the
// base and the delta, and verifies it. It fails with corrupt_snapshot if the delta does not result
// in the announced file. An encrypted delta is only kept for pulls; rebuilt is then false.
func (d *deltas) receive(ctx context.Context, u store.Upload, base store.Bytes, body io.Reader,
	size int64) (rebuilt bool, err error) {
	leave, err := d.acquireSlot()
	if err != nil {
		return false, err
	}
	defer leave()
	kept, keepErr := d.create(min(u.Size/5*4, deltaSpace/4), size)
	if keepErr == nil {
		defer kept.discard()
		body = io.TeeReader(body, kept)
	}
	h, err := delta.ReadHeader(body)
	if err != nil {
		return false, err
	}
	if h.Base != fileOf(base) || h.Result != (delta.File{Size: u.Size, SHA256: u.SHA256}) {
		return false, snap.Invalid("the delta is not from this base to this snapshot", "push the whole file")
	}
	name := nameOf(base, store.Bytes{Blob: u.Blob})
	if h.Sealed != nil {
		if keepErr == nil {
			_, keepErr = io.Copy(io.Discard, body)
		}
		if keepErr == nil {
			keepErr = kept.keep(name)
		}
		return false, keepErr
	}
	err = d.rebuild(ctx, u, base, h, body)
	if err == nil && keepErr == nil {
		_ = kept.keep(name) // if this fails, the delta is made again
	}
	return err == nil, err
}

// newDelta is the file of a delta that is being written.
type newDelta struct {
	*os.File
	in      *deltas
	release func()
}

// create begins a file for a delta of size bytes. It fails with errNoDelta if size exceeds the
// limit or the free space on the disk.
func (d *deltas) create(limit, size int64) (*newDelta, error) {
	if size > limit {
		return nil, errNoDelta
	}
	release, err := d.reserveSpace(size)
	if err != nil {
		return nil, err
	}
	f, err := d.createTemp(makingPrefix)
	if err != nil {
		release()
		return nil, err
	}
	return &newDelta{f, d, release}, nil
}

// keep gives a complete delta its name.
func (n *newDelta) keep(name string) error {
	if err := n.Close(); err != nil {
		return err
	}
	return os.Rename(n.Name(), filepath.Join(n.in.dir, name))
}

// discard closes the file and releases its space. It removes the file unless the file was kept.
func (n *newDelta) discard() {
	n.Close()
	os.Remove(n.Name())
	n.release()
}

// rebuild writes the object of an upload from its base and the rest of a delta, which follows the
// header h.
func (d *deltas) rebuild(ctx context.Context, u store.Upload, base store.Bytes, h delta.Header, body io.Reader) error {
	if _, isFolder := d.blobs.(*blob.Folder); !isFolder && u.Size > deltaMaxFile {
		return errNoDelta
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

// nameOf returns the file name of a delta: the names of the two objects. These names are unique, so
// nobody can influence the delta by pushing files with the same content elsewhere. The names
// contain only letters, digits and underscores.
func nameOf(base, result store.Bytes) string { return base.Blob + "-" + result.Blob }

// get returns the file of a delta, which it makes if necessary. It returns nil if no useful delta
// can be made. making is true if the delta is not finished yet.
func (d *deltas) get(ctx context.Context, base, result store.Bytes) (f *os.File, making bool, err error) {
	name := nameOf(base, result)
	if d.isUseless(name) {
		return nil, false, nil
	}
	ended, err := d.making.Join(ctx, name, deltaWait, func(ctx context.Context) error {
		return d.make(ctx, name, base, result)
	})
	if err != nil || !ended {
		return nil, !ended && err == nil, err
	}
	f, err = d.openKept(name)
	return f, false, err
}

// openKept opens a delta that was made, or returns nil.
func (d *deltas) openKept(name string) (*os.File, error) {
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

// make makes a delta and keeps it. A delta that saves less than a fifth of the bytes is not kept.
// Neither is one that takes too long, because two files can be crafted so that comparing them takes
// days.
func (d *deltas) make(ctx context.Context, name string, base, result store.Bytes) error {
	leave, err := d.acquireSlot()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, d.timeLimit)
	defer cancel()
	now, done, err := d.open(ctx, result)
	if err == nil {
		defer done()
		err = d.write(ctx, name, base, result, now)
	}
	useless := errors.Is(err, delta.ErrLarge) || errors.Is(err, archive.ErrLoads) ||
		errors.Is(err, context.DeadlineExceeded)
	if code := snap.CodeOf(err); useless || code == snap.CodeInvalid || code == snap.CodeCorrupt {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.useless[name] = d.now()
		return nil
	}
	return err
}

// write writes a delta and keeps it.
func (d *deltas) write(ctx context.Context, name string, base, result store.Bytes, now *archive.Reader) error {
	if err := delta.CheckWritable(now); err != nil {
		return err
	}
	old, done, err := d.open(ctx, base)
	if err != nil {
		return err
	}
	defer done()
	limit := min(result.Size/5*4, deltaSpace/4)
	file, err := d.create(limit, limit)
	if err != nil {
		return err
	}
	defer file.discard()
	if _, err = delta.Write(ctx, file, old, now, fileOf(base), fileOf(result), limit); err != nil {
		return err
	}
	return file.keep(name)
}

// expire removes the deltas that are too old to be kept.
func (d *deltas) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep(0)
}

// forget removes the deltas from and to an object. A delta that is being made now is removed later,
// when it is too old.
func (d *deltas) forget(blob string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if base, result, ok := strings.Cut(e.Name(), "-"); ok && (base == blob || result == blob) {
			err = errors.Join(err, os.Remove(filepath.Join(d.dir, e.Name())))
		}
	}
	return err
}

// sweep removes old deltas. It also removes the oldest remaining ones until they use little enough
// space and a file of this many bytes fits. It does not make room for a file that would not fit
// even without any deltas. The caller holds mu.
func (d *deltas) sweep(bytes int64) {
	before := d.now().Add(-deltaMaxAge)
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
		if strings.HasPrefix(e.Name(), makingPrefix) || strings.HasPrefix(e.Name(), copyingPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil {
			files, total = append(files, info), total+info.Size()
		}
	}
	if !d.fits(bytes - total) {
		bytes = 0
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
