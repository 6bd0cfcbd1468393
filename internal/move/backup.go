package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"snap"
	"snap/internal/blob"
	"snap/internal/disk"
	"snap/internal/store"
)

// Options configures a backup.
type Options struct {
	DataDir string           // of the service, with its SQLite database and its objects
	Dir     string           // the folder of backups; created if it does not exist
	Version string           // of this program
	Keep    int              // how many backups to keep, including this one; 0 keeps all
	Now     func() time.Time // nil is time.Now
}

// maxRounds limits how often a backup is tried. A round fails if a snapshot is deleted before its
// bytes are copied.
const maxRounds = 5

// BackUp adds a backup to a folder of backups: the database as of one moment and every object that
// the database names. The service may be running. Objects of earlier backups are not copied again.
// The backup becomes visible only when it is complete. After a killed run, the next one reuses the
// objects that were already copied.
func BackUp(ctx context.Context, o Options, p Progress) (b Backup, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := errors.Join(store.CheckExists(store.Options{DataDir: o.DataDir}),
		store.CheckRestored(store.Options{DataDir: o.DataDir})); err != nil {
		return b, err
	}
	if err := requireOutside(o.Dir, o.DataDir); err != nil {
		return b, err
	}
	defer func() { err = explainFull(o.Dir, err) }()
	unlock, err := lock(o.Dir)
	if err != nil {
		return b, err
	}
	defer unlock()
	if err := removeUnfinished(o.Dir); err != nil {
		return b, err
	}
	from, err := openFolder(filepath.Join(o.DataDir, blobsDir))
	if err != nil {
		return b, err
	}
	to, err := openFolder(filepath.Join(o.Dir, blobsDir))
	if err != nil {
		return b, err
	}
	for n := 1; ; n++ {
		r := &round{o: o, from: from, to: to, progress: p}
		b, err = r.run(ctx)
		if errors.Is(err, errVanished) && n < maxRounds {
			continue // copied objects stay, so the next round has little to do
		}
		if err != nil {
			return b, err
		}
		return b, prune(ctx, o.Dir, o.Keep, to)
	}
}

// openFolder opens a folder of objects that receives no uploads.
func openFolder(dir string) (*blob.Folder, error) {
	return blob.OpenFolder(dir, "", make([]byte, 32), nil) // the secret is never used
}

// requireOutside refuses a folder of backups in the data directory. Its backups would be lost
// together with the data.
func requireOutside(dir, dataDir string) error {
	to, err := resolve(dir)
	if err != nil {
		return err
	}
	data, err := resolve(dataDir)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(data, to); err == nil && filepath.IsLocal(rel) {
		return snap.Usage(dir+" is in data_dir, so the backups would be lost together with the data",
			"name a folder outside "+dataDir+", if possible on another disk")
	}
	return nil
}

// resolve returns an absolute path without symbolic links. Only the part of the path that exists
// can have links.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); errors.Is(err, os.ErrNotExist) && parent != path {
		real, err = resolve(parent)
		real = filepath.Join(real, filepath.Base(path))
	}
	return real, err
}

// explainFull adds the folder and a hint to an error for a full disk. It returns other errors
// unchanged.
func explainFull(dir string, err error) error {
	if snap.CodeOf(err) != snap.CodeStorageFull && !disk.Full(err) {
		return err
	}
	return &snap.Error{Code: snap.CodeStorageFull, Detail: "the disk of " + dir + " is full",
		Hint:  "free some space on it, then run the command again: objects that were copied are kept",
		Cause: err}
}

// lock keeps other programs from writing into a folder of backups.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of backups: %w", err)
	}
	l := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	held, err := l.TryLock()
	if err != nil {
		return nil, err
	}
	if !held {
		return nil, &snap.Error{Code: snap.CodeConflict, Detail: "another backup is being made in " + dir,
			Hint: "wait until it has finished"}
	}
	return func() { l.Unlock() }, nil
}

// removeUnfinished removes the files that a killed run left.
func removeUnfinished(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), oldPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// errVanished reports that an object is gone because its snapshot was deleted during the backup.
var errVanished = errors.New("a snapshot was deleted while the backup was made; run it again")

// round is one round of a backup.
type round struct {
	o        Options
	from, to *blob.Folder
	progress Progress

	total int64

	mu                sync.Mutex
	done, bytes       int64
	added, addedBytes int64 // copied in this round
}

