package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/blob"
	"snap/internal/disk"
	"snap/internal/store"
)

// Verify reads a whole backup (the newest if name is empty) and reports damage. It checks the
// manifest, every object, and the database with its audit chains. It also checks that the database
// names exactly the objects of the manifest.
func Verify(ctx context.Context, dir, name string, p Progress) (Backup, error) {
	name, err := choose(dir, name)
	if err != nil {
		return Backup{}, err
	}
	objects, err := openFolder(filepath.Join(dir, blobsDir))
	if err != nil {
		return Backup{}, err
	}
	b, h, err := readManifest(dir, name, nil)
	if err != nil {
		return b, err
	}
	file := filepath.Join(dir, name, databaseFile)
	if err := checkFile(file, h.Database, dir); err != nil {
		return b, err
	}
	if err := checkObjects(ctx, dir, name, file); err != nil {
		return b, err
	}
	return b, everyObject(ctx, dir, b, p, func(ctx context.Context, o store.Object) error {
		return verifyObject(ctx, dir, objects, o)
	})
}

// verifyObject reads an object in a folder of backups. It fails with code corrupt_snapshot if the
// object is missing or damaged.
func verifyObject(ctx context.Context, dir string, objects *blob.Folder, o store.Object) error {
	err := blob.Verify(ctx, objects, o.Key, o.Size, o.SHA256)
	if code := snap.CodeOf(err); code != snap.CodeNotFound && code != snap.CodeChecksumMismatch {
		return err
	}
	return &snap.Error{Code: snap.CodeCorrupt, Cause: err,
		Detail: fmt.Sprintf("the object %s of the backup is missing or damaged", o.Key),
		Hint: fmt.Sprintf("remove its file below %s if there is one, and run `snapcloud backup --to %s`, which copies "+
			"the object again if the service still has it", filepath.Join(dir, blobsDir), dir)}
}

// everyObject calls a function for each object of a backup, several objects at a time.
func everyObject(ctx context.Context, dir string, b Backup, p Progress,
	do func(context.Context, store.Object) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var done, bytes int64
	_, _, err := readManifest(dir, b.Name, func(o store.Object) error {
		group.Go(func() error { return do(groupCtx, o) })
		done, bytes = done+1, bytes+o.Size
		p.objects(done, b.Objects, bytes)
		return groupCtx.Err()
	})
	if failed := group.Wait(); failed != nil {
		return failed // this error ended the reading of the manifest
	}
	return err
}

// checkFile checks a backup's file, or a copy of it. dir is the folder of backups.
func checkFile(file string, want fileSum, dir string) error {
	got, err := sumFile(file)
	if err != nil {
		return err
	}
	if got != want {
		return &snap.Error{Code: snap.CodeCorrupt,
			Detail: fmt.Sprintf("%s is damaged: its checksum is wrong", file),
			Hint:   useAnother(dir)}
	}
	return nil
}

// useAnother is the hint for a damaged backup in a folder of backups.
func useAnother(dir string) string {
	return "use another backup: `snapcloud backup list --from " + dir + "` lists the backups"
}

// checkObjects checks the database, and that it names exactly the manifest's objects.
func checkObjects(ctx context.Context, dir, name, file string) error {
	c, err := store.OpenCopy(file)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it was only read
	if err := c.Check(ctx); err != nil {
		return err
	}
	differ := &snap.Error{Code: snap.CodeCorrupt, Detail: "the database and the manifest of the backup " + name +
		" name different objects"}
	var batch []store.Object
	after := ""
	_, _, err = readManifest(dir, name, func(o store.Object) error {
		if len(batch) == 0 {
			if batch, err = c.Objects(ctx, after, page); err != nil {
				return err
			}
		}
		if len(batch) == 0 || batch[0] != o {
			return differ
		}
		batch, after = batch[1:], o.Key
		return nil
	})
	if err != nil {
		return err
	}
	rest, err := c.Objects(ctx, after, 1)
	if err == nil && len(rest) > 0 {
		err = differ
	}
	return err
}

// A restore keeps two small files in its folder. The file "of" contains the name of the backup. The
// file "ready" exists once everything is verified and only renames are left. The last rename, that
// of the folder itself, ends the restore.
const (
	ofFile      = "of"
	readyFile   = "ready"
	restoredDir = ".restored"
)

