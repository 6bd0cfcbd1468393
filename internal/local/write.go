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
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/gofrs/flock"

	"snap"
	"snap/internal/archive"
	"snap/internal/delta"
	"snap/internal/disk"
	"snap/internal/engine"
	"snap/internal/sanitize"
	"snap/internal/schema"
)

// partSuffix is the end of the name of a file that a build or a pull by delta is writing. The file
// is locked during that time, so that the remains of a killed command can be recognized.
const partSuffix = ".building"

// draft describes how to make a snapshot, and its properties as far as they are known before the
// dump.
type draft struct {
	archive.Manifest
	from Provenance

	source Snapshot        // the original that is sanitized
	to     []age.Recipient // recipients; nil means not encrypted
	jobs   int

	subset *engine.Subset     // limits on the dump's rows; nil means all
	choice Choice             // limits on the dump's objects
	grants bool               // include the rights of other users
	masks  *sanitize.Prepared // how rules mask each column; nil without rules

	sourceSchema *schema.Schema     // the original's description, which lists the parts that it lacks; may be nil
	dumper       engine.Dumper      // writes the dump; nil for an ordinary dump of the database
	verify       verifyFunc         // checks the dump before it is kept; may be nil
	proof        *proof             // loads the dump before it is kept; may be nil
	named        func(string) error // called with the name before a file of that name exists; may be nil
}

// verifyFunc writes the dump that a function produces, and returns an error if it must not be kept.
type verifyFunc func(context.Context, io.Writer, func(io.Writer) (engine.Info, error)) (engine.Info, error)

// newSnapshot creates a snapshot of a database atomically.
func (a *Agent) newSnapshot(ctx context.Context, from database, d draft, p Progress) (Snapshot, error) {
	d.Engine = from.kind
	dir := a.tempDir()
	if d.subset != nil || !d.choice.Empty() { // the engine may need disk space for a copy
		work, done, err := a.workDir()
		if err != nil {
			return Snapshot{}, err
		}
		defer done()
		dir = work
	}
	bytes, begin := p.phases("dump")
	o := engine.Options{Jobs: d.jobs, TempDir: dir, Progress: bytes, Phase: begin, Subset: d.subset, Choice: d.choice,
		WithGrants: d.grants}
	var warnings []string
	s, err := a.writeSnapshot(ctx, d, func(w io.Writer) (engine.Info, error) {
		dump := func(w io.Writer) (engine.Info, error) {
			if d.dumper != nil {
				return d.dumper.Dump(ctx, w, o)
			}
			return from.engine.Dump(ctx, from.url, w, o)
		}
		if d.verify != nil {
			plain := dump
			dump = func(w io.Writer) (engine.Info, error) { return d.verify(ctx, w, plain) }
		}
		info, err := dump(w)
		info = dropInvalidSchema(from.kind, info)
		warnings = info.Warnings
		return info, err
	})
	s.Warnings = warnings
	return s, err
}

// writeSnapshot writes a snapshot whose dump is produced by a function.
func (a *Agent) writeSnapshot(ctx context.Context, d draft, dump func(io.Writer) (engine.Info, error)) (s Snapshot,
	err error) {
	f, err := a.reserve(d.Target)
	if err != nil {
		return Snapshot{}, err
	}
	defer f.abandon()
	d.Name, d.Created = f.name, f.created
	if d.named != nil {
		if err := d.named(f.name); err != nil {
			return Snapshot{}, err
		}
	}
	sketch := delta.NewSketch(d.Engine)
	m, sum, err := writeArchive(f.file, d, sketched(dump, sketch))
	if err == nil {
		err = f.finish()
	}
	if err != nil {
		return Snapshot{}, diskError(err, "write the snapshot")
	}
	s = Snapshot{Target: m.Target, Name: m.Name, Type: m.Type, Engine: m.Engine, Size: sum.Size,
		SHA256: sum.SHA256, Created: m.Created, From: d.from, Proven: d.proof != nil && d.proof.passed}
	if s.Certificate, err = a.certify(s, d); err != nil {
		return Snapshot{}, err
	}
	if err := a.readBack(ctx, s, f.path+partSuffix); err != nil {
		return Snapshot{}, err
	}
	s, err = a.admit(s, f.path+partSuffix, func(*archive.Reader) (*delta.Sketch, error) { return sketch, nil })
	if err == nil { // the record exists, so the file is listed as soon as it has its name
		err = diskError(f.keep(), "write the snapshot")
	}
	if err != nil {
		return s, err
	}
	a.remember(&s)
	s.describe(m) // including what the record of an encrypted snapshot omits
	return s, nil
}

// writeArchive writes the dump to a snapshot file and returns its manifest.
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
	if m.Sanitized != nil { // masks and dropped rows may have broken constraints that held before
		delete(m.Properties, engine.ForeignKeys)
	}
	if info.Subset != nil {
		m.Subset = subsetTo(info.Subset)
	}
	copySourceRows(m.Tables, d.Tables)
	recordMasks(m.Tables, d.masks)
	copyOmissions(m.Schema, d.sourceSchema)
	sum, err = w.Close(m)
	return m, sum, err
}

