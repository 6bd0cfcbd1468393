package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// catalog is the schema of a file as data.
type catalog struct {
	entries []entry
	schema.Schema
	tables  map[string]definition // the ordinary tables, by name in lower case
	virtual map[string]string     // the modules of the virtual tables, by name in lower case
	columns int                   // number of columns of the ordinary tables
}

// maxTotalColumns is the maximum number of columns of all tables of a file together. A parsed
// column needs up to a hundred times as much memory as its SQL.
const maxTotalColumns = 100_000

// catalogOf parses the entries of a file's schema. For entries that are programs or cannot be
// parsed, it lists only the names.
func catalogOf(entries []entry) *catalog {
	c := &catalog{entries: entries, tables: map[string]definition{}, virtual: map[string]string{}}
	for _, e := range entries {
		if e.kind == "table" && e.isVirtual() {
			c.addVirtual(e)
		}
	}
	for _, e := range entries {
		if e.kind == "table" && !e.isVirtual() && !e.internal() && !c.isShadow(e.name) {
			c.addTable(e)
		}
	}
	for _, e := range entries {
		if e.kind != "table" && e.sql != "" {
			c.addOther(e)
		}
	}
	return c
}

// isVirtual reports whether the entry is a virtual table, which has no pages.
func (e entry) isVirtual() bool { return e.kind == "table" && e.root == 0 }

// internal reports whether the entry is one of SQLite's internal objects.
func (e entry) internal() bool {
	return len(e.name) >= 7 && strings.EqualFold(e.name[:7], "sqlite_")
}

// isShadow reports whether a table stores the content of a virtual table.
func (c *catalog) isShadow(name string) bool {
	name = strings.ToLower(name)
	at := strings.LastIndexByte(name, '_')
	return at >= 0 && slices.Contains(shadows(c.virtual[name[:at]]), name[at:])
}

func (c *catalog) addVirtual(e entry) {
	t, module, err := virtualDefinition(e.sql)
	c.virtual[strings.ToLower(e.name)] = module
	if err != nil || t.Name.Name != charset.Readable(e.name) || !describable(t) {
		c.program("virtual table", e)
		return
	}
	c.Tables = append(c.Tables, t)
}

func (c *catalog) addTable(e entry) {
	d, err := tableDefinition(e.sql)
	if c.columns += len(d.Columns); c.columns > maxTotalColumns || err != nil ||
		d.Name.Name != charset.Readable(e.name) || !describable(d.Table) {
		c.program("table", e)
		return
	}
	d.position = len(c.Tables)
	c.tables[strings.ToLower(e.name)] = d
	c.Tables, c.Programs = append(c.Tables, d.Table), append(c.Programs, d.programs...)
}

// describable reports whether a description can contain the table.
func describable(t schema.Table) bool {
	return (&schema.Schema{Tables: []schema.Table{t}}).Check(schema.SQLite) == nil
}

func (c *catalog) program(kind string, e entry) {
	p := schema.Program{Kind: kind, Name: schema.Name{Name: charset.Readable(e.name)}}
	if e.table != e.name {
		p.On = charset.Readable(e.table)
	}
	c.Programs = append(c.Programs, p)
}

// addOther adds an index, or lists a view or a trigger as a program.
func (c *catalog) addOther(e entry) {
	if e.kind != "index" {
		c.program(e.kind, e)
		return
	}
	d, known := c.tables[strings.ToLower(e.table)]
	if !known {
		return // the index of a shadow table, or of a table that is listed as a program
	}
	index, kind := indexDefinition(e, d)
	if kind != "" {
		c.program(kind, e)
		return
	}
	c.Tables[d.position].Indexes = append(c.Tables[d.position].Indexes, index)
}

// indexDefinition parses a CREATE INDEX statement. If a description cannot contain the index, the
// second result is the kind under which it is listed as a program, such as "expression index".
// Otherwise, the second result is "".
func indexDefinition(e entry, d definition) (schema.Index, string) {
	index := schema.Index{Name: charset.Readable(e.name)}
	list, err := tokens(e.sql)
	if err != nil || e.check() != nil {
		return index, "index"
	}
	p := &tableParser{reader: reader{list: list}, text: e.sql}
	p.accept("CREATE")
	index.Unique = p.accept("UNIQUE")
	p.at += 2 // skip INDEX and the name, which were checked
	p.accept("ON")
	p.name()
	for more := p.accept("("); more; more = p.accept(",") {
		column, err := p.keyColumn()
		at := d.indexOf(column.Name)
		if at >= 0 {
			column.Name = d.Columns[at].Name
		}
		if err != nil || at < 0 || d.Columns[at].Computed || len(p.programs) > 0 {
			return index, "expression index"
		}
		index.Columns = append(index.Columns, column)
	}
	if !p.accept(")") || !p.done() {
		return index, "partial index"
	}
	return index, ""
}

