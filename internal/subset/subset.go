// Package subset chooses the rows of a subset of a database, so that every foreign key of the
// source also holds in the subset.
//
// The rules:
//
//  1. Start: a condition selects the starting rows of its table. A percentage selects starting rows
//     in the tables that the other tables of a connected part of the database depend on. It selects
//     them by a hash of their keys, so that the same rows are chosen each time. In the tables below
//     them, the percentage also selects among the rows that rule 2 cannot reach, because their
//     references are NULL or dangling.
//  2. Down: rows that reference a chosen row are chosen. Inside a cycle of foreign keys, this leads
//     only away from the table where the cycle was entered, and a table's reference to itself is
//     not followed. Otherwise a cycle would choose nearly everything.
//  3. Up: rows that a kept row references are kept, including in cycles. Other rows that reference
//     these rows are not added.
//  4. Tables that no foreign key connects, directly or indirectly, with a table that has a
//     condition are kept whole, or are subject to the percentage if there is one.
//  5. Share: each table that is subject to the percentage keeps about that share of its rows. If
//     rule 2 chooses clearly more rows, some are removed before their references are followed. If
//     rules 1 to 3 choose clearly fewer, more are added, with the rows that they reference. So only
//     references can make a table exceed its share, and 100 percent means every row.
//
// Rows are chosen on the server, in temporary tables, in the transaction of the dump. Memory use on
// this machine does not grow with their number.
package subset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
)

// Table is a table of which a subset can be taken. Partitions belong to their table.
type Table struct {
	Schema, Name string
	From         string // the table's name as written after FROM
	Key          []Key  // identifies a row
	// Share returns SQL for a number from 0 to 2^32-1 that is derived from a row's key. prefix
	// precedes the names of columns.
	Share func(prefix string) string
}

// Key is one part of a row's identity: its SQL after a prefix such as "c.", and its type in a
// temporary table.
type Key struct {
	Expr func(prefix string) string
	Type string
}

// ForeignKey is a reference from one table to another, or to itself. The names after FROM are those
// of the tables, or of a partition that has the key.
type ForeignKey struct {
	Child, Parent          int // indexes in [Graph.Tables]
	ChildFrom, ParentFrom  string
	Columns, ParentColumns []string // of the child and of the parent, quoted
	Equal                  []string // comparison operators; nil is "=" for all
}

// Graph holds the tables and foreign keys of a database.
type Graph struct {
	Tables []Table
	Keys   []ForeignKey
}

// Plan describes how the rows are chosen.
type Plan struct {
	Whole   []bool   // by table: every row is kept
	Where   []string // by table: the condition for its starting rows
	Percent []bool   // by table: a percentage of its rows are starting rows
	Below   []bool   // by table: a percentage of the rows that Down cannot reach are starting rows
	Shared  []bool   // by table: the percentage decides how many rows it has
	Fill    [][]int  // the shared tables by cycle, referencing tables first
	Down    []int    // foreign keys to follow down, each once, in this order
	Start   []string // the tables whose rows are selected first
}

// NewPlan plans a subset. A condition on a table that does not exist is an error of code usage.
func NewPlan(g Graph, want engine.Subset) (Plan, error) {
	n := len(g.Tables)
	p := Plan{Whole: make([]bool, n), Where: make([]string, n), Percent: make([]bool, n), Below: make([]bool, n),
		Shared: make([]bool, n)}
	if !(want.Percent >= 0 && want.Percent <= 100) {
		return p, snap.Usage(fmt.Sprintf("a subset cannot have %v percent of the rows", want.Percent),
			"give a number above 0 and up to 100")
	}
	for name, condition := range want.Where {
		i, err := g.find(name)
		if err != nil {
			return p, err
		}
		if p.Where[i] != "" {
			return p, snap.Usage(fmt.Sprintf("the table %s has two conditions", g.label(i)), "join them with AND or OR")
		}
		p.Where[i] = condition
	}
	w := newNetwork(g)
	var shared []int // the tables that are subject to the percentage
	for _, part := range w.components() {
		switch {
		case slices.ContainsFunc(part, func(i int) bool { return p.Where[i] != "" }):
		case want.Percent > 0:
			shared = append(shared, part...)
			for _, i := range w.startTables(part, g) {
				p.Percent[i] = true
			}
		default:
			for _, i := range part {
				p.Whole[i] = true
			}
		}
	}
	for i := range n {
		if p.Where[i] != "" || p.Percent[i] {
			p.Start = append(p.Start, g.label(i))
		}
	}
	slices.Sort(p.Start)
	p.Down = w.down(g, func(i int) bool { return p.Where[i] != "" || p.Percent[i] })
	p.fill(g, w, shared)
	return p, nil
}

