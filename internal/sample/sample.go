// Package sample creates a realistic SQLite database: a shop with customers, staff, products, orders
// and order lines. It writes a few hundred thousand rows in a few seconds. The same options give
// the same data on every machine.
//
// The data is invented, but has the features of real data: names in many scripts, missing values,
// blobs, long texts, a self-reference, and a few customers with many orders.
package sample

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"time"

	"github.com/brianvoe/gofakeit/v7"
	_ "modernc.org/sqlite" // the driver
)

//go:embed schema.sql
var schema string

// MaskSQL is a SQL script that removes all personal data from the sample.
//
//go:embed mask.sql
var MaskSQL string

// Options choose the data. The zero value of a field means its default.
type Options struct {
	Seed      uint64 // default 1
	Customers int    // default 20,000
	Products  int    // default 400
	Staff     int    // default 40
	Orders    int    // default 70,000, with about three lines each
}

func (o Options) withDefaults() Options {
	return Options{
		Seed:      cmp.Or(o.Seed, 1),
		Customers: cmp.Or(o.Customers, 20_000),
		Products:  cmp.Or(o.Products, 400),
		Staff:     cmp.Or(o.Staff, 40),
		Orders:    cmp.Or(o.Orders, 70_000),
	}
}

// Write creates the database as a new file and returns its number of rows. It fails if the file
// exists. If it fails later, it removes the file.
func Write(ctx context.Context, file string, o Options) (rows int, err error) {
	created, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	created.Close()
	defer func() {
		if err != nil {
			os.Remove(file)
		}
	}()
	// The file is deleted if anything goes wrong, so it needs no journal.
	db, err := open(file, url.Values{"_pragma": {"journal_mode(off)", "synchronous(off)", "foreign_keys(on)"}})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	o = o.withDefaults()
	g := &generator{
		o:    o,
		tx:   tx,
		rand: rand.New(rand.NewPCG(o.Seed, 2)), //nolint:gosec // the data must be reproducible
		now:  time.Date(2026, 6, 30, 18, 0, 0, 0, time.UTC),
	}
	g.fake = gofakeit.NewFaker(g.rand, false)
	if err := g.all(ctx); err != nil {
		return 0, fmt.Errorf("create the sample database: %w", err)
	}
	return g.rows, tx.Commit()
}

// open opens a SQLite file. Its name may contain any characters.
func open(file string, parameters url.Values) (*sql.DB, error) {
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: parameters.Encode()}
	return sql.Open("sqlite", name.String())
}
