package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"slices"
	"sync/atomic"

	"github.com/minio/crc64nvme"
	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
)

// Download pulls a snapshot to file, which is created only when every byte is verified and synced.
// It resumes an earlier attempt, and returns in moved how many bytes it received over the network.
// If another process is downloading the same file, it waits for that process and uses its result.
//
// If access to the snapshot ends during the download, the error is not_found or forbidden, and the
// partial file is deleted. Wrong bytes are fetched a second time; if they are wrong again, the
// error is corrupt_snapshot. After any other error, the next call resumes.
func Download(ctx context.Context, c Service, snapshotID, file string, o Options) (got api.PullResponse, moved int64,
	err error) {
	got, err = c.Pull(ctx, snapshotID)
	if err != nil {
		return got, 0, err
	}
	if got.Snapshot.Size < 1 || len(got.Snapshot.SHA256) != 2*sha256.Size {
		return got, 0, &snap.Error{Code: snap.CodeInternal,
			Detail: "the description of the snapshot has no valid size or SHA-256",
			Hint:   "update snapcli or the service; with a storage profile, delete the snapshot's record there"}
	}
	o = o.withDefaults()
	if o.piece < 1 {
		o.piece = pieceSize(got.Snapshot.Size, o.Jobs)
	}
	p, err := openPartial(ctx, file, got.Snapshot, o.piece)
	if errors.Is(err, errHere) {
		return got, 0, forUser(ctx, "the pull", Verify(ctx, file, got.Snapshot))
	}
	if err != nil {
		return got, 0, forUser(ctx, "the pull", err)
	}
	defer p.close()
	o.piece = p.head.Piece
	d := newDownloader(c, got, p, o)
	defer d.meter.run()()
	err = d.pull(ctx)
	if slices.Contains([]snap.Code{snap.CodeNotFound, snap.CodeCorrupt, snap.CodeForbidden}, snap.CodeOf(err)) {
		err = errors.Join(err, p.remove())
	}
	return got, d.moved.Load(), forUser(ctx, "the pull", err)
}

// Verify compares a local file with the snapshot. It fails with code conflict if the bytes differ.
func Verify(ctx context.Context, file string, s api.Snapshot) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	info, err := f.Stat()
	if err == nil && info.Size() == s.Size {
		err = readInto(ctx, f, 0, s.Size, make([]byte, block), sum)
	}
	if err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
		return &snap.Error{Code: snap.CodeConflict, Detail: fmt.Sprintf("%s exists and is a different snapshot", file),
			Hint: "move it elsewhere, then pull again"}
	}
	return nil
}

// maxBad is the number of pieces that may have changed on this machine's disk before the download
// fails. Pieces that an earlier process left do not count, because a crash can damage all of them.
const maxBad = 100

type downloader struct {
	Options
	source source
	part   *partial
	want   api.Snapshot
	pieces *pieces
	meter  meter
	moved  atomic.Int64
}

func newDownloader(c Service, got api.PullResponse, p *partial, o Options) *downloader {
	d := &downloader{Options: o, part: p, want: got.Snapshot,
		meter: meter{total: got.Snapshot.Size, report: o.Progress}}
	d.source = source{service: c, id: got.Snapshot.ID, url: got.URL, options: d.Options}
	d.reset(p.recorded)
	return d
}

// reset marks the pieces in have as complete and all others as missing.
func (d *downloader) reset(have map[int]uint64) {
	d.pieces = newPieces(int((d.want.Size+d.piece-1)/d.piece), d.Jobs, have)
	d.meter.done.Store(0)
	for n := range d.pieces.state {
		if d.pieces.state[n] == received {
			d.meter.done.Add(d.size(n))
		}
	}
}

// size returns the number of bytes of a piece.
func (d *downloader) size(n int) int64 { return min(d.piece, d.want.Size-int64(n)*d.piece) }

func (d *downloader) pull(ctx context.Context) error {
	for range 2 { // wrong bytes may have been corrupted only in transit
		sum, err := d.fetchAll(ctx)
		if err != nil {
			return err
		}
		if sum == d.want.SHA256 {
			return d.part.finish()
		}
		d.reset(nil)
		if err := d.part.begin(); err != nil {
			return err
		}
	}
	return &snap.Error{
		Code:   snap.CodeCorrupt,
		Detail: "the stored bytes do not match the snapshot's checksum, even when fetched twice",
		Hint:   "ask its owner to push it again",
	}
}

// fetchAll fetches the missing pieces and returns the SHA-256 of the whole file.
func (d *downloader) fetchAll(ctx context.Context) (sum string, err error) {
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, d.pieces.end)()
	for range 2 * d.Jobs { // so that connections stay busy while pieces are written and hashed
		group.Go(func() error { return d.work(ctx) })
	}
	group.Go(func() error {
		defer d.pieces.end()
		var err error
		sum, err = d.hashAll(ctx)
		return err
	})
	err = group.Wait()
	return sum, err
}

// work fetches pieces one after the other until none is left. It writes each piece to the disk
// while the piece is being hashed.
func (d *downloader) work(ctx context.Context) error {
	var buffer []byte
	for {
		n, ok := d.pieces.next()
		if !ok {
			return ctx.Err()
		}
		if buffer == nil {
			buffer = make([]byte, min(d.piece, d.want.Size))
		}
		content := buffer[:d.size(n)]
		crc, err := d.fetch(ctx, n, content)
		if err != nil {
			return err
		}
		d.pieces.arrive(n, crc, content)
		if err := d.part.put(n, crc, content); err != nil {
			return err
		}
		d.pieces.leave(n)
	}
}

// hashAll hashes the pieces in order as they arrive. It reads a piece from the disk if the piece is
// no longer in memory or was left by an earlier process. If the bytes on the disk differ from those
// received, the piece is fetched again.
func (d *downloader) hashAll(ctx context.Context) (string, error) {
	whole, buffer := sha256.New(), make([]byte, block)
	for n, bad := 0, 0; n < len(d.pieces.state); {
		want, content, ok := d.pieces.await(n)
		if !ok {
			return "", ctx.Err()
		}
		if content != nil {
			whole.Write(content)
			d.pieces.hashed(n)
			n++
			continue
		}
		var good bool
		var err error
		if whole, good, err = d.reread(ctx, n, want, whole, buffer); err != nil {
			return "", err
		}
		if good {
			n++
			continue
		}
		if _, left := d.part.recorded[n]; left {
			delete(d.part.recorded, n)
		} else if bad++; bad > maxBad {
			return "", fmt.Errorf("the disk that holds %s does not return the bytes that were written to it",
				d.part.name())
		}
		d.meter.done.Add(-d.size(n))
		d.pieces.markMissing(n)
	}
	return hex.EncodeToString(whole.Sum(nil)), nil
}

// reread reads a piece from the disk. It returns a copy of whole that also covers the piece, or
// whole itself if the piece differs from the bytes that were received.
func (d *downloader) reread(ctx context.Context, n int, want uint64, whole hash.Hash, buffer []byte) (next hash.Hash,
	good bool, err error) {
	longer, err := whole.(hash.Cloner).Clone()
	if err != nil {
		return whole, false, err
	}
	crc := crc64nvme.New()
	if err := readInto(ctx, d.part.data, int64(n)*d.piece, d.size(n), buffer, longer, crc); err != nil ||
		crc.Sum64() != want {
		return whole, false, err
	}
	return longer, true, nil
}
