package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"snap/internal/servertest"
	"snap/internal/store"
)

// These checks of speed do not depend on the machine: no listing and no lookup reads a whole table,
// and none sorts rows of a table before it cuts them to a page. That holds on PostgreSQL at any
// size: the index with the right order is read even if another one has one level less.
func TestPlansReadOnlyIndexRanges(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	n := sizes{snapshots: 3000, users: 3000, groups: 600}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		d := seed(t, store.Options{DataDir: t.TempDir()}, n)
		for _, s := range d.statements() {
			if bad := sqlitePlan(t, d.Store, s); bad != "" {
				t.Errorf("%s: %s\n%s", s.Name, bad, s.Text)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := seed(t, store.Options{URL: postgres(t)}, n)
		for _, tall := range [][]string{nil, {"grants_type"}, {"grants_target", "grants_target_type"}} {
			for _, index := range tall {
				d.rebuild(index, "SET (fillfactor = 10)")
			}
			for i, s := range d.statements() {
				if bad := postgresPlan(t, d.Store, i, s); bad != "" {
					t.Errorf("%s, tall %v: %s\n%s", s.Name, tall, bad, s.Text)
				}
			}
			for _, index := range tall {
				d.rebuild(index, "RESET (fillfactor)")
			}
		}
	})
}

// rebuild rebuilds an index of PostgreSQL, with a setting.
func (d *seeded) rebuild(index, setting string) {
	for _, text := range []string{"ALTER INDEX " + index + " " + setting, "REINDEX INDEX " + index} {
		_, err := d.DB().ExecContext(d.ctx, text)
		d.ok(err)
	}
}

func (d *seeded) statements() []store.Statement {
	callers := maps.Clone(d.callers)
	callers["key"] = d.orgKey(d.acme)
	return append(d.Listings(callers), d.Lookups(d.callers["5 groups"], d.ids[0])...)
}

// tables are those that grow with the service.
var tables = regexp.MustCompile(`^(s|g|m|n|u|o|p|i|snapshots|grants|membership|groups|users|orgs|sign_ins)$`)

// sqlitePlan returns the problems of a plan of SQLite.
func sqlitePlan(t *testing.T, s *store.Store, st store.Statement) string {
	t.Helper()
	rows, err := s.DB().Query("EXPLAIN QUERY PLAN "+st.Text, st.Args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", st.Name, err, st.Text)
	}
	defer rows.Close()
	reads, sorts := map[int]string{}, map[int]string{} // by parent
	var text strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, detail)
		words := strings.Fields(detail)
		switch {
		case words[0] == "SCAN" && tables.MatchString(words[1]):
			return "full scan: " + detail
		case words[0] == "SEARCH" && words[1] == "g":
			reads[parent] = detail
		case strings.Contains(detail, "TEMP B-TREE FOR ORDER BY"):
			sorts[parent] = detail
		case strings.Contains(detail, "TEMP B-TREE FOR GROUP BY"):
			return "does not merge its ranges in their order: " + detail
		}
	}
	for parent, read := range reads {
		if sort, ok := sorts[parent]; ok && !strings.Contains(st.Text, "wide") {
			return fmt.Sprintf("sorts what it reads: %s, %s", read, sort)
		}
	}
	return wrongIndex(st, text.String())
}

// wrongIndex reports a listing of one target and one type that reads all of the
// target.
func wrongIndex(st store.Statement, plan string) string {
	if strings.Contains(st.Text, "g.type = $7") &&
		(!strings.Contains(plan, "grants_target_type") || allOfTarget.MatchString(plan)) {
		return "does not read by target and type: " + plan
	}
	return ""
}

var allOfTarget = regexp.MustCompile(`grants_target\b|grants_type\b`)

// node is a node of PostgreSQL's plans.
type node struct {
	Type   string `json:"Node Type"`
	Table  string `json:"Relation Name"`
	Filter string `json:"Filter"`
	Plans  []node
}

func postgresPlan(t *testing.T, s *store.Store, i int, st store.Statement) string {
	t.Helper()
	conn, err := s.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec := func(text string) {
		t.Helper()
		if _, err := conn.ExecContext(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	exec(fmt.Sprintf("PREPARE plan_%d AS %s", i, st.Text))
	defer exec(fmt.Sprintf("DEALLOCATE plan_%d", i))
	var args []string
	for _, a := range st.Args {
		switch v := a.(type) {
		case string:
			a = "'" + v + "'"
		case nil:
			a = "NULL"
		}
		args = append(args, fmt.Sprint(a))
	}
	var text string
	if err := conn.QueryRowContext(t.Context(), fmt.Sprintf("EXPLAIN (FORMAT JSON) EXECUTE plan_%d(%s)", i,
		strings.Join(args, ", "))).Scan(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Count(st.Text, "EXISTS (") != strings.Count(strings.ReplaceAll(st.Text,
		"ORDER BY m.audience LIMIT 1 OFFSET 0)", ""), "LIMIT 1 OFFSET 0)") {
		return "an EXISTS that is not pinned becomes a hash table of everything once tables are large"
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	if bad := plans[0].Plan.bad(false); bad != "" {
		return bad + "\n" + text
	}
	return wrongIndex(st, text)
}

// bad looks for whole tables that are read, and for rows of tables that are
// sorted or hashed before anything limited them.
func (n node) bad(sorted bool) string {
	if n.Table != "" && (n.Type == "Seq Scan" || n.Table == "grants" &&
		(sorted || strings.Contains(n.Type, "Bitmap"))) {
		return fmt.Sprintf("%s of %s, sorted %v", n.Type, n.Table, sorted)
	}
	switch n.Type {
	case "Sort", "Hash", "Incremental Sort":
		sorted = true
	case "Limit", "CTE Scan", "Subquery Scan":
		sorted = false
	}
	for _, child := range n.Plans {
		if bad := child.bad(sorted); bad != "" {
			return bad
		}
	}
	return ""
}

// The plan test detects bad plans.
func TestPlanTestFindsBadPlans(t *testing.T) {
	t.Parallel()
	bad := store.Statement{Name: "naive",
		Text: `SELECT s.id FROM snapshots s WHERE EXISTS (SELECT 1 FROM grants g ` +
			`WHERE g.snapshot = s.key AND g.audience IN (SELECT audience FROM membership m WHERE m.principal = $1)) ` +
			`ORDER BY s.name LIMIT 50`, Args: []any{int64(1)}}
	s := newWorld(t, store.Options{DataDir: t.TempDir()})
	if sqlitePlan(t, s.Store, bad) == "" {
		t.Error("a full scan in SQLite was not found")
	}
	p := seed(t, store.Options{URL: postgres(t)}, sizes{snapshots: 500, users: 100, groups: 50})
	if postgresPlan(t, p.Store, 0, bad) == "" {
		t.Error("a full scan in PostgreSQL was not found")
	}
}
