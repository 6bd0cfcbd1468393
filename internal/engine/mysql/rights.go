package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// hiddenWarnings returns a warning about objects that the server silently hides from this user. A
// server hides all triggers, events or routines from a user who has no privileges on them.
func hiddenWarnings(ctx context.Context, db *sql.DB, name string) ([]string, error) {
	grants, err := queryStrings(ctx, db, "SHOW GRANTS")
	if err != nil {
		return nil, err
	}
	var rights strings.Builder
	for _, grant := range grants {
		what, on, ok := strings.Cut(grant, " ON ")
		if !ok { // a role, whose rights are listed elsewhere
			return nil, nil
		}
		global := strings.HasPrefix(on, "*.*")
		if !global &&
			!strings.HasPrefix(strings.ReplaceAll(on, `\_`, "_"), quote(name)+".*") && !strings.Contains(on, "%") {
			continue
		}
		if global && strings.Contains(what, "SELECT") {
			what += ", SHOW_ROUTINE"
		}
		rights.WriteString(what + ", ")
	}
	if strings.Contains(rights.String(), "ALL PRIVILEGES") {
		return nil, nil
	}
	var hidden []string
	for _, kind := range []struct {
		what   string
		rights []string
	}{
		{"triggers", []string{"TRIGGER"}},
		{"events", []string{"EVENT"}},
		{"routines", []string{"SHOW_ROUTINE", "SHOW CREATE ROUTINE", "EXECUTE", "ALTER ROUTINE", "CREATE ROUTINE"}},
	} {
		has := func(right string) bool { return strings.Contains(rights.String(), right) }
		if !slices.ContainsFunc(kind.rights, has) {
			hidden = append(hidden, kind.what)
		}
	}
	if len(hidden) == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("the database user has no access to %s, so the snapshot has none; to include "+
		"them, grant TRIGGER and EVENT, and SHOW_ROUTINE (MySQL) or SELECT on *.*", strings.Join(hidden, ", "))}, nil
}
