package engine

import (
	"fmt"

	"snap"
)

// Filled returns the conflict for a database that received content during a load that must not
// replace content: see OnlyIfEmpty in [Options].
func Filled(database string) error {
	return &snap.Error{
		Code: snap.CodeConflict,
		Detail: fmt.Sprintf("the database %s was missing or empty when the load began, but it has content now",
			database),
		Hint: "somebody else seems to use it; if it may be replaced, load again and confirm (in scripts: --yes); " +
			"nothing was changed",
	}
}
