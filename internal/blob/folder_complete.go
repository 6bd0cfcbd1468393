package blob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"snap"
)

// Complete implements [Store]. The parts were hashed as they arrived, so little remains to be
// hashed here.
func (f *Folder) Complete(ctx context.Context, key, id string, size int64, sha256 string) error {
	u, err := f.uploadOf(key, id)
	if errors.Is(err, snap.ErrNotFound) {
		return requireComplete(ctx, f, key, size)
	}
	if err != nil {
		return err
	}
	u.ending.Lock()
	defer u.ending.Unlock()
	if u.isGone() {
		return requireComplete(ctx, f, key, size)
	}
	if _, err := os.Stat(u.data()); os.IsNotExist(err) { // killed after the rename
		return errors.Join(requireComplete(ctx, f, key, size), f.drop(u))
	}
	if u.unverified() {
		if _, err := f.rechecks.Join(ctx, id, math.MaxInt64, u.resume); err != nil {
			return err
		}
	}
	if err := u.seal(); err != nil {
		return err
	}
	defer u.unseal()
	sum, err := u.sum(ctx)
	if err != nil {
		return err
	}
	if sum != sha256 || size != u.head.Size {
		u.distrust(ctx)
		return &snap.Error{
			Code:   snap.CodeChecksumMismatch,
			Detail: "the bytes that arrived do not have the announced checksum",
			Hint: "push again; if it fails again, the local snapshot is damaged: check it with `snapcli snapshots " +
				"verify`",
		}
	}
	if err := f.publish(u); err != nil {
		return diskError("complete the upload", err)
	}
	return f.drop(u)
}

// publish turns the data into the object. It syncs the file and then renames it.
func (f *Folder) publish(u *upload) error {
	data, err := os.OpenFile(u.data(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(data.Sync(), data.Close()); err != nil {
		return err
	}
	path := f.object(u.head.Key)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return rename(u.data(), path)
}

func (u *upload) isGone() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gone
}

// seal closes the upload to further parts. It fails with upload_incomplete unless every part is
// present.
func (u *upload) seal() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if missing := u.head.parts() - len(u.confirmed); missing > 0 {
		return &snap.Error{
			Code:   snap.CodeUploadIncomplete,
			Detail: fmt.Sprintf("%d of %d parts are missing", missing, u.head.parts()),
			Hint:   "push again: it resumes where it stopped",
		}
	}
	u.sealed = true
	return nil
}

// unseal reopens an upload that did not complete.
func (u *upload) unseal() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sealed = u.gone
}

// recheck hashes again the parts that earlier processes confirmed. A part whose checksum no longer
// matches counts as missing.
func (u *upload) recheck(ctx context.Context) error {
	u.mu.Lock()
	older := slices.Collect(maps.Values(u.older))
	u.mu.Unlock()
	if len(older) == 0 {
		return nil
	}
	data, err := os.Open(u.data())
	if err != nil {
		return diskError("open the upload", err)
	}
	defer data.Close()
	for _, p := range older {
		offset, size := u.head.span(p.Number)
		crc, err := crcOf(ctx, data, offset, size)
		if err != nil {
			return fmt.Errorf("hash a part again: %w", err)
		}
		u.confirm(p, crc == p.CRC64)
	}
	return nil
}

// confirm records whether a part that an earlier process had confirmed is good, unless a new copy
// of the part has arrived in the meantime.
func (u *upload) confirm(p Part, good bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.older[p.Number] != p {
		return
	}
	delete(u.older, p.Number)
	if good {
		u.confirmed[p.Number] = p
	}
}

// distrust handles a wrong checksum of the whole object. Parts that changed on the disk must be
// sent again. If no part has changed, all must be sent again.
func (u *upload) distrust(ctx context.Context) {
	u.mu.Lock()
	all := len(u.confirmed)
	u.older, u.confirmed = u.confirmed, map[int]Part{}
	u.digest.rewind()
	u.mu.Unlock()
	err := u.recheck(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil && len(u.confirmed) == all {
		u.confirmed = map[int]Part{}
	}
}