// entriesOf reads the schema of an open database.
func entriesOf(ctx context.Context, q querier) ([]entry, error) {
	rows, err := q.QueryContext(ctx,
		"SELECT type, name, tbl_name, coalesce(rootpage, 0), coalesce(sql, '') FROM sqlite_schema ORDER BY rowid")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []entry
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.kind, &e.name, &e.table, &e.root, &e.sql); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

// describe describes an open database as data. It lists a table as a program if the columns that
// SQLite reports for it differ from its parsed statement, or if a load cannot fill it.
func describe(ctx context.Context, q querier) (*schema.Schema, error) {
	entries, err := entriesOf(ctx, q)
	if err != nil {
		return nil, err
	}
	c := catalogOf(entries)
	for _, e := range entries {
		d, ok := c.tables[strings.ToLower(e.name)]
		if !ok || e.kind != "table" {
			continue
		}
		same, err := asDefined(ctx, q, e.name, d)
		if err != nil {
			return nil, err
		}
		if !same {
			c.Tables = slices.DeleteFunc(c.Tables, func(t schema.Table) bool { return t.Name == d.Name })
			c.program("table", e)
		}
	}
	all := slices.Clone(c.Tables)
	c.Tables = slices.DeleteFunc(c.Tables, func(t schema.Table) bool {
		if fillable(t, all) {
			return false
		}
		c.Programs = append(c.Programs, schema.Program{Kind: "virtual table", Name: t.Name})
		return true
	})
	c.Sequences, err = sequences(ctx, q, c)
	return &c.Schema, err
}

// asDefined reports whether the columns that SQLite reports for a table match its definition.
func asDefined(ctx context.Context, q querier, table string, d definition) (bool, error) {
	rows, err := q.QueryContext(ctx, `SELECT name, "notnull", hidden FROM pragma_table_xinfo(?) ORDER BY cid`, table)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	same, i := true, 0
	for ; rows.Next(); i++ {
		var name string
		var notNull bool
		var hidden int
		if err := rows.Scan(&name, &notNull, &hidden); err != nil {
			return false, err
		}
		if i >= len(d.Columns) {
			same = false
			continue
		}
		c := d.Columns[i]
		same = same && c.Name == charset.Readable(name) && (!c.NotNull || notNull) &&
			c.Computed == (hidden > 1) && d.virtual[i] == (hidden == 2)
	}
	return same && i == len(d.Columns), rows.Err()
}

// sequences returns the last assigned number of each table with AUTOINCREMENT.
func sequences(ctx context.Context, q querier, c *catalog) ([]schema.Sequence, error) {
	if !slices.ContainsFunc(c.entries, func(e entry) bool { return e.name == "sqlite_sequence" }) {
		return nil, nil
	}
	rows, err := q.QueryContext(ctx,
		"SELECT name, seq FROM sqlite_sequence WHERE typeof(seq) = 'integer' ORDER BY rowid")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []schema.Sequence
	for rows.Next() {
		var name sql.NullString
		var last int64
		if err := rows.Scan(&name, &last); err != nil {
			return nil, err
		}
		if d, ok := c.tables[strings.ToLower(name.String)]; ok && d.autoIncrement() != "" {
			all = append(all, schema.Sequence{Name: schema.Name{Schema: "sqlite_sequence", Name: d.Name.Name},
				Last: strconv.FormatInt(last, 10), Owner: &schema.Owner{Table: d.Name, Column: d.autoIncrement()}})
		}
	}
	return all, rows.Err()
}

// autoIncrement returns the name of the column with AUTOINCREMENT, or "".
func (d definition) autoIncrement() string {
	for _, c := range d.Columns {
		if c.Identity != nil {
			return c.Name
		}
	}
	return ""
}
