// Package engine defines what every kind of database must support. A database can be described,
// dumped as one stream, and restored next to the database that it will replace. The replacement
// itself is then one short step.
//
// The implementations are its subpackages mysql, postgres and sqlite.
package engine

import (
	"context"
	"errors"
	"io"

	"snap/internal/schema"
)

// Engine is one kind of database. URLs are expanded and include the password, if any. No
// implementation puts the password into an argument, a log or an error.
//
// Errors that a user must act on are *snap.Error. Their codes include not_found for a missing
// database, tool_missing, storage_full, conflict for a database in use, and database_error for
// other failures of the server.
type Engine interface {
	// Check connects and describes the database. If the server exists but the database does not,
	// Check returns no error and Exists is false.
	Check(ctx context.Context, url string) (Info, error)

	// Dump writes a consistent copy of the database to w and describes it. It blocks writers for a
	// moment at most, except in a SQLite database that is not in WAL mode. o.Subset and o.Choice
	// can limit the copy. The output of a failed dump is useless.
	Dump(ctx context.Context, url string, w io.Writer, o Options) (Info, error)

	// Restore fills a new database from a dump, on the server or in the folder of the database at
	// url, and verifies it. Only a load into an existing database (see o.Into) touches the database
	// at url. The caller must Drop the result; a failed Restore has already dropped it.
	Restore(ctx context.Context, url string, d Dump, o Options) (Scratch, error)
}

// Scratch is a restored database that has not replaced another database yet.
type Scratch interface {
	// URL returns the URL of the scratch database, with the password.
	URL() string

	// Run executes SQL, which can have any number of statements. If there is none, SQLite accepts
	// that, and the servers fail with ErrNoStatement and leave the database unchanged.
	Run(ctx context.Context, sql string) error

	// Ask runs a query that changes nothing and returns its only value as text, or [Null].
	Ask(ctx context.Context, query string) (string, error)

	// Scrub removes all traces of values that were changed or deleted in the database.
	Scrub(ctx context.Context) error

	// Swap replaces the database given to Restore with the scratch database. The old database is
	// then gone. Swap is atomic, even if the program is killed. If others are connected to the old
	// database, Swap returns a conflict. With terminate, it disconnects them instead, if the engine
	// supports that.
	Swap(ctx context.Context, terminate bool) error

	// Drop removes the scratch database. After Swap, Drop does nothing.
	Drop(ctx context.Context) error
}

// ErrNoStatement is the error for SQL that has only comments.
var ErrNoStatement = errors.New("the SQL has no statement")

// Dumper is a Scratch whose masked copy is not simply a dump of its database.
type Dumper interface {
	Scratch

	// Dump writes a masked copy of the dump that was restored, after Run, and describes it. It
	// leaves out everything that Run cannot mask, with a warning.
	Dump(ctx context.Context, w io.Writer, o Options) (Info, error)
}

// Dump is a dump to restore.
type Dump struct {
	Open func() (io.ReadCloser, error) // the dump's bytes, from the start
	Size int64
	Info Info // the Info that Dump returned

	SHA256 string // checksum of the dump as stored, to distinguish dumps; "" if unknown

	Trust        Trust // how far the dump's author is trusted
	WithPrograms bool  // for Foreign: also load objects with code (functions, triggers and so on), each after a check
}

// Trust is how far the author of a dump is trusted. It decides how the dump is loaded and read.
// Every method that takes a [Dump] must respect it. A program is an object that can run code, see
// [schema.Program].
type Trust int

// The levels of trust. Mine, the zero value, is for dumps that this user made on this machine. Ours
// is for dumps from the user's own organization or from a storage profile, unless the configuration
// distrusts them. Foreign is for all other dumps.
const (
	// Mine is restored completely, with the database's own tools and the user's privileges.
	Mine Trust = iota
	// Ours is restored completely. An entry of the dump may only contain statements that create the
	// object with the entry's kind and name. If possible, the statements run as a role that has
	// privileges on the scratch database only.
	Ours
	// Foreign is data: every statement is generated from Info.Schema, and no part of the dump
	// reaches a database as SQL. Programs are omitted, unless Dump.WithPrograms loads them after a
	// check.
	Foreign
)

