package local

import (
	"context"
	"fmt"
	"path/filepath"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/engine/sqlite"
	"snap/internal/sanitize"
)

// SanitizeOptions choose what to sanitize and how. Empty fields take the
// target's configuration, and the newest original.
type SanitizeOptions struct {
	Snapshot string
	SQL      string // path of a SQL file
	Rules    string // path of a rules file
	Jobs     int
}

// Sanitize makes a masked copy of an original snapshot, as a new snapshot of
// type sanitized. The original stays as it is. Any failure leaves no sanitized
// snapshot.
//
// The masking is done in a scratch database that is gone afterwards: for SQLite
// a file in the data folder, for PostgreSQL a database on the destination's
// server, or on the source's when the target has no destination.
func (a *Agent) Sanitize(ctx context.Context, target string, o SanitizeOptions, p Progress) (Snapshot, error) {
	t, err := a.Target(target)
	if err != nil {
		return Snapshot{}, err
	}
	sql, err := a.masking(t, o)
	if err != nil {
		return Snapshot{}, err
	}
	original, err := a.original(t.Name, o.Snapshot)
	if err != nil {
		return Snapshot{}, err
	}
	dir, done, err := a.workDir()
	if err != nil {
		return Snapshot{}, err
	}
	defer done()
	r, err := a.openVerified(ctx, original, p)
	if err != nil {
		return Snapshot{}, err
	}
	defer r.Close()
	place, err := a.scratchPlace(t, original.Engine, dir)
	if err != nil {
		return Snapshot{}, err
	}
	bytes, begin := p.following("restore")
	jobs := jobsOf(o.Jobs, t.Jobs)
	scratch, err := place.engine.Restore(ctx, place.url, dumpIn(r), engine.Options{Jobs: jobs, TempDir: dir, Progress: bytes, Phase: begin})
	if err != nil {
		return Snapshot{}, diskError(err, "restore the scratch copy")
	}
	defer scratch.Drop(context.WithoutCancel(ctx))
	begin("mask")
	if err := sql.Apply(ctx, scratch); err != nil {
		return Snapshot{}, err
	}
	place.url = scratch.URL()
	m := archive.Manifest{Target: t.Name, Type: snap.TypeSanitized, Sanitized: &archive.Sanitized{From: original.Name, SQL: sql.SHA256}}
	return a.newSnapshot(ctx, place, m, jobs, p)
}

// masking reads how to mask. Without anything it refuses: a copy that was not
// masked must not be called sanitized.
func (a *Agent) masking(t Target, o SanitizeOptions) (sanitize.SQL, error) {
	path := o.SQL
	if path == "" && t.Sanitize.SQL != "" {
		path = t.Sanitize.SQL
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(a.ConfigPath()), path)
		}
	}
	if path == "" {
		return sanitize.SQL{}, snap.Usage(fmt.Sprintf("nothing says how to sanitize the target %q", t.Name), "give a file of SQL: --sql FILE, or sanitize.sql of the target in config.yaml")
	}
	return sanitize.ReadSQL(path)
}

// original returns the snapshot to mask: the named one, or the newest.
func (a *Agent) original(target, name string) (Snapshot, error) {
	if name == "" {
		return a.newest(target, snap.TypeSnapshot)
	}
	s, err := a.Snapshot(name)
	if err != nil {
		return Snapshot{}, err
	}
	if s.Target != target {
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of target %q", s.Name, s.Target), fmt.Sprintf("run: snapcli sanitize %q --snapshot %q", s.Target, s.Name))
	}
	return s, nil
}

// scratchPlace returns where the scratch copy is made beside.
func (a *Agent) scratchPlace(t Target, kind snap.Engine, dir string) (database, error) {
	if kind == snap.SQLite {
		return a.databaseAt(sqlite.URLOf(filepath.Join(dir, "scratch.db")))
	}
	for _, raw := range []string{t.Destination, t.Source} {
		if raw == "" {
			continue
		}
		if place, err := a.databaseAt(raw); err != nil || place.kind == kind {
			return place, err
		}
	}
	return database{}, snap.Usage(fmt.Sprintf("the target %q has no %s server to make the scratch copy on", t.Name, kind), fmt.Sprintf("give it a destination: snapcli targets add %q --destination URL", t.Name))
}