// fill decides how the tables that are subject to the percentage get their share.
func (p *Plan) fill(g Graph, w *network, shared []int) {
	byCycle := map[int][]int{}
	for _, i := range shared {
		p.Shared[i] = true
		byCycle[w.cycle[i]] = append(byCycle[w.cycle[i]], i)
	}
	for _, i := range p.Down {
		child := g.Keys[i].Child
		p.Below[child] = p.Shared[child] && !p.Percent[child]
	}
	for _, cycle := range slices.Backward(slices.Sorted(maps.Keys(byCycle))) {
		p.Fill = append(p.Fill, byCycle[cycle])
	}
}

func (g Graph) label(i int) string { return snap.TableName(g.Tables[i].Schema, g.Tables[i].Name) }

// find returns the index of the table with this name. The name may include the schema.
func (g Graph) find(name string) (int, error) {
	var same []int
	for i, t := range g.Tables {
		if g.label(i) == name {
			return i, nil
		}
		if t.Name == name || strings.EqualFold(g.label(i), name) {
			same = append(same, i)
		}
	}
	switch len(same) {
	case 1:
		return same[0], nil
	case 0:
		var known []string
		for i := range g.Tables {
			known = append(known, g.label(i))
		}
		slices.Sort(known)
		if len(known) > 20 {
			known = append(known[:20], "...")
		}
		return 0, snap.Usage(fmt.Sprintf("there is no table %q in the source", name),
			"the tables are: "+strings.Join(known, ", "))
	}
	return 0, snap.Usage(fmt.Sprintf("several schemas have a table %q", name),
		"include the schema, such as "+g.label(same[0]))
}

// network holds the tables and their connections.
type network struct {
	n                 int
	children, parents [][]int // by table: its child or parent tables, each once, sorted
	cycle             []int   // by table: the number of its cycle; lower for parents
}

func newNetwork(g Graph) *network {
	w := &network{n: len(g.Tables), children: make([][]int, len(g.Tables)), parents: make([][]int, len(g.Tables))}
	for _, k := range g.Keys {
		w.children[k.Parent] = append(w.children[k.Parent], k.Child)
		w.parents[k.Child] = append(w.parents[k.Child], k.Parent)
	}
	for i := range w.n {
		slices.Sort(w.children[i])
		slices.Sort(w.parents[i])
		w.children[i], w.parents[i] = slices.Compact(w.children[i]), slices.Compact(w.parents[i])
	}
	w.findCycles()
	return w
}

// findCycles numbers the cycles (Tarjan's strongly connected components) so that referenced ones
// come first. A table outside any cycle forms a group by itself.
func (w *network) findCycles() {
	w.cycle = make([]int, w.n)
	index, low, onStack := make([]int, w.n), make([]int, w.n), make([]bool, w.n)
	var stack []int
	next, cycles := 1, 0
	var visit func(int)
	visit = func(v int) {
		index[v], low[v] = next, next
		next++
		stack, onStack[v] = append(stack, v), true
		for _, u := range w.parents[v] {
			if index[u] == 0 {
				visit(u)
				low[v] = min(low[v], low[u])
			} else if onStack[u] {
				low[v] = min(low[v], index[u])
			}
		}
		if low[v] != index[v] {
			return
		}
		for {
			u := stack[len(stack)-1]
			stack, onStack[u], w.cycle[u] = stack[:len(stack)-1], false, cycles
			if u == v {
				cycles++
				return
			}
		}
	}
	for v := range w.n {
		if index[v] == 0 {
			visit(v)
		}
	}
}

