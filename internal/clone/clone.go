// Package clone gives a user databases of their own. Each one is a copy of a template: a database
// that is loaded from a snapshot once and then sealed, so that nobody changes it. The package keeps
// the record of templates and clones and decides when each is dropped. The engines copy and drop
// the databases ([engine.Cloner]).
//
// The record (clones.json) survives kills and power cuts. An entry is written before its database
// exists and removed after the database is gone, so [Registry.Sweep] finds everything that a killed
// process left. A database outside the record is dropped only if an interrupted load left it.
//
// All methods of [Registry] are safe for concurrent use, by any number of processes.
package clone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/internal/engine"
)

// Options configure [Open].
type Options struct {
	Dir string // for the record, the locks and SQLite databases
	// Connect returns the engine of a server and its expanded URL. It makes no connection.
	Connect func(Source) (engine.Cloner, string, error)
	Now     func() time.Time
	Log     *slog.Logger
}

// Registry manages one user's clones: it keeps their record, creates them and drops them.
type Registry struct{ o Options }

// Open returns the registry in a directory. It reads and writes nothing yet.
func Open(o Options) *Registry { return &Registry{o: o} }

// Placeholder returns a path in the folder of SQLite clones, for callers that need a URL of that
// folder. No file exists there.
func (r *Registry) Placeholder() string { return filepath.Join(r.o.Dir, "databases", "none.db") }

// Load creates the database at a URL and fills it with a snapshot. It returns a description of the
// programs that it left out, or "".
type Load func(ctx context.Context, url string) (leftOut string, err error)

// Request describes a clone to create.
type Request struct {
	Name    string // "" for Warm
	Number  bool   // append to Name the first number that makes it unique
	Kind    Kind
	Source  Source
	Load    Load // called if there is no template yet
	Expires time.Time
	Max     int // clones that the target may have
	Jobs    int
}

// Held is a clone whose lock the caller holds.
type Held struct {
	Clone
	URL     string // expanded, with the password
	LeftOut string // programs that its template does not have
	release func()
}

// Release gives up the lock. A clone of kind Run may then be dropped by any process.
func (h Held) Release() { h.release() }

// Create creates a clone from its template. It first creates the template if there is none, or if
// the template's content no longer matches its seal. For kind Run, it uses a warm clone instead if
// there is one. The caller must release the result. Create fails with conflict if the name is in
// use, and with quota_exceeded if the target has too many clones.
func (r *Registry) Create(ctx context.Context, q Request) (Held, error) {
	h, err := r.reserve(ctx, q, "")
	if err != nil {
		return Held{}, err
	}
	if h.State == Ready {
		return h, nil // it was warm
	}
	h.LeftOut, err = r.fromTemplate(ctx, q, h.URL)
	return r.finish(ctx, h, err)
}

// reserve adds a clone to the record in the state Making, or uses a warm clone if there is one. It
// returns the clone with its lock held. For a branch, from is the name of the original clone.
func (r *Registry) reserve(ctx context.Context, q Request, from string) (h Held, err error) {
	err = r.change(func(rec *record) (err error) {
		if q.Number {
			q.Name = rec.numbered(q.Name)
		}
		c := Clone{ID: newNamedID(q.Name), Name: q.Name, Kind: q.Kind, State: Making, Source: q.Source, From: from,
			Created: r.o.Now().UTC(), Expires: q.Expires.UTC()}
		if err := rec.requireRoom(c, q.Max); err != nil {
			return err
		}
		if warm, release := r.findWarm(rec, q); warm != nil {
			warm.Name, warm.Kind, warm.Created, warm.Expires = c.Name, c.Kind, c.Created, c.Expires
			warm.Source = c.Source // the same content, perhaps from a snapshot with another name
			h.Clone, h.release = *warm, release
			return nil
		}
		if h.release, err = r.lock(ctx, c.ID); err != nil {
			return err
		}
		h.Clone = c
		rec.Clones = append(rec.Clones, c)
		return nil
	})
	if err == nil {
		if _, h.URL, err = r.locate(h.Clone); err != nil && h.State == Making {
			err = errors.Join(err, r.forget(h.ID))
		}
	}
	if err != nil && h.release != nil {
		h.release()
	}
	return h, err
}

