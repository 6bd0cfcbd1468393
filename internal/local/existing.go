package local

import (
	"fmt"

	"snap"
	"snap/internal/engine"
)

// Into says how a load fills its destination.
type Into = engine.Into

// The ways to replace only the content of a database. See [engine.Into].
const (
	IntoExisting = engine.Existing
	InPlace      = engine.InPlace
)

// checkWay returns an error if the destination cannot be loaded in the way that the options choose.
func (o LoadOptions) checkWay(to database) error {
	if err := checkGrantsOf(to, o.WithGrants); err != nil {
		return err
	}
	if o.Into != engine.NewDatabase && to.kind == snap.SQLite {
		return snap.Usage("a SQLite database is one file, which every load replaces as a whole",
			"omit --into-existing and --in-place")
	}
	return nil
}

// checkGrantsOf returns an error if grants are requested for a kind of database whose snapshots
// cannot contain them.
func checkGrantsOf(d database, wanted bool) error {
	if !wanted || d.kind == snap.Postgres {
		return nil
	}
	if d.kind == snap.SQLite {
		return snap.Usage("a SQLite database has no users with privileges", "omit --with-grants")
	}
	return snap.Usage("snapshots of MySQL and MariaDB contain no grants, because the server stores grants outside the "+
		"database", "omit --with-grants; in the target's grants, list the GRANT statements to run after a load")
}

// requireExisting returns an error if there is no database whose content could be replaced.
func requireExisting(f Preflight, to database) error {
	if f.Exists {
		return nil
	}
	return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("the destination %s does not exist", to.shown),
		Hint: "create the database, or omit --into-existing and --in-place"}
}

// grantsOf returns the statements that a load of the target ends with, after checking each of them.
func grantsOf(t Target, to database) ([]string, error) {
	if len(t.Grants) == 0 {
		return nil, nil
	}
	granter, ok := to.engine.(engine.Granter)
	if !ok {
		return nil, snap.Usage("a SQLite database has no users to grant privileges to", "remove targets."+t.Name+
			".grants with `snapcli config edit`")
	}
	for _, statement := range t.Grants {
		if err := granter.CheckGrant(statement); err != nil {
			return nil, err
		}
	}
	return t.Grants, nil
}
