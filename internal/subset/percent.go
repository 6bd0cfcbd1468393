package subset

import (
	"context"
	"fmt"
	"strings"
)

// share returns the condition that a row of a table is among a share of the rows, from 0 to 1. prefix
// precedes columns.
func (c *Choice) share(table int, prefix string, share float64) string {
	return fmt.Sprintf("%s < %.0f", c.g.Tables[table].Share(prefix), share*(1<<32))
}

// startBelow selects a percentage of the rows that no foreign key of the plan leads to: those whose
// references are all NULL, or name no row.
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

// referenced returns the query for the row that a row of the child, o, references. A key that only a
// partition has is a reference only for the partition's rows.
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

// fill adds rows to the tables that only references reach, until each has the percentage of its
// rows. It begins with the tables that reference others of them, because their rows bring rows of
// those.
func (c *Choice) fill(ctx context.Context, percent float64) error {
	for _, ring := range c.Plan.Fill {
		missing := make([]float64, len(ring))
		for n, i := range ring {
			kept, of, err := c.Rows(ctx, i)
			if err != nil {
				return err
			}
			if kept < of {
				missing[n] = (percent/100*float64(of) - float64(kept)) / float64(of-kept)
			}
		}
		fresh := map[int]bool{}
		for n, i := range ring {
			if missing[n] <= 0 {
				continue
			}
			rows := fmt.Sprintf("SELECT %s FROM %s WHERE %s", c.key(i, ""), c.g.Tables[i].From, c.share(i, "",
				missing[n]))
			if err := c.s.Insert(ctx, c.temp("next", i), rows); err != nil {
				return err
			}
			added, err := c.addRound(ctx, i)
			if err != nil {
				return err
			}
			if added > 0 {
				fresh[i] = true
			}
		}
		if err := c.upFrom(ctx, fresh); err != nil {
			return err
		}
	}
	return nil
}
