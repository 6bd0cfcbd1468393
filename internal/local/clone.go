package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/clone"
	"snap/internal/engine"
	"snap/internal/engine/sqlite"
)

// The defaults of [ClonesSpec].
const (
	defaultClones   = 20
	defaultCloneTTL = 24 * time.Hour
)

func (c ClonesSpec) max() int { return cmp.Or(c.Max, defaultClones) }

func (c ClonesSpec) ttl() (time.Duration, error) {
	if c.TTL == "" {
		return defaultCloneTTL, nil
	}
	return snap.ParseDuration(c.TTL)
}

// check returns an error if a value is not usable.
func (c ClonesSpec) check() error {
	if c.Max < 0 || c.Warm < 0 {
		return snap.Usage("clones.max and clones.warm cannot be negative", "use 0 for the default")
	}
	_, err := c.ttl()
	return err
}

// CloneOptions configure [Agent.Clone].
type CloneOptions struct {
	Name     string    // "" chooses one
	Count    int       // number of clones; the names of several clones are numbered
	Snapshot string    // name, or ID in the cloud; "" is the one that was built, sanitized or pulled last
	Type     snap.Type // "" is any type
	TTL      time.Duration
	Jobs     int
	Identity []string

	// WithPrograms and Trust are as in [LoadOptions].
	WithPrograms bool
	Trust        func(Preflight) error
}

// Cloned is a clone as shown to people.
type Cloned struct {
	clone.Clone
	URL     string // without its password
	Secret  string // URL with the password of the configuration; see [Agent.SecretURL]
	LeftOut string // programs not loaded because the snapshot is foreign, such as "3 triggers"
}

// clones returns the registry of the user's clones.
func (a *Agent) clones() *clone.Registry {
	return clone.Open(clone.Options{Dir: filepath.Join(a.data, "clones"), Connect: a.cloner, Now: a.now, Log: a.log})
}

// cloner implements [clone.Options.Connect].
func (a *Agent) cloner(s clone.Source) (engine.Cloner, string, error) {
	d, err := a.databaseAt(a.clonePlace(s))
	if err != nil {
		return nil, "", err
	}
	c, ok := d.engine.(engine.Cloner)
	if !ok || d.kind != s.Engine {
		return nil, "", snap.Usage(fmt.Sprintf("the clones are %s databases, but the URL of their server now names a "+
			"%s database", s.Engine, d.kind), "correct the environment variable in the URL")
	}
	return c, d.url, nil
}

// serverRecord returns the string that identifies a clone server in the record: its URL, preceded
// by the URL of the SSH server if there is one.
func serverRecord(p place) string { return strings.TrimSpace(p.via + " " + p.raw) }

// clonePlace returns the server of the clones and templates with this source. It uses the target's
// password command, as long as the target still names that server.
func (a *Agent) clonePlace(s clone.Source) place {
	t := a.Config().Targets[s.Target]
	for _, p := range []place{t.destination(), t.scratch()} {
		if serverRecord(p) == s.Server {
			return p
		}
	}
	if via, raw, ok := strings.Cut(s.Server, " "); ok {
		return place{raw: raw, via: via}
	}
	return direct(s.Server)
}

// ToClone returns the snapshot that a clone would be made from. It never substitutes another type
// for the requested one. If the target exists, a not_found error means that the snapshot is not on
// this machine.
func (a *Agent) ToClone(target string, o CloneOptions) (Snapshot, error) {
	t, err := a.Target(target)
	if err != nil {
		return Snapshot{}, err
	}
	if o.Snapshot, err = a.nameOfID(o.Snapshot); err != nil {
		return Snapshot{}, err
	}
	return a.toLoad(t.Name, LoadOptions{Snapshot: o.Snapshot, Type: o.Type})
}

// nameOfID returns the name of the local copy of a snapshot that is given by its ID in the cloud.
// It returns anything else unchanged.
func (a *Agent) nameOfID(typed string) (string, error) {
	id, ok := snap.CleanIDPrefix(typed)
	if !ok || !strings.HasPrefix(typed, snap.IDPrefix) {
		return typed, nil
	}
	all, err := a.Snapshots("")
	if err != nil {
		return "", err
	}
	for _, s := range all {
		for _, known := range s.Cloud {
			if strings.HasPrefix(known, id) {
				return s.Name, nil
			}
		}
	}
	return "", &snap.Error{Code: snap.CodeNotFound,
		Detail: fmt.Sprintf("the snapshot %s is not on this machine", typed), Hint: "pull it with --pull"}
}

