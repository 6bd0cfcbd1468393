package blob

import (
	"snap"
	"snap/internal/disk"
)

// LeaveFree has uploads stop with storage_full while the disk would have fewer
// bytes left than this. The service's database may be on the same disk. It is
// called before the folder is used.
func (f *Folder) LeaveFree(bytes int64) { f.leave = bytes }

// hasRoom returns nil when this many bytes, and the parts that are being
// received, leave enough of the disk free.
func (f *Folder) hasRoom(bytes int64) error {
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
