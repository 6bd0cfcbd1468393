package engine

import (
	"cmp"
	"fmt"
	"slices"

	"snap"
)

// Compare returns an error with code corrupt_snapshot for the first table that is missing or does
// not have the expected number of rows. If either side has no count for a table, the table only has
// to exist.
func Compare(want, got []Table) error {
	have := map[[2]string]int64{}
	for _, t := range got {
		have[[2]string{t.Schema, t.Name}] = t.Rows
	}
	for _, t := range want {
		rows, ok := have[[2]string{t.Schema, t.Name}]
		switch {
		case !ok:
			return differs(fmt.Sprintf("the table %s is missing", snap.TableName(t.Schema, t.Name)))
		case rows != t.Rows && rows >= 0 && t.Rows >= 0:
			return differs(fmt.Sprintf("the table %s has %d rows and should have %d", snap.TableName(t.Schema, t.Name),
				rows, t.Rows))
		}
	}
	return nil
}

// Sort sorts tables by schema and name.
func Sort(tables []Table) {
	slices.SortFunc(tables, func(a, b Table) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
}

func differs(why string) error {
	return &snap.Error{Code: snap.CodeCorrupt, Detail: "the restored database differs from the snapshot: " + why,
		Hint: "rebuild the snapshot; nothing was replaced"}
}