// numbered returns the first of the names base-1, base-2 and so on that no clone has.
func (rec *record) numbered(base string) string {
	for n := 1; ; n++ {
		if name := fmt.Sprintf("%s-%d", base, n); rec.named(name) == nil {
			return name
		}
	}
}

// requireRoom returns an error if the clone's name is in use or its target has too many clones.
func (rec *record) requireRoom(c Clone, limit int) error {
	if c.Name != "" && rec.named(c.Name) != nil {
		return &snap.Error{Code: snap.CodeConflict, Detail: fmt.Sprintf("there is already a clone %q", c.Name),
			Hint: fmt.Sprintf("choose another --name, or drop it with `snapcli clones drop %s`",
				snap.ShellWord(c.Name))}
	}
	if c.Kind != Named {
		return nil
	}
	return rec.checkLimit(c.Source.Target, 1, limit)
}

// CheckLimit returns an error if a target would have too many clones after more are created.
func (r *Registry) CheckLimit(target string, more, limit int) error {
	rec, err := r.read()
	if err != nil {
		return err
	}
	return rec.checkLimit(target, more, limit)
}

func (rec *record) checkLimit(target string, more, limit int) error {
	n := 0
	for _, c := range rec.Clones {
		if c.Source.Target == target && c.Kind == Named {
			n++
		}
	}
	if more <= limit-n {
		return nil
	}
	detail := fmt.Sprintf("the target %q has %s, and its limit is %d", target, snap.Plural(n, "clone", "clones"), limit)
	if more > 1 {
		detail += fmt.Sprintf(", so %d more cannot be made", more)
	}
	return &snap.Error{Code: snap.CodeQuota, Detail: detail,
		Hint: "drop some with `snapcli clones drop`, or raise clones.max of the target"}
}

// findWarm returns a warm clone with the wanted content, and its lock. Only requests of kind Run
// use warm clones, because the database of a named clone has the clone's name in its own name.
func (r *Registry) findWarm(rec *record, q Request) (*Clone, func()) {
	if q.Kind != Run {
		return nil, nil
	}
	for i, c := range rec.Clones {
		if c.Kind != Warm || c.State != Ready || !c.Source.same(q.Source) || !c.Expires.After(r.o.Now()) {
			continue
		}
		if release, free := r.tryLock(c.ID); free {
			return &rec.Clones[i], release
		}
	}
	return nil, nil
}

// fromTemplate creates a database as a copy of the request's template. The argument to is the URL
// of the new database.
func (r *Registry) fromTemplate(ctx context.Context, q Request, to string) (leftOut string, err error) {
	return r.withTemplate(ctx, q, func(cloner engine.Cloner, from string, o engine.CopyOptions) error {
		return cloner.Copy(ctx, from, to, o)
	})
}

// finish records that a new clone is ready. The clone's lifetime starts at this moment, because
// loading a template can take longer than the lifetime itself. If creating the clone failed, finish
// removes its remains.
func (r *Registry) finish(ctx context.Context, h Held, err error) (Held, error) {
	if err == nil {
		h.Clone, err = r.changeClone(h.ID, func(c *Clone) {
			c.State, c.Expires = Ready, c.Expires.Add(r.o.Now().Sub(c.Created))
		})
	}
	if err != nil {
		err = errors.Join(err, r.drop(context.WithoutCancel(ctx), h.Clone))
		h.release()
		return Held{}, err
	}
	return h, nil
}

// Branch creates a clone from the current state of another clone. The caller must release the
// result.
func (r *Registry) Branch(ctx context.Context, from string, q Request, terminate bool) (Held, error) {
	source, release, err := r.acquire(from)
	if err != nil {
		return Held{}, err
	}
	defer release()
	cloner, url, err := r.locate(source)
	if err != nil {
		return Held{}, err
	}
	if err := cloner.CheckCanClone(ctx, url); err != nil {
		return Held{}, err
	}
	q.Kind, q.Source = Named, source.Source
	h, err := r.reserve(ctx, q, source.Name)
	if err != nil {
		return Held{}, err
	}
	err = cloner.Copy(ctx, url, h.URL, engine.CopyOptions{Jobs: q.Jobs, Terminate: terminate})
	return r.finish(ctx, h, err)
}