var cloneName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)

func checkCloneName(name string) error {
	if cloneName.MatchString(name) {
		return nil
	}
	return snap.Usage(fmt.Sprintf("%q is not a valid clone name", name),
		"use up to 63 letters, digits and . _ / - and begin with a letter or a digit")
}

// Clone creates databases from a snapshot, each a copy of the same template. The first clone of
// a snapshot loads the template. Clone creates all of the databases or none.
func (a *Agent) Clone(ctx context.Context, target string, o CloneOptions, p Progress) ([]Cloned, error) {
	q, err := a.cloneRequest(target, o, p)
	if err != nil {
		return nil, err
	}
	if err := a.clones().CheckLimit(q.Source.Target, max(1, o.Count), q.Max); err != nil {
		return nil, err
	}
	names, number, err := cloneNames(q.Source.Target, o)
	if err != nil {
		return nil, err
	}
	all := make([]Cloned, len(names))
	g, each := errgroup.WithContext(ctx)
	const concurrent = 8
	g.SetLimit(concurrent)
	for i, name := range names {
		g.Go(func() error {
			one := q
			one.Name, one.Number, one.Kind = name, number, clone.Named
			h, err := a.clones().Create(each, one)
			if err == nil {
				h.Release()
				all[i] = viewClone(h)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, a.dropAll(context.WithoutCancel(ctx), all))
	}
	if number { // the names are in the order of their creation
		slices.SortFunc(all, func(x, y Cloned) int { return x.Created.Compare(y.Created) })
	}
	return all, nil
}

// dropAll drops the clones that were created.
func (a *Agent) dropAll(ctx context.Context, all []Cloned) (err error) {
	for _, c := range all {
		if c.ID != "" {
			err = errors.Join(err, a.clones().Drop(ctx, c.Name))
		}
	}
	return err
}

func viewClone(h clone.Held) Cloned {
	return Cloned{Clone: h.Clone, URL: withoutPassword(h.URL), Secret: h.URL, LeftOut: h.LeftOut}
}

// SecretURL returns the URL of a clone with its password. If a command prints the password,
// SecretURL runs that command.
func (a *Agent) SecretURL(ctx context.Context, c Cloned) (string, error) {
	way, err := a.way(a.clonePlace(c.Source))
	if err != nil || !way.HasPasswordCommand() {
		return c.Secret, err
	}
	u, err := url.Parse(c.Secret)
	if err != nil {
		return "", badURL("it cannot be parsed")
	}
	password, err := way.Prepare(ctx, "")
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), err
}

// withoutPassword removes the password from a URL. The result still works for programs that know
// the password.
func withoutPassword(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return Redact(raw)
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
		if u.User.String() == "" {
			u.User = nil
		}
	}
	q := u.Query()
	for key := range q {
		if strings.Contains(strings.ToLower(key), "pass") {
			q.Del(key)
			u.RawQuery = q.Encode()
		}
	}
	return u.String()
}

// cloneNames returns the names of the clones to make. If number is true, the registry must append a
// number to each name (see [clone.Request]), because another process may choose the same name at
// the same time.
func cloneNames(target string, o CloneOptions) (names []string, number bool, err error) {
	switch {
	case o.Name == "":
		return slices.Repeat([]string{cloneBase(target)}, max(1, o.Count)), true, nil
	case o.Count <= 1:
		return []string{o.Name}, false, checkCloneName(o.Name)
	}
	for n := range o.Count {
		names = append(names, fmt.Sprintf("%s-%d", o.Name, n+1))
	}
	return names, false, checkCloneName(names[len(names)-1])
}

var notInCloneName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// cloneBase turns a target's name into the beginning of the names of its clones.
func cloneBase(target string) string {
	const maxLength = 40
	base := strings.Trim(notInCloneName.ReplaceAllString(target, "-"), "-._")
	return cmp.Or(base[:min(len(base), maxLength)], "clone")
}

