package engine

import (
	"fmt"
	"strings"

	"snap"
)

// InUse returns the conflict for a database that others are connected to. SQLite databases are
// files, so nothing can end the connections to them.
func InUse(kind snap.Engine, database string, others []string) error {
	hint := "close the connections, or end them with --terminate; nothing was changed"
	if kind == snap.SQLite {
		hint = "close the programs that use it and try again; nothing was changed"
	}
	return &snap.Error{
		Code:   snap.CodeConflict,
		Detail: fmt.Sprintf("the database %s is in use by %s", database, List(others)),
		Hint:   hint,
	}
}

// List formats a list of names for a message. It names at most three and gives the number of the
// others.
func List(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