// Options configure an operation.
type Options struct {
	Jobs       int                     // maximum concurrency, at least 1
	TempDir    string                  // folder for files as large as the dump
	Progress   func(done, total int64) // bytes; may be nil
	Phase      func(name string)       // called when a new phase begins; may be nil
	Subset     *Subset                 // for Dump: include only some rows; nil includes all
	Choice     Choice                  // for Dump: include only some objects
	Into       Into                    // for Restore: where the content goes
	WithGrants bool                    // for Dump: record the rights of other users; for Restore: apply them
	Terminate  bool                    // for Restore into an existing database: end sessions that block the load
	Grants     []string                // for Restore: GRANT statements to run after the content is loaded
	Notice     func(sentence string)   // called with messages for the user; may be nil

	// OnlyIfEmpty is for Restore. It means that the user did not agree to lose any content of the
	// destination. If the destination has content when it would be replaced or emptied in place,
	// Restore or Swap fails with [Filled].
	OnlyIfEmpty bool

	// Enforce is for Restore. It reports whether all rows of a table must satisfy the table's
	// checks. MariaDB otherwise loads rows that violate a check, because the source may have such
	// rows. Other servers always enforce checks. Enforce may be nil.
	Enforce func(schema, table string) bool

	// Observe is for Inspect. For a column, it returns a function, or nil if samples suffice. The
	// function is called with every value of the column, in any order and possibly several times.
	// Observe itself may be nil.
	Observe func(schema, table, column string) func(value string)
}

// Observers returns the results of Observe for the columns of a table, and whether any of them is
// not nil.
func (o Options) Observers(schema, table string, columns []Column) (observers []func(string), some bool) {
	observers = make([]func(string), len(columns))
	for i, c := range columns {
		if o.Observe != nil {
			observers[i] = o.Observe(schema, table, c.Name)
		}
		some = some || observers[i] != nil
	}
	return observers, some
}

// Report calls Progress.
func (o Options) Report(done, total int64) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// Begin calls Phase.
func (o Options) Begin(phase string) {
	if o.Phase != nil {
		o.Phase(phase)
	}
}

// Notify calls Notice.
func (o Options) Notify(sentence string) {
	if o.Notice != nil {
		o.Notice(sentence)
	}
}

// Info describes a database.
type Info struct {
	ServerVersion string            // of the server, or of the SQLite library
	ToolVersion   string            // of the dump program, if there is one
	Exists        bool              // the database exists
	Empty         bool              // it exists and has nothing that a load would remove, as far as known
	Tables        []Table           // its tables, ordered by schema and name
	Size          int64             // approximate bytes on disk
	Connections   []string          // other clients that are connected, as far as known
	Properties    map[string]string // properties that a copy must be created with, such as the encoding
	Warnings      []string          // messages for the user
	Subset        *Subset           // the limits of the dump; nil if it has every row
	Schema        *schema.Schema    // its objects as data, set by Dump; nil in snapshots of older versions
}

// Table is one table and its number of rows; -1 means not counted. Columns are the columns of its
// rows in the dump, if the engine reports them. In MySQL and MariaDB, they also include generated
// columns.
type Table struct {
	Schema  string
	Name    string
	Rows    int64
	Of      int64 // in a subset: number of rows in the source's table; otherwise 0
	Bytes   int64 // size of its rows in the dump; 0 if not measured
	Columns []Column
}

// Counter counts the bytes written to W and reports the count to O.
type Counter struct {
	W    io.Writer
	Done int64
	O    Options
	Of   int64 // total number of bytes, if known
}

// Write implements io.Writer.
func (c *Counter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.Done += int64(n)
	c.O.Report(c.Done, c.Of)
	return n, err
}
