package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
)

var _ engine.Inspector = Engine{}

// The privileges that a dump and a load require. Privileges without which a dump is merely
// incomplete are not listed. If such a privilege is missing, the dump has a warning.
var (
	rightsToBuild = []string{"SELECT", "SHOW VIEW"}
	rightsToLoad  = []string{"SELECT", "INSERT", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "CREATE VIEW",
		"SHOW VIEW", "TRIGGER", "CREATE ROUTINE", "EVENT"}
)

// Needs implements [engine.Inspector]. It reports nothing for a user with roles, because SHOW
// GRANTS does not list the privileges of roles.
func (e Engine) Needs(ctx context.Context, raw string, u engine.Use) (needs []engine.Need, err error) {
	err = e.withServer(raw, func(d database, db *sql.DB) error {
		var account string
		if err := db.QueryRowContext(ctx, "SELECT current_user()").Scan(&account); err != nil {
			return err
		}
		lines, err := queryStrings(ctx, db, "SHOW GRANTS")
		if err != nil {
			return err
		}
		grants, known := readGrants(lines)
		if !known {
			return nil
		}
		user, host, _ := strings.Cut(account, "@")
		account = fmt.Sprintf("'%s'@'%s'", user, host)
		if u == engine.ForBuild {
			needs = grants.lacking(account, d.name, d.name, rightsToBuild)
			return nil
		}
		// The databases that match snapcli_% are the scratch database, the replaced database and
		// the journal.
		needs = append(grants.lacking(account, d.name, d.name, rightsToLoad),
			grants.lacking(account, scratchPrefix+"x", "snapcli_%", rightsToLoad)...)
		return nil
	})
	return needs, err
}

// grants are the rights of an account on whole databases, by the pattern of their names. "*" means
// all databases.
type grants map[string][]string

// readGrants parses the lines of SHOW GRANTS. known is false if a role is among them.
func readGrants(lines []string) (g grants, known bool) {
	g = grants{}
	for _, line := range lines {
		rights, on, ok := strings.Cut(strings.TrimPrefix(line, "GRANT "), " ON ")
		if !ok {
			return nil, false
		}
		on, _, _ = strings.Cut(on, " TO ")
		if database, whole := strings.CutSuffix(on, ".*"); whole {
			database = strings.ReplaceAll(strings.Trim(database, "`"), "``", "`")
			g[database] = append(g[database], strings.Split(rights, ", ")...)
		}
	}
	return g, true
}

// lacking returns the privileges on a database that the account lacks, if any. label is the
// database, or the pattern of databases, in the GRANT statement of the remedy.
func (g grants) lacking(account, database, label string, rights []string) []engine.Need {
	missing := slices.DeleteFunc(slices.Clone(rights), func(right string) bool {
		for pattern, has := range g {
			if (pattern == "*" || like(pattern, database)) &&
				(slices.Contains(has, right) || slices.Contains(has, "ALL PRIVILEGES")) {
				return true
			}
		}
		return false
	})
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, ", ")
	return []engine.Need{{
		Code:   snap.CodeDatabase,
		What:   fmt.Sprintf("the user %s lacks %s on the database %s", account, list, label),
		Remedy: fmt.Sprintf("GRANT %s ON %s.* TO %s", list, strings.ReplaceAll(quote(label), "_", `\_`), account),
	}}
}

// like reports whether a name matches the pattern of a grant: _ matches any character, % any number
// of characters, and a backslash makes the next character literal.
func like(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	switch {
	case pattern[0] == '%':
		return like(pattern[1:], name) || name != "" && like(pattern, name[1:])
	case name == "":
		return false
	case pattern[0] == '\\' && len(pattern) > 1:
		return pattern[1] == name[0] && like(pattern[2:], name[1:])
	}
	return (pattern[0] == '_' || pattern[0] == name[0]) && like(pattern[1:], name[1:])
}
