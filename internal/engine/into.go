package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"snap"
)

// Into is where a load puts the content of a dump.
type Into int

// The ways to load.
const (
	// NewDatabase fills a scratch database, which then takes the place of the old one.
	NewDatabase Into = iota
	// Existing replaces the content of an existing database. The old content stays complete until
	// the load has succeeded.
	Existing
	// InPlace removes the content of an existing database and then fills it. A load that fails
	// leaves it empty or partly filled, with [Unfinished] in it.
	InPlace
)

// Replacer is an engine that can report in advance whether a load is allowed to replace a database.
type Replacer interface {
	// RequireReplaceable returns an error if the user has no permission to create the scratch
	// database of a load, or to replace the database at url with it. The error names the statement
	// that grants the missing privilege.
	RequireReplaceable(ctx context.Context, url string) error
}

// Unfinished is the name of a schema (PostgreSQL) or table (MySQL, MariaDB) that marks a database
// while it is filled in place. If the load fails, the mark remains.
const Unfinished = "snapcli_unfinished_load"

// UnfinishedWarning is the warning for a database that has [Unfinished].
const UnfinishedWarning = "a load with --in-place into this database has not finished: its content is not complete"

// Incomplete adds to a *snap.Error of an in-place load that the database is now incomplete, and
// removes the claim that nothing was changed from its hint. It returns any other error unchanged.
// Call it only if the old content was already removed.
func Incomplete(database string, err error) error {
	var failed *snap.Error
	if err == nil || !errors.As(err, &failed) {
		return err
	}
	e := *failed
	e.Detail += fmt.Sprintf("; the database %q was being filled in place and is incomplete now", database)
	for _, unchanged := range []string{"; nothing was replaced", "; nothing was changed",
		"; the database is unchanged"} {
		e.Hint = strings.ReplaceAll(e.Hint, unchanged, "")
	}
	e.Hint = strings.TrimPrefix(e.Hint+"; then load again", "; then ")
	return &e
}
