package subset

import (
	"context"
	"fmt"
	"strings"

	"snap/internal/engine"
)

// Server runs statements in the transaction of the dump.
type Server interface {
	// Exec runs one statement and returns the number of rows affected.
	Exec(ctx context.Context, statement string) (int64, error)
	// Insert adds the rows of a query to a temporary table and ignores rows that the table already
	// has.
	Insert(ctx context.Context, table, query string) error
	// InsertWhere is like Insert, for a query that contains a user's condition on the rows of a
	// table; from is the table's name as written after FROM. Names in the condition are resolved as
	// in that user's sessions.
	InsertWhere(ctx context.Context, table, from, query string) error
	// Count returns the number that a query returns.
	Count(ctx context.Context, query string) (int64, error)
	// Condition returns the error to show when the user's condition on a table failed with err on
	// the server.
	Condition(table, condition string, err error) error
}

// Dialect holds the SQL that differs between servers.
type Dialect struct {
	Temp    func(name string) string // the name of a temporary table
	Options string                   // follows the columns of a temporary table
	Empty   string                   // empties the table %s
	Drop    string                   // drops the temporary table %s
	Bytes   func(Table) string       // the query for the bytes that a table occupies on the server's disk
	Analyze string                   // updates the planner's statistics of the table %s; "" if not needed
	// Statements before and after a recursive query. They make the server look up rows one at a
	// time instead of reading the whole table once per level. "" if not needed.
	BeforeDeep, AfterDeep string
}

// Choice is the set of chosen rows.
type Choice struct {
	Plan    Plan
	Percent float64 // the percentage that was used, whether given or derived from a limit
	g       Graph
	s       Server
	d       Dialect
	counts  map[int]int64 // numbers of rows in the source, by table; filled as needed
}

// Kept returns the temporary table with the keys of the rows that a table keeps, in columns k1, k2
// and so on. It returns "" if the table keeps every row.
func (c *Choice) Kept(table int) string {
	if c.Plan.Whole[table] {
		return ""
	}
	return c.temp("keep", table)
}

func (c *Choice) temp(kind string, table int) string {
	return c.d.Temp(fmt.Sprintf("snapcli_%s_%d", kind, table))
}

// Choose chooses the rows of a subset. The temporary tables exist until the session ends.
func Choose(ctx context.Context, g Graph, want engine.Subset, s Server, d Dialect) (*Choice, error) {
	if want.Rows != 0 || want.Bytes != 0 {
		return chooseWithin(ctx, g, want, s, d)
	}
	return chooseOnce(ctx, g, want, s, d)
}

