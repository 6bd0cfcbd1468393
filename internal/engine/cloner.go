package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"snap"
)

// Cloner is an engine that can copy whole databases where they are: on their server, or in their
// folder. All databases of one call are on the same server or in the same folder. URLs are expanded
// and include the password, if any.
//
// A Cloner only ever drops and replaces databases whose names begin with [ClonePrefix], and what an
// interrupted load or copy left behind (see [Cleaner]).
type Cloner interface {
	// Named returns the URL of the database with this name on the server, or in the folder, of the
	// database at url.
	Named(url, name string) (string, error)

	// CheckCanClone connects and returns an error if the server or folder of the database at url
	// does not allow copies: the user has no permission to create databases, the server is
	// read-only, or the connection goes through a pooler.
	CheckCanClone(ctx context.Context, url string) error

	// Seal prevents writes to a database, as far as the engine supports that. The mark identifies
	// the sealed state.
	Seal(ctx context.Context, url string) (mark string, err error)

	// Copy creates the database at "to" as a copy of the database at "from". Both are URLs. If a
	// mark is given and the source has changed since Seal, the error is ErrNotSealed. If the engine
	// cannot copy the source while others use it, the error is a conflict. If there is too little
	// space, the error has code storage_full. A failed or killed Copy may leave parts of the copy,
	// which Drop removes.
	Copy(ctx context.Context, from, to string, o CopyOptions) error

	// Reset replaces the database at "to" with a copy of the database at "from", in one step. Both
	// are URLs. If the database at "to" is in use, Reset ends the connections to it or, if the
	// engine does not support that, returns a conflict.
	Reset(ctx context.Context, from, to string, o CopyOptions) error

	// Recover completes or reverts a killed Reset of the database at url, and removes what it left
	// behind.
	Recover(ctx context.Context, url string) error

	// Drop removes a database, and anything that a killed Copy or Reset left behind. It ends the
	// database's connections. If there is no such database, Drop does nothing.
	Drop(ctx context.Context, url string) error

	// States returns the states of databases, in the order of the URLs.
	States(ctx context.Context, urls []string) ([]DatabaseState, error)
}

// ClonePrefix is the beginning of the names of all clones and templates.
const ClonePrefix = "snapcli_clone_"

// CopyOptions configure a copy of a database.
type CopyOptions struct {
	Mark      string // the result of Seal; "" for a database that is not sealed
	Jobs      int    // maximum concurrency, at least 1
	Terminate bool   // end connections to a database that is not sealed
}

// DatabaseState is the state of a database.
type DatabaseState struct {
	Exists      bool
	Size        int64    // approximate bytes on disk
	Connections []string // other clients that are connected, as far as known
}

// ErrNotSealed is the error for a database that was sealed and has since been changed, unsealed or
// removed.
var ErrNotSealed = errors.New("the sealed database was changed")

// NoRoom returns the error for a copy that the disk cannot hold. where names the folder or server,
// with a preposition, such as "in /data".
func NoRoom(size int64, where string, free int64) error {
	return &snap.Error{
		Code: snap.CodeStorageFull,
		Detail: fmt.Sprintf("a copy needs %s %s, but only %s are free", humanize.Bytes(uint64(size)), where,
			humanize.Bytes(uint64(free))),
		Hint: "free some space there, for example with `snapcli clones drop`, and try again",
	}
}
