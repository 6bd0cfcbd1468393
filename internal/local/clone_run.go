package local

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"snap"
	"snap/internal/clone"
)

// Borrowed is a clone that belongs to this process. If the process is killed, the user's next
// command drops the clone.
type Borrowed struct {
	Cloned
	held     clone.Held
	registry *clone.Registry
}

// Borrow creates a clone for a run of a program, or uses a warm clone.
func (a *Agent) Borrow(ctx context.Context, target string, o CloneOptions, p Progress) (*Borrowed, error) {
	q, err := a.cloneRequest(target, o, p)
	if err != nil {
		return nil, err
	}
	q.Kind, q.Name, q.Number = clone.Run, cloneBase(q.Source.Target+"-run"), true
	h, err := a.clones().Create(ctx, q)
	if err != nil {
		return nil, err
	}
	return &Borrowed{Cloned: viewClone(h), held: h, registry: a.clones()}, nil
}

// Return drops the clone.
func (b *Borrowed) Return(ctx context.Context) error { return b.registry.DropHeld(ctx, b.held) }

// WarmClones creates warm clones of the target's snapshot, for `snapcli run`, until n of them are
// ready. It returns how many it created. A negative n uses the number in the target's
// configuration.
func (a *Agent) WarmClones(ctx context.Context, target string, n int, o CloneOptions, p Progress) (made int,
	err error) {
	q, err := a.cloneRequest(target, o, p)
	if err != nil {
		return 0, err
	}
	if n < 0 {
		t, err := a.Target(target)
		if err != nil {
			return 0, err
		}
		n = t.Clones.Warm
	}
	q.Kind = clone.Warm
	for made < n { // creates at most n, because clones with a short lifetime may expire in the meantime
		have, err := a.clones().CountWarm(q.Source)
		if err != nil || have >= n {
			return made, err
		}
		h, err := a.clones().Create(ctx, q)
		if err != nil {
			return made, err
		}
		h.Release()
		made++
	}
	return made, nil
}

// Environment returns the variables, as NAME=value, that tell programs how to connect to a
// database: DATABASE_URL, and the variables of psql or mysql.
func Environment(kind snap.Engine, raw string) []string {
	all := []string{"DATABASE_URL=" + raw}
	u, err := url.Parse(raw)
	if err != nil {
		return all
	}
	add := func(name, value string) {
		if value != "" {
			all = append(all, name+"="+value)
		}
	}
	password, _ := u.User.Password()
	database, q := strings.TrimPrefix(u.Path, "/"), u.Query()
	switch kind {
	case snap.Postgres:
		add("PGHOST", cmp.Or(q.Get("host"), u.Hostname()))
		add("PGPORT", cmp.Or(q.Get("port"), u.Port()))
		add("PGUSER", u.User.Username())
		add("PGPASSWORD", password)
		add("PGDATABASE", database)
		for _, name := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey"} {
			add("PG"+strings.ToUpper(name), q.Get(name))
		}
	case snap.MySQL:
		add("MYSQL_HOST", u.Hostname())
		add("MYSQL_TCP_PORT", u.Port())
		add("MYSQL_UNIX_PORT", q.Get("socket"))
		add("MYSQL_USER", u.User.Username())
		add("MYSQL_PWD", password)
		add("MYSQL_DATABASE", database)
	}
	return all
}

// WithEnvironment returns the environment env with the variables of a database. It removes the
// variables that name another database of the same kind, because the two sets would mix. Variables
// such as PGSSLMODE, which say how to connect, remain: snapcli itself uses them too.
func WithEnvironment(env []string, kind snap.Engine, raw string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case kind == snap.Postgres && strings.HasPrefix(name, "PG"):
			return slices.Contains([]string{"PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE",
				"PGSERVICE"}, name)
		case kind == snap.MySQL && strings.HasPrefix(name, "MYSQL_"):
			return true
		}
		return name == "DATABASE_URL"
	})
	return append(kept, Environment(kind, raw)...)
}
