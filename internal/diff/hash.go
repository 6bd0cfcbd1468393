package diff

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// identity is a hash of a row's primary key. It is a hash of the whole row if the two sides have no
// common key, or if the row has NULL in its key, which SQLite allows for any number of rows. Its
// seeds are random, so nobody can construct rows with equal hashes.
type identity [2]uint64

// comparison compares the rows of two sides.
type comparison struct {
	tables []comparedTable
	at     [2][]int   // for each side, the indexes of its tables in comparison.tables
	counts [2][]int64 // for each side, the numbers of rows, in the order of comparison.tables
	spills [2]*spill
	seeds  [3]maphash.Seed
	window int // maximum number of rows kept in memory until an equal row of the other side is read
}

// comparedTable is a table that exists on one side or on both.
type comparedTable struct {
	Table

	shared  bool     // it exists on both sides
	columns [2][]int // for each side, the positions of the common columns in its rows
	key     [2][]int // for each side, the positions of the common primary key's columns; nil if there is none

	order       [2][]int // for each side, the positions of the common columns, first those of the key
	identifying int      // number of columns at the start of order that identify a row
}

func newComparison(before, after Side, dir string) (*comparison, error) {
	c := &comparison{window: windowRows}
	for i := range c.seeds {
		c.seeds[i] = maphash.MakeSeed()
	}
	for i := range c.spills {
		c.spills[i] = &spill{dir: dir, size: blockEntries * entrySize}
	}
	if err := c.match([2][]engine.Table{before.Tables(), after.Tables()}); err != nil {
		return nil, err
	}
	for at := range c.tables {
		c.tables[at].findKey([2]Side{before, after}, [2]int{slices.Index(c.at[0], at), slices.Index(c.at[1], at)})
		c.tables[at].setOrder()
	}
	for i := range c.counts {
		c.counts[i] = make([]int64, len(c.tables))
	}
	return c, nil
}

// match finds the tables and columns that exist on both sides. It fails if a side lists a table
// twice, because it would be unclear which columns the table has.
func (c *comparison) match(sides [2][]engine.Table) error {
	names := map[[2]string][2]*engine.Table{}
	var all []engine.Table
	for i, list := range sides {
		for j, t := range list {
			name := [2]string{t.Schema, t.Name}
			pair, known := names[name]
			if pair[i] != nil {
				return &snap.Error{Code: snap.CodeCorrupt, Hint: "build or pull the snapshot again",
					Detail: fmt.Sprintf("the snapshot lists the table %s twice", snap.TableName(t.Schema, t.Name))}
			}
			if !known {
				all = append(all, engine.Table{Schema: t.Schema, Name: t.Name})
			}
			pair[i] = &list[j]
			names[name] = pair
		}
	}
	engine.Sort(all)
	index := map[[2]string]int{}
	for _, t := range all {
		name := [2]string{t.Schema, t.Name}
		index[name] = len(c.tables)
		one := comparedTable{Table: Table{Schema: t.Schema, Name: t.Name}}
		if pair := names[name]; pair[0] != nil && pair[1] != nil {
			one.shared = true
			one.columns = commonColumns(pair[0].Columns, pair[1].Columns)
		}
		c.tables = append(c.tables, one)
	}
	for i, list := range sides {
		for _, t := range list {
			c.at[i] = append(c.at[i], index[[2]string{t.Schema, t.Name}])
		}
	}
	return nil
}

// commonColumns returns the positions, on each side, of the columns with equal names.
func commonColumns(before, after []engine.Column) (at [2][]int) {
	for i, b := range before {
		j := slices.IndexFunc(after, func(a engine.Column) bool { return a.Name == b.Name })
		if j >= 0 {
			at[0], at[1] = append(at[0], i), append(at[1], j)
		}
	}
	return at
}

// findKey sets the key if both sides have the same primary key. indexes has the table's index in
// each side's list of tables, negative if that side does not have it.
func (t *comparedTable) findKey(sides [2]Side, indexes [2]int) {
	if indexes[0] < 0 || indexes[1] < 0 {
		return
	}
	var keys [2][]string
	for i, side := range sides {
		keys[i] = primaryKey(side.Schema, schema.Name{Schema: t.Schema, Name: t.Name})
	}
	if len(keys[0]) == 0 || !slices.Equal(keys[0], keys[1]) {
		return
	}
	var positions [2][]int
	for i, side := range sides {
		columns := side.Tables()[indexes[i]].Columns
		for _, name := range keys[i] {
			at := slices.IndexFunc(columns, func(c engine.Column) bool { return c.Name == name })
			if at < 0 {
				return
			}
			positions[i] = append(positions[i], at)
		}
	}
	t.key, t.Keyed = positions, true
}

// setOrder sets the order in which the common columns are encoded.
func (t *comparedTable) setOrder() {
	t.order = [2][]int{slices.Clone(t.key[0]), slices.Clone(t.key[1])}
	for i, at := range t.columns[0] {
		if !slices.Contains(t.key[0], at) {
			t.order[0], t.order[1] = append(t.order[0], at), append(t.order[1], t.columns[1][i])
		}
	}
	if t.identifying = len(t.key[0]); !t.Keyed {
		t.identifying = len(t.order[0])
	}
}

// primaryKey returns the columns of a table's primary key, or nil.
func primaryKey(s *schema.Schema, name schema.Name) []string {
	if s == nil {
		return nil
	}
	for _, t := range s.Tables {
		if t.Name == name {
			return t.PrimaryKey()
		}
	}
	return nil
}

// A value of at least longValue bytes is encoded as its hash, so that a row takes little memory.
const longValue = 1024

// encode appends a row of c.tables[table] to b. Equal rows of a comparison have equal bytes, and
// different rows have different bytes, unless the hashes of long values collide. encode also
// returns the end of the bytes that identify the row: those of its primary key, or all if there is
// no key or the row has NULL in it.
func (c *comparison) encode(b []byte, side, table int, fields [][]byte) (row []byte, key int) {
	t := &c.tables[table]
	b = binary.AppendUvarint(b, uint64(table))
	key = len(b)
	identifying := t.identifying
	for i, at := range t.order[side] {
		switch value := fields[at]; {
		case value == nil:
			b = append(b, 0)
			if i < identifying {
				identifying = len(t.order[side])
			}
		case len(value) < longValue:
			b = append(binary.AppendUvarint(b, uint64(len(value))+1), value...)
		default:
			id := c.identify(value)
			b = binary.AppendUvarint(b, uint64(len(value))+1)
			b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, id[0]), id[1])
		}
		if i < identifying {
			key = len(b)
		}
	}
	return b, key
}

// entry returns the hashes of an encoded row. The bytes row[:key] identify the row.
func (c *comparison) entry(row []byte, table, key int) entry {
	return entry{identity: c.identify(row[:key]), row: maphash.Bytes(c.seeds[0], row), table: uint32(table), rows: 1}
}

func (c *comparison) identify(b []byte) identity {
	return identity{maphash.Bytes(c.seeds[1], b), maphash.Bytes(c.seeds[2], b)}
}
