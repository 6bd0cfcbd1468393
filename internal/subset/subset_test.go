package subset

import (
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
)

// shape returns a graph from words such as "item>orders", which is a foreign key
// from the first to the second.
func shape(words string) Graph {
	var g Graph
	at := map[string]int{}
	table := func(name string) int {
		if i, ok := at[name]; ok {
			return i
		}
		at[name] = len(g.Tables)
		g.Tables = append(g.Tables, Table{Name: name})
		return at[name]
	}
	for word := range strings.FieldsSeq(words) {
		child, parent, key := strings.Cut(word, ">")
		c := table(child)
		if key {
			g.Keys = append(g.Keys, ForeignKey{Child: c, Parent: table(parent)})
		}
	}
	return g
}

// The rules of the package's comment, on small graphs. down is the foreign keys
// that are followed from parent to child, in order.
func TestRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		graph, where, start, down, whole string
		percent                          float64
	}{
		"down from a condition": {graph: "orders>customer item>orders item>product",
			where: "customer", start: "customer", down: "orders>customer item>orders"},
		"a condition below brings no sisters": {graph: "orders>customer item>orders", where: "item",
			start: "item"},
		"what nothing connects is whole": {graph: "orders>customer setting", where: "customer",
			start: "customer", down: "orders>customer", whole: "setting"},
		"what nothing connects is subject to a percentage": {graph: "orders>customer setting", where: "customer",
			percent: 10, start: "customer setting", down: "orders>customer"},
		"a percentage starts in the table that most depend on": {graph: "orders>customer item>orders item>product",
			percent: 10, start: "customer", down: "orders>customer item>orders"},
		"a percentage starts in more tables until it reaches all": {graph: "orders>customer item>orders item>product " +
			"stock>warehouse stock>product", percent: 10, start: "customer warehouse",
			down: "orders>customer item>orders stock>warehouse"},
		"a reference to itself is not followed down": {graph: "employee>employee", where: "employee",
			start: "employee"},
		"a cycle is followed away from where it was entered": {graph: "dept>company dept>employee employee>dept",
			where: "company", start: "company", down: "dept>company employee>dept"},
		"a cycle without a way in is started from in all tables": {graph: "a>b b>a", percent: 10, start: "a b"},
		"no foreign keys at all":                                 {graph: "a b", percent: 10, start: "a b"},
	} {
		g := shape(c.graph)
		want := engine.Subset{Percent: c.percent, Where: map[string]string{}}
		for table := range strings.FieldsSeq(c.where) {
			want.Where[table] = "true"
		}
		p, err := NewPlan(g, want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var down, whole []string
		for _, i := range p.Down {
			down = append(down, g.label(g.Keys[i].Child)+">"+g.label(g.Keys[i].Parent))
		}
		for i, all := range p.Whole {
			if all {
				whole = append(whole, g.label(i))
			}
		}
		slices.Sort(down)
		wantDown := strings.Fields(c.down)
		slices.Sort(wantDown)
		if !slices.Equal(p.Start, strings.Fields(c.start)) || !slices.Equal(down, wantDown) ||
			!slices.Equal(whole, strings.Fields(c.whole)) {
			t.Errorf("%s: start %v, down %v, whole %v", name, p.Start, down, whole)
		}
	}
}

func TestTablesAreFoundByName(t *testing.T) {
	t.Parallel()
	g := Graph{Tables: []Table{{Schema: "public", Name: "orders"}, {Schema: "public", Name: "Users"},
		{Schema: "a", Name: "x"}, {Schema: "b", Name: "x"}}}
	for name, want := range map[string]int{"orders": 0, "public.orders": 0, "PUBLIC.users": 1, "b.x": 3} {
		if got, err := g.find(name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for _, name := range []string{"x", "order", ""} {
		if _, err := g.find(name); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
