package subsettest

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Expect returns the keys of the rows in a subset, by table.
func Expect(m Model, a Ask) [][]string {
	r := newRules(m, a)
	follow := r.followed()
	chosen := r.rows(m, a, follow)
	r.down(m, a, follow, chosen)
	up(m, chosen)
	r.fill(m, a, chosen)
	kept := make([][]string, len(m.Tables))
	for i, t := range m.Tables {
		for row := range t.Rows {
			if chosen[i][row] {
				kept[i] = append(kept[i], t.Key(row))
			}
		}
		slices.Sort(kept[i])
	}
	return kept
}

// up marks the rows that marked rows reference.
func up(m Model, chosen [][]bool) {
	for changed := true; changed; {
		changed = false
		for i, t := range m.Tables {
			for row := range t.Rows {
				for f, ref := range t.Refs {
					to := t.Rows[row].To[f]
					if chosen[i][row] && to >= 0 && !chosen[ref.Parent][to] {
						chosen[ref.Parent][to], changed = true, true
					}
				}
			}
		}
	}
}

// down marks the rows that reference a marked row, table by table, and unmarks rows of a table that
// has clearly more than the percentage.
func (r *rules) down(m Model, a Ask, follow func(child, parent int) bool, chosen [][]bool) {
	done := make([]bool, r.n)
	for range r.n {
		for i, t := range m.Tables {
			waits := done[i]
			for _, ref := range t.Refs {
				waits = waits || follow(i, ref.Parent) && !done[ref.Parent]
			}
			if waits {
				continue
			}
			done[i] = true
			for row := range t.Rows {
				for f, ref := range t.Refs {
					to := t.Rows[row].To[f]
					chosen[i][row] = chosen[i][row] || follow(i, ref.Parent) && to >= 0 && chosen[ref.Parent][to]
				}
			}
			kept, target := r.share(a, chosen[i])
			if r.shares(i, a) && float64(kept) > 1.25*float64(target) {
				t.mark(chosen[i], kept-target, true)
			}
		}
	}
}

// shares reports whether the percentage decides about a table.
func (r *rules) shares(i int, a Ask) bool { return a.Percent > 0 && !r.conditioned(i, a) }

// share returns the number of marked rows, and the number that the percentage requires.
func (r *rules) share(a Ask, rows []bool) (kept, target int) {
	for _, is := range rows {
		if is {
			kept++
		}
	}
	return kept, int(math.Ceil(a.Percent / 100 * float64(len(rows))))
}

// mark marks a number of unmarked rows, those with the lowest hashes first. If marked is set, it
// instead unmarks a number of marked rows, those with the highest hashes first.
func (t Table) mark(rows []bool, number int, marked bool) {
	var all []int
	for row, is := range rows {
		if is == marked {
			all = append(all, row)
		}
	}
	slices.SortFunc(all, func(x, y int) int { return cmp.Compare(t.hash(x), t.hash(y)) })
	if marked {
		slices.Reverse(all)
	}
	for _, row := range all[:number] {
		rows[row] = !marked
	}
}

// fill marks more rows of the tables that have clearly fewer than the percentage.
func (r *rules) fill(m Model, a Ask, chosen [][]bool) {
	todo := map[int]bool{}
	for i := range m.Tables {
		if r.shares(i, a) {
			todo[i] = true
		}
	}
	for len(todo) > 0 {
		var cycle []int // that no other table of todo references
		for i := range todo {
			waits := false
			for j := range todo {
				waits = waits || r.reach[j][i] && !r.same(i, j)
			}
			if !waits {
				cycle = slices.DeleteFunc(slices.Collect(maps.Keys(todo)), func(j int) bool { return !r.same(i, j) })
				break
			}
		}
		for _, i := range cycle {
			delete(todo, i)
			kept, target := r.share(a, chosen[i])
			if a.Percent == 100 || float64(kept) < 0.9*float64(target) {
				m.Tables[i].mark(chosen[i], target-kept, false)
			}
		}
		up(m, chosen)
	}
}

// rules holds the facts that follow from the graph and the requested subset, without the rows.
type rules struct {
	n      int
	direct [][]bool // a references b
	reach  [][]bool // a references b directly or indirectly
	near   [][]bool // a and b are connected
	begin  []int    // 0 by references, 1 by a condition, 2 by the percentage, 3 whole
}