func (r *round) run(ctx context.Context) (b Backup, err error) {
	name := r.o.Now().UTC().Format(nameFormat)
	unfinished := filepath.Join(r.o.Dir, newPrefix+name)
	if err := os.MkdirAll(unfinished, 0o700); err != nil {
		return b, err
	}
	defer os.RemoveAll(unfinished) // has no effect once the folder has become the backup
	database := filepath.Join(unfinished, databaseFile)
	if err := store.BackUp(ctx, r.o.DataDir, database); err != nil {
		return b, err
	}
	h := head{Format: format, Created: r.o.Now().UTC(), Version: r.o.Version}
	if h.Database, err = sumFile(database); err != nil {
		return b, err
	}
	if err := r.objects(ctx, database, unfinished, h); err != nil {
		return b, err
	}
	if err := disk.SyncDir(unfinished); err != nil {
		return b, err
	}
	if err := os.Rename(unfinished, filepath.Join(r.o.Dir, name)); err != nil {
		return b, err
	}
	if err := disk.SyncDir(r.o.Dir); err != nil {
		return b, err
	}
	b, _, err = readManifest(r.o.Dir, name, nil)
	return b, err
}

// objects copies the objects of a database and writes the manifest.
func (r *round) objects(ctx context.Context, database, unfinished string, h head) error {
	c, err := store.OpenCopy(database)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it was only read
	if r.total, err = c.Count(ctx); err != nil {
		return err
	}
	if err := eachObject(ctx, c.Objects, r.object); err != nil {
		return err
	}
	m, err := newManifest(unfinished, h)
	if err != nil {
		return err
	}
	m.tail.Added, m.tail.AddedBytes = r.added, r.addedBytes
	for after := ""; err == nil; {
		var batch []store.Object
		batch, err = c.Objects(ctx, after, page)
		for _, o := range batch {
			err = errors.Join(err, m.object(o))
			after = o.Key
		}
		if len(batch) < page {
			break
		}
	}
	return errors.Join(err, m.close())
}

// object copies one object unless the folder of backups already has it.
func (r *round) object(ctx context.Context, o store.Object) error {
	size, err := r.to.Stat(ctx, o.Key)
	present := err == nil && size == o.Size
	if !present {
		err := copyObject(ctx, r.from, r.to, o)
		if snap.CodeOf(err) == snap.CodeCorrupt {
			err = r.explainMissing(ctx, o, err)
		}
		if err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.done++
	r.bytes += o.Size
	if !present {
		r.added++
		r.addedBytes += o.Size
	}
	done, bytes := r.done, r.bytes
	r.mu.Unlock()
	r.progress.objects(done, r.total, bytes)
	return nil
}

// explainMissing returns errVanished if an object was deleted during the backup, and otherwise
// copyErr, the error of copying it.
func (r *round) explainMissing(ctx context.Context, o store.Object, copyErr error) error {
	needed, err := store.NeedsObject(ctx, r.o.DataDir, o.Key)
	if err != nil || needed {
		return errors.Join(copyErr, err)
	}
	return errVanished
}

// Backups lists the backups in a folder, the newest first. If manifests are damaged, it returns the
// other backups and an error.
func Backups(dir string) (all []Backup, err error) {
	names, err := backupNames(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, _, damage := readManifest(dir, name, nil)
		if damage != nil {
			err = errors.Join(err, damage)
			continue
		}
		all = append(all, b)
	}
	return all, err
}

// backupNames lists the backups in a folder by name, the newest first.
func backupNames(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, snap.Usage("there is no folder "+dir, "name the folder of the backups")
	}
	for _, e := range entries {
		if _, err := time.Parse(nameFormat, e.Name()); err == nil && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Reverse(names) // os.ReadDir sorts them
	return names, err
}

// choose returns the backup with this name, or the newest if name is empty.
func choose(dir, name string) (string, error) {
	names, err := backupNames(dir)
	if err != nil {
		return "", err
	}
	switch {
	case len(names) == 0:
		return "", &snap.Error{Code: snap.CodeNotFound, Detail: "there is no backup in " + dir,
			Hint: "make one with `snapcloud backup --to " + dir + "`"}
	case name == "":
		return names[0], nil
	case !slices.Contains(names, name):
		return "", &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no backup %s in %s", name, dir),
			Hint: "`snapcloud backup list --from " + dir + "` shows them"}
	}
	return name, nil
}

// prune removes all but the newest backups, and the objects that only the removed backups had.
func prune(ctx context.Context, dir string, keep int, objects *blob.Folder) error {
	names, err := backupNames(dir)
	if err != nil || keep <= 0 || len(names) <= keep {
		return err
	}
	for _, name := range names[keep:] { // the rename removes a backup as a whole
		old := filepath.Join(dir, oldPrefix+name)
		if err := errors.Join(os.Rename(filepath.Join(dir, name), old), disk.SyncDir(dir),
			os.RemoveAll(old)); err != nil {
			return err
		}
	}
	needed := map[string]bool{}
	for _, name := range names[:keep] {
		if _, _, err := readManifest(dir, name,
			func(o store.Object) error { needed[o.Key] = true; return nil }); err != nil {
			return err
		}
	}
	keys, err := objects.List(ctx, "")
	for _, key := range keys {
		if !needed[key] {
			err = errors.Join(err, objects.Delete(ctx, key))
		}
	}
	return err
}
