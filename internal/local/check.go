package local

import (
	"context"
	"fmt"

	"snap"
	"snap/internal/engine"
)

// DatabaseCheck is the result of checking one database of a target.
type DatabaseCheck struct {
	Role          string // "source" or "destination"
	URL           string // without its password
	Engine        snap.Engine
	Reachable     bool
	Exists        bool
	ServerVersion string
	ToolVersion   string // of the dump program, if the engine uses one
	Tables        int
	Size          int64
	Connections   []string
	Warnings      []string
	Missing       []engine.Need // missing programs and permissions that the database needs
	Err           error         // why the database cannot be used; nil if it can
}

// CheckTarget connects to a target's databases and reports their versions, what is missing, and
// each obstacle to a build or a load. It returns an error only if there is no such target. The
// problems of a database are in its DatabaseCheck.
func (a *Agent) CheckTarget(ctx context.Context, name string) ([]DatabaseCheck, error) {
	t, err := a.Target(name)
	if err != nil {
		return nil, err
	}
	return a.CheckDatabases(ctx, t), nil
}

// CheckDatabases is like [Agent.CheckTarget], for a target that need not be in the configuration.
func (a *Agent) CheckDatabases(ctx context.Context, t Target) []DatabaseCheck {
	var all []DatabaseCheck
	if t.Source != "" {
		c, info := a.checkDatabase(ctx, "source", t.source(), engine.ForBuild)
		if c.Err == nil && !info.Exists {
			c.Err = &snap.Error{Code: snap.CodeNotFound, Detail: "there is no database " + c.URL,
				Hint: "correct the target's source"}
		}
		all = append(all, c)
	}
	if t.Destination != "" {
		c, _ := a.checkDatabase(ctx, "destination", t.destination(), engine.ForLoad)
		if to, err := a.databaseAt(t.destination()); err == nil {
			if why := a.production(t, to); why != "" {
				c.Warnings = append(c.Warnings, "it "+why+": load will refuse it without --force-production")
			}
		}
		if why := a.kindMismatch(t); why != "" {
			c.Warnings = append(c.Warnings, why)
		}
		all = append(all, c)
	}
	return all
}

// kindMismatch explains that a target's databases are of different kinds, so that its destination
// cannot load the snapshots of its source. It returns "" if they are of the same kind, or if one
// cannot be used.
func (a *Agent) kindMismatch(t Target) string {
	from, sourceErr := a.databaseAt(t.source())
	to, err := a.databaseAt(t.destination())
	if sourceErr != nil || err != nil || from.kind == to.kind {
		return ""
	}
	return fmt.Sprintf("the destination is a %s database and the source is a %s database, so snapshots of the source "+
		"cannot be loaded", to.kind, from.kind)
}

func (a *Agent) checkDatabase(ctx context.Context, role string, at place, use engine.Use) (DatabaseCheck, engine.Info) {
	c := DatabaseCheck{Role: role, URL: Redact(at.raw)}
	d, err := a.databaseAt(at)
	if err != nil {
		c.Err = err
		return c, engine.Info{}
	}
	c.URL, c.Engine = d.shown, d.kind
	info, err := d.engine.Check(ctx, d.url)
	if err != nil {
		c.Err = err
		return c, info
	}
	c.Reachable, c.Exists = true, info.Exists
	c.ServerVersion, c.ToolVersion = info.ServerVersion, info.ToolVersion
	c.Tables, c.Size = len(info.Tables), info.Size
	c.Connections, c.Warnings = info.Connections, info.Warnings
	if inspector, ok := d.engine.(engine.Inspector); ok && (info.Exists || use == engine.ForLoad) {
		c.Missing, c.Err = inspector.Needs(ctx, d.url, use)
	}
	return c, info
}
