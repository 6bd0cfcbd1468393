// Package engine says what every kind of database must be able to do: tell
// about itself, be dumped as one stream, and be restored next to the database
// that is to be replaced, so that the replacement is one short step.
//
// The kinds are the packages below this one.
package engine

import (
	"context"
	"io"

	"snap/internal/schema"
)

// Engine is one kind of database. URLs come expanded, with their password if
// they have one; no implementation puts it into an argument, a log or an error.
//
// Errors that a person must act on are *snap.Error: not_found for a database
// that is not there, tool_missing, storage_full, conflict for a database in
// use, database_error for the rest.
type Engine interface {
	// Check connects and tells what is there. A database that does not exist
	// on a server that does is no error: Exists is false.
	Check(ctx context.Context, url string) (Info, error)

	// Dump writes a consistent copy of the whole database to w without
	// keeping others from writing, and tells what it wrote. A failed dump has
	// written something useless.
	Dump(ctx context.Context, url string, w io.Writer, o Options) (Info, error)

	// Restore fills a fresh database from a dump, on the server or in the
	// folder of the database at url, and verifies it. It never touches that
	// database. The caller must Drop what it gets; a failed Restore has
	// dropped it already.
	Restore(ctx context.Context, url string, d Dump, o Options) (Scratch, error)
}

// Scratch is a restored database that has not replaced anything yet.
type Scratch interface {
	// URL leads to it.
	URL() string

	// Run executes a SQL text of any number of statements in it.
	Run(ctx context.Context, sql string) error

	// Scrub leaves no trace of values that were changed or deleted in it.
	Scrub(ctx context.Context) error

	// Swap puts it in the place of the database that Restore was given, which
	// is gone then. It happens whole or not at all, even when the program is
	// killed. Others connected to the old database are a conflict, or are
	// disconnected with terminate, where the kind of database can.
	Swap(ctx context.Context, terminate bool) error

	// Drop removes it. After Swap it does nothing.
	Drop(ctx context.Context) error
}

// Dump is a dump to restore.
type Dump struct {
	Open func() (io.ReadCloser, error) // its bytes, from the start
	Size int64
	Info Info // what Dump told when it was made

	SHA256 string // of what it is stored as, to tell dumps apart; "" when nobody knows

	Trust        Trust // how far its author is trusted
	WithPrograms bool  // of Foreign: load the programs too, each after its check
}

// Trust says how far the author of a dump is trusted, and so how it is read.
// Every method that takes a [Dump] keeps to it.
type Trust int

// The degrees of trust. The zero value is for dumps that this user made on this
// machine.
const (
	// Mine is restored complete, by the database's own programs and with the
	// user's rights.
	Mine Trust = iota
	// Ours is restored complete. Each entry is checked first to be one
	// statement of its kind and name, and it runs with the rights that the
	// scratch database needs and no more, where such a role can be made.
	Ours
	// Foreign is data: no text of the dump reaches a database as SQL. Every
	// statement is generated from Info.Schema, and programs are left out.
	Foreign
)

// Options choose how to work.
type Options struct {
	Jobs     int                     // how much may be done at a time, at least 1
	TempDir  string                  // for files that are as big as the dump
	Progress func(done, total int64) // bytes; may be nil
	Phase    func(name string)       // called when a new phase begins; may be nil
	Subset   *Subset                 // of Dump: dump only some rows; nil is all
	Notice   func(sentence string)   // called with what a person should know; may be nil
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

// Info tells about a database.
type Info struct {
	ServerVersion string            // of the server, or of the SQLite library
	ToolVersion   string            // of the program that dumps, if there is one
	Exists        bool              // the database is there
	Tables        []Table           // its tables, ordered by schema and name
	Size          int64             // its bytes on disk, about
	Connections   []string          // who else is connected now, as far as it can be known
	Properties    map[string]string // what a copy must be created with, such as its encoding
	Warnings      []string          // what a person should know
	Subset        *Subset           // what the dump was limited to; nil when it has every row
	Schema        *schema.Schema    // its objects as data, told by Dump; nil in snapshots of older versions
}

// Table is one table and how many rows it has; -1 is not counted. Columns are
// those that hold values of their own, when the engine tells them.
type Table struct {
	Schema  string
	Name    string
	Rows    int64
	Of      int64 // rows the source's table has, of which a subset holds Rows; 0 when not a subset
	Columns []Column
}

// Counter passes bytes on and reports how many they were.
type Counter struct {
	W    io.Writer
	Done int64
	O    Options
	Of   int64 // total, if known
}

// Write implements io.Writer.
func (c *Counter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.Done += int64(n)
	c.O.Report(c.Done, c.Of)
	return n, err
}
