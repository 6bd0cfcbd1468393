package engine

import (
	"context"

	"snap"
)

// Use is what is to be done with a database.
type Use int

// The uses.
const (
	ForBuild Use = iota // snapshots are taken of it
	ForLoad             // snapshots are loaded into it
)

// Inspector is an engine that can tell beforehand what a use would lack.
type Inspector interface {
	// Needs connects and returns the programs and rights that are missing for
	// a use of the database. Nothing is changed, and nothing that can be found
	// out only by doing it is tried.
	Needs(ctx context.Context, url string, u Use) ([]Need, error)
}

// Need is something that is missing.
type Need struct {
	Code snap.Code // of the error that doing it without would end in
	What string    // what is not possible, as a sentence without its period
	Mend string    // what gives it: a SQL statement for somebody who may, or what to install
}
