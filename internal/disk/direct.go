package disk

import "os"

// sector is an alignment that all common disks accept for the offset and length of a direct write.
const sector = 4096

// WriteAt writes content to file at an offset. direct is the same file opened by [OpenDirect], or
// nil. WriteAt bypasses the page cache where direct allows it. For a large file this costs a
// fraction of the processor time and leaves nothing for a later sync to write. Buffers of whole
// pages work best.
func WriteAt(file, direct *os.File, content []byte, offset int64) error {
	whole := len(content) - len(content)%sector
	if direct != nil && offset%sector == 0 && whole > 0 {
		n, err := direct.WriteAt(content[:whole], offset)
		if err != nil && !refusesDirect(err) {
			return err
		}
		content, offset = content[n:], offset+int64(n)
	}
	_, err := file.WriteAt(content, offset)
	return err
}
