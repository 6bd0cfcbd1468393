package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/delta"
	"snap/internal/disk"
	"snap/internal/engine"
)

// New says how much of a snapshot is new compared with the previous one: the newest earlier
// snapshot of its target and type that was on this machine when this snapshot arrived. Encrypted
// snapshots do not count.
type New struct {
	Since string  `json:"since"` // the name of the previous snapshot
	Share float64 `json:"share"` // of the bytes of the dump, from 0 to 1; an estimate
	Same  bool    `json:"same"`  // the data is equal, byte for byte
}

// lastSeen is the record of the newest snapshot of a target and type that arrived on this machine.
// It is stored next to the snapshots, and removed when that snapshot is deleted.
type lastSeen struct {
	Name    string        `json:"name"`
	Created time.Time     `json:"created"`
	Content []string      `json:"content"` // SHA-256 of each section's stored bytes
	Sketch  *delta.Sketch `json:"-"`
	Samples []byte        `json:"samples"` // the encoded sketch
}

// maxSketched is the size in bytes of the largest dump that a pull reads for its sketch. Reading a
// larger one would take longer than the pull itself.
const maxSketched = 256 << 20

func (a *Agent) lastSeenPath(target string, typ snap.Type) string {
	return filepath.Join(a.snapshotsDir(target), ".last-"+string(typ))
}

// sketched returns a dump function that also writes the dump to a sketch.
func sketched(dump func(io.Writer) (engine.Info, error), sketch *delta.Sketch) func(io.Writer) (engine.Info, error) {
	return func(w io.Writer) (engine.Info, error) { return dump(io.MultiWriter(w, sketch)) }
}

// compare sets how much of an arriving snapshot is new. An error is only logged, because the
// snapshot is complete without this information.
func (a *Agent) compare(s *Snapshot, r *archive.Reader, sketch func(*archive.Reader) (*delta.Sketch, error)) {
	if r.Encrypted() > 0 || !s.Type.Valid() {
		return
	}
	if err := a.tryCompare(s, r, sketch); err != nil {
		a.log.Debug("cannot find out how much of a snapshot is new", "snapshot", s.Name, "error", err)
	}
}

func (a *Agent) tryCompare(s *Snapshot, r *archive.Reader,
	sketch func(*archive.Reader) (*delta.Sketch, error)) error {
	now := lastSeen{Name: s.Name, Created: s.Created}
	for _, section := range r.Manifest().Sections {
		now.Content = append(now.Content, section.SHA256)
	}
	before, err := a.readLastSeen(s.Target, s.Type)
	switch {
	case err != nil:
		if now.Sketch, err = sketch(r); err != nil {
			return err
		}
	case !before.Created.Before(s.Created):
		return nil // an older snapshot arrived later
	case slices.Equal(before.Content, now.Content):
		now.Sketch, s.New = before.Sketch, &New{Since: before.Name, Same: true}
	default:
		if now.Sketch, err = sketch(r); err != nil {
			return err
		}
		s.New = &New{Since: before.Name, Share: now.Sketch.New(before.Sketch)}
	}
	if now.Samples, err = now.Sketch.MarshalBinary(); err != nil {
		return err
	}
	s.seen, err = json.Marshal(now)
	return err
}

// remember stores the sketch of a snapshot that has arrived, for comparison with the next one.
func (a *Agent) remember(s *Snapshot) {
	if s.seen == nil {
		return
	}
	if err := disk.Replace(a.lastSeenPath(s.Target, s.Type), s.seen, 0o600); err != nil {
		a.log.Debug("cannot keep the sketch of a snapshot", "snapshot", s.Name, "error", err)
	}
	s.seen = nil
}

func (a *Agent) readLastSeen(target string, typ snap.Type) (l lastSeen, err error) {
	text, err := os.ReadFile(a.lastSeenPath(target, typ))
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, err
	}
	l.Sketch = &delta.Sketch{}
	return l, l.Sketch.UnmarshalBinary(l.Samples)
}

// forget removes the sketch of a snapshot, which contains hashes of some of its rows.
func (a *Agent) forget(s Snapshot) error {
	last, err := a.readLastSeen(s.Target, s.Type)
	if errors.Is(err, fs.ErrNotExist) || err == nil && last.Name != s.Name {
		return nil
	}
	return os.Remove(a.lastSeenPath(s.Target, s.Type))
}

// readSketch returns the sketch of a pulled snapshot's dump. It fails if the dump has more than
// limit bytes.
func readSketch(ctx context.Context, r *archive.Reader, limit int64) (*delta.Sketch, error) {
	if size, _ := r.Has(dumpSection); size > limit {
		return nil, fmt.Errorf("the dump has %d bytes", size)
	}
	dump, err := r.Section(dumpSection)
	if err != nil {
		return nil, err
	}
	defer dump.Close()
	sketch := delta.NewSketch(r.Manifest().Engine)
	_, err = io.Copy(sketch, engine.Reader(ctx, dump))
	return sketch, err
}
