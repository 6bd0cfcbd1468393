package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"

	"snap"
)

// The versions of the file layout that this package writes: one for unencrypted and one for
// encrypted files.
const (
	Format          = 3
	FormatEncrypted = 2
)

// Encoder is the version of the encoder of [Writer]. The same version writes the same bytes for the
// same content and manifest, on any machine. It is increased with every change that makes the
// output differ, including changes of the compression library.
const Encoder = 1

// formatFrames is the oldest version of unencrypted files. Its sections are zstd frames instead of
// blocks. This package only reads it.
const formatFrames = 1

const (
	headerSize   = 16
	footerSize   = 64
	headMagic    = "\x89SNAP\r\n\x1a"
	footMagic    = "SNAPEND\n"
	maxManifest  = 64 << 20 // bytes; about half a million tables
	maxSections  = 64
	maxTables    = 1 << 20
	maxName      = 1024
	maxWindow    = 16 << 20 // of a zstd frame of formatFrames
	maxStructure = 1 << 50  // bytes a section may decompress to
)

// header returns the first 16 bytes: the magic number, the format version and zeros.
func header(format uint16) []byte {
	b := append(make([]byte, 0, headerSize), headMagic...)
	b = binary.BigEndian.AppendUint16(b, format)
	return append(b, make([]byte, headerSize-len(b))...)
}

// checkHeader validates a header and returns its format version.
func checkHeader(b []byte) (format uint16, err error) {
	if !bytes.HasPrefix(b, []byte(headMagic)) {
		return 0, corrupt("it is not a snapshot file", nil)
	}
	if format = binary.BigEndian.Uint16(b[len(headMagic):]); format > Format {
		return 0, newerFormat(int(format))
	}
	if format == 0 || !bytes.Equal(b, header(format)) {
		return 0, corrupt("its header is damaged", nil)
	}
	return format, nil
}

// footer is the last 64 bytes. It locates the manifest and holds its checksum.
type footer struct {
	offset, length uint64
	sum            [sha256.Size]byte
}

func (f footer) bytes() []byte {
	b := make([]byte, 0, footerSize)
	b = binary.BigEndian.AppendUint64(b, f.offset)
	b = binary.BigEndian.AppendUint64(b, f.length)
	b = append(b, f.sum[:]...)
	b = append(b, make([]byte, footerSize-len(b)-len(footMagic))...)
	return append(b, footMagic...)
}

// readFooter reads the footer of a file of the given size. The manifest must fill the space between
// the sections and the footer.
func readFooter(b []byte, size int64) (footer, error) {
	var f footer
	if !bytes.HasSuffix(b, []byte(footMagic)) {
		return f, corrupt("it is incomplete: its end is missing", nil)
	}
	f.offset = binary.BigEndian.Uint64(b)
	f.length = binary.BigEndian.Uint64(b[8:])
	copy(f.sum[:], b[16:])
	if !bytes.Equal(b, f.bytes()) || f.length > maxManifest || f.offset < headerSize || f.offset > uint64(size) ||
		f.offset+f.length+footerSize != uint64(size) {
		return f, corrupt("its footer is damaged", nil)
	}
	return f, nil
}

var (
	sectionName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	hexSum      = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// check validates the manifest against the format, since the manifest may come from a faulty
// program or an attacker. format is the version in the header; end is the offset at which the
// sections must end.
func (m Manifest) check(format uint16, end int64) error {
	switch {
	case m.Format != int(format):
		return corrupt("its manifest and its header name different versions of the format", nil)
	case !m.Engine.Valid() || !m.Type.Valid() || m.Created.IsZero():
		return corrupt("its manifest has no valid engine, type or creation time", nil)
	case len(m.Name) == 0 || len(m.Name) > maxName || len(m.Target) > maxName || len(m.Tables) > maxTables ||
		len(m.Sections) > maxSections:
		return corrupt("its manifest has a name, a target or a list of an invalid length", nil)
	}
	at, seen := int64(headerSize), map[string]bool{}
	for _, s := range m.Sections {
		if !sectionName.MatchString(s.Name) || seen[s.Name] || !hexSum.MatchString(s.SHA256) {
			return corrupt("its manifest has an invalid section", nil)
		}
		if s.Offset != at || s.Stored < 0 || s.Stored > end-at || s.Size < 0 || s.Size > maxStructure {
			return corrupt("its manifest has a section that is out of bounds", nil)
		}
		at, seen[s.Name] = at+s.Stored, true
	}
	if at != end {
		return corrupt("its sections do not add up to its size", nil)
	}
	return nil
}

func newerFormat(version int) error {
	return snap.Invalid(fmt.Sprintf("the snapshot file has format %d, and this snapcli reads formats up to %d", version,
		Format), "update snapcli")
}

// corrupt returns the error for a damaged file.
func corrupt(why string, cause error) *snap.Error {
	return &snap.Error{
		Code:   snap.CodeCorrupt,
		Detail: "the snapshot file cannot be used: " + why,
		Hint:   "pull it again, or build a new one",
		Cause:  cause,
	}
}
