package postgres

import (
	"slices"
	"strings"

	"snap/internal/engine"
	"snap/internal/schema"
)

// layout describes how to load a dump. It is derived from the dump's table of contents.
type layout struct {
	setup  []string       // statements for every session that loads: encoding, search path
	tables map[int]*block // the data of tables, by the number of the entry
	others []int          // all entries except the data of tables, in order

	indexes, attached []int // entries that create and attach indexes, if indexes are attached at two levels

	outer map[int]string // schemas as "SCHEMA name", and comments as "comment:KIND name", by the entry's number

	extensions []schema.Extension // to create first, if the entries were checked
}

// block is one table's data.
type block struct {
	schema, name string
	copy         string // the COPY statement, without its semicolon
	encoding     string // encoding of the rows; "" is the session's encoding
	fresh        bool   // the load creates the table, and no other data goes into it

	shared     bool // several sessions load the table at the same time
	analyzable bool // the table can be analyzed as soon as it has its rows

	// The position of the unpacked rows. The spool guards these fields.
	offset, size int64
	ends         []int64 // the ends of its pieces; each piece consists of whole rows
	whole        bool    // all rows are unpacked
	taken        int     // pieces that are loaded or being loaded
}

// noRows is the size of the data of a table without rows: the end marker.
const noRows = int64(len(endOfRows))

func (b *block) key() [2]string { return [2]string{b.schema, b.name} }

// table returns the table's name in the COPY statement, in the dump's encoding.
func (b *block) table() string {
	name, _, _ := parseCopy(b.copy) // layoutOf checked that it parses
	return name
}

// share marks each table that has more than one and a half times one connection's share of all
// rows, so that several connections load it. Otherwise, the table would keep one connection busy
// after the others have finished. A marked table cannot be filled with FREEZE.
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

// oneTable reports whether one table has more than three quarters of all rows. If so, its indexes
// are most of the work.
func oneTable(tables []engine.Table) bool {
	most, total := int64(0), int64(0)
	for _, t := range tables {
		most, total = max(most, t.Rows), total+max(0, t.Rows)
	}
	return most*4 > total*3
}

// layoutOf derives the layout from a table of contents, before any rows are unpacked.
func layoutOf(entries []dumpEntry) *layout {
	l := &layout{tables: map[int]*block{}, outer: map[int]string{}}
	created, partition, computed := map[[2]string]bool{}, map[[2]string]bool{}, map[string]bool{}
	for _, e := range entries {
		switch e.desc {
		case "TABLE":
			created[[2]string{e.namespace, e.tag}] = true
		case "TABLE ATTACH":
			partition[[2]string{e.namespace, e.tag}] = true
		case "INDEX":
			table, expressions := indexedTable(e.definition)
			computed[table] = computed[table] || expressions
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
				// The rows of some partitions are loaded through the root, and extensions can add
				// rows to their tables.
				fresh: unread == nil && created[key] && !strings.Contains(e.definition, "load via partition root"),
			}
			b.analyzable = b.fresh && !partition[key] && !computed[name] // a partition is analyzed with its root
			l.tables[e.id] = b
			continue
		case "SCHEMA":
			l.outer[e.id] = "SCHEMA " + e.tag
		case "COMMENT":
			l.outer[e.id] = "comment:" + e.tag
		case "ENCODING", "STDSTRINGS", "SEARCHPATH":
			l.setup = append(l.setup, e.definition)
		}
		l.others = append(l.others, e.id)
	}
	if deepIndexes(entries) {
		for _, e := range entries {
			switch e.desc {
			case "INDEX", "CONSTRAINT":
				l.indexes = append(l.indexes, e.id)
			case "INDEX ATTACH":
				l.attached = append(l.attached, e.id)
			}
		}
	}
	return l
}

// deepIndexes reports whether indexes are attached at two levels: an index that is attached to
// another index has indexes attached to it.
func deepIndexes(entries []dumpEntry) bool {
	parents, children := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		if e.desc != "INDEX ATTACH" {
			continue
		}
		parent, child, _ := strings.Cut(strings.TrimSpace(e.definition), " ATTACH PARTITION ")
		parents[strings.TrimPrefix(parent, "ALTER INDEX ")] = true
		children[strings.TrimSuffix(child, ";")] = true
	}
	for parent := range parents {
		if children[parent] {
			return true
		}
	}
	return false
}

// step is a group of entries that pg_restore restores with a number of connections.
type step struct {
	entries []int
	jobs    int
}

// steps returns the steps after the rows have been loaded. An index of a partitioned table becomes
// valid when the server attaches the index of the last partition to it. If two connections attach
// indexes of two levels at the same time, they do not see each other's changes. The top index would
// then stay invalid, and foreign keys to it would fail. So one connection attaches all indexes.
func (l *layout) steps(jobs int) []step {
	if len(l.attached) == 0 || jobs == 1 {
		return []step{{l.others, jobs}}
	}
	var indexes, attached, rest []int // without those that the load skips
	for _, id := range l.others {
		switch {
		case slices.Contains(l.attached, id):
			attached = append(attached, id)
		case slices.Contains(l.indexes, id):
			indexes = append(indexes, id)
		default:
			rest = append(rest, id)
		}
	}
	return []step{{indexes, jobs}, {attached, 1}, {rest, jobs}}
}

// indexedTable returns the table of an index, as the statement writes it, and whether the index has
// expressions, which it recognizes by the number of parentheses:
//
//	CREATE INDEX customer_email_idx ON public.customer USING btree (lower(email));
func indexedTable(index string) (table string, expressions bool) {
	_, table, _ = strings.Cut(index, " ON ")
	table, columns, _ := strings.Cut(strings.TrimPrefix(table, "ONLY "), " USING ")
	return table, strings.Count(columns, "(") > 1
}
