package transfer

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/minio/crc64nvme"
)

// crcText writes a CRC-64/NVME as S3 does: base64 of its big-endian bytes.
func crcText(sum uint64) string {
	var b [crc64nvme.Size]byte
	binary.BigEndian.PutUint64(b[:], sum)
	return base64.StdEncoding.EncodeToString(b[:])
}
