package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/delta"
	"snap/internal/disk"
	"snap/internal/schema"
)

// Snapshot is a local snapshot file.
type Snapshot struct {
	Target  string            `json:"target"`
	Name    string            `json:"name"`
	Type    snap.Type         `json:"type"`
	Engine  snap.Engine       `json:"engine"`
	Size    int64             `json:"size"`
	SHA256  string            `json:"sha256"`
	Created time.Time         `json:"created"`
	Arrived time.Time         `json:"arrived"`          // when it was built, sanitized or pulled here
	Pulled  bool              `json:"pulled,omitempty"` // it was pulled rather than built or sanitized here
	From    Provenance        `json:"from"`
	Path    string            `json:"-"`
	Cloud   map[string]string `json:"cloud,omitempty"` // ID by the URL of a service that has it
	// PulledAs is the user or the organization-level key that last pulled it from a service. It is
	// "" if that is unknown.
	PulledAs string          `json:"pulled_as,omitempty"`
	Tables   []archive.Table `json:"tables,omitempty"`
	// Encrypted is the number of recipients; 0 means not encrypted. The record of an encrypted
	// snapshot contains nothing about its tables.
	Encrypted int             `json:"encrypted,omitempty"`
	Subset    *archive.Subset `json:"subset,omitempty"` // set if it does not have every row
	New       *New            `json:"new,omitempty"`    // nil if it is not known
	// Counted has the numbers of rows that differ from an earlier snapshot; nil if not known.
	Counted *Counted `json:"counted,omitempty"`
	// Proven reports that this masked copy was loaded into a scratch database before it was kept.
	Proven bool `json:"proven,omitempty"`
	// Certificate is the signed statement about how it was sanitized, or empty.
	Certificate json.RawMessage `json:"certificate,omitempty"`
	// Programs are the objects in it that can run code; [Agent.Describe] sets them.
	Programs []schema.Program `json:"-"`
	// Omitted are sentences about missing parts of the source; [Agent.Describe] sets them.
	Omitted []string `json:"-"`
	// Card describes its content. [Agent.Describe] sets it, unless the snapshot is encrypted and no
	// identity opens it.
	Card *api.Card `json:"-"`
	// Warnings are messages for the user who built it, for example about objects that could not be
	// included.
	Warnings []string `json:"-"`

	seen []byte // content of the file that [Agent.remember] writes; nil if it writes none
}

// maxRecordTables limits the tables in the record of a snapshot that this user did not build,
// because listing reads all records.
const maxRecordTables = 5000

// describe copies the descriptive fields of a manifest. It omits the tables if a snapshot from
// elsewhere has too many; see [Agent.Describe].
func (s *Snapshot) describe(m archive.Manifest) {
	s.Tables, s.Subset = slices.Clone(m.Tables), m.Subset
	if s.From.Origin != Mine && len(s.Tables) > maxRecordTables {
		s.Tables = nil
	}
	for i := range s.Tables { // only the manifest keeps the columns, so that the record stays small
		s.Tables[i].Columns, s.Tables[i].Masks = nil, nil
	}
}

const (
	fileSuffix   = ".snap"
	recordSuffix = ".json"
	maxFileName  = 200
)

// snapshotsDir returns the folder of a target's snapshots. If target is "", it returns the folder
// that contains the folders of all targets.
func (a *Agent) snapshotsDir(target string) string {
	return filepath.Join(a.data, "snapshots", target)
}

// Snapshots lists the local snapshots of a target, newest first. Target "" lists all. It does not
// list files that are still being written, or whose record is missing or unreadable; see
// [Agent.Damaged].
func (a *Agent) Snapshots(target string) ([]Snapshot, error) {
	targets := []string{target}
	if target == "" {
		entries, err := os.ReadDir(a.snapshotsDir(""))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list the snapshots: %w", err)
		}
		targets = nil
		for _, e := range entries {
			// Other programs put files here, such as .DS_Store. A folder can be a symbolic link.
			if info, err := os.Stat(a.snapshotsDir(e.Name())); err == nil && info.IsDir() {
				targets = append(targets, e.Name())
			}
		}
	} else if _, err := snap.CleanTarget(target); err != nil {
		return nil, err
	}
	var all []Snapshot
	for _, t := range targets {
		some, err := a.snapshotsIn(t)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(x, y Snapshot) int {
		return cmp.Or(y.Created.Compare(x.Created), cmp.Compare(y.Name, x.Name))
	})
	return all, nil
}

