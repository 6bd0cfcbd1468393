package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/gofrs/flock"

	"snap"
	"snap/internal/archive"
	"snap/internal/disk"
	"snap/internal/engine"
)

// partSuffix ends the name of a file that a build is writing. It is locked
// while it is written, so that what a killed build left can be told.
const partSuffix = ".building"

// draft is a snapshot that is to be made: what it is, without what the dump
// tells, and how.
type draft struct {
	archive.Manifest
	from Provenance
	to   []age.Recipient // who can read it; nil is everybody
	jobs int

	subset *engine.Subset // of the dump's rows; nil is all
	verify verifying      // of a dump that is looked through before it is kept; may be nil
}

// verifying writes a dump that a function makes, and fails when it must not be
// kept.
type verifying func(context.Context, io.Writer, func(io.Writer) (engine.Info, error)) (engine.Info, error)

// newSnapshot writes a snapshot of a database into its place, whole or not at
// all.
func (a *Agent) newSnapshot(ctx context.Context, from database, d draft, p Progress) (Snapshot, error) {
	d.Engine = from.kind
	dir := a.tempDir()
	if d.subset != nil { // it may need a copy
		work, done, err := a.workDir()
		if err != nil {
			return Snapshot{}, err
		}
		defer done()
		dir = work
	}
	bytes, begin := p.following("dump")
	o := engine.Options{Jobs: d.jobs, TempDir: dir, Progress: bytes, Phase: begin, Subset: d.subset}
	var warnings []string
	s, err := a.writeSnapshot(d, func(w io.Writer) (engine.Info, error) {
		dump := func(w io.Writer) (engine.Info, error) { return from.engine.Dump(ctx, from.url, w, o) }
		if d.verify != nil {
			plain := dump
			dump = func(w io.Writer) (engine.Info, error) { return d.verify(ctx, w, plain) }
		}
		info, err := dump(w)
		info = describedAs(from.kind, info)
		warnings = info.Warnings
		return info, err
	})
	s.Warnings = warnings
	return s, err
}

// writeSnapshot writes a snapshot whose dump comes from a function.
func (a *Agent) writeSnapshot(d draft, dump func(io.Writer) (engine.Info, error)) (s Snapshot, err error) {
	f, err := a.reserve(d.Target)
	if err != nil {
		return Snapshot{}, err
	}
	defer f.abandon()
	d.Name, d.Created = f.name, f.created
	m, sum, err := writeArchive(f.file, d, dump)
	if err == nil {
		err = f.keep()
	}
	if err != nil {
		return Snapshot{}, diskError(err, "write the snapshot")
	}
	s, err = a.adopt(Snapshot{Target: m.Target, Name: m.Name, Type: m.Type, Engine: m.Engine, Size: sum.Size,
		SHA256: sum.SHA256, Created: m.Created, From: d.from})
	if err != nil {
		os.Remove(f.path) // without its record it would stand there unseen
		return s, err
	}
	s.describe(m) // also what the record of an encrypted one does not tell
	return s, nil
}

// writeArchive writes the dump into a snapshot file, and returns its manifest.
func writeArchive(file *os.File, d draft, dump func(io.Writer) (engine.Info, error)) (m archive.Manifest,
	sum archive.Summary, err error) {
	var w *archive.Writer
	if d.to == nil {
		w, err = archive.NewWriter(file, d.jobs)
	} else {
		w, err = archive.NewEncryptedWriter(file, d.jobs, d.to)
	}
	if err != nil {
		return m, sum, err
	}
	section, err := w.Section(dumpSection)
	if err != nil {
		return m, sum, err
	}
	info, err := dump(section)
	if closed := section.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return m, sum, err
	}
	m = d.Manifest
	m.ServerVersion, m.ToolVersion = info.ServerVersion, info.ToolVersion
	m.Tables, m.Properties, m.Schema = toArchive(info.Tables), maps.Clone(info.Properties), info.Schema
	if m.Sanitized != nil { // masks and dropped rows may have changed what holds
		delete(m.Properties, engine.ForeignKeys)
	}
	if info.Subset != nil {
		m.Subset = subsetTo(info.Subset)
	}
	ofOriginal(m.Tables, d.Tables)
	sum, err = w.Close(m)
	return m, sum, err
}