// cloneRequest returns the request for a clone of a target, without a name. It makes no connection.
func (a *Agent) cloneRequest(target string, o CloneOptions, p Progress) (q clone.Request, err error) {
	s, err := a.ToClone(target, o)
	if err != nil {
		return q, err
	}
	t, err := a.Target(target)
	if err != nil {
		return q, err
	}
	server, err := a.cloneServer(t, s)
	if err != nil {
		return q, err
	}
	if q.Expires, err = a.cloneExpiry(t, o.TTL); err != nil {
		return q, err
	}
	q.Max, q.Jobs = t.Clones.max(), jobsOf(o.Jobs, t.Jobs)
	trust := a.trust(s)
	if o.WithPrograms = o.WithPrograms && trust == engine.Foreign; o.WithPrograms {
		if err := a.allowClone(s, o); err != nil {
			return q, err
		}
		o.Trust = func(Preflight) error { return nil }
	}
	q.Source = clone.Source{Target: t.Name, Snapshot: s.Name, SHA256: s.SHA256, Type: s.Type, Engine: s.Engine,
		Server: server, Trust: int(trust), WithPrograms: o.WithPrograms}
	o.Jobs = q.Jobs
	q.Load = a.templateLoad(s, q.Source, trust, o, p)
	return q, nil
}

// allowClone decides whether the programs of a foreign snapshot may be cloned. It decides again for
// every clone, because the consent that the user gave when the template was loaded may have been
// for that clone only.
func (a *Agent) allowClone(s Snapshot, o CloneOptions) error {
	r, err := openSnapshot(s)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := a.unlock(r, o.Identity); err != nil {
		return err
	}
	d, err := a.dumpOf(s, r)
	if err != nil {
		return err
	}
	return a.allowPrograms(Preflight{Snapshot: s, Programs: d.Info.Schema.Programs}, o.Trust)
}

func (a *Agent) cloneExpiry(t Target, ttl time.Duration) (time.Time, error) {
	var err error
	if ttl == 0 {
		ttl, err = t.Clones.ttl()
	}
	return a.now().Add(ttl), err
}

// cloneServer returns, in the form of [serverRecord], the server where a target's clones are made:
// the destination's, or the scratch server if there is no destination. It fails if the target is
// marked as production, or if the database in that server's URL is the target's source or looks
// like production. SQLite clones are in the data directory.
func (a *Agent) cloneServer(t Target, s Snapshot) (string, error) {
	if t.Production {
		return "", snap.Forbidden(fmt.Sprintf("the target %q is marked as production, so no clones are made of it",
			t.Name), "add a target with another destination for clones, with `snapcli targets add`")
	}
	if s.Engine == snap.SQLite {
		return sqlite.URLOf(a.clones().Placeholder()), nil
	}
	on := t.destination()
	if on.raw == "" {
		on = t.scratch()
	}
	if on.raw == "" {
		return "", snap.Usage(fmt.Sprintf("the target %q has no server to make clones on", t.Name),
			fmt.Sprintf("give it one with `snapcli targets add %s --destination URL`", snap.ShellWord(t.Name)))
	}
	to, err := a.databaseAt(on)
	if err != nil {
		return "", err
	}
	if to.kind != s.Engine {
		return "", snap.Usage(fmt.Sprintf("the snapshot %s is of a %s database, but the clones of %q would be "+
			"made on a server for %s", s.Name, s.Engine, t.Name, to.kind),
			"give the target a destination of the same kind")
	}
	if why := a.production(t, to); why != "" {
		return "", snap.Forbidden(fmt.Sprintf("the database %s %s, so no clones are made on its server", to.shown,
			why), "give the target a destination on a server for development")
	}
	return serverRecord(on), nil
}

// templateLoad returns a function that loads a snapshot into a new database by the same rules as
// [Agent.Load], but without the target's after_load and grants. It never trusts the snapshot's
// author more than the argument trust allows.
func (a *Agent) templateLoad(s Snapshot, on clone.Source, trust engine.Trust, o CloneOptions,
	p Progress) clone.Load {
	return func(ctx context.Context, url string) (string, error) {
		to, err := a.databaseAt(a.clonePlace(on))
		if err != nil {
			return "", err
		}
		to.url, to.shown = url, Redact(url)
		r, err := a.openVerified(ctx, s, p, o.Identity...)
		if err != nil {
			return "", err
		}
		defer r.Close()
		d, err := a.dumpOf(s, r)
		if err != nil {
			return "", err
		}
		d.Trust, d.WithPrograms = max(d.Trust, trust), o.WithPrograms
		ready, err := a.preflight(ctx, s, r, d, to, p)
		if err != nil {
			return "", err
		}
		lo := LoadOptions{Jobs: o.Jobs, Trust: o.Trust}
		if err := a.confirm(ready, d, lo); err != nil {
			return "", err
		}
		_, err = a.replace(ctx, d, to, lo, p)
		return CountPrograms(ready.LeftOut), err
	}
}

