package mysql

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
)

func hint(err error) string {
	var e *snap.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// limitsOfOthers returns limits that an administrator may set to stop slow queries and queries
// without a limit or a key.
func limitsOfOthers(server string) string {
	if strings.HasPrefix(server, "mysql") {
		return "SET GLOBAL sql_select_limit = 5; SET GLOBAL wait_timeout = 1; SET GLOBAL max_execution_time = 60000; " +
			"SET GLOBAL sql_require_primary_key = ON; SET GLOBAL sql_generate_invisible_primary_key = ON"
	}
	return "SET GLOBAL sql_select_limit = 5; SET GLOBAL wait_timeout = 1; SET GLOBAL max_statement_time = 60; SET " +
		"GLOBAL idle_transaction_timeout = 1"
}

// A server with a small maximum packet and short timeouts receives statements that it accepts. The
// error for a row that does not fit names the table and the setting to raise. A row that is larger
// than the maximum packet can still be read.
func TestBigRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from := servertest.MySQL(t, server)
		to := servertest.OwnMySQL(t, server, "", "--max-allowed-packet=1M")
		script(t, to, limitsOfOthers(server))
		script(t, from,
			"CREATE TABLE small (id INT PRIMARY KEY AUTO_INCREMENT, pad VARCHAR(500)); INSERT INTO small (pad) VALUES "+
				"(repeat('x', 500));")
		for range 12 {
			script(t, from, "INSERT INTO small (pad) SELECT pad FROM small")
		}
		d, _ := dumped(t, from)
		if err := load(t, to, d, false); err != nil {
			t.Fatalf("rows that fit: %v", err)
		}
		db, _ := openURL(t, to)
		name, limit := "max_statement_time", 0.0
		if strings.HasPrefix(server, "mysql") {
			name = "max_execution_time"
		}
		if err := db.QueryRowContext(t.Context(), "SELECT @@"+name).Scan(&limit); err != nil || limit != 0 {
			t.Errorf("%s is %g, %v", name, limit, err)
		}
		before := contents(t, to)
		if before != contents(t, from) {
			t.Errorf("the copy differs: %s", difference(contents(t, from), before))
		}
		script(t, from,
			"CREATE TABLE wide (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB); INSERT INTO wide VALUES (1, repeat('a', "+
				"600000), repeat('b', 600000))")
		d, _ = dumped(t, from)
		err := load(t, to, d, false)
		if snap.CodeOf(err) != snap.CodeDatabase ||
			!strings.Contains(err.Error(), "inserting a row of the table wide takes 1200") ||
			!strings.Contains(hint(err), "SET GLOBAL max_allowed_packet = 2097152") {
			t.Errorf("a row that does not fit: %v", err)
		}
		if after := contents(t, to); after != before {
			t.Errorf("the old database changed: %s", difference(before, after))
		}
		// Writing the columns one by one creates such a row.
		script(t, to,
			"CREATE TABLE wide (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB); INSERT INTO wide VALUES (1, repeat('a', "+
				"600000), ''); UPDATE wide SET b = a")
		d, _ = dumped(t, to)
		counted(t, to, d.Info.Tables)
		if err := load(t, from, d, false); err != nil {
			t.Error(err)
		}
		if same := sorted(t, from, "SELECT a = repeat('a', 600000) AND b = a FROM wide"); !slices.Equal(same,
			[]string{"1"}) {
			t.Errorf("the copy of a big row differs: %s", same)
		}
	})
}
