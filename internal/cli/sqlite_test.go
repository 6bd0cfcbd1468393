package cli

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

// sqliteCommand runs a file of SQL on a SQLite file, or a query whose first value must be the given
// one:
//
//	sqlite shop.db make.sql
//	sqlite shop.db 'select count(*) from t' 3
func sqliteCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: sqlite FILE SQL-FILE | sqlite FILE QUERY ANSWER")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	if len(args) == 2 {
		_, err := db.Exec(ts.ReadFile(args[1]))
		ts.Check(err)
		return
	}
	var answer any
	ts.Check(db.QueryRow(args[1]).Scan(&answer))
	if got := strings.TrimSpace(fmt.Sprint(answer)); got != args[2] {
		ts.Fatalf("%s: got %s, want %s", args[1], got, args[2])
	}
}
