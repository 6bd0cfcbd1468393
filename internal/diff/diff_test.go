package diff

import (
	"context"
	"fmt"
	"hash/maphash"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// memory is a database in memory.
type memory struct {
	tables []engine.Table
	rows   [][][]*string // by table
}

func (m memory) Tables() []engine.Table         { return m.tables }
func (memory) Definitions() []engine.Definition { return nil }
func (memory) Text(field []byte) string         { return string(field) }
func (memory) Close() error                     { return nil }
func (m memory) opener(s *schema.Schema) Opener {
	return func(context.Context) (Side, error) { return m.side(s), nil }
}
func (m memory) side(described *schema.Schema) Side { return Side{m, described} }

// Rows alternates between the tables, because rows of different tables can alternate in a dump.
func (m memory) Rows(_ context.Context, see func(int, [][]byte) error) error {
	for i, left := 0, true; left; i++ {
		left = false
		for at, rows := range m.rows {
			if i >= len(rows) {
				continue
			}
			left = true
			fields := make([][]byte, len(rows[i]))
			for j, v := range rows[i] {
				if v != nil {
					fields[j] = []byte(*v)
				}
			}
			if err := see(at, fields); err != nil {
				return err
			}
		}
	}
	return nil
}

var columnNames = []string{"id", "a", "b", "c"}

func drawValue(t *rapid.T) *string {
	s := rapid.SampledFrom([]string{"NULL", "", "x", "y", "xy", "\x00", "a\tb", "\\N", strings.Repeat("x", longValue),
		strings.Repeat("x", longValue-1) + "y", strings.Repeat("x", longValue-1)}).Draw(t, "value")
	if s == "NULL" {
		return nil
	}
	return &s
}

func drawRows(t *rapid.T, keyed bool) [][]*string {
	var all [][]*string
	for i := range rapid.IntRange(0, 12).Draw(t, "rows") {
		if keyed && rapid.Bool().Draw(t, "left out") {
			continue
		}
		id := fmt.Sprint(i)
		if !keyed {
			id = "0"
		}
		all = append(all, []*string{&id, drawValue(t), drawValue(t), drawValue(t)})
	}
	return all
}

func text(row []*string, columns []int) string {
	var b string
	for _, i := range columns {
		if row[i] == nil {
			b += "|NULL"
		} else {
			b += fmt.Sprintf("|%q", *row[i])
		}
	}
	return b
}

// TestCompareCounts checks the counts against a comparison of all rows in memory, for tables with
// and without a key, and with columns that only one side has.
func TestCompareCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sides [2]memory
		var want []Table
		described := &schema.Schema{}
		for i := range rapid.IntRange(1, 3).Draw(t, "tables") {
			name, keyed := fmt.Sprintf("t%d", i), rapid.Bool().Draw(t, "keyed")
			if keyed {
				described.Tables = append(described.Tables, schema.Table{Name: schema.Name{Name: name},
					Keys: []schema.Key{{Primary: true, Columns: []schema.KeyColumn{{Name: "id"}}}}})
			}
			rows := [2][][]*string{drawRows(t, keyed), drawRows(t, keyed)}
			common := []int{0, 1, 2, 3}
			dropped := rapid.SampledFrom([]int{-1, 1, 3}).Draw(t, "dropped column")
			for side := range sides {
				table := engine.Table{Name: name}
				for j, c := range columnNames {
					if side == 0 || j != dropped {
						table.Columns = append(table.Columns, engine.Column{Name: c})
					}
				}
				stored := rows[side]
				if side == 1 && dropped > 0 {
					stored = nil
					for _, row := range rows[side] {
						stored = append(stored, slices.Delete(slices.Clone(row), dropped, dropped+1))
					}
				}
				sides[side].tables = append(sides[side].tables, table)
				sides[side].rows = append(sides[side].rows, stored)
			}
			if dropped > 0 {
				common = slices.DeleteFunc(common, func(c int) bool { return c == dropped })
			}
			if one := expected(name, keyed, rows, common); one.Added+one.Removed+one.Changed > 0 {
				want = append(want, one)
			}
		}
		got, _, err := Compare(context.Background(), sides[0].opener(described), sides[1].opener(described), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Tables, want) {
			t.Fatalf("got %+v, want %+v", got.Tables, want)
		}
	})
}

