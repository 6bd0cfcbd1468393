package sanitize

import (
	"slices"
	"testing"

	"snap/internal/engine"
	"snap/internal/schema"
)

// The keys of a partitioned table are those of its partitions at every level, because only these
// have rows.
func TestKeysOfPartitions(t *testing.T) {
	t.Parallel()
	name := func(table string) schema.Name { return schema.Name{Schema: "public", Name: table} }
	table := func(n string, parent string, keys ...string) schema.Table {
		made := schema.Table{Name: name(n)}
		if parent != "" {
			made.PartitionOf = &schema.PartitionOf{Table: name(parent)}
		}
		for _, k := range keys {
			made.Partitions = &schema.Partitions{Columns: []schema.KeyColumn{{Name: k}}}
		}
		return made
	}
	people := table("people", "", "country")
	people.Keys = []schema.Key{{Primary: true, Columns: []schema.KeyColumn{{Name: "email"}}}}
	orders := table("orders", "", "day")
	orders.ForeignKeys = []schema.ForeignKey{{Columns: []string{"email"}, To: name("people")}}
	c := engine.Contents{Schema: &schema.Schema{Tables: []schema.Table{people, table("people_de", "people", "city"),
		table("people_berlin", "people_de"), orders, table("orders_may", "orders")}}}
	for n, columns := range map[string][]string{"people_berlin": {"country", "city", "email"},
		"orders_may": {"day", "email"}} {
		shape := engine.Shape{Schema: "public", Name: n, Samples: make([][]string, len(columns))}
		for _, column := range columns {
			shape.Columns = append(shape.Columns, engine.Column{Name: column, Type: "text"})
		}
		c.Tables = append(c.Tables, shape)
	}

	f := factsOf(c)
	var keys []string
	for id, column := range f.columns {
		if column.partitionKey {
			keys = append(keys, id[1]+"."+id[2])
		}
	}
	slices.Sort(keys)
	if want := []string{"orders_may.day", "people_berlin.city", "people_berlin.country"}; !slices.Equal(keys, want) {
		t.Errorf("partition keys: %v, want %v", keys, want)
	}
	from, to := f.columns[columnID{"public", "orders_may", "email"}], columnID{"public", "people_berlin", "email"}
	if !from.linked || !f.columns[to].linked || !slices.Contains(from.references, to) {
		t.Errorf("the foreign key is not between the partitions: %v", from.references)
	}
}