// reachable returns the given tables and all tables that are reachable from them.
func (w *network) reachable(from []int, next ...[][]int) map[int]bool {
	seen := map[int]bool{}
	todo := slices.Clone(from)
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		for _, edges := range next {
			todo = append(todo, edges[v]...)
		}
	}
	return seen
}

// components returns the connected components of the graph.
func (w *network) components() (all [][]int) {
	done := map[int]bool{}
	for v := range w.n {
		if !done[v] {
			part := w.reachable([]int{v}, w.children, w.parents)
			all = append(all, slices.Sorted(maps.Keys(part)))
			maps.Copy(done, part)
		}
	}
	return all
}

// startTables returns the starting tables of a connected part for a percentage. Of the tables that
// reference no other, it picks the one that most tables depend on. It then picks more until every
// table depends on a starting table or is referenced by a table that does. A cycle counts as one
// table; if it is picked, all its tables are starting tables.
func (w *network) startTables(part []int, g Graph) []int {
	byCycle := map[int][]int{}
	for _, v := range part {
		byCycle[w.cycle[v]] = append(byCycle[w.cycle[v]], v)
	}
	type candidate struct {
		tables []int
		below  map[int]bool
	}
	var all []candidate
	for _, cycle := range byCycle {
		outside := func(v int) bool {
			return slices.ContainsFunc(w.parents[v], func(u int) bool { return w.cycle[u] != w.cycle[v] })
		}
		if !slices.ContainsFunc(cycle, outside) {
			all = append(all, candidate{cycle, w.reachable(cycle, w.children)})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(b.below), len(a.below)), cmp.Compare(g.label(a.tables[0]), g.label(b.tables[0])))
	})
	covered, chosen := map[int]bool{}, []int{}
	for _, t := range all {
		if !slices.ContainsFunc(t.tables, func(v int) bool { return !covered[v] }) {
			continue
		}
		chosen = append(chosen, t.tables...)
		maps.Copy(covered, w.reachable(slices.Collect(maps.Keys(t.below)), w.parents))
	}
	return chosen
}

// down returns the foreign keys to follow down from the starting tables, each from the referenced
// table to the referencing one. They are ordered so that all rows of a table are chosen before the
// rows that reference them.
func (w *network) down(g Graph, start func(int) bool) []int {
	depth := make([]int, w.n) // distance within the cycle from where it was entered; -1 is unreached
	cycles := make([][]int, w.n)
	for v := range w.n {
		depth[v] = -1
		if start(v) {
			depth[v] = 0
		}
		cycles[w.cycle[v]] = append(cycles[w.cycle[v]], v)
	}
	var order []int
	for _, members := range cycles { // a cycle comes after the cycles that it references
		for _, v := range w.reachInCycle(members, depth) {
			for i, k := range g.Keys {
				if k.Parent != v {
					continue
				}
				if w.cycle[k.Child] != w.cycle[v] {
					depth[k.Child] = max(depth[k.Child], 0)
					order = append(order, i)
				} else if depth[k.Child] == depth[v]+1 {
					order = append(order, i)
				}
			}
		}
	}
	return order
}

// reachInCycle sets the depth of a cycle's tables and returns the tables reached, nearest first.
func (w *network) reachInCycle(members, depth []int) []int {
	var reached []int
	for _, v := range members {
		if depth[v] == 0 {
			reached = append(reached, v)
		}
	}
	for i := 0; i < len(reached); i++ {
		v := reached[i]
		for _, u := range w.children[v] {
			if w.cycle[u] == w.cycle[v] && depth[u] < 0 {
				depth[u] = depth[v] + 1
				reached = append(reached, u)
			}
		}
	}
	return reached
}
