package disk

import (
	"io"
	"io/fs"
	"os"
)

// Copy copies a file. The new file has the content of the old one and the mode perm. If the file
// system can share blocks between files, the copy is almost instant, and takes no space until one
// of the two files changes. The copy is not synced. Copy fails with [fs.ErrExist] if there already
// is a file at the new path. A failed Copy leaves no new file.
func Copy(from, to string, perm fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if !shareBlocks(out, in) {
		_, err = io.Copy(out, in)
	}
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(to)
	}
	return err
}

// SharesBlocks reports whether [Copy] shares blocks between files in a directory. It creates two
// temporary files in the directory and removes them.
func SharesBlocks(dir string) bool {
	in, err := os.CreateTemp(dir, ".snapcli-share-*")
	if err != nil {
		return false
	}
	defer os.Remove(in.Name())
	defer in.Close()
	out, err := os.CreateTemp(dir, ".snapcli-share-*")
	if err != nil {
		return false
	}
	defer os.Remove(out.Name())
	defer out.Close()
	return shareBlocks(out, in)
}
