package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"snap"
	"snap/api"
	"snap/internal/disk"
)

// partial is an unfinished download. FILE.part is locked, and has its final size from the start.
// FILE.part.journal lists the pieces written. A killed process leaves both files, and the next
// process resumes from them.
type partial struct {
	file     string // path of the finished file
	lock     *flock.Flock
	data     *os.File
	direct   *os.File // the same file without the page cache; nil if not supported
	journal  *os.File
	head     partialHead
	recorded map[int]uint64 // CRC of each piece that an earlier process recorded, except bad ones
}

// partialHead is the journal's first line. If it describes another snapshot, the download starts
// over; otherwise it resumes with the original piece size.
type partialHead struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Piece  int64  `json:"piece"`
}

// canResume reports whether a partial with this head can be resumed for the wanted download.
func (h partialHead) canResume(want partialHead) bool {
	return h.SHA256 == want.SHA256 && h.Size == want.Size && h.Piece >= min(minPiece, want.Piece) && h.Piece <= window
}

type partialEntry struct {
	Piece int    `json:"n"`
	CRC   uint64 `json:"crc"`
}

// errHere means that the finished file exists. Usually another process has finished the same
// download.
var errHere = errors.New("the file is already on this machine")

// openPartial opens the partial download of file. If another process is using it, openPartial
// waits.
func openPartial(ctx context.Context, file string, s api.Snapshot, piece int64) (*partial, error) {
	p := &partial{file: file, head: partialHead{SHA256: s.SHA256, Size: s.Size, Piece: piece}}
	err := p.open(ctx)
	if err != nil {
		p.close()
	}
	return p, err
}

func (p *partial) open(ctx context.Context) (err error) {
	if err := p.acquire(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(p.file); err == nil {
		return errors.Join(errHere, os.Remove(p.name()))
	}
	if p.data, err = os.OpenFile(p.name(), os.O_RDWR, 0); err != nil {
		return err
	}
	p.direct = disk.OpenDirect(p.name())
	info, err := p.data.Stat()
	if err != nil {
		return err
	}
	if info.Size() == p.head.Size { // otherwise the journal belongs to a file that was removed
		p.recorded = p.read()
	}
	if p.recorded != nil {
		if p.journal, err = os.OpenFile(p.journalName(), os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, err = p.journal.WriteString("\n") // ends a line that a crash left incomplete
		}
		return err
	}
	return p.begin()
}

const (
	partSuffix    = ".part"
	journalSuffix = ".journal" // after partSuffix
)

func (p *partial) name() string        { return p.file + partSuffix }
func (p *partial) journalName() string { return p.name() + journalSuffix }

// Abandoned returns the names of the files in a folder that belong to interrupted downloads. If
// remove is set, it also deletes these files. It skips downloads that are running or that have
// written one of their two files since the given time.
func Abandoned(dir string, since time.Time, remove bool) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		part := filepath.Join(dir, strings.TrimSuffix(e.Name(), journalSuffix))
		if !strings.HasSuffix(part, partSuffix) || isRecent(part, since) {
			continue
		}
		lock := flock.New(part, flock.SetFlag(os.O_RDWR))
		free, err := lock.TryLock()
		if err == nil && free || errors.Is(err, fs.ErrNotExist) { // a journal can remain without its .part file
			names = append(names, e.Name())
			if remove {
				os.Remove(filepath.Join(dir, e.Name()))
			}
		}
		_ = lock.Close()
	}
	return names
}

// isRecent reports whether one of the two files of a partial was written since the given time.
func isRecent(part string, since time.Time) bool {
	for _, name := range []string{part, part + journalSuffix} {
		if info, err := os.Stat(name); err == nil && !info.ModTime().Before(since) {
			return true
		}
	}
	return false
}

// acquire locks the partial. The previous holder may have renamed the file, so acquire checks that
// the locked file still has the partial file's name.
func (p *partial) acquire(ctx context.Context) error {
	for {
		p.lock = flock.New(p.name(), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		if _, err := p.lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("lock the download: %w", err)
		}
		if p.isLocked() {
			return nil
		}
		p.lock.Close()
	}
}

// isLocked reports whether the locked file still has the partial file's name.
func (p *partial) isLocked() bool {
	named, err := os.Stat(p.name())
	if err != nil {
		return false
	}
	held, err := p.lock.Stat()
	return err == nil && os.SameFile(named, held)
}

// read returns the pieces that the journal lists, or nil if there is no journal for this snapshot.
// It ignores a line that a crash left incomplete.
func (p *partial) read() map[int]uint64 {
	f, err := os.Open(p.journalName())
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	var head partialHead
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &head) != nil || !head.canResume(p.head) {
		return nil
	}
	p.head = head
	recorded := map[int]uint64{}
	for lines.Scan() {
		var e partialEntry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			recorded[e.Piece] = e.CRC
		}
	}
	return recorded
}

// begin allocates the disk space and starts the journal.
func (p *partial) begin() error {
	err := p.data.Truncate(0)
	if err == nil {
		err = disk.Preallocate(p.data, p.head.Size)
	}
	if disk.Full(err) {
		return errors.Join(&snap.Error{
			Code:   snap.CodeStorageFull,
			Detail: fmt.Sprintf("the disk that holds %s has no space for %d bytes", filepath.Dir(p.file), p.head.Size),
			Hint:   "free some space, or set SNAPCLI_DATA_DIR to a folder on another disk",
			Cause:  err,
		}, p.remove())
	}
	if err != nil {
		return err
	}
	if p.journal != nil {
		p.journal.Close()
	}
	if p.journal, err = os.OpenFile(p.journalName(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND,
		0o600); err != nil {
		return err
	}
	return p.write(p.head)
}

// put writes a piece to the file and records it in the journal.
func (p *partial) put(piece int, crc uint64, content []byte) error {
	if err := disk.WriteAt(p.data, p.direct, content, int64(piece)*p.head.Piece); err != nil {
		return err
	}
	return p.write(partialEntry{piece, crc})
}

func (p *partial) write(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = p.journal.Write(append(text, '\n'))
	return err
}

// finish syncs the partial and renames it to the final name.
func (p *partial) finish() error {
	if err := p.data.Sync(); err != nil {
		return err
	}
	if err := os.Rename(p.name(), p.file); err != nil {
		return err
	}
	if err := os.Remove(p.journalName()); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(p.file))
}

// remove deletes a partial that must not be kept.
func (p *partial) remove() error {
	err := os.Remove(p.journalName())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(p.name()))
}

// close unlocks the partial and closes its files, which remain on the disk.
func (p *partial) close() {
	for _, f := range []*os.File{p.data, p.direct, p.journal} {
		if f != nil {
			f.Close()
		}
	}
	if p.lock != nil {
		p.lock.Close()
	}
}