// ofOriginal notes how many rows the tables of the source of a subset had, in
// the tables of a copy of it.
func ofOriginal(tables, original []archive.Table) {
	of := map[[2]string]int64{}
	for _, t := range original {
		of[[2]string{t.Schema, t.Name}] = t.Of
	}
	for i, t := range tables {
		if t.Of == 0 {
			tables[i].Of = of[[2]string{t.Schema, t.Name}]
		}
	}
}

// reserved is a snapshot's name and the file that is to have it.
type reserved struct {
	name    string
	created time.Time
	path    string // of the finished file
	file    *os.File
	lock    *flock.Flock
	kept    bool
}

// reserve finds a free name for a new snapshot of the target and opens its
// file. A second one in the same second gets -2 behind its name.
func (a *Agent) reserve(target string) (*reserved, error) {
	dir := a.snapshotsDir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, diskError(err, "make the folder of the target's snapshots")
	}
	sweepParts(dir)
	now := a.now().UTC()
	base := snap.SnapshotName(target, now)
	for n := 1; ; n++ {
		r := &reserved{name: base, created: now}
		if n > 1 {
			r.name = fmt.Sprintf("%s-%d", base, n)
		}
		r.path = filepath.Join(dir, r.name+fileSuffix)
		if _, err := os.Lstat(r.path); err == nil {
			continue
		}
		file, err := os.OpenFile(r.path+partSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, diskError(err, "write the snapshot")
		}
		r.file, r.lock = file, flock.New(r.path+partSuffix)
		locked, err := r.lock.TryLock()
		if err != nil {
			r.abandon()
			return nil, diskError(err, "lock the snapshot")
		}
		if !locked { // another build has just taken it for a leftover
			r.abandon()
			continue
		}
		return r, nil
	}
}

// keep makes the file durable and gives it its name.
func (r *reserved) keep() error {
	if err := r.file.Sync(); err != nil {
		return err
	}
	if err := r.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(r.path+partSuffix, r.path); err != nil {
		return err
	}
	r.kept = true
	return disk.SyncDir(filepath.Dir(r.path))
}

// abandon removes the file, unless it was kept.
func (r *reserved) abandon() {
	r.file.Close()
	if !r.kept {
		os.Remove(r.path + partSuffix)
	}
	if r.lock != nil {
		_ = r.lock.Close()
	}
}

// sweepParts removes the files of builds that were killed: nobody holds their
// lock.
func sweepParts(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), partSuffix) {
			continue
		}
		lock := flock.New(filepath.Join(dir, e.Name()), flock.SetFlag(os.O_RDWR))
		if free, err := lock.TryLock(); err == nil && free {
			os.Remove(filepath.Join(dir, e.Name()))
		}
		_ = lock.Close()
	}
}

// tempDir is the folder for files that live as long as one command.
func (a *Agent) tempDir() string { return filepath.Join(a.data, "tmp") }

// workDir makes a folder below the temporary one for one command, and removes
// it and what killed commands left there.
func (a *Agent) workDir() (dir string, done func(), err error) {
	if err := os.MkdirAll(a.tempDir(), 0o700); err != nil {
		return "", nil, diskError(err, "make the folder for temporary files")
	}
	sweepWork(a.tempDir())
	dir, err = os.MkdirTemp(a.tempDir(), "work-")
	if err != nil {
		return "", nil, diskError(err, "make a folder for temporary files")
	}
	lock := flock.New(dir + ".lock")
	if _, err := lock.TryLock(); err != nil {
		os.RemoveAll(dir)
		return "", nil, diskError(err, "lock the folder for temporary files")
	}
	return dir, func() {
		os.RemoveAll(dir)
		os.Remove(dir + ".lock")
		_ = lock.Close()
	}, nil
}

// sweepWork removes the folders of commands that were killed. A folder whose
// lock is not there yet is of a command that is just starting.
func sweepWork(temp string) {
	locks, _ := filepath.Glob(filepath.Join(temp, "work-*.lock"))
	for _, path := range locks {
		lock := flock.New(path, flock.SetFlag(os.O_RDWR))
		if free, err := lock.TryLock(); err == nil && free {
			os.RemoveAll(strings.TrimSuffix(path, ".lock"))
			os.Remove(path)
		}
		_ = lock.Close()
	}
}

// jobsOf returns how much may be done at a time: the first that is set, else
// the number of cores.
func jobsOf(wanted ...int) int {
	for _, n := range wanted {
		if n > 0 {
			return n
		}
	}
	return runtime.GOMAXPROCS(0)
}