func (a *Agent) snapshotsIn(target string) ([]Snapshot, error) {
	dir := a.snapshotsDir(target)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}
	var all []Snapshot
	for _, e := range entries {
		name, isRecord := strings.CutSuffix(e.Name(), recordSuffix)
		if !isRecord {
			continue
		}
		s, err := readRecord(filepath.Join(dir, e.Name()))
		if err != nil {
			a.log.Warn("a snapshot's record cannot be read", "path", filepath.Join(dir, e.Name()), "err", err)
			continue
		}
		s.Target, s.Name, s.Path = target, name, filepath.Join(dir, name+fileSuffix)
		if _, err := os.Stat(s.Path); err == nil {
			all = append(all, s)
		}
	}
	return all, nil
}

// Damaged returns the paths of unreadable records, whose snapshots are not listed.
func (a *Agent) Damaged() []string {
	var damaged []string
	for _, path := range disk.Glob(a.snapshotsDir(""), "*/*"+recordSuffix) {
		if _, err := readRecord(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			damaged = append(damaged, path)
		}
	}
	return damaged
}

func readRecord(path string) (Snapshot, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	err = json.Unmarshal(text, &s)
	s.setProvenance()
	return s, err
}

// Snapshot returns the snapshot with this name, or the only one whose name begins with it.
func (a *Agent) Snapshot(name string) (Snapshot, error) {
	all, err := a.Snapshots("")
	if err != nil {
		return Snapshot{}, err
	}
	var matches []Snapshot
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		if name != "" && strings.HasPrefix(s.Name, name) {
			matches = append(matches, s)
		}
	}
	switch len(matches) {
	case 0:
		return Snapshot{}, &snap.Error{Code: snap.CodeNotFound,
			Detail: fmt.Sprintf("there is no snapshot %q on this machine", name),
			Hint:   "list them with `snapcli snapshots`"}
	case 1:
		return matches[0], nil
	}
	return Snapshot{}, snap.Usage(fmt.Sprintf("%d snapshots begin with %q", len(matches), name),
		"type more of the name: `snapcli snapshots` lists them")
}

// newest returns the target's snapshot that was taken last. typ "" means any type. It never
// substitutes an original for a sanitized snapshot.
func (a *Agent) newest(target string, typ snap.Type) (Snapshot, error) {
	best, _, err := a.last(target, typ, func(s Snapshot) time.Time { return s.Created })
	return best, err
}

// newestOwn returns the target's snapshot that was built or sanitized here last, which is the
// default of push. Pulled snapshots were made by others and are pushed only by name.
func (a *Agent) newestOwn(target string, typ snap.Type) (Snapshot, error) {
	best, pulled, err := a.last(target, typ, func(s Snapshot) time.Time {
		if s.Pulled {
			return time.Time{}
		}
		return s.Created
	})
	if pulled && err != nil {
		err = &snap.Error{
			Code: snap.CodeNotFound,
			Detail: fmt.Sprintf("every %ssnapshot of target %q on this machine was pulled, and push only chooses "+
				"snapshots that were built or sanitized here", adjectiveOf(typ), target),
			Hint: howToMake(target, typ) + ", or name the one to push with --snapshot",
		}
	}
	return best, err
}

// adjectiveOf returns a type as a word before "snapshot" in messages, or "" for any type.
func adjectiveOf(typ snap.Type) string {
	return map[snap.Type]string{snap.TypeSnapshot: "unmasked ", snap.TypeSanitized: "sanitized "}[typ]
}

// howToMake returns a hint on how to make a snapshot of a type.
func howToMake(target string, typ snap.Type) string {
	if typ == snap.TypeSanitized {
		return fmt.Sprintf("mask one with `snapcli sanitize %s`", snap.ShellWord(target))
	}
	return fmt.Sprintf("build one with `snapcli build %s`", snap.ShellWord(target))
}

// lastArrived returns the target's snapshot that was built, sanitized or pulled last, which is the
// default of load (SPEC 4.4).
func (a *Agent) lastArrived(target string, typ snap.Type) (Snapshot, error) {
	best, _, err := a.last(target, typ, func(s Snapshot) time.Time { return s.Arrived })
	return best, err
}

// last returns the target's snapshot of a type with the latest time. It skips snapshots with the
// zero time; skipped reports whether there were any.
func (a *Agent) last(target string, typ snap.Type, when func(Snapshot) time.Time) (best Snapshot, skipped bool,
	err error) {
	all, err := a.Snapshots(target)
	if err != nil {
		return Snapshot{}, false, err
	}
	for _, s := range all {
		switch {
		case typ != "" && s.Type != typ:
		case when(s).IsZero():
			skipped = true
		case best.Name == "" || when(s).After(when(best)):
			best = s
		}
	}
	if best.Name != "" {
		return best, skipped, nil
	}
	return Snapshot{}, skipped, &snap.Error{
		Code:   snap.CodeNotFound,
		Detail: fmt.Sprintf("there is no %ssnapshot of target %q on this machine", adjectiveOf(typ), target),
		Hint: fmt.Sprintf("%s, or pull one with `snapcli pull %s --cloud`", howToMake(target, typ),
			snap.ShellWord(target)),
	}
}