// expected compares two lists of rows by their texts.
func expected(name string, keyed bool, rows [2][][]*string, common []int) Table {
	one := Table{Name: name, Before: int64(len(rows[0])), After: int64(len(rows[1])), Keyed: keyed}
	keys := common
	if keyed {
		keys = []int{0}
	}
	before, after := map[string][]string{}, map[string][]string{}
	for _, row := range rows[0] {
		before[text(row, keys)] = append(before[text(row, keys)], text(row, common))
	}
	for _, row := range rows[1] {
		after[text(row, keys)] = append(after[text(row, keys)], text(row, common))
	}
	for key, b := range before {
		a := after[key]
		switch {
		case keyed && len(a) == 0:
			one.Removed++
		case keyed && a[0] != b[0]:
			one.Changed++
		case !keyed:
			one.Removed += int64(max(0, len(b)-len(a)))
		}
	}
	for key, a := range after {
		if !keyed || len(before[key]) == 0 {
			one.Added += int64(max(0, len(a)-len(before[key])))
		}
	}
	return one
}

// TestManyRows checks that rows that do not fit into the blocks in memory are compared with files,
// which are removed afterwards, whatever the order of the rows and the number of rows in memory.
func TestManyRows(t *testing.T) {
	t.Parallel()
	table := []engine.Table{{Name: "t", Columns: []engine.Column{{Name: "id"}, {Name: "a"}}}}
	var before, after memory
	before.tables, after.tables = table, table
	before.rows, after.rows = make([][][]*string, 1), make([][][]*string, 1)
	for i := range 20_000 {
		id, a, b := fmt.Sprint(i), "same", "other"
		before.rows[0] = append(before.rows[0], []*string{&id, &a})
		if i%100 == 0 {
			after.rows[0] = append(after.rows[0], []*string{&id, &b})
		} else if i%7 > 0 {
			after.rows[0] = append(after.rows[0], []*string{&id, &a})
		}
	}
	slices.Reverse(after.rows[0][:5000])
	for _, window := range []int{2, 64, windowRows} {
		dir := t.TempDir()
		got, files := countMany(t, before, after, window, dir)
		want := Table{Name: "t", Before: 20_000, After: 17_171, Removed: 2829, Changed: 200, Keyed: true}
		if got != want {
			t.Errorf("with room for %d rows: %+v, want %+v", window, got, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || files != 2 {
			t.Errorf("%d files were used and %d remain: %v", files, len(left), err)
		}
	}
}

// countMany compares the table of two databases, and returns the number of files in dir that it used.
func countMany(t *testing.T, before, after memory, window int, dir string) (Table, int) {
	t.Helper()
	described := &schema.Schema{Tables: []schema.Table{{Name: schema.Name{Name: "t"},
		Keys: []schema.Key{{Primary: true, Columns: []schema.KeyColumn{{Name: "id"}}}}}}}
	c, err := newComparison(before.side(described), after.side(described), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	c.window = window
	for _, s := range c.spills {
		s.size = entrySize
	}
	r, err := c.compare(t.Context(), before.side(described), after.side(described), nil)
	if err != nil || len(r.Tables) != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	used, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r.Tables[0], len(used)
}

// TestWindowKeepsEqualRowsTogether checks that most rows which are equal on both sides cancel each
// other out, although rows in between were removed: at most 20,000 of 180,000 are kept.
func TestWindowKeepsEqualRowsTogether(t *testing.T) {
	t.Parallel()
	var sides [2][]numbered
	for i := range 200_000 {
		sides[0] = append(sides[0], numbered{0, i})
		if i%10 > 0 { // removed, so the other side would be 20,000 rows ahead at the end
			sides[1] = append(sides[1], numbered{0, i})
		}
	}
	if kept := keptOf(t, sides); kept[0]-kept[1] != 20_000 || kept[1] > 20_000 {
		t.Errorf("%d and %d rows are kept of 20,000 that differ", kept[0], kept[1])
	}
}

// TestTablesStayTogether checks that only the new rows are kept if there are more of them at the
// end of a table than the window has room for.
func TestTablesStayTogether(t *testing.T) {
	t.Parallel()
	var sides [2][]numbered
	for side := range sides {
		for table := range 3 {
			for i := range 1000 + side*30_000 {
				sides[side] = append(sides[side], numbered{table, i})
			}
		}
	}
	if kept := keptOf(t, sides); kept != [2]int{0, 90_000} {
		t.Errorf("%d and %d rows are kept of 90,000 new ones", kept[0], kept[1])
	}
}

// numbered is a row that consists of a number.
type numbered struct{ table, number int }

// keptOf cancels equal rows with a window of 16,384 rows, and returns how many are kept of each side.
func keptOf(t *testing.T, sides [2][]numbered) (kept [2]int) {
	t.Helper()
	spills := [2]*spill{{size: 1 << 20}, {size: 1 << 20}}
	table := comparedTable{shared: true, order: [2][]int{{0}, {0}}, identifying: 1}
	c := &comparison{window: 1 << 14, spills: spills, tables: []comparedTable{table, table, table},
		seeds: [3]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}}
	var batches [2]chan batch
	for side, rows := range sides {
		batches[side] = make(chan batch, len(rows)/batchRows+1)
		var b batch
		for _, row := range rows {
			if b.add(c, side, row.table, [][]byte{strconv.AppendInt(nil, int64(row.number), 10)}); b.full() {
				batches[side] <- b
				b = batch{}
			}
		}
		if len(b.rows) > 0 {
			batches[side] <- b
		}
		close(batches[side])
	}
	if err := c.cancel(t.Context(), batches, make(chan batch)); err != nil {
		t.Fatal(err)
	}
	for side, s := range spills {
		for _, open := range s.open {
			kept[side] += len(open) / entrySize
		}
	}
	return kept
}

// TestCompareRows checks that the listed rows are those that were counted.
func TestCompareRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keyed := rapid.Bool().Draw(t, "keyed")
		described := &schema.Schema{}
		if keyed {
			described.Tables = []schema.Table{{Name: schema.Name{Name: "t"},
				Keys: []schema.Key{{Primary: true, Columns: []schema.KeyColumn{{Name: "id"}}}}}}
		}
		var sides [2]memory
		rows := [2][][]*string{drawRows(t, keyed), drawRows(t, keyed)}
		for side := range sides {
			one := engine.Table{Name: "t"}
			for _, c := range columnNames {
				one.Columns = append(one.Columns, engine.Column{Name: c})
			}
			sides[side] = memory{[]engine.Table{one}, [][][]*string{rows[side]}}
		}
		want := expected("t", keyed, rows, []int{0, 1, 2, 3})
		limit := rapid.IntRange(1, 30).Draw(t, "limit")
		_, got, err := Compare(context.Background(), sides[0].opener(described), sides[1].opener(described),
			&Wanted{[2]string{"", "t"}, limit}, "")
		if err != nil {
			t.Fatal(err)
		}
		total := want.Added + want.Removed + want.Changed
		if int64(len(got.Rows))+got.More != total || len(got.Rows) > limit {
			t.Fatalf("%d rows and %d more with limit %d, want %+v", len(got.Rows), got.More, limit, want)
		}
		for _, r := range got.Rows {
			in := [2]bool{holds(rows[0], r.Before), holds(rows[1], r.After)}
			if in != map[Kind][2]bool{Added: {false, true}, Removed: {true, false}, Changed: {true, true}}[r.Change] {
				t.Fatalf("%s row %v in %v", r.Change, in, rows)
			}
		}
	})
}

