package engine

import (
	"context"

	"snap"
)

// Use is the intended use of a database.
type Use int

// The uses.
const (
	ForBuild Use = iota // snapshots are built from it
	ForLoad             // snapshots are loaded into it
)

// Inspector is an engine that can report in advance which requirements of a use are not met.
type Inspector interface {
	// Needs connects and returns the privileges and programs that are required for a use of the
	// database and are missing. It does not change the database.
	Needs(ctx context.Context, url string, u Use) ([]Need, error)
}

// Need is a missing requirement.
type Need struct {
	Code   snap.Code // code of the error that would result
	What   string    // the problem as a clause, without a period at the end
	Remedy string    // a SQL statement for an authorized user, or a program to install
}
