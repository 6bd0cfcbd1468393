package subset

import (
	"context"
	"fmt"
	"strconv"

	"snap"
	"snap/internal/engine"
)

// attempts is the maximum number of subsets to choose when looking for the percentage that a limit
// allows. Foreign keys add an unpredictable number of rows, so the first choice is often too large.
const attempts = 8

// chooseWithin chooses about as large a percentage of the rows as the limit on their number or size
// allows. If foreign keys force more rows than the limit in every attempt, the last choice is used.
func chooseWithin(ctx context.Context, g Graph, want engine.Subset, s Server, d Dialect) (c *Choice, err error) {
	limit := float64(max(want.Rows, want.Bytes))
	if want.Percent > 0 || len(want.Where) > 0 || limit <= 0 || want.Rows > 0 && want.Bytes > 0 {
		return nil, snap.Usage("a subset has either a limit on its rows, a limit on its size, or conditions and a "+
			"percentage", "give one of them")
	}
	w := weights{g: g, s: s, d: d, bytes: want.Bytes > 0}
	if err := w.measure(ctx); err != nil {
		return nil, err
	}
	percent := 100.0
	if limit < w.total {
		percent = rounded(100 * limit / w.total)
	}
	for n := 1; ; n++ {
		if c, err = chooseOnce(ctx, g, engine.Subset{Percent: percent}, s, d); err != nil {
			return nil, err
		}
		kept, err := w.kept(ctx, c)
		if err != nil || kept <= limit || n == attempts {
			return c, err
		}
		if err := c.drop(ctx); err != nil {
			return nil, err
		}
		if percent *= 0.95 * limit / kept; n >= attempts/2 {
			percent /= 2
		}
		percent = rounded(percent)
	}
}

// rounded reduces a percentage slightly and rounds it to three digits for display, but never to 0.
func rounded(percent float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(percent*0.995, 'g', 3, 64), 64)
	return max(short, 1e-6)
}

// weights measures tables: each row counts as one, or as the average bytes of a row of its table.
type weights struct {
	g     Graph
	s     Server
	d     Dialect
	bytes bool

	row   []float64 // weight of a row, by table
	total float64
}

func (w *weights) measure(ctx context.Context) error {
	w.row = make([]float64, len(w.g.Tables))
	for i, t := range w.g.Tables {
		rows, err := w.s.Count(ctx, "SELECT count(*) FROM "+t.From)
		if err != nil {
			return err
		}
		weight := rows
		if w.bytes && rows > 0 {
			if weight, err = w.s.Count(ctx, w.d.Bytes(t)); err != nil {
				return err
			}
		}
		w.row[i] = float64(weight) / float64(max(rows, 1))
		w.total += float64(weight)
	}
	return nil
}

// kept returns the weight of the chosen rows.
func (w *weights) kept(ctx context.Context, c *Choice) (sum float64, err error) {
	for i := range w.g.Tables {
		kept, _, err := c.Rows(ctx, i)
		if err != nil {
			return 0, err
		}
		sum += float64(kept) * w.row[i]
	}
	return sum, nil
}

// drop removes the temporary tables of a choice that is too large.
func (c *Choice) drop(ctx context.Context) error {
	for i := range c.g.Tables {
		if c.Plan.Whole[i] {
			continue
		}
		for _, kind := range []string{"keep", "new", "next"} {
			if _, err := c.s.Exec(ctx, fmt.Sprintf(c.d.Drop, c.temp(kind, i))); err != nil {
				return err
			}
		}
	}
	return nil
}
