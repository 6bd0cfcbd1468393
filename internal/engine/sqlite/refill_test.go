package sqlite

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
)

// TestRefill replaces the rows of some tables, without their triggers, and changes nothing if a
// foreign key would not hold.
func TestRefill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDatabase(t, from, chooseFrom+"INSERT INTO log VALUES (2); INSERT INTO customer VALUES (3, 'c', 1); "+
		"INSERT INTO orders (customer, log) VALUES (3, 2); CREATE TABLE more (a)")
	makeDatabase(t, to,
		chooseFrom+"CREATE TRIGGER failing BEFORE INSERT ON customer BEGIN SELECT raise(ABORT, 'no'); END")
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), URLOf(from), &b, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := engine.Dump{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		Size: int64(b.Len()), Info: info, Trust: engine.Foreign}
	const objects = "SELECT coalesce(sql, name) FROM sqlite_schema"
	before := sortedColumn(t, to, objects)
	o := engine.Options{TempDir: dir, Jobs: 1}
	for only, want := range map[string]struct {
		code snap.Code
		says string
	}{
		"orders": {snap.CodeConflict, "foreign key orders to "},
		"more":   {snap.CodeNotFound, "no table more"},
		"words":  {snap.CodeInvalid, "virtual table words"},
		"none":   {snap.CodeUsage, "matches no table"},
	} {
		_, err := Engine{}.Refill(t.Context(), URLOf(to), d, []string{only}, o)
		if snap.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", only, err)
		}
	}
	if n := sortedColumn(t, to, "SELECT id FROM orders"); !slices.Equal(n, []string{"1", "2"}) {
		t.Errorf("orders has %v", n)
	}
	tables, err := Engine{}.Refill(t.Context(), URLOf(to), d, []string{"orders", "cust*", "log"}, o)
	if err != nil || len(tables) != 3 {
		t.Fatal(tables, err)
	}
	for _, query := range []string{"SELECT id || coalesce(log, 'x') || customer FROM orders", "SELECT a FROM log",
		"SELECT id || name FROM customer"} {
		if got, want := sortedColumn(t, to, query), sortedColumn(t, from, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if after := sortedColumn(t, to, objects); !slices.Equal(after, before) {
		t.Errorf("the definitions are %v, want %v", after, before)
	}
}