func chooseOnce(ctx context.Context, g Graph, want engine.Subset, s Server, d Dialect) (*Choice, error) {
	plan, err := NewPlan(g, want)
	if err != nil {
		return nil, err
	}
	c := &Choice{Plan: plan, Percent: want.Percent, g: g, s: s, d: d, counts: map[int]int64{}}
	for _, step := range []func(context.Context) error{
		c.prepare,
		func(ctx context.Context) error { return c.start(ctx, want.Percent) },
		c.addReferencing, c.addReferenced, c.fill,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Match returns the SQL condition that a row of a table, qualified by prefix, is in a temporary
// table, qualified by temp.
func (c *Choice) Match(table int, prefix, temp string) string {
	var all []string
	for i, k := range c.g.Tables[table].Key {
		all = append(all, fmt.Sprintf("%s = %sk%d", k.Expr(prefix), temp, i+1))
	}
	return strings.Join(all, " AND ")
}

// prepare creates three temporary tables for the keys of each table's rows: "keep" for all kept
// rows, "new" for those added in the previous round, and "next" for those of the current round.
func (c *Choice) prepare(ctx context.Context) error {
	for i, t := range c.g.Tables {
		if c.Plan.Whole[i] {
			continue
		}
		var columns, names []string
		for n, k := range t.Key {
			names = append(names, fmt.Sprintf("k%d", n+1))
			columns = append(columns, fmt.Sprintf("k%d %s NOT NULL", n+1, k.Type))
		}
		shape := fmt.Sprintf("(%s, PRIMARY KEY (%s))%s", strings.Join(columns, ", "), strings.Join(names, ", "),
			c.d.Options)
		for _, kind := range []string{"keep", "new", "next"} {
			if _, err := c.s.Exec(ctx, "CREATE TEMPORARY TABLE "+c.temp(kind, i)+" "+shape); err != nil {
				return err
			}
		}
	}
	return nil
}

// key returns the comma-separated parts of a row's key.
func (c *Choice) key(table int, prefix string) string {
	var all []string
	for _, k := range c.g.Tables[table].Key {
		all = append(all, k.Expr(prefix))
	}
	return strings.Join(all, ", ")
}

// start chooses the starting rows: those that meet the conditions, and those that the percentage
// selects.
func (c *Choice) start(ctx context.Context, percent float64) error {
	for i, t := range c.g.Tables {
		condition, insert := c.Plan.Where[i], func(ctx context.Context, table, query string) error {
			return c.s.InsertWhere(ctx, table, t.From, query)
		}
		if c.Plan.Percent[i] {
			insert = c.s.Insert
			condition = c.share(i, "", percent/100)
		}
		if condition == "" {
			continue
		}
		// The newline ends a comment in the condition.
		err := insert(ctx, c.temp("keep", i), fmt.Sprintf("SELECT %s FROM %s WHERE (%s\n)", c.key(i, ""), t.From,
			condition))
		if err != nil && c.Plan.Where[i] != "" {
			return c.s.Condition(c.g.label(i), condition, err)
		}
		if err != nil {
			return err
		}
	}
	return c.startBelow(ctx, percent)
}

// join returns the condition that a row of the child, qualified by prefix, references a row of the
// parent, p.
func (k ForeignKey) join(prefix string) string {
	var all []string
	for i := range k.Columns {
		equal := "="
		if k.Equal != nil {
			equal = k.Equal[i]
		}
		all = append(all, fmt.Sprintf("p.%s %s %s%s", k.ParentColumns[i], equal, prefix, k.Columns[i]))
	}
	return strings.Join(all, " AND ")
}

// addReferencing adds the rows that reference a chosen row, in the order of the plan. The rows that
// reference a table are added only after all of that table's rows have been chosen, and the rows
// beyond its percentage have been removed (removeSurplus).
func (c *Choice) addReferencing(ctx context.Context) error {
	thinned := map[int]bool{}
	thin := func(table int) error {
		if thinned[table] {
			return nil
		}
		thinned[table] = true
		return c.removeSurplus(ctx, table)
	}
	for _, i := range c.Plan.Down {
		k := c.g.Keys[i]
		if err := thin(k.Parent); err != nil {
			return err
		}
		if err := c.analyze(ctx, "keep", k.Parent); err != nil {
			return err
		}
		rows := fmt.Sprintf("SELECT %s FROM %s k JOIN %s p ON %s JOIN %s c ON %s",
			c.key(k.Child, "c."), c.temp("keep", k.Parent), k.ParentFrom, c.Match(k.Parent, "p.", "k."), k.ChildFrom,
			k.join("c."))
		if err := c.s.Insert(ctx, c.temp("keep", k.Child), rows); err != nil {
			return err
		}
	}
	for i := range c.g.Tables {
		if err := thin(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Choice) analyze(ctx context.Context, kind string, table int) error {
	if c.d.Analyze == "" {
		return nil
	}
	return c.execute(ctx, fmt.Sprintf(c.d.Analyze, c.temp(kind, table)))
}

// addReferenced adds the rows that kept rows reference, until there are no new ones.
func (c *Choice) addReferenced(ctx context.Context) error {
	gained := map[int]bool{}
	for i := range c.g.Tables {
		if c.Plan.Whole[i] {
			continue
		}
		n, err := c.s.Exec(ctx, "INSERT INTO "+c.temp("new", i)+" SELECT * FROM "+c.temp("keep", i))
		if err != nil {
			return err
		}
		gained[i] = n > 0
	}
	return c.addReferencedFrom(ctx, gained)
}

// addReferencedFrom adds the rows that new rows reference, until there are no new ones. gained are
// the tables that have new rows.
func (c *Choice) addReferencedFrom(ctx context.Context, gained map[int]bool) (err error) {
	for len(gained) > 0 && err == nil {
		gained, err = c.round(ctx, gained)
	}
	return err
}

// round adds the rows that the new rows of the previous round reference. gained are the tables that
// have such rows. round returns the tables that have new rows after this round.
func (c *Choice) round(ctx context.Context, gained map[int]bool) (map[int]bool, error) {
	for _, k := range c.g.Keys {
		if !gained[k.Child] {
			continue
		}
		find := c.addParents
		if k.Child == k.Parent {
			find = c.addAncestors
		}
		if err := find(ctx, k); err != nil {
			return nil, err
		}
	}
	found := map[int]bool{}
	for i := range c.g.Tables {
		if c.Plan.Whole[i] {
			continue
		}
		n, err := c.addRound(ctx, i)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			found[i] = true
		}
	}
	return found, nil
}

// addParents adds the rows that the new rows of a table reference.
func (c *Choice) addParents(ctx context.Context, k ForeignKey) error {
	return c.s.Insert(ctx, c.temp("next", k.Parent), fmt.Sprintf("SELECT %s FROM %s n JOIN %s c ON %s JOIN %s p ON %s",
		c.key(k.Parent, "p."), c.temp("new", k.Child), k.ChildFrom, c.Match(k.Child, "c.", "n."), k.ParentFrom,
		k.join("c.")))
}

// addAncestors adds the rows of the same table that the new rows of a table reference, the rows
// that those reference, and so on. With addParents, a deep tree would need one round per level.
func (c *Choice) addAncestors(ctx context.Context, k ForeignKey) error {
	var names []string
	for i := range c.g.Tables[k.Child].Key {
		names = append(names, fmt.Sprintf("k%d", i+1))
	}
	columns := strings.Join(names, ", ")
	rows := fmt.Sprintf("WITH RECURSIVE r (%s) AS (SELECT %s FROM %s n JOIN %s c ON %s UNION "+
		"SELECT %s FROM r JOIN %s c ON %s JOIN %s p ON %s) SELECT %s FROM r",
		columns, c.key(k.Child, "c."), c.temp("new", k.Child), k.ChildFrom, c.Match(k.Child, "c.", "n."),
		c.key(k.Child, "p."), k.ChildFrom, c.Match(k.Child, "c.", "r."), k.ParentFrom, k.join("c."), columns)
	if err := c.execute(ctx, c.d.BeforeDeep); err != nil {
		return err
	}
	if err := c.s.Insert(ctx, c.temp("next", k.Parent), rows); err != nil {
		return err
	}
	return c.execute(ctx, c.d.AfterDeep)
}

// execute runs a statement of the dialect unless the statement is empty.
func (c *Choice) execute(ctx context.Context, statement string) error {
	if statement == "" {
		return nil
	}
	_, err := c.s.Exec(ctx, statement)
	return err
}

// addRound adds a table's rows of the current round to the kept rows, and returns the number of new
// ones.
func (c *Choice) addRound(ctx context.Context, table int) (int64, error) {
	keep, newest, next := c.temp("keep", table), c.temp("new", table), c.temp("next", table)
	var same []string
	for i := range c.g.Tables[table].Key {
		same = append(same, fmt.Sprintf("k.k%[1]d = n.k%[1]d", i+1))
	}
	if _, err := c.s.Exec(ctx, fmt.Sprintf(c.d.Empty, newest)); err != nil {
		return 0, err
	}
	n, err := c.s.Exec(ctx,
		fmt.Sprintf("INSERT INTO %s SELECT n.* FROM %s n WHERE NOT EXISTS (SELECT 1 FROM %s k WHERE %s)", newest, next,
			keep, strings.Join(same, " AND ")))
	if err != nil {
		return 0, err
	}
	if _, err := c.s.Exec(ctx, fmt.Sprintf(c.d.Empty, next)); err != nil || n == 0 {
		return n, err
	}
	_, err = c.s.Exec(ctx, "INSERT INTO "+keep+" SELECT * FROM "+newest)
	return n, err
}

// Rows returns the number of rows that a table keeps and the number that it has in the source.
func (c *Choice) Rows(ctx context.Context, table int) (kept, total int64, err error) {
	total, counted := c.counts[table]
	if !counted {
		if total, err = c.s.Count(ctx, "SELECT count(*) FROM "+c.g.Tables[table].From); err != nil {
			return 0, 0, err
		}
		c.counts[table] = total
	}
	if c.Plan.Whole[table] {
		return total, total, nil
	}
	kept, err = c.s.Count(ctx, "SELECT count(*) FROM "+c.Kept(table))
	return kept, total, err
}