func holds(rows [][]*string, row []*string) bool {
	return row != nil && slices.ContainsFunc(rows, func(r []*string) bool {
		return slices.EqualFunc(r, row, func(x, y *string) bool { return x == y || x != nil && y != nil && *x == *y })
	})
}

// TestNullInKey checks that rows with NULL in their primary key, which SQLite allows, are identified
// by all their columns, so that equal ones are no difference and the others are listed.
func TestNullInKey(t *testing.T) {
	t.Parallel()
	table := []engine.Table{{Name: "t", Columns: []engine.Column{{Name: "id"}, {Name: "a"}}}}
	described := &schema.Schema{Tables: []schema.Table{{Name: schema.Name{Name: "t"},
		Keys: []schema.Key{{Primary: true, Columns: []schema.KeyColumn{{Name: "id"}}}}}}}
	same, old, added := "same", "old", "new"
	before := memory{table, [][][]*string{{{nil, &same}, {nil, &old}}}}
	after := memory{table, [][][]*string{{{nil, &same}, {nil, &added}}}}
	counts, got, err := Compare(t.Context(), before.opener(described), after.opener(described),
		&Wanted{[2]string{"", "t"}, 10}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := Table{Name: "t", Before: 2, After: 2, Added: 1, Removed: 1, Keyed: true}
	if !slices.Equal(counts.Tables, []Table{want}) {
		t.Errorf("got %+v, want %+v", counts.Tables, want)
	}
	if len(got.Rows) != 2 || !holds([][]*string{{nil, &old}}, got.Rows[0].Before) ||
		!holds([][]*string{{nil, &added}}, got.Rows[1].After) {
		t.Errorf("got %+v", got.Rows)
	}
}

// TestTableListedTwice checks that a dump that lists a table twice with different columns is
// refused.
func TestTableListedTwice(t *testing.T) {
	t.Parallel()
	id := "1"
	twice := memory{[]engine.Table{{Name: "t", Columns: []engine.Column{{Name: "a"}}},
		{Name: "t", Columns: []engine.Column{{Name: "b"}, {Name: "a"}}}}, [][][]*string{{{&id}}, {{&id, &id}}}}
	for _, sides := range [][2]memory{{twice, {}}, {{}, twice}, {twice, twice}} {
		_, _, err := Compare(t.Context(), sides[0].opener(nil), sides[1].opener(nil), nil, "")
		if snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%v", err)
		}
	}
}