// ToDelete returns the snapshot with this name, which must not be abbreviated.
func (a *Agent) ToDelete(name string) (Snapshot, error) {
	s, err := a.Snapshot(name)
	if err == nil && s.Name != name {
		err = snap.Usage(fmt.Sprintf("%q is not the whole name of a snapshot", name),
			fmt.Sprintf("to delete it, give the whole name: %s", s.Name))
	}
	return s, err
}

// DeleteSnapshot removes the snapshot's file and record from this machine.
func (a *Agent) DeleteSnapshot(name string) error {
	s, err := a.ToDelete(name)
	if err != nil {
		return err
	}
	if err := os.Remove(s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the snapshot: %w", err)
	}
	if err := os.Remove(recordPath(s.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the snapshot's record: %w", err)
	}
	return diskError(a.forget(s), "delete the snapshot's sketch")
}

func recordPath(file string) string { return strings.TrimSuffix(file, fileSuffix) + recordSuffix }

// snapshotFile returns the path of a snapshot's file, whether or not it exists. It fails with code
// invalid if a name is not a valid file name.
func (a *Agent) snapshotFile(target, name string) (string, error) {
	target, err := snap.CleanTarget(target)
	if err != nil {
		return "", err
	}
	if !isFileName(name) {
		return "", snap.Invalid(fmt.Sprintf("the snapshot name %q is not a valid file name on this machine", name), "")
	}
	return filepath.Join(a.snapshotsDir(target), name+fileSuffix), nil
}

// isFileName reports whether a name that may come from elsewhere is safe as a file name.
func isFileName(name string) bool {
	if name == "" || len(name) > maxFileName || !utf8.ValidString(name) || name[0] == '.' || name[0] == '-' ||
		strings.TrimSpace(name) != name {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !snap.InFileName(r) })
}

// adopt adds a complete snapshot file at its final path (see snapshotFile) to the listing: it reads
// the manifest, checks that it agrees with the given record, and writes the record. It is used
// after a pull.
func (a *Agent) adopt(ctx context.Context, s Snapshot) (Snapshot, error) {
	path, err := a.snapshotFile(s.Target, s.Name)
	if err != nil {
		return Snapshot{}, err
	}
	s, err = a.admit(s, path, func(r *archive.Reader) (*delta.Sketch, error) {
		return readSketch(ctx, r, maxSketched)
	})
	if err == nil {
		a.remember(&s)
	}
	return s, err
}

// admit is like adopt, for a file that has another path until its record is written. sketch returns
// the sketch of its dump. The caller must call [Agent.remember] once the snapshot is listed.
func (a *Agent) admit(s Snapshot, file string, sketch func(*archive.Reader) (*delta.Sketch, error)) (Snapshot, error) {
	path, err := a.snapshotFile(s.Target, s.Name)
	if err != nil {
		return Snapshot{}, err
	}
	s.Path = file
	r, err := openSnapshot(s)
	s.Path = path
	if err != nil {
		return Snapshot{}, err
	}
	defer r.Close()
	if err := checkRecord(s, r.Manifest()); err != nil {
		return Snapshot{}, err
	}
	s.Encrypted, s.Arrived = r.Encrypted(), a.now().UTC()
	s.describe(r.Manifest())
	a.compare(&s, r, sketch)
	return s, a.writeRecord(s)
}

// noteCloud saves, in the snapshot's local record, the ID that the snapshot has at a cloud service.
func (a *Agent) noteCloud(s Snapshot, cloudURL, id string) (Snapshot, error) {
	lock := flock.New(filepath.Join(filepath.Dir(s.Path), ".lock"))
	if err := lock.Lock(); err != nil {
		return s, diskError(err, "lock the snapshot's record")
	}
	defer lock.Unlock()
	if now, err := readRecord(recordPath(s.Path)); err == nil {
		s.Cloud = now.Cloud
	}
	if s.Cloud == nil {
		s.Cloud = map[string]string{}
	}
	s.Cloud[cloudURL] = id
	return s, a.writeRecord(s)
}

func (a *Agent) writeRecord(s Snapshot) error {
	return diskError(disk.ReplaceJSON(recordPath(s.Path), s), "write the snapshot's record")
}
