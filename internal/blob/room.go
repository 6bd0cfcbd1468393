package blob

import "snap/internal/disk"

// LeaveFree makes uploads fail with storage_full if they would leave fewer than this many bytes
// free on the disk, which the service's database may share. It must be called before the folder is
// used.
func (f *Folder) LeaveFree(bytes int64) { f.leave = bytes }

// requireRoom returns an error unless enough of the disk stays free after writing this many bytes
// and the rest of the parts and objects that are being received.
func (f *Folder) requireRoom(bytes int64) error {
	free, known := disk.Free(f.dir)
	if !known || bytes+f.arriving.Load() <= free-f.leave {
		return nil
	}
	return storageFull(nil)
}
