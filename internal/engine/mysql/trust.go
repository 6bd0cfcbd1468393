package mysql

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// trust defines which parts of a dump are executed.
type trust int

const (
	complete trust = iota // everything, unchanged
	checked               // each statement after a check, if possible by an account limited to the scratch database
	dataOnly              // nothing: statements are generated from the dump's description
)

func trustOf(dump engine.Dump) trust {
	switch {
	case dump.Trust == engine.Mine:
		return complete
	case dump.Trust == engine.Ours, dump.WithPrograms:
		return checked
	}
	return dataOnly
}

func (s *scratch) mariadb() bool { return isMariaDB(s.version) }

// read reads the definitions of a dump, checks or replaces them depending on the trust, and returns
// a reader of the dump's rows.
func (s *scratch) read(dump engine.Dump, r io.Reader) (rows *bufio.Reader, err error) {
	switch s.trust {
	case complete:
		s.structure, rows, err = splitHead(r, maxHead)
		return rows, err
	case checked:
		if s.structure, rows, err = splitHead(r, headLimit(dump)); err != nil {
			return nil, err
		}
		return rows, s.check(dump)
	}
	if s.structure, err = statementsFor(dump.Info.Schema, s.mariadb()); err != nil {
		return nil, err
	}
	s.describeRows(dump.Info.Schema)
	return skipHead(r)
}

// describeRows derives from a description the form that each table's rows must have, and the tables
// that are left out.
func (s *scratch) describeRows(d *schema.Schema) {
	s.forms, s.leftOut = map[string]rowForm{}, map[string]bool{}
	versioned := map[string]bool{}
	for _, p := range d.Programs {
		switch p.Kind {
		case "table":
			s.leftOut[p.Name.Name] = true
		case "system versioning":
			versioned[p.Name.Name] = true
		}
	}
	for _, t := range d.Tables {
		form := rowForm{currentOnly: versioned[t.Name.Name]}
		for _, c := range t.Columns {
			if !c.Computed {
				form.columns = append(form.columns, c.Name)
			}
		}
		delete(s.leftOut, t.Name.Name)
		s.forms[t.Name.Name] = form
	}
}

// check checks the structure of a dump from elsewhere, and replaces its statements with those that
// the checker returns.
func (s *scratch) check(dump engine.Dump) error {
	k := checker{mariadb: s.mariadb(), version: serverVersion(s.version), known: dump.Info.Schema}
	if dump.Trust == engine.Foreign && k.known == nil {
		return errNoDescription()
	}
	if k.known != nil {
		if err := k.known.Check(schema.MySQL); err != nil {
			return err
		}
	}
	var err error
	if s.structure, err = k.structure(s.structure); err != nil {
		return err
	}
	s.forms = map[string]rowForm{}
	periods := map[string]bool{}
	for _, t := range s.structure.Tables {
		periods[t.Name] = t.Period != nil
	}
	for _, t := range dump.Info.Tables {
		s.forms[t.Name] = rowForm{columns: columnNames(withoutGenerated(t.Columns)), period: periods[t.Name]}
	}
	for _, t := range s.structure.Tables {
		if _, ok := s.forms[t.Name]; !ok {
			return badSchema("the columns of the table %.80q are missing", t.Name)
		}
	}
	s.needsAccount = dump.Trust == engine.Foreign
	return nil
}

// wanted returns the tables that the restored database must have.
func (s *scratch) wanted(info engine.Info) []engine.Table {
	return slices.DeleteFunc(slices.Clone(info.Tables), func(t engine.Table) bool { return s.leftOut[t.Name] })
}

// serverVersion returns a server's version as a number, as in executable comments: 80036 for
// 8.0.36.
func serverVersion(version string) int {
	n := 0
	version = strings.TrimPrefix(version, "5.5.5-")
	for i, part := range strings.SplitN(version, ".", 3) {
		digits := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if digits >= 0 {
			part = part[:digits]
		}
		v, _ := strconv.Atoi(part)
		n += v * []int{10000, 100, 1}[i]
	}
	return n
}

// requireInside returns an error if a foreign key, view, trigger or event of the dump uses another
// database. It does not check a dump that is executed unchanged.
func (s *scratch) requireInside(ctx context.Context) error {
	if s.trust == complete {
		return nil
	}
	out, err := queryStrings(ctx, s.server, "SELECT concat(table_name, '.', constraint_name) FROM "+
		"information_schema.referential_constraints WHERE constraint_schema = ? AND unique_constraint_schema <> ?",
		s.db.name, s.db.name)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		return errOtherDatabase("foreign key", out[0])
	}
	if s.trust == dataOnly {
		return nil
	}
	others, err := queryStrings(ctx, s.server, "SELECT schema_name FROM information_schema.schemata WHERE "+
		"schema_name NOT IN (?, ?)", s.db.name, s.dest.name)
	if err != nil {
		return err
	}
	if s.account.exists() { // information_schema shows the account only objects that it has access to
		others = slices.DeleteFunc(others,
			func(name string) bool { return strings.EqualFold(name, "information_schema") })
	}
	for _, kind := range []struct{ word, query string }{
		{"view", "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = ?"},
		{"trigger", "SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = ?"},
	} {
		if err := s.checkTexts(ctx, kind.word, kind.query, others); err != nil {
			return err
		}
	}
	for _, e := range s.structure.Events { // not created until after the exchange, because they would run
		if namesDatabase(e.SQL, modeOf(e.Mode), others) {
			return errOtherDatabase("event", e.Name)
		}
	}
	return nil
}

// checkTexts checks the SQL of all objects of one kind, as the server shows it.
func (s *scratch) checkTexts(ctx context.Context, kind, query string, others []string) error {
	rows, err := s.server.QueryContext(ctx, query, s.db.name)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		if namesDatabase(text, lexMode{}, others) && namesDatabase(text, lexMode{ansi: true}, others) {
			return errOtherDatabase(kind, name)
		}
	}
	return rows.Err()
}

// namesDatabase reports whether SQL has the name of one of these databases before a dot. It also
// returns true for SQL that cannot be parsed.
func namesDatabase(text string, m lexMode, databases []string) bool {
	tokens, err := lex(text, m)
	if err != nil {
		return true
	}
	for i := range max(0, len(tokens)-1) {
		t, first := tokens[i], i == 0 || !tokens[i-1].isSign(".")
		if (t.kind == wordToken || t.kind == nameToken) && tokens[i+1].isSign(".") && first &&
			slices.ContainsFunc(databases, func(d string) bool { return strings.EqualFold(d, t.value) }) {
			return true
		}
	}
	return false
}

func errOtherDatabase(kind, name string) error {
	return &snap.Error{
		Code: snap.CodeInvalid, Detail: fmt.Sprintf("the %s %.80q of the snapshot uses another database", kind,
			name),
		Hint: "a snapshot that you did not build here may only use its own database; nothing was replaced",
	}
}
