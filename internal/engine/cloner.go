package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"snap"
)

// Cloner is an engine that can copy whole databases where they are: on their server, or in their
// folder. All databases of one call are in the same place. URLs are expanded and include the
// password, if any.
//
// A Cloner only ever drops and replaces databases whose names begin with [ClonePrefix].
type Cloner interface {
	// Named returns the URL of another database in the place of the database at url.
	Named(url, name string) (string, error)

	// CheckCanClone connects and returns an error if databases cannot be copied there: the user may not
	// create any, the server is read-only, or a connection pooler is in between.
	CheckCanClone(ctx context.Context, url string) error

	// Seal closes a database to connections and writes. The mark identifies the sealed state.
	Seal(ctx context.Context, url string) (mark string, err error)

	// Copy makes the database at to a copy of the one at from. It fails with ErrNotSealed if a mark
	// is given and the database has changed since Seal, with a conflict if from is in use, and with
	// storage_full if there is too little space. A failed or killed Copy may leave parts, which
	// Drop removes.
	Copy(ctx context.Context, from, to string, o CopyOptions) error

	// Reset replaces the database at to with a copy of the one at from, in one step. It ends
	// the connections to it where the database supports that, and otherwise returns a
	// conflict.
	Reset(ctx context.Context, from, to string, o CopyOptions) error

	// Recover removes what a killed Reset left next to the database at url.
	Recover(ctx context.Context, url string) error

	// Drop removes a database, and what a killed Copy or Reset left of it. It ends the database's
	// connections. If there is no such database it does nothing.
	Drop(ctx context.Context, url string) error

	// States returns the states of databases, in the order of the URLs.
	States(ctx context.Context, urls []string) ([]DatabaseState, error)
}

// ClonePrefix begins the names of all databases that a [Cloner] creates or drops.
const ClonePrefix = "snapcli_clone_"

// CopyOptions configure a copy of a database.
type CopyOptions struct {
	Mark      string // of a sealed database; "" copies one that is not sealed
	Jobs      int    // maximum concurrency, at least 1
	Terminate bool   // end connections to a database that is not sealed
}

// DatabaseState is the state of a database.
type DatabaseState struct {
	Exists      bool
	Size        int64    // approximate bytes on disk
	Connections []string // current connections of others, as far as known
}

// ErrNotSealed is returned for a sealed database that is missing, or that was opened since it was
// sealed.
var ErrNotSealed = errors.New("the sealed database was changed")

// NoRoom returns the error for a copy that the disk cannot hold. where is a folder or a server with
// its preposition, such as "in /data".
func NoRoom(size int64, where string, free int64) error {
	return &snap.Error{
		Code: snap.CodeStorageFull,
		Detail: fmt.Sprintf("a copy needs %s %s, but only %s are free", humanize.Bytes(uint64(size)), where,
			humanize.Bytes(uint64(free))),
		Hint: "free some space there, for example with `snapcli clones drop`, and try again",
	}
}
