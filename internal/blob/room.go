package blob

import (
	"snap"
	"snap/internal/disk"
)

// LeaveFree makes uploads fail with storage_full when they would leave fewer free bytes on the disk
// than this. The service's database may be on the same disk. It must be called before the folder is
// used.
func (f *Folder) LeaveFree(bytes int64) { f.leave = bytes }

// requireRoom returns nil when writing this many bytes, in addition to the rest of the parts that
// are being received, leaves enough of the disk free.
func (f *Folder) requireRoom(bytes int64) error {
	free, known := disk.Free(f.dir)
	if !known || bytes+f.arriving.Load() <= free-f.leave {
		return nil
	}
	return &snap.Error{
		Code:   snap.CodeStorageFull,
		Detail: "the service's object store is full",
		Hint: "ask the service's operator to free some space, then run the command again: it resumes where it " +
			"stopped",
	}
}
