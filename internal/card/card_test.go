package card

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/api"
)

// shop returns a card with two tables.
func shop() api.Card {
	return api.Card{
		ServerVersion: "17.2", Encoding: "UTF8", Masking: &api.Masking{Masked: 1, Kept: 2},
		Subset: &api.CardSubset{Start: []string{"orders"}, Conditions: []api.CardCondition{{Table: "orders"}}},
		Tables: []api.CardTable{
			{Schema: "public", Name: "customer", Rows: 12, Bytes: 900, Columns: []api.CardColumn{
				{Name: "id", Type: "integer", NotNull: true, Key: Primary, Mask: Kept},
				{Name: "email", Type: "text", Mask: "email"}}},
			{Schema: "public", Name: "orders", Rows: 40, Columns: []api.CardColumn{
				{Name: "id", Type: "bigint", Key: Primary},
				{Name: "customer_id", Type: "integer", Refers: "public.customer.id"}}},
		},
	}
}

func text(t testing.TB, c any) []byte {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse(text(t, shop()))
	if err != nil || !reflect.DeepEqual(got, shop()) {
		t.Fatalf("%v, %+v", err, got)
	}
	if got, err := Parse([]byte(`{"tables":[],"of_a_later_release":{"a":[1]}}`)); err != nil || len(got.Tables) > 0 {
		t.Fatalf("an unknown member: %v", err)
	}
	wide := make([]api.CardColumn, MaxColumns+1)
	for i := range wide {
		wide[i].Name = fmt.Sprint(i)
	}
	tables := func(all ...api.CardTable) api.Card { return api.Card{Tables: all} }
	column := func(c api.CardColumn) api.Card {
		return tables(api.CardTable{Name: "t", Columns: []api.CardColumn{c}})
	}
	for name, bad := range map[string]any{
		"no JSON":            json.RawMessage(`7`),
		"escape in a name":   api.Card{Tables: []api.CardTable{{Name: "a\x1b[2J"}}},
		"direction of text":  column(api.CardColumn{Name: "\u202e"}),
		"no table name":      api.Card{Tables: []api.CardTable{{}}},
		"no column name":     column(api.CardColumn{}),
		"two of one name":    api.Card{Tables: []api.CardTable{{Name: "t"}, {Name: "t"}}},
		"unknown key":        column(api.CardColumn{Name: "c", Key: "x"}),
		"negative rows":      api.Card{Tables: []api.CardTable{{Name: "t", Rows: -2}}},
		"an overflowing sum": tables(api.CardTable{Name: "t", Rows: 1 << 62}, api.CardTable{Name: "u", Rows: 1 << 62}),
		"long name":          api.Card{Tables: []api.CardTable{{Name: strings.Repeat("n", maxName+1)}}},
		"long version":       api.Card{ServerVersion: strings.Repeat("9", maxText+1)},
		"line in a condition": api.Card{Subset: &api.CardSubset{
			Conditions: []api.CardCondition{{Table: "t", Where: "a\nb"}}}},
		"many starts":        api.Card{Subset: &api.CardSubset{Start: slices.Repeat([]string{"t"}, maxList+1)}},
		"negative masking":   api.Card{Masking: &api.Masking{Kept: -1}},
		"many columns":       api.Card{Tables: []api.CardTable{{Name: "t", Columns: wide}}},
		"nothing but marks":  json.RawMessage(`{"tables":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`),
		"nothing but commas": json.RawMessage(`{"subset":{"start":[` + strings.Repeat(`"",`, 2<<20) + `""]}}`),
		"a large text":       json.RawMessage(`"` + strings.Repeat("a", MaxBytes) + `"`),
	} {
		if _, err := Parse(text(t, bad)); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBoundedCardsAreAccepted creates cards of databases that exceed every bound.
func TestBoundedCardsAreAccepted(t *testing.T) {
	t.Parallel()
	c := api.Card{
		ServerVersion: "\x1b" + strings.Repeat("9", 2*maxText), Collation: "C\xff",
		Subset: &api.CardSubset{Start: slices.Repeat([]string{"t\n"}, 2*maxList),
			Conditions: slices.Repeat([]api.CardCondition{{Table: "t", Where: "a\n= 1"}}, 2*maxList)},
		Tables: []api.CardTable{{Name: "t", Rows: -7, Bytes: 1 << 62}, {Name: "t\x00"}, {Name: "\u202e"},
			{Name: "w", Columns: slices.Repeat(
				[]api.CardColumn{{Name: "c\x1b", Type: strings.Repeat("€", maxText)}}, 3)}},
	}
	for i := range MaxTables {
		c.Tables = append(c.Tables, api.CardTable{Name: fmt.Sprint("table ", i)})
	}
	got, err := Parse(text(t, Bound(c)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tables) != MaxTables || got.Unlisted != 4 || len(got.Tables[1].Columns) != 3 ||
		got.Tables[0].Rows != -1 {
		t.Errorf("%d tables, %d unlisted, %+v", len(got.Tables), got.Unlisted, got.Tables[0])
	}
	wide := api.Card{Tables: []api.CardTable{{Name: "t", Rows: 3,
		Columns: slices.Repeat([]api.CardColumn{{Name: "c"}}, MaxColumns+1)}}}
	if got := Bound(wide); got.Tables[0].Rows != 3 || got.Tables[0].Columns != nil {
		t.Error("the columns of a database with too many of them are listed")
	}
}

func TestPagesAndSearch(t *testing.T) {
	t.Parallel()
	var tables []api.CardTable
	for i := range 2000 {
		table := api.CardTable{Name: fmt.Sprintf("table_%d", i)}
		for j := range 25 {
			table.Columns = append(table.Columns, api.CardColumn{Name: fmt.Sprintf("column_%d_%d", i, j), Type: "text"})
		}
		tables = append(tables, table)
	}
	pages := Pages(tables)
	if !reflect.DeepEqual(slices.Concat(pages...), tables) {
		t.Error("the pages together are not all tables in their order")
	}
	for i, p := range pages {
		if n := Totals(p); n.Tables > pageTables || n.Columns > pageColumns {
			t.Errorf("page %d has %+v", i, n)
		}
	}
	if got := Pages(nil); len(got) != 1 || len(got[0]) > 0 {
		t.Errorf("no tables: %v", got)
	}
	for q, want := range map[string]api.CardTotals{
		"":                {Tables: 2000, Columns: 50000},
		" Table_7 COLUMN": {Tables: 111, Columns: 111 * 25},
		"table_1999":      {Tables: 1, Columns: 25},
		"column_5_24":     {Tables: 1, Columns: 1},
		"table_5 umn_5_2": {Tables: 1, Columns: 6},
		"zzz":             {},
	} {
		if got := Totals(Find(tables, q)); got != want {
			t.Errorf("%q: %+v, not %+v", q, got, want)
		}
	}
	if tables[5].Columns[0].Name != "column_5_0" || len(tables[5].Columns) != 25 {
		t.Error("a search changed the card")
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	compare := func(before, after []api.CardTable) []api.CardChange {
		return Compare(api.Card{Tables: before}, api.Card{Tables: after}, "")
	}
	before, after := shop().Tables, shop().Tables
	if got := compare(before, after); len(got) > 0 {
		t.Errorf("equal cards: %+v", got)
	}
	after[0].Rows = 10
	after[0].Columns[1].Type = "citext"
	after[0].Columns = append(after[0].Columns, api.CardColumn{Name: "phone", Type: "text", Mask: "phone"})
	after[1] = api.CardTable{Schema: "public", Name: "invoice", Rows: 5}
	want := []api.CardChange{
		{Table: "public.customer", Column: "email", Change: "changed", Before: "text, masked: email",
			After: "citext, masked: email"},
		{Table: "public.customer", Column: "phone", Change: "added", After: "text, masked: phone"},
		{Table: "public.customer", Change: "rows", Rows: 10, More: -2},
		{Table: "public.invoice", Change: "added", Rows: 5, More: 5},
		{Table: "public.orders", Change: "removed", More: -40},
	}
	if got := compare(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	unlisted := []api.CardTable{{Schema: "public", Name: "customer", Rows: -1}}
	if got := compare(unlisted, shop().Tables[:1]); len(got) > 0 {
		t.Errorf("columns that a card omits count as removed: %+v", got)
	}
}

// TestCompareCountsRows checks that rows that differ are counted only since the snapshot that the
// card names, and only if the counts agree with the numbers of rows.
func TestCompareCountsRows(t *testing.T) {
	t.Parallel()
	since := strings.Repeat("ab", 32)
	before := api.Card{Tables: []api.CardTable{{Name: "orders", Rows: 40}}}
	for want, after := range map[string]api.CardTable{
		"":                        {Name: "orders", Rows: 40},
		"orders: +1 rows, now 41": {Name: "orders", Rows: 41, Differ: &api.CardRows{Added: 2}},
		"orders: +2 rows, now 42": {Name: "orders", Rows: 42, Differ: &api.CardRows{Added: 2, Changed: 41}},
		"orders: +4 rows, now 44": {Name: "orders", Rows: 44},
		"orders: 3 rows added, 1 removed, 39 changed, now 42": {Name: "orders", Rows: 42,
			Differ: &api.CardRows{Added: 3, Removed: 1, Changed: 39}},
		"orders: 1 row changed, now 40": {Name: "orders", Rows: 40, Differ: &api.CardRows{Changed: 1}},
	} {
		card := api.Card{Since: since, Tables: []api.CardTable{after}}
		got := ""
		for _, c := range Compare(before, card, since) {
			got += Change(c)
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, other := range []string{"", strings.Repeat("cd", 32)} {
			for _, c := range Compare(before, card, other) {
				if c.Differ != nil || c.More == 0 {
					t.Errorf("rows since another snapshot are counted: %s", Change(c))
				}
			}
		}
		if card.Tables[0].Differ != after.Differ {
			t.Error("a comparison changed the card")
		}
	}
}

// TestHostileCounts checks that counts of differing rows are bounded.
func TestHostileCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []api.Card{
		{Since: "x"}, {Since: strings.Repeat("AB", 32)}, {Since: strings.Repeat("ab", 33)},
		{Tables: []api.CardTable{{Name: "t", Differ: &api.CardRows{Added: -1}}}},
		{Tables: []api.CardTable{{Name: "t", Differ: &api.CardRows{Changed: 1 << 62}}}},
	} {
		if _, err := Parse(text(t, c)); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
	large := api.Card{Since: strings.Repeat("ab", 32)}
	for range MaxTables {
		rows := api.CardRows{Added: 1, Removed: 1, Changed: 1}
		large.Tables = append(large.Tables, api.CardTable{Name: fmt.Sprint("t", len(large.Tables)), Differ: &rows})
	}
	if got, err := Parse(text(t, large)); err != nil || *got.Tables[7].Differ != *large.Tables[7].Differ {
		t.Errorf("counts of all tables: %v", err)
	}
}

// TestCompareParts checks that keys, indexes, constraints and programs are compared, but only if
// both cards list them.
func TestCompareParts(t *testing.T) {
	t.Parallel()
	function := api.CardPart{Kind: "function", Name: "public.total"}
	before := api.Card{Programs: []api.CardPart{{Kind: "view", Name: "public.open"}, function}, Tables: []api.CardTable{
		{Name: "orders", Rows: 1, Parts: []api.CardPart{{Kind: "primary key", Name: "(id)"},
			{Kind: "index", Name: "at", Definition: "(at)"}, {Kind: "trigger", Name: "audit"}}}}}
	after := api.Card{Programs: []api.CardPart{function, function}, Tables: []api.CardTable{
		{Name: "orders", Rows: 1, Parts: []api.CardPart{{Kind: "primary key", Name: "(id)"},
			{Kind: "index", Name: "at", Definition: "(at, id)"},
			{Kind: "unique index", Name: "code", Definition: "(code)"}}}}}
	var got []string
	for _, c := range Compare(before, after, "") {
		got = append(got, Change(c))
	}
	want := []string{"new function public.total", "view public.open: removed", "orders: index at: (at, id), was (at)",
		"orders: new unique index code (code)", "orders: trigger audit: removed"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range []api.Card{before, after} {
		if same := Compare(c, c, ""); len(same) > 0 {
			t.Errorf("a card differs from itself: %v", same)
		}
	}
	older := shop()
	older.Tables = append(older.Tables, api.CardTable{Name: "orders", Rows: 1})
	for _, c := range Compare(older, after, "") {
		if c.Part != "" {
			t.Errorf("an older card without parts counts as one whose parts are missing: %+v", c)
		}
	}
}

// TestPartsAreBounded checks that parts from other machines are safe to show, and that too many of
// them are refused, or omitted by the client.
func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]api.CardPart{"no kind": {Name: "a"}, "no name": {Kind: "index"},
		"control": {Kind: "index", Name: "a\x1b[2J"}, "long": {Kind: "index", Name: "a",
			Definition: strings.Repeat("a", maxText+1)}} {
		for _, c := range []api.Card{{Programs: []api.CardPart{p}},
			{Tables: []api.CardTable{{Name: "t", Parts: []api.CardPart{p}}}}} {
			if _, err := Parse(text(t, c)); snap.CodeOf(err) != snap.CodeInvalid {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := Parse(text(t, Bound(c))); err != nil {
				t.Errorf("%s: the bounded card is refused: %v", name, err)
			}
		}
	}
	many := api.Card{Tables: []api.CardTable{{Name: "t", Rows: 4,
		Parts: slices.Repeat([]api.CardPart{{Kind: "index", Name: "i"}}, MaxParts+1)}}}
	if _, err := Parse(text(t, many)); snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("too many: %v", err)
	}
	if got := Bound(many); got.Tables[0].Parts != nil || got.Tables[0].Rows != 4 || many.Tables[0].Parts == nil {
		t.Error("too many parts are listed, or the given card was changed")
	}
}

// FuzzParse checks that any accepted text is within the bounds, keeps all its tables when it is
// bounded again, and can be paged, searched and compared.
func FuzzParse(f *testing.F) {
	f.Add(text(f, shop()), "id")
	f.Add([]byte(`{"tables":[{"name":"a","rows":-1},{"name":"a"}]}`), "a a")
	f.Add([]byte(`{"subset":null,"masking":{"masked":1},"tables":null}`), "")
	f.Add([]byte(`[`+strings.Repeat(`[`, 5000)), "")
	f.Fuzz(func(t *testing.T, raw []byte, q string) {
		c, err := Parse(raw)
		if err != nil {
			if snap.CodeOf(err) != snap.CodeInvalid {
				t.Fatal(err)
			}
			return
		}
		if again, err := Parse(text(t, Bound(c))); err != nil || len(again.Tables) != len(c.Tables) {
			t.Fatalf("%v: %d of %d tables", err, len(again.Tables), len(c.Tables))
		}
		total := Totals(c.Tables)
		if total.Rows < 0 || total.Bytes < 0 || total.Columns > MaxColumns {
			t.Fatalf("%+v", total)
		}
		if n := len(slices.Concat(Pages(c.Tables)...)); n != len(c.Tables) {
			t.Fatalf("%d of %d tables on pages", n, len(c.Tables))
		}
		if found := Totals(Find(c.Tables, q)); found.Tables > total.Tables || found.Columns > total.Columns {
			t.Fatalf("%q finds %+v of %+v", q, found, total)
		}
		if len(Compare(c, c, "")) > 0 && !repeats(c.Tables) {
			t.Fatal("a card differs from itself")
		}
	})
}

// repeats reports whether two tables have the same label, or two columns of a table the same name.
func repeats(tables []api.CardTable) bool {
	labels := map[string]bool{}
	for _, t := range tables {
		names := map[string]bool{}
		for _, c := range t.Columns {
			if names[c.Name] {
				return true
			}
			names[c.Name] = true
		}
		if labels[t.Label()] {
			return true
		}
		labels[t.Label()] = true
	}
	return false
}

// A card without columns that is too large is sent without its programs.
func TestRequestLeavesOutPrograms(t *testing.T) {
	t.Parallel()
	c := api.Card{Tables: []api.CardTable{{Name: "t"}}}
	for i := range 40_000 {
		name := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		c.Programs = append(c.Programs, api.CardPart{Kind: "function", Name: name})
	}
	r, err := Request(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Received(r); err != nil || len(got.Tables) != 1 || len(got.Programs) != 0 {
		t.Errorf("%v, %+v", err, got)
	}
}

// A card with nothing else to leave out is sent without the conditions of its subset.
func TestRequestLeavesOutConditions(t *testing.T) {
	t.Parallel()
	c := api.Card{Tables: []api.CardTable{{Name: "t"}}, Subset: &api.CardSubset{Start: []string{"t"}}}
	for i := range maxList {
		var where strings.Builder
		for j := range maxText / 64 {
			fmt.Fprintf(&where, "%x", sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(j)}))
		}
		c.Subset.Conditions = append(c.Subset.Conditions, api.CardCondition{Table: "t", Where: where.String()})
	}
	r, err := Request(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Received(r); err != nil || len(got.Subset.Start) != 1 || len(got.Subset.Conditions) != 0 {
		t.Errorf("%v, %+v", err, got)
	}
}