// Reset resets a clone to its snapshot and keeps its URL. It calls load if the template is gone.
func (r *Registry) Reset(ctx context.Context, name string, jobs int, load Load) (Clone, error) {
	c, release, err := r.acquire(name)
	if err != nil {
		return c, err
	}
	defer release()
	if _, err = r.changeClone(c.ID, func(c *Clone) { c.State = Resetting }); err != nil {
		return c, err
	}
	_, to, err := r.locate(c)
	if err == nil {
		_, err = r.withTemplate(ctx, Request{Source: c.Source, Load: load, Jobs: jobs},
			func(cloner engine.Cloner, from string, o engine.CopyOptions) error {
				return cloner.Reset(ctx, from, to, o)
			})
	}
	if err != nil {
		return c, errors.Join(err, r.recover(context.WithoutCancel(ctx), c))
	}
	return r.changeClone(c.ID, func(c *Clone) { c.State = Ready })
}

// recover completes a reset that failed or was killed. Afterwards the clone has either its old
// content or the new content.
func (r *Registry) recover(ctx context.Context, c Clone) error {
	cloner, url, err := r.locate(c)
	if err == nil {
		err = cloner.Recover(ctx, url)
	}
	if err == nil {
		_, err = r.changeClone(c.ID, func(c *Clone) { c.State = Ready })
	}
	return err
}

// Find returns the clone with this [Clone.Label].
func (r *Registry) Find(name string) (Clone, error) {
	rec, err := r.read()
	if err != nil {
		return Clone{}, err
	}
	if c := rec.named(name); c != nil {
		return *c, nil
	}
	hint := "list them with `snapcli clones`"
	if near := snap.Closest(name, r.Names()); near != "" {
		hint = fmt.Sprintf("did you mean %q? `snapcli clones` lists them", near)
	}
	return Clone{}, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no clone %q", name), Hint: hint}
}

// Names returns the names of the clones, without the warm ones. If the record cannot be read, it
// returns none, because the names are only for suggestions.
func (r *Registry) Names() (names []string) {
	rec, err := r.read()
	if err != nil {
		return nil
	}
	for _, c := range rec.Clones {
		if c.Kind != Warm {
			names = append(names, c.Name)
		}
	}
	return names
}

// acquire returns a clone that is ready, and its lock. It fails with conflict if a process uses the
// clone, or if a failed or killed process left it behind.
func (r *Registry) acquire(name string) (Clone, func(), error) {
	c, release, err := r.acquireAny(name)
	if err == nil && c.State != Ready {
		release()
		return c, nil, &snap.Error{Code: snap.CodeConflict,
			Detail: fmt.Sprintf("the clone %q was left behind by a command that failed or was killed", name),
			Hint:   "`snapcli clones` cleans it up"}
	}
	return c, release, err
}

// acquireAny is like acquire, for a clone in any state.
func (r *Registry) acquireAny(name string) (Clone, func(), error) {
	c, err := r.Find(name)
	if err != nil {
		return c, nil, err
	}
	release, free := r.tryLock(c.ID)
	if !free {
		return c, nil, &snap.Error{Code: snap.CodeConflict,
			Detail: fmt.Sprintf("the clone %q is being %s by another process", name, c.activity()),
			Hint:   "try again when that process has ended"}
	}
	if c, err = r.Find(name); err != nil {
		release()
		return c, nil, err
	}
	return c, release, nil
}

func (c Clone) activity() string {
	switch c.State {
	case Making:
		return "created"
	case Resetting:
		return "reset"
	case Dropping:
		return "dropped"
	case Ready:
	}
	return "used"
}

