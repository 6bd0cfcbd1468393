package local

import (
	"fmt"
	"io"
	"slices"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/engine/mysql"
	"snap/internal/engine/postgres"
	"snap/internal/engine/sqlite"
	"snap/internal/reach"
)

// dumpSection is the name of the snapshot file's section that holds the dump.
const dumpSection = "dump"

// engineFor returns the implementation for a database engine.
func (a *Agent) engineFor(kind snap.Engine) (engine.Engine, error) { return a.engineBy(kind, nil) }

// engineBy is like engineFor, for a database that is reached in the given way.
func (a *Agent) engineBy(kind snap.Engine, way *reach.Way) (engine.Engine, error) {
	switch kind {
	case snap.Postgres:
		return postgres.Engine{Tools: a.postgresTools(), Way: way}, nil
	case snap.MySQL:
		return mysql.Engine{Way: way}, nil
	case snap.SQLite:
		return sqlite.Engine{}, nil
	}
	return nil, snap.Invalid(fmt.Sprintf("databases of kind %q are not supported", kind),
		"use a PostgreSQL, MySQL, MariaDB or SQLite database")
}

// postgresTools returns the configured folders of PostgreSQL's programs.
func (a *Agent) postgresTools() []string {
	var folders []string
	for _, folder := range a.Config().PostgresTools {
		folders = append(folders, a.relativeToConfig(folder))
	}
	return folders
}

// database is a database of a target and its engine.
type database struct {
	kind   snap.Engine
	engine engine.Engine
	url    string // with its password and other secrets
	shown  string // without secrets
}

// databaseAt returns a database of the configuration. It does not connect.
func (a *Agent) databaseAt(p place) (database, error) {
	expanded, err := expandURL(p.raw, a.env)
	if err != nil {
		return database{}, err
	}
	kind, err := engineOf(expanded)
	if err != nil {
		return database{}, err
	}
	way, err := a.way(p)
	if err != nil {
		return database{}, err
	}
	if way != nil && kind == snap.SQLite {
		return database{}, snap.Usage("a SQLite file is not on a server: it is reached neither "+
			"through an SSH server nor with a password", "remove via and password_command from the target")
	}
	e, err := a.engineBy(kind, way)
	return database{kind: kind, engine: e, url: expanded, shown: Redact(expanded)}, err
}

// dumpIn returns the dump of an open snapshot file in the form that engines accept.
func dumpIn(r *archive.Reader) engine.Dump {
	m := r.Manifest()
	var stored archive.Section
	if at := slices.IndexFunc(m.Sections, func(s archive.Section) bool { return s.Name == dumpSection }); at >= 0 {
		stored = m.Sections[at]
	}
	return engine.Dump{
		Open: func() (io.ReadCloser, error) { return r.Section(dumpSection) },
		Size: stored.Size, SHA256: stored.SHA256,
		Info: engine.Info{ServerVersion: m.ServerVersion, ToolVersion: m.ToolVersion, Exists: true,
			Tables: fromArchive(m.Tables), Properties: m.Properties, Subset: subsetFrom(m.Subset), Schema: m.Schema},
	}
}

func subsetFrom(s *archive.Subset) *engine.Subset {
	if s == nil {
		return nil
	}
	return &engine.Subset{Where: s.Where, Percent: s.Percent, Start: s.Start}
}

func subsetTo(s *engine.Subset) *archive.Subset {
	if s == nil {
		return nil
	}
	return &archive.Subset{Where: s.Where, Percent: s.Percent, Start: s.Start}
}

func toArchive(tables []engine.Table) []archive.Table {
	all := make([]archive.Table, len(tables))
	for i, t := range tables {
		all[i] = archive.Table{Schema: t.Schema, Name: t.Name, Rows: t.Rows, Of: t.Of, Bytes: t.Bytes}
		for _, c := range t.Columns {
			all[i].Columns = append(all[i].Columns, archive.Column(c))
		}
	}
	return all
}

func fromArchive(tables []archive.Table) []engine.Table {
	all := make([]engine.Table, len(tables))
	for i, t := range tables {
		all[i] = engine.Table{Schema: t.Schema, Name: t.Name, Rows: t.Rows, Of: t.Of, Bytes: t.Bytes}
		for _, c := range t.Columns {
			all[i].Columns = append(all[i].Columns, engine.Column(c))
		}
	}
	return all
}