// Restore puts a backup (the newest if name is empty) into a data directory, which must be empty or
// hold an unfinished restore of the same backup. Everything is verified before anything is put in
// place. No service starts on the directory before the restore has ended.
func Restore(ctx context.Context, dir, name, dataDir string, p Progress) (b Backup, err error) {
	if name, err = choose(dir, name); err != nil {
		return b, err
	}
	b, h, err := readManifest(dir, name, nil)
	if err != nil {
		return b, err
	}
	defer func() { err = explainFull(dataDir, err) }()
	staging := filepath.Join(dataDir, store.RestoringDir)
	if err := prepareStaging(dataDir, staging); err != nil {
		return b, err
	}
	if content, err := os.ReadFile(filepath.Join(staging, ofFile)); err == nil && string(content) != name {
		return b, snap.Usage("a restore of the backup "+string(content)+" into "+dataDir+" has already begun",
			"resume that one with --at, or remove "+staging)
	}
	if _, err := os.Stat(filepath.Join(staging, readyFile)); err != nil {
		if err := stage(ctx, dir, staging, b, h, p); err != nil {
			return b, err
		}
	}
	return b, moveIntoPlace(dataDir, staging)
}

// prepareStaging creates the folder in which a restore is prepared. Unless a restore has already
// begun there, it fails if the data directory contains anything but empty folders of objects and
// lost+found.
func prepareStaging(dataDir, staging string) error {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return err
	}
	if err := removeEmpty(filepath.Join(dataDir, blobsDir)); err != nil {
		return err
	}
	_, statErr := os.Stat(staging)
	entries, err := os.ReadDir(dataDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "lost+found" && statErr != nil {
			return &snap.Error{Code: snap.CodeConflict, Detail: dataDir + " is not empty",
				Hint: "restore into a new data_dir; nothing was changed"}
		}
	}
	if err := os.MkdirAll(staging, 0o700); err != nil {
		return err
	}
	return disk.SyncDir(dataDir)
}

// stage copies a backup into the folder of a restore and verifies the copy.
func stage(ctx context.Context, dir, staging string, b Backup, h head, p Progress) error {
	if err := writeSynced(filepath.Join(staging, ofFile), b.Name); err != nil {
		return err
	}
	from, err := openFolder(filepath.Join(dir, blobsDir))
	if err != nil {
		return err
	}
	to, err := openFolder(filepath.Join(staging, blobsDir))
	if err != nil {
		return err
	}
	database := filepath.Join(staging, databaseFile)
	if err := copyFile(filepath.Join(dir, b.Name, databaseFile), database); err != nil {
		return err
	}
	if err := errors.Join(checkFile(database, h.Database, dir), checkObjects(ctx, dir, b.Name, database)); err != nil {
		return err
	}
	err = everyObject(ctx, dir, b, p, func(ctx context.Context, o store.Object) error {
		if blob.Verify(ctx, to, o.Key, o.Size, o.SHA256) == nil {
			return nil // an earlier run copied it
		}
		if err := copyObject(ctx, from, to, o); err != nil {
			return cmp.Or(verifyObject(ctx, dir, from, o), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(staging, readyFile), "")
}

// removeEmpty removes a folder of objects, which `snapcloud check` creates, if it has no files.
func removeEmpty(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			return errHasFiles
		}
		folders = append(folders, path)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errHasFiles) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(folders) { // the inner ones first
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

var errHasFiles = errors.New("the folder has files")

// moveIntoPlace moves the verified files into place. The database comes last, because it names the
// other files.
func moveIntoPlace(dataDir, staging string) error {
	if err := removeEmpty(filepath.Join(dataDir, blobsDir)); err != nil {
		return err
	}
	for _, name := range []string{blobsDir, databaseFile} {
		err := os.Rename(filepath.Join(staging, name), filepath.Join(dataDir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // an earlier run has moved it
			return err
		}
	}
	if err := disk.SyncDir(dataDir); err != nil {
		return err
	}
	done := filepath.Join(dataDir, restoredDir)
	return errors.Join(os.Rename(staging, done), disk.SyncDir(dataDir), os.RemoveAll(done))
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

func writeSynced(file, text string) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = out.WriteString(text)
	return errors.Join(err, out.Sync(), out.Close(), disk.SyncDir(filepath.Dir(file)))
}
