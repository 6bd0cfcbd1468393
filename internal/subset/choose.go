package subset

import (
	"context"
	"fmt"
	"strings"

	"snap/internal/engine"
)

// Server runs statements in the transaction of the dump.
type Server interface {
	// Exec runs one statement and returns how many rows it touched.
	Exec(ctx context.Context, statement string) (int64, error)
	// Insert puts the rows of a query into a temporary table, and passes over
	// those that are there.
	Insert(ctx context.Context, table, query string) error
	// InsertWhere is Insert for a query with a person's condition, in which names
	// are those of that person's sessions.
	InsertWhere(ctx context.Context, table, query string) error
	// Count returns the number that a query answers.
	Count(ctx context.Context, query string) (int64, error)
	// Condition reports what is wrong with a person's condition on a table.
	Condition(table, condition string, err error) error
}

// Dialect is how a server writes what differs.
type Dialect struct {
	Temp    func(name string) string // how a temporary table is named
	Options string                   // behind the columns of a temporary table
	Empty   string                   // empties a table: with %s for its name
	Analyze string                   // tells the planner about a table: with %s for its name; "" is not needed
}

// Choice is the rows that were chosen.
type Choice struct {
	Plan Plan
	g    Graph
	s    Server
	d    Dialect
}

// Kept returns the temporary table with the keys of the rows that a table
// keeps, in columns k1, k2 and so on; "" when it keeps every row.
func (c *Choice) Kept(table int) string {
	if c.Plan.Whole[table] {
		return ""
	}
	return c.temp("keep", table)
}

func (c *Choice) temp(kind string, table int) string {
	return c.d.Temp(fmt.Sprintf("snapcli_%s_%d", kind, table))
}