// Drop drops a clone in any state and removes it from the record. It fails with conflict if a
// process uses the clone.
func (r *Registry) Drop(ctx context.Context, name string) error {
	c, release, err := r.acquireAny(name)
	if err != nil {
		return err
	}
	defer release()
	if c, err = r.changeClone(c.ID, func(c *Clone) { c.State = Dropping }); err != nil {
		return err
	}
	return r.drop(ctx, c)
}

// Forget removes a clone in any state from the record without dropping its database. It is for a
// clone whose server no longer exists.
func (r *Registry) Forget(name string) (Clone, error) {
	c, release, err := r.acquireAny(name)
	if err != nil {
		return c, err
	}
	defer release()
	return c, r.forget(c.ID)
}

// DropHeld drops a clone whose lock the caller holds, and releases the lock.
func (r *Registry) DropHeld(ctx context.Context, h Held) error {
	defer h.release()
	return r.drop(ctx, h.Clone)
}

// drop drops a clone's database and removes the clone from the record. The caller holds its lock.
func (r *Registry) drop(ctx context.Context, c Clone) error {
	cloner, url, err := r.locate(c)
	if err == nil {
		err = cloner.Drop(ctx, url)
	}
	if err != nil {
		return err
	}
	return r.forget(c.ID)
}

// locate returns the engine of a clone and the URL of its database.
func (r *Registry) locate(c Clone) (engine.Cloner, string, error) {
	cloner, server, err := r.o.Connect(c.Source)
	if err != nil {
		return nil, "", err
	}
	url, err := cloner.Named(server, c.Database())
	return cloner, url, err
}

// Database returns the name of the clone's database. It contains the name with which the clone was
// created.
func (c Clone) Database() string { return engine.ClonePrefix + c.ID }

// Listed is a clone and the state of its database.
type Listed struct {
	Clone
	engine.DatabaseState
	URL string // expanded, with the password
	Err error  // why the state of its database is unknown
}

// List returns the clones, oldest first, with the state of their databases. It connects once to
// each server.
func (r *Registry) List(ctx context.Context) ([]Listed, error) {
	rec, err := r.read()
	if err != nil {
		return nil, err
	}
	all := make([]Listed, len(rec.Clones))
	servers := map[string][]int{}
	for i, c := range rec.Clones {
		all[i] = Listed{Clone: c}
		_, all[i].URL, all[i].Err = r.locate(c)
		if all[i].Err == nil {
			servers[c.Source.Server] = append(servers[c.Source.Server], i)
		}
	}
	for _, on := range servers {
		r.describe(ctx, all, on)
	}
	slices.SortStableFunc(all, func(a, b Listed) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// describe fills in the states of the databases on one server.
func (r *Registry) describe(ctx context.Context, all []Listed, on []int) {
	cloner, _, err := r.locate(all[on[0]].Clone)
	var urls []string
	for _, i := range on {
		urls = append(urls, all[i].URL)
	}
	var found []engine.DatabaseState
	if err == nil {
		found, err = cloner.States(ctx, urls)
	}
	for n, i := range on {
		if all[i].Err = err; err == nil {
			all[i].DatabaseState = found[n]
		}
	}
}

// CountWarm returns the number of warm clones that have a source's content, are ready or being
// created, and have not expired.
func (r *Registry) CountWarm(s Source) (n int, err error) {
	rec, err := r.read()
	for _, c := range rec.Clones {
		if c.Kind == Warm && c.Source.same(s) && !r.expired(c) {
			n++
		}
	}
	return n, err
}

// newID returns a random ID of letters and digits that every database allows in a name.
func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// newNamedID returns an ID that begins with the letters and digits of a name, so that people
// recognize the clone by the name of its database.
func newNamedID(name string) string {
	const maxLength = 24
	if name == "" {
		name = string(Warm)
	}
	var slug strings.Builder
	for _, c := range strings.ToLower(name) {
		if slug.Len() == maxLength {
			break
		}
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			slug.WriteRune(c)
		} else {
			slug.WriteByte('_')
		}
	}
	return slug.String() + "_" + newID()[:8]
}
