package subset

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// share returns the condition that selects a share of a table's rows. The parameter share is from 0
// to 1. prefix precedes the names of columns.
func (c *Choice) share(table int, prefix string, share float64) string {
	return fmt.Sprintf("%s < %.0f", c.g.Tables[table].Share(prefix), share*(1<<32))
}

// startBelow selects a percentage of the rows that no foreign key of the plan leads to: those whose
// references are all NULL or dangling.
func (c *Choice) startBelow(ctx context.Context, percent float64) error {
	for i, t := range c.g.Tables {
		if !c.Plan.Below[i] {
			continue
		}
		conditions := []string{c.share(i, "o.", percent/100)}
		for _, k := range c.Plan.Down {
			if c.g.Keys[k].Child == i {
				conditions = append(conditions, "NOT EXISTS ("+c.referenced(c.g.Keys[k])+")")
			}
		}
		rows := fmt.Sprintf("SELECT %s FROM %s o WHERE %s", c.key(i, "o."), t.From, strings.Join(conditions, " AND "))
		if err := c.s.Insert(ctx, c.temp("keep", i), rows); err != nil {
			return err
		}
	}
	return nil
}

// referenced returns the query for the row that a row of the child, o, references. A key that only
// a partition has is a reference only for the partition's rows.
func (c *Choice) referenced(k ForeignKey) string {
	table := c.g.Tables[k.Child]
	if k.ChildFrom == table.From {
		return fmt.Sprintf("SELECT 1 FROM %s p WHERE %s", k.ParentFrom, k.join("o."))
	}
	var same []string
	for _, part := range table.Key {
		same = append(same, part.Expr("c.")+" = "+part.Expr("o."))
	}
	return fmt.Sprintf("SELECT 1 FROM %s c JOIN %s p ON %s WHERE %s", k.ChildFrom, k.ParentFrom, k.join("c."),
		strings.Join(same, " AND "))
}

// Unless the percentage is 100, rows are added to a table only if it has less than minShare of its
// share. They are removed only if it has more than maxShare. Adding and removing rows separates rows
// that were selected together.
const (
	minShare = 0.9
	maxShare = 1.25
)

// target returns the number of rows that a table's share amounts to, and the number of rows that
// the table keeps. The target is at least 1 unless the table is empty.
func (c *Choice) target(ctx context.Context, table int) (target, kept int64, err error) {
	kept, total, err := c.Rows(ctx, table)
	return int64(math.Ceil(c.Percent / 100 * float64(total))), kept, err
}

// removeSurplus removes rows from a table that has too many, because the selection reached it from
// several sides or from rows that are referenced more often than others. It runs before any row is
// kept because of a reference.
func (c *Choice) removeSurplus(ctx context.Context, table int) error {
	if !c.Plan.Shared[table] {
		return nil
	}
	target, kept, err := c.target(ctx, table)
	if err != nil || float64(kept) <= maxShare*float64(target) {
		return err
	}
	keep, next := c.temp("keep", table), c.temp("next", table)
	rows := fmt.Sprintf("SELECT %s FROM %s k JOIN %s o ON %s ORDER BY %s LIMIT %d", c.key(table, "o."), keep,
		c.g.Tables[table].From, c.Match(table, "o.", "k."), c.order(table), target)
	if err := c.s.Insert(ctx, next, rows); err != nil {
		return err
	}
	for _, statement := range []string{fmt.Sprintf(c.d.Empty, keep), "INSERT INTO " + keep + " SELECT * FROM " + next,
		fmt.Sprintf(c.d.Empty, next)} {
		if err := c.execute(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// order returns the order in which rows of a table, o, are chosen for its share.
func (c *Choice) order(table int) string {
	return c.g.Tables[table].Share("o.") + ", " + c.key(table, "o.")
}

// fill adds rows to the tables that have fewer than their share. It begins with the tables that
// reference others, because their rows also add the referenced rows.
func (c *Choice) fill(ctx context.Context) error {
	for _, cycle := range c.Plan.Fill {
		missing := make([]int64, len(cycle))
		for n, i := range cycle {
			target, kept, err := c.target(ctx, i)
			if err != nil {
				return err
			}
			if c.Percent == 100 || float64(kept) < minShare*float64(target) {
				missing[n] = target - kept
			}
		}
		gained := map[int]bool{}
		for n, i := range cycle {
			if missing[n] <= 0 {
				continue
			}
			added, err := c.add(ctx, i, missing[n])
			if err != nil {
				return err
			}
			gained[i] = added > 0
		}
		if err := c.addReferencedFrom(ctx, gained); err != nil {
			return err
		}
	}
	return nil
}

// add keeps the given number of additional rows of a table.
func (c *Choice) add(ctx context.Context, table int, number int64) (added int64, err error) {
	rows := fmt.Sprintf("SELECT %s FROM %s o WHERE NOT EXISTS (SELECT 1 FROM %s k WHERE %s) ORDER BY %s LIMIT %d",
		c.key(table, "o."), c.g.Tables[table].From, c.temp("keep", table), c.Match(table, "o.", "k."), c.order(table),
		number)
	if err := c.s.Insert(ctx, c.temp("next", table), rows); err != nil {
		return 0, err
	}
	return c.addRound(ctx, table)
}