// copySourceRows copies to tables the number of rows that each table had in the subset's source.
func copySourceRows(tables, original []archive.Table) {
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

// recordMasks records in tables how rules masked them.
func recordMasks(tables []archive.Table, by *sanitize.Prepared) {
	if by == nil {
		return
	}
	for i, t := range tables {
		id := [2]string{t.Schema, t.Name}
		if tables[i].Dropped = by.Plan.Tables[id].DropRows; !tables[i].Dropped {
			tables[i].Masks = by.Chosen[id]
		}
	}
}

// copyOmissions adds to a copy's description the parts that its original lacks.
func copyOmissions(s, original *schema.Schema) {
	if s == nil || original == nil {
		return
	}
	for _, o := range original.Omitted {
		if !slices.ContainsFunc(s.Omitted, func(known schema.Omission) bool { return known.Kind == o.Kind }) {
			s.Omitted = append(s.Omitted, o)
		}
	}
}

// reserved is a reserved snapshot name and the temporary file for it.
type reserved struct {
	name    string
	created time.Time
	path    string // path of the finished file
	file    *os.File
	lock    *flock.Flock
	kept    bool
}

// reserve finds a free name for a new snapshot of the target and opens its file. A second snapshot
// in the same second gets the suffix -2.
func (a *Agent) reserve(target string) (*reserved, error) {
	dir := a.snapshotsDir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, diskError(err, "create the folder of the target's snapshots")
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
		r.file, r.lock = file, flock.New(r.path+partSuffix, flock.SetFlag(os.O_RDWR))
		locked, err := r.lock.TryLock()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.abandon()
			return nil, diskError(err, "lock the snapshot")
		}
		if !locked { // another build removes the file as a leftover, or has just removed it
			r.abandon()
			continue
		}
		return r, nil
	}
}

// finish syncs and closes the file.
func (r *reserved) finish() error {
	if err := r.file.Sync(); err != nil {
		return err
	}
	return r.file.Close()
}

// keep gives the file its final name.
func (r *reserved) keep() error {
	if err := os.Rename(r.path+partSuffix, r.path); err != nil {
		return err
	}
	r.kept = true
	return disk.SyncDir(filepath.Dir(r.path))
}

// abandon removes the file unless it was kept.
func (r *reserved) abandon() {
	r.file.Close()
	if !r.kept {
		removePart(r.path + partSuffix)
	}
	if r.lock != nil {
		_ = r.lock.Close()
	}
}

// sweepParts removes the files of killed builds and pulls.
func sweepParts(dir string) { eachAbandoned(dir, "*"+partSuffix, removePart) }

// removePart removes the file of a build or pull that did not finish. Before that it removes the
// record, because a build writes the record before the file gets its final name.
func removePart(part string) {
	final := strings.TrimSuffix(part, partSuffix)
	if _, err := os.Lstat(final); errors.Is(err, fs.ErrNotExist) {
		os.Remove(recordPath(final))
	}
	os.Remove(part)
}

// workLocks is the pattern of the names of the lock files that [Agent.workDir] creates.
const workLocks = "work-*.lock"

// tempDir returns the directory for files that live as long as one command.
func (a *Agent) tempDir() string { return filepath.Join(a.data, "tmp") }

// workDir creates a temporary directory for one command. done removes it. workDir also removes the
// directories of killed commands.
func (a *Agent) workDir() (dir string, done func(), err error) {
	if err := os.MkdirAll(a.tempDir(), 0o700); err != nil {
		return "", nil, diskError(err, "create the folder for temporary files")
	}
	sweepWork(a.tempDir())
	lock, err := lockWork(a.tempDir())
	if err != nil {
		return "", nil, diskError(err, "lock a folder for temporary files")
	}
	done = func() {
		os.RemoveAll(dir)
		os.Remove(lock.Path())
		_ = lock.Close()
	}
	dir = strings.TrimSuffix(lock.Path(), ".lock")
	if err := os.Mkdir(dir, 0o700); err != nil {
		done()
		return "", nil, diskError(err, "create a folder for temporary files")
	}
	return dir, done, nil
}

// lockWork creates and locks the lock file of a directory that does not exist yet. The lock file
// is created first, so that sweepWork finds everything that a killed command leaves behind.
func lockWork(temp string) (*flock.Flock, error) {
	for {
		f, err := os.CreateTemp(temp, workLocks)
		if err != nil {
			return nil, err
		}
		f.Close()
		lock := flock.New(f.Name(), flock.SetFlag(os.O_RDWR))
		held, err := lock.TryLock()
		if err == nil && held {
			if _, err = os.Stat(f.Name()); err == nil {
				return lock, nil
			}
		}
		_ = lock.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			os.Remove(f.Name())
			return nil, err
		}
		// Another command removed the file before it was locked.
	}
}

// sweepWork removes the directories of killed commands.
func sweepWork(temp string) {
	eachAbandoned(temp, workLocks, func(path string) {
		os.RemoveAll(strings.TrimSuffix(path, ".lock"))
		os.Remove(path)
	})
}

// jobsOf returns the number of concurrent jobs: the first value that is set, otherwise the number
// of cores.
func jobsOf(wanted ...int) int {
	for _, n := range wanted {
		if n > 0 {
			return n
		}
	}
	return runtime.GOMAXPROCS(0)
}
