package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"

	"github.com/minio/crc64nvme"

	"snap/api"
)

// block is the number of bytes of a file read at a time.
const block = 256 << 10

// scan reads the file once, in order, and passes on the parts that the service lacks. If the
// checksum of the whole file differs from the one in the request, it returns an error, so that the
// upload is never completed.
func (u *uploader) scan(ctx context.Context, plan api.UploadPlan, hashed chan<- part) error {
	present := map[int]api.PartRef{}
	for _, p := range plan.Present {
		present[p.Number] = p
	}
	whole, buffer := sha256.New(), make([]byte, block)
	for n := 1; n <= plan.Parts; n++ {
		p := part{offset: int64(n-1) * plan.PartSize}
		p.size = min(plan.PartSize, u.req.Size-p.offset)
		crc := crc64nvme.New()
		if err := readInto(ctx, u.file, p.offset, p.size, buffer, whole, crc); err != nil {
			return err
		}
		p.PartSpec = api.PartSpec{Number: n, CRC64: base64.StdEncoding.EncodeToString(crc.Sum(nil))}
		if have := present[n]; have.CRC64 == p.CRC64 && have.Size == p.size {
			u.meter.done.Add(p.size)
			continue
		}
		select {
		case hashed <- p:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if hex.EncodeToString(whole.Sum(nil)) != u.req.SHA256 {
		return damaged(u.req.Name)
	}
	return nil
}

// readInto reads a range of a file into the hashes. It stops when ctx is done.
func readInto(ctx context.Context, file io.ReaderAt, offset, size int64, buffer []byte, sums ...hash.Hash) error {
	for size > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := file.ReadAt(buffer[:min(size, int64(len(buffer)))], offset)
		if n == 0 && err != nil {
			return err
		}
		for _, sum := range sums {
			sum.Write(buffer[:n])
		}
		offset, size = offset+int64(n), size-int64(n)
	}
	return nil
}
