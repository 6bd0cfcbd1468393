package disk

import "os"

// sector is what offset and length of a direct write are multiples of, on
// every usual disk.
const sector = 4096

// WriteAt writes content at an offset of a file, past the system's cache as far
// as direct, the same file opened by [OpenDirect], can do it: a large file then
// costs a fraction of the processor's time, and nothing is left to be written
// when it is synced. Buffers of whole pages are best.
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