// Choose chooses the rows of a subset. The temporary tables stay for the
// session.
func Choose(ctx context.Context, g Graph, want engine.Subset, s Server, d Dialect) (*Choice, error) {
	plan, err := Make(g, want)
	if err != nil {
		return nil, err
	}
	c := &Choice{Plan: plan, g: g, s: s, d: d}
	for _, step := range []func(context.Context) error{
		c.prepare,
		func(ctx context.Context) error { return c.start(ctx, want.Percent) },
		c.down, c.up,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Match is the SQL condition that a row of a table, behind a prefix, is one of
// those in a temporary table, behind another.
func (c *Choice) Match(table int, prefix, temp string) string {
	var all []string
	for i, k := range c.g.Tables[table].Key {
		all = append(all, fmt.Sprintf("%s = %sk%d", k.Expr(prefix), temp, i+1))
	}
	return strings.Join(all, " AND ")
}

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

// key lists the parts of a row's key.
func (c *Choice) key(table int, prefix string) string {
	var all []string
	for _, k := range c.g.Tables[table].Key {
		all = append(all, k.Expr(prefix))
	}
	return strings.Join(all, ", ")
}

// start chooses the rows of the conditions and of the percentage.
func (c *Choice) start(ctx context.Context, percent float64) error {
	for i, t := range c.g.Tables {
		condition, insert := c.Plan.Where[i], c.s.InsertWhere
		if c.Plan.Percent[i] {
			insert = c.s.Insert
			condition = fmt.Sprintf("%s < %.0f", t.Share(""), percent/100*(1<<32))
		}
		if condition == "" {
			continue
		}
		// The line's end keeps a comment in the condition to itself.
		err := insert(ctx, c.temp("keep", i), fmt.Sprintf("SELECT %s FROM %s WHERE (%s\n)", c.key(i, ""), t.From,
			condition))
		if err != nil && c.Plan.Where[i] != "" {
			return c.s.Condition(c.g.label(i), condition, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// join is the condition that a row of the child, c, references one of the
// parent, p.
func (k ForeignKey) join() string {
	var all []string
	for i := range k.Columns {
		equal := "="
		if k.Equal != nil {
			equal = k.Equal[i]
		}
		all = append(all, fmt.Sprintf("p.%s %s c.%s", k.Refers[i], equal, k.Columns[i]))
	}
	return strings.Join(all, " AND ")
}

// down chooses what references a chosen row, by the plan.
func (c *Choice) down(ctx context.Context) error {
	for _, i := range c.Plan.Down {
		k := c.g.Keys[i]
		if err := c.analyze(ctx, "keep", k.Parent); err != nil {
			return err
		}
		rows := fmt.Sprintf("SELECT %s FROM %s k JOIN %s p ON %s JOIN %s c ON %s",
			c.key(k.Child, "c."), c.temp("keep", k.Parent), k.ParentFrom, c.Match(k.Parent, "p.", "k."), k.ChildFrom,
			k.join())
		if err := c.s.Insert(ctx, c.temp("keep", k.Child), rows); err != nil {
			return err
		}
	}
	return nil
}

func (c *Choice) analyze(ctx context.Context, kind string, table int) error {
	if c.d.Analyze == "" {
		return nil
	}
	_, err := c.s.Exec(ctx, fmt.Sprintf(c.d.Analyze, c.temp(kind, table)))
	return err
}

// up keeps what a kept row references, until nothing is new.
func (c *Choice) up(ctx context.Context) error {
	fresh := map[int]bool{}
	for i := range c.g.Tables {
		if c.Plan.Whole[i] {
			continue
		}
		n, err := c.s.Exec(ctx, "INSERT INTO "+c.temp("new", i)+" SELECT * FROM "+c.temp("keep", i))
		if err != nil {
			return err
		}
		fresh[i] = n > 0
	}
	for len(fresh) > 0 {
		var err error
		if fresh, err = c.round(ctx, fresh); err != nil {
			return err
		}
	}
	return nil
}

// round keeps what the rows reference that the last round brought, and returns
// the tables that it brought rows of.
func (c *Choice) round(ctx context.Context, fresh map[int]bool) (map[int]bool, error) {
	for _, k := range c.g.Keys {
		if !fresh[k.Child] {
			continue
		}
		rows := fmt.Sprintf("SELECT %s FROM %s n JOIN %s c ON %s JOIN %s p ON %s",
			c.key(k.Parent, "p."), c.temp("new", k.Child), k.ChildFrom, c.Match(k.Child, "c.", "n."), k.ParentFrom,
			k.join())
		if err := c.s.Insert(ctx, c.temp("next", k.Parent), rows); err != nil {
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

// addRound takes over what a round brought of a table, and returns how many rows
// of it are new.
func (c *Choice) addRound(ctx context.Context, table int) (int64, error) {
	keep, fresh, next := c.temp("keep", table), c.temp("new", table), c.temp("next", table)
	var same []string
	for i := range c.g.Tables[table].Key {
		same = append(same, fmt.Sprintf("k.k%[1]d = n.k%[1]d", i+1))
	}
	if _, err := c.s.Exec(ctx, fmt.Sprintf(c.d.Empty, fresh)); err != nil {
		return 0, err
	}
	n, err := c.s.Exec(ctx,
		fmt.Sprintf("INSERT INTO %s SELECT n.* FROM %s n WHERE NOT EXISTS (SELECT 1 FROM %s k WHERE %s)", fresh, next,
			keep,
			strings.Join(same, " AND ")))
	if err != nil {
		return 0, err
	}
	if _, err := c.s.Exec(ctx, fmt.Sprintf(c.d.Empty, next)); err != nil || n == 0 {
		return n, err
	}
	_, err = c.s.Exec(ctx, "INSERT INTO "+keep+" SELECT * FROM "+fresh)
	return n, err
}

// Rows counts the rows that a table keeps, and all of it.
func (c *Choice) Rows(ctx context.Context, table int) (kept, of int64, err error) {
	if of, err = c.s.Count(ctx, "SELECT count(*) FROM "+c.g.Tables[table].From); err != nil {
		return 0, 0, err
	}
	if c.Plan.Whole[table] {
		return of, of, nil
	}
	kept, err = c.s.Count(ctx, "SELECT count(*) FROM "+c.Kept(table))
	return kept, of, err
}
