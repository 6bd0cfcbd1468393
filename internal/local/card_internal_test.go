package local

import (
	"slices"
	"testing"

	"snap"
	"snap/internal/archive"
	"snap/internal/schema"
)

// TestCardParts checks which objects of a description are in a card: their names and columns, but no
// expression, because it can contain values.
func TestCardParts(t *testing.T) {
	t.Parallel()
	key := func(names ...string) (columns []schema.KeyColumn) {
		for _, n := range names {
			columns = append(columns, schema.KeyColumn{Name: n})
		}
		return columns
	}
	orders := schema.Name{Schema: "public", Name: "orders"}
	in := schema.Name{Schema: "public"}
	described := &schema.Schema{
		Tables: []schema.Table{{
			Name:    orders,
			Keys:    []schema.Key{{Primary: true, Columns: key("id")}, {Name: "orders_code", Columns: key("code")}},
			Indexes: []schema.Index{{Name: "orders_at", Unique: true, Columns: key("at", "id")}},
			ForeignKeys: []schema.ForeignKey{{Columns: []string{"customer"},
				To: schema.Name{Schema: in.Schema, Name: "customer"}}},
			Checks: []schema.Check{{Name: "cheap"}, {}},
		}},
		Programs: []schema.Program{
			{Kind: "view", Name: schema.Name{Schema: in.Schema, Name: "open"}},
			{Kind: "trigger", Name: schema.Name{Schema: in.Schema, Name: "log"}, On: "orders"},
			{Kind: "rule", Name: schema.Name{Schema: in.Schema, Name: "r"}, On: "open"},
		},
	}
	c := cardOf(archive.Manifest{Engine: snap.Postgres, Schema: described,
		Tables: []archive.Table{{Schema: "public", Name: "orders"}}})
	var got []string
	for _, p := range append(c.Tables[0].Parts, c.Programs...) {
		got = append(got, p.Kind+" "+p.Name+" "+p.Definition)
	}
	want := []string{"primary key (id) ", "unique constraint orders_code (code)", "unique index orders_at (at, id)",
		"foreign key (customer) to public.customer ", "check constraint cheap ", "trigger log ", "view public.open ",
		"rule public.r "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
