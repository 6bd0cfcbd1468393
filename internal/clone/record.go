package clone

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"snap"
	"snap/internal/disk"
)

// State is the state of a clone.
type State string

// The states. Every state but Ready belongs to a running process, which holds the clone's lock.
const (
	Making    State = "making" // the database may not exist yet
	Ready     State = "ready"
	Resetting State = "resetting"
	Dropping  State = "dropping" // the database may no longer exist
)

// Kind is the purpose of a clone.
type Kind string

// The kinds.
const (
	Named Kind = "named" // created with a name; kept until it expires or is dropped
	Run   Kind = "run"   // belongs to the process that holds its lock; dropped when that process ends
	Warm  Kind = "warm"  // created in advance for a later run
)

// Clone is a copy of a database.
type Clone struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Kind    Kind      `json:"kind"`
	State   State     `json:"state"`
	From    string    `json:"from,omitempty"` // name of the clone that it was branched from
	Source  Source    `json:"source"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Label returns the clone's name. A warm clone has no name, so its label is its ID.
func (c Clone) Label() string { return cmp.Or(c.Name, c.ID) }

// Source identifies the content of a template or clone, and its server.
type Source struct {
	Target       string      `json:"target"`
	Snapshot     string      `json:"snapshot"` // name
	SHA256       string      `json:"sha256"`   // of the snapshot's file
	Type         snap.Type   `json:"type"`
	Engine       snap.Engine `json:"engine"`
	Server       string      `json:"server"` // as in the configuration, with its ${NAME} references
	Trust        int         `json:"trust"`  // the engine.Trust in the snapshot's author when it was loaded
	WithPrograms bool        `json:"with_programs,omitempty"`
}

// Template is a sealed database that clones are copied from.
type Template struct {
	ID      string    `json:"id"`
	Source  Source    `json:"source"`
	Mark    string    `json:"mark"` // identifies the sealed state, see Cloner.Seal; "" until the database is ready
	LeftOut string    `json:"left_out,omitempty"`
	Used    time.Time `json:"used"`
}

// record is the record of all templates and clones. An entry is written before its database is
// created, and removed after the database is dropped.
type record struct {
	Templates []Template `json:"templates"`
	Clones    []Clone    `json:"clones"`
	// Failed is when a clean-up last failed, for example because a server did not respond.
	// Clean-ups then pause, so that not every command waits for that server.
	Failed time.Time `json:"failed,omitzero"`
}

func (rec *record) clone(id string) *Clone {
	return find(rec.Clones, func(c Clone) bool { return c.ID == id })
}

// named returns the clone with this label, or nil.
func (rec *record) named(label string) *Clone {
	return find(rec.Clones, func(c Clone) bool { return c.Label() == label })
}

func (rec *record) template(id string) *Template {
	return find(rec.Templates, func(t Template) bool { return t.ID == id })
}

func (rec *record) templateOf(s Source) *Template {
	return find(rec.Templates, func(t Template) bool { return t.Source.same(s) })
}

// find returns the first matching entry, or nil.
func find[T any](all []T, matches func(T) bool) *T {
	if at := slices.IndexFunc(all, matches); at >= 0 {
		return &all[at]
	}
	return nil
}

// same reports whether two sources have the same content, loaded in the same way, on the same
// server.
func (s Source) same(other Source) bool {
	other.Target, other.Snapshot, other.Type = s.Target, s.Snapshot, s.Type
	return s == other
}

func (r *Registry) path() string { return filepath.Join(r.o.Dir, "clones.json") }

// read returns the record. If the file does not exist, the record is empty.
func (r *Registry) read() (record, error) {
	var rec record
	if err := disk.ReadJSON(r.path(), &rec); err != nil {
		return rec, &snap.Error{Code: snap.CodeInternal, Cause: err,
			Detail: fmt.Sprintf("the record of clones %s cannot be read", r.path()),
			Hint:   "restore the file from a backup, or delete it and drop the databases snapcli_clone_... by hand"}
	}
	return rec, nil
}

// change applies f to the record and writes the record, unless f fails. Other processes cannot
// change the record in the meantime, so f must be quick.
func (r *Registry) change(f func(*record) error) error {
	if err := os.MkdirAll(r.o.Dir, 0o700); err != nil {
		return fmt.Errorf("create the folder of clones: %w", err)
	}
	lock := flock.New(r.path()+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the record of clones: %w", err)
	}
	defer lock.Close()
	rec, err := r.read()
	if err == nil {
		err = f(&rec)
	}
	if err != nil {
		return err
	}
	if err := disk.ReplaceJSON(r.path(), rec); err != nil {
		return fmt.Errorf("write the record of clones: %w", err)
	}
	return nil
}

// changeClone changes one clone in the record. It fails with not_found if the clone is gone.
func (r *Registry) changeClone(id string, f func(*Clone)) (after Clone, err error) {
	err = r.change(func(rec *record) error {
		c := rec.clone(id)
		if c == nil {
			return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no clone %q", id),
				Hint: "list them with `snapcli clones`"}
		}
		f(c)
		after = *c
		return nil
	})
	return after, err
}

// forget removes a clone or a template from the record.
func (r *Registry) forget(id string) error {
	return r.change(func(rec *record) error {
		rec.Clones = slices.DeleteFunc(rec.Clones, func(c Clone) bool { return c.ID == id })
		rec.Templates = slices.DeleteFunc(rec.Templates, func(t Template) bool { return t.ID == id })
		os.Remove(r.lockPath(id))
		return nil
	})
}