// Branch creates a clone from the current state of another clone.
func (a *Agent) Branch(ctx context.Context, from string, o CloneOptions, terminate bool) (Cloned, error) {
	source, err := a.clones().Find(from)
	if err != nil {
		return Cloned{}, err
	}
	t, _ := a.Target(source.Source.Target) // the target may have been removed
	names, number, err := cloneNames(source.Source.Target, CloneOptions{Name: o.Name})
	if err != nil {
		return Cloned{}, err
	}
	q := clone.Request{Name: names[0], Number: number, Max: t.Clones.max(), Jobs: jobsOf(o.Jobs, t.Jobs)}
	if q.Expires, err = a.cloneExpiry(t, o.TTL); err != nil {
		return Cloned{}, err
	}
	h, err := a.clones().Branch(ctx, from, q, terminate)
	if err != nil {
		return Cloned{}, err
	}
	h.Release()
	return viewClone(h), nil
}

// ResetClone resets a clone to its snapshot and ends the connections to it. A SQLite clone must not
// be in use.
func (a *Agent) ResetClone(ctx context.Context, name string, o CloneOptions, p Progress) (clone.Clone, error) {
	c, err := a.clones().Find(name)
	if err != nil {
		return c, err
	}
	load := func(ctx context.Context, url string) (string, error) {
		s, err := a.snapshotOf(c.Source)
		if err != nil {
			return "", err
		}
		o.WithPrograms = c.Source.WithPrograms
		return a.templateLoad(s, c.Source, engine.Trust(c.Source.Trust), o, p)(ctx, url)
	}
	return a.clones().Reset(ctx, name, jobsOf(o.Jobs), load)
}

// snapshotOf returns the local snapshot that a clone was made from.
func (a *Agent) snapshotOf(s clone.Source) (Snapshot, error) {
	all, err := a.Snapshots(s.Target)
	if err != nil {
		return Snapshot{}, err
	}
	for _, one := range all {
		if one.SHA256 == s.SHA256 {
			return one, nil
		}
	}
	return Snapshot{}, &snap.Error{Code: snap.CodeNotFound,
		Detail: fmt.Sprintf("the snapshot %s is no longer on this machine, so the clone cannot be reset to it",
			s.Snapshot), Hint: "pull it again, or make a clone of another snapshot"}
}

// DropClone drops the clone with this label and its database.
func (a *Agent) DropClone(ctx context.Context, name string) error { return a.clones().Drop(ctx, name) }

// ForgetClone removes a clone from the record and keeps its database.
func (a *Agent) ForgetClone(name string) (clone.Clone, error) { return a.clones().Forget(name) }

// FindClone returns the clone with this label.
func (a *Agent) FindClone(name string) (clone.Clone, error) { return a.clones().Find(name) }

// CloneNames returns the names of the clones.
func (a *Agent) CloneNames() []string { return a.clones().Names() }

// Clones lists the clones, oldest first. URLs are without passwords.
func (a *Agent) Clones(ctx context.Context) ([]clone.Listed, error) {
	all, err := a.clones().List(ctx)
	for i := range all {
		all[i].URL = withoutPassword(all[i].URL)
	}
	return all, err
}

// SweepClones drops expired clones, the remains of clones whose command was killed, and templates
// that were not used for a week or whose snapshot is no longer on this machine. It connects to no
// server if there is nothing to do.
func (a *Agent) SweepClones(ctx context.Context) (clone.Swept, error) {
	registry := a.clones()
	if empty, err := registry.Empty(); err != nil || empty {
		return clone.Swept{}, err
	}
	wanted, err := a.wantedTemplates()
	if err != nil {
		return clone.Swept{}, err
	}
	due, err := registry.Due(wanted)
	if err != nil || !due {
		return clone.Swept{}, err
	}
	return registry.Sweep(ctx, wanted)
}

// wantedTemplates returns a function that reports whether a template's snapshot is on this machine.
func (a *Agent) wantedTemplates() (func(clone.Template) bool, error) {
	all, err := a.Snapshots("")
	if err != nil {
		return nil, err
	}
	here := map[string]bool{}
	for _, s := range all {
		here[s.SHA256] = true
	}
	return func(t clone.Template) bool { return here[t.Source.SHA256] }, nil
}