func newRules(m Model, a Ask) *rules {
	n := len(m.Tables)
	r := &rules{n: n, begin: make([]int, n)}
	square := func() [][]bool {
		s := make([][]bool, n)
		for i := range s {
			s[i] = make([]bool, n)
		}
		return s
	}
	r.direct, r.reach, r.near = square(), square(), square()
	for i, t := range m.Tables {
		r.near[i][i] = true
		for _, ref := range t.Refs {
			r.direct[i][ref.Parent], r.reach[i][ref.Parent] = true, true
			r.near[i][ref.Parent], r.near[ref.Parent][i] = true, true
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				r.reach[i][j] = r.reach[i][j] || r.reach[i][k] && r.reach[k][j]
				r.near[i][j] = r.near[i][j] || r.near[i][k] && r.near[k][j]
			}
		}
	}
	for i := range n {
		if _, ok := a.Below[i]; ok {
			r.begin[i] = 1
		}
	}
	r.others(a)
	return r
}

func (r *rules) same(i, j int) bool { return i == j || r.reach[i][j] && r.reach[j][i] }

// others decides how the parts of the graph without a condition begin.
func (r *rules) others(a Ask) {
	var tops []int // the first table of each cycle that references no other
	size := func(i int) (n int) {
		for j := range r.n {
			if j == i || r.reach[j][i] {
				n++
			}
		}
		return n
	}
	for i := range r.n {
		switch {
		case r.conditioned(i, a):
		case a.Percent == 0:
			r.begin[i] = 3
		case r.top(i):
			tops = append(tops, i)
		}
	}
	slices.SortStableFunc(tops, func(x, y int) int { return cmp.Compare(size(y), size(x)) })
	covered := make([]bool, r.n)
	for _, top := range tops {
		if covered[top] {
			continue
		}
		for j := range r.n {
			if r.same(top, j) {
				r.begin[j] = 2
			}
			if j != top && !r.reach[j][top] {
				continue
			}
			covered[j] = true
			for k := range r.n {
				covered[k] = covered[k] || r.reach[j][k]
			}
		}
	}
}

// conditioned reports whether a table is connected with one that has a condition.
func (r *rules) conditioned(i int, a Ask) bool {
	for j := range a.Below {
		if r.near[i][j] {
			return true
		}
	}
	return false
}

// top reports whether a table is the first of a cycle that references no other cycle.
func (r *rules) top(i int) bool {
	for j := range r.n {
		if r.reach[i][j] && !r.same(i, j) || j < i && r.same(i, j) {
			return false
		}
	}
	return true
}

// rows marks the starting rows.
func (r *rules) rows(m Model, a Ask, follow func(child, parent int) bool) [][]bool {
	chosen := make([][]bool, r.n)
	for i, t := range m.Tables {
		chosen[i] = make([]bool, len(t.Rows))
		for row := range t.Rows {
			orphan := true // references no row that a selection could come from
			below := false
			for f, ref := range t.Refs {
				if follow(i, ref.Parent) {
					below = true
					orphan = orphan && t.Rows[row].To[f] < 0
				}
			}
			switch r.begin[i] {
			case 0:
				chosen[i][row] = below && orphan && a.Percent > 0 && !r.conditioned(i, a) && t.shared(row, a.Percent)
			case 1:
				chosen[i][row] = t.Rows[row].V < a.Below[i]
			case 2:
				chosen[i][row] = t.shared(row, a.Percent)
			case 3:
				chosen[i][row] = true
			}
		}
	}
	return chosen
}

// followed returns a function that reports whether a reference is followed down, from parent to
// child.
func (r *rules) followed() func(child, parent int) bool {
	const far = 1 << 20
	entry := make([]bool, r.n)
	for i := range r.n {
		entry[i] = r.begin[i] == 1 || r.begin[i] == 2
	}
	depth := make([]int, r.n)
	for range r.n + 1 { // repeat until nothing new is reached
		for i := range r.n {
			depth[i] = far
			if entry[i] {
				depth[i] = 0
			}
		}
		for range r.n {
			for child := range r.n {
				for parent := range r.n {
					if r.direct[child][parent] && r.same(child, parent) {
						depth[child] = min(depth[child], depth[parent]+1)
					}
				}
			}
		}
		for child := range r.n {
			for parent := range r.n {
				if r.direct[child][parent] && !r.same(child, parent) && depth[parent] < far {
					entry[child] = true
				}
			}
		}
	}
	return func(child, parent int) bool {
		if depth[parent] >= far {
			return false
		}
		return !r.same(child, parent) || depth[child] > depth[parent]
	}
}
