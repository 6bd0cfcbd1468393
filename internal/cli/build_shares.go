package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"snap"
	"snap/internal/archive"
	"snap/internal/local"
)

// requestedSubset describes the subset that a build's flags request or, without such flags, the one
// in the target's configuration.
func requestedSubset(agent *local.Agent, target string, flags local.SubsetSpec) string {
	t, _ := agent.Target(target) // the build has just read it
	return cmp.Or(limits(flags), limits(t.Subset))
}

// maxShares is the maximum number of tables that are listed after a build of a subset.
const maxShares = 30

// printPortions prints the limits that were requested for a subset, and how many rows of each table
// it has. The table with the most rows in the source comes first.
func (a *app) printPortions(s local.Snapshot, requested string) error {
	if s.Subset == nil || len(s.Tables) == 0 || requested == "" || a.flags.quiet || a.flags.json {
		return nil
	}
	if s.Subset.Percent > 0 && !strings.HasSuffix(requested, "%") {
		requested += fmt.Sprintf(", about %.3g%% of the rows", s.Subset.Percent)
	}
	a.result("Requested: %s. Rows of each table:", requested)
	all := slices.Clone(s.Tables)
	slices.SortStableFunc(all, func(x, y archive.Table) int { return cmp.Compare(y.Of, x.Of) })
	t := a.newTable(column{title: "Table", least: 10}, column{title: "Rows", right: true},
		column{title: "Share", right: true})
	for _, one := range all[:min(len(all), maxShares)] {
		share := ""
		if one.Of > 0 {
			share = fmt.Sprintf("%.3g%%", shareOf(one))
		}
		t.row(snap.TableName(one.Schema, one.Name), fmt.Sprintf("%d of %d", one.Rows, one.Of), share)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if more := len(all) - maxShares; more > 0 {
		a.note("`snapcli snapshots show %s` lists %s more.", s.Name, snap.Plural(more, "table", "tables"))
	}
	a.result("")
	return nil
}

func shareOf(t archive.Table) float64 { return 100 * float64(t.Rows) / float64(t.Of) }

// minRows is the number of rows below which unevenShares ignores a table, because chance decides
// its share.
const minRows = 30

// unevenShares returns a warning that names the tables of a subset whose share of rows differs from
// the requested percentage by more than a third, the largest difference first. It returns "" if
// there are none, if no percentage was requested, or if the subset has conditions, because these
// decide the shares.
func unevenShares(s local.Snapshot) string {
	if s.Subset == nil || s.Subset.Percent == 0 || len(s.Subset.Where) > 0 {
		return ""
	}
	requested := s.Subset.Percent
	other := slices.DeleteFunc(slices.Clone(s.Tables), func(t archive.Table) bool {
		return t.Of < minRows || math.Abs(shareOf(t)-requested) <= requested/3
	})
	if len(other) == 0 {
		return ""
	}
	slices.SortFunc(other, func(x, y archive.Table) int {
		return cmp.Compare(math.Abs(shareOf(y)-requested), math.Abs(shareOf(x)-requested))
	})
	const listed = 10
	var list []string
	for _, t := range other[:min(len(other), listed)] {
		list = append(list, fmt.Sprintf("%s %.3g (%d of %d rows)", snap.TableName(t.Schema, t.Name), shareOf(t),
			t.Rows, t.Of))
	}
	if len(other) > listed {
		list = append(list, fmt.Sprintf("and %d more", len(other)-listed))
	}
	return fmt.Sprintf("the subset takes %g percent, and the share of %s differs by more than a third, because of "+
		"their foreign keys: %s", requested, snap.Plural(len(other), "table", "tables"), strings.Join(list, ", "))
}
