package postgres

import (
	"strings"

	"snap/internal/engine"
	"snap/internal/schema"
)

// layout is what a dump's table of contents says about how to load it.
type layout struct {
	setup  []string       // statements for every session that loads: encoding, search path
	tables map[int]*block // the data of tables, by its number
	others []int          // the table of contents without the data of tables, in its order

	extensions []schema.Extension // to create before all else, of a dump whose entries are checked
}

// block is one table's data.
type block struct {
	schema, name string
	copy         string // the statement, without its semicolon
	encoding     string // of the rows; "" is the session's
	fresh        bool   // the load creates the table itself, and the data is for it alone

	shared  bool // several load it at a time
	settled bool // what the planner is to know of it does not wait for more than its rows

	// Where its rows are, as far as they are unpacked; guarded by the spool.
	offset, size int64
	ends         []int64 // of its pieces, each of whole rows
	whole        bool    // all of it is there
	taken        int     // pieces that somebody loads or has loaded
}

// noRows is the longest data of a table without rows: the mark of their end.
const noRows = int64(len("\\.\n\n\n"))

func (b *block) key() [2]string { return [2]string{b.schema, b.name} }

// table is what the statement names it, in the dump's encoding.
func (b *block) table() string {
	name, _, _ := parseCopy(b.copy) // layoutOf has seen that it can be read
	return name
}

// share has several connections load a table that is much larger than its share of all rows. Such a
// table cannot be filled with FREEZE, and would keep one connection busy after the others have
// finished.
func (l *layout) share(tables []engine.Table, jobs int) {
	rows, total := map[[2]string]int64{}, int64(0)
	for _, t := range tables {
		rows[[2]string{t.Schema, t.Name}] = t.Rows
		total += max(0, t.Rows)
	}
	for _, b := range l.tables {
		b.shared = b.fresh && jobs > 1 && rows[b.key()]*int64(jobs)*2 > total*3
	}
}

// oneTable reports whether nearly all rows are of one table: then there is
// little to do besides its indexes.
func oneTable(tables []engine.Table) bool {
	most, total := int64(0), int64(0)
	for _, t := range tables {
		most, total = max(most, t.Rows), total+max(0, t.Rows)
	}
	return most*4 > total*3
}

// layoutOf reads a table of contents. No rows are unpacked yet.
func layoutOf(entries []dumpEntry) *layout {
	l := &layout{tables: map[int]*block{}}
	made, partition, computed := map[[2]string]bool{}, map[[2]string]bool{}, map[string]bool{}
	for _, e := range entries {
		switch e.desc {
		case "TABLE":
			made[[2]string{e.namespace, e.tag}] = true
		case "TABLE ATTACH":
			partition[[2]string{e.namespace, e.tag}] = true
		case "INDEX":
			computed[computedFrom(e.definition)] = true
		}
	}
	for _, e := range entries {
		switch e.desc {
		case "TABLE DATA":
			name, _, unread := parseCopy(e.copy)
			key := [2]string{e.namespace, e.tag}
			b := &block{
				schema: e.namespace, name: e.tag,
				copy: strings.TrimSuffix(strings.TrimSpace(e.copy), ";"),
				// Rows of some partitions go in through the root, and the tables of
				// an extension have rows of its own.
				fresh: unread == nil && made[key] && !strings.Contains(e.definition, "load via partition root"),
			}
			b.settled = b.fresh && !partition[key] && !computed[name] // a partition is seen to with its root
			l.tables[e.id] = b
			continue
		case "ENCODING", "STDSTRINGS", "SEARCHPATH":
			l.setup = append(l.setup, e.definition)
		}
		l.others = append(l.others, e.id)
	}
	return l
}

// computedFrom returns the table, as it stands there, of an index of expressions:
// CREATE INDEX customer_email_idx ON public.customer USING btree (lower(email));
// "" if it is of columns alone, as far as can be told from its parentheses.
func computedFrom(index string) string {
	_, table, _ := strings.Cut(index, " ON ")
	table, columns, _ := strings.Cut(strings.TrimPrefix(table, "ONLY "), " USING ")
	if strings.Count(columns, "(") < 2 {
		return ""
	}
	return table
}