// TestHostileRowsTakeLittleMemory checks that any number of equal rows, which a small file can
// contain, need the memory of a few. Different rows with the same primary key, which no database
// has, are refused before there are too many. Long values are not listed.
func TestHostileRowsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	const many = 1_000_000
	s := &spill{dir: t.TempDir(), size: blockEntries * entrySize}
	defer s.close()
	for i := range many {
		if err := s.add(entry{row: uint64(i % 2)}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.part(0)
	if err != nil || len(all) != 2 || all[0].rows != many/2 || all[1].rows != many/2 {
		t.Fatalf("%d entries, error %v", len(all), err)
	}
	if cap(all) > 2*packEntries {
		t.Errorf("there is room for %d entries", cap(all))
	}
	for i := range maxSameIdentity + 1 {
		if err := s.add(entry{identity: identity{256}, row: uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.part(0); snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("rows with one key: %v", err)
	}
	long := strings.Repeat("x", maxBytes/2)
	table := engine.Table{Name: "t", Columns: []engine.Column{{Name: "a"}}}
	var rows [][]*string
	for i := range 5 {
		value := fmt.Sprint(i, long)
		rows = append(rows, []*string{&value})
	}
	before, after := memory{[]engine.Table{table}, [][][]*string{rows}}, memory{[]engine.Table{table},
		[][][]*string{nil}}
	_, listed, err := Compare(t.Context(), before.opener(nil), after.opener(nil), &Wanted{[2]string{"", "t"}, 10},
		t.TempDir())
	if err != nil || len(listed.Rows) != 1 || listed.More != 4 {
		t.Errorf("%d rows are listed and %d are not, error %v", len(listed.Rows), listed.More, err)
	}
}
