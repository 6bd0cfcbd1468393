package local

import (
	"cmp"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// With the same key, a value gets the same mask in PostgreSQL, MySQL, MariaDB and SQLite, byte for
// byte, including text outside of ASCII.
func TestMasksAreEqualAcrossEngines(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "MySQL")
	masks := strings.Fields("address card city company coordinates currency date domain email first_name format hash " +
		"iban integer ip key last_name mac name number paragraph password password_hash phone redact sentence shift " +
		"time_zone url user_name uuid word")
	values := []string{"Mária O''Neil-Ü", "maria@real.example", "+49 30 1234567", "4111 1111 1111 1111", "2001-02-03",
		"DE89370400440532013000", "00000000-0000-4000-8000-000000000001", "198.51.100.7", "00:1b:44:11:3a:b7", "52.52",
		"42", "x", "日本語 \\\\ \t"}
	results := make(chan string, 4)
	for _, c := range []struct{ name, driver string }{{"sqlite", "sqlite"}, {"postgres", "pgx"},
		{"mysql-8.0", "mysql"}, {"mariadb-11.8", "mysql"}} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			target := Target{Name: "equal", Source: "sqlite://" + filepath.Join(s.dir, "a.db"),
				Destination: "sqlite://" + filepath.Join(s.dir, "b.db")}
			switch c.driver {
			case "pgx":
				target.Source, target.Destination = servertest.Postgres(t), servertest.Postgres(t)
			case "mysql":
				target.Source, target.Destination = servertest.MySQL(t, c.name), servertest.MySQL(t, c.name)
			}
			db, err := sql.Open(c.driver, dsnOf(c.driver, target.Source))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var columns, rules []string
			rule := map[string]string{
				"template": `{mask: template, template: "{c_name|upper} {n} {id}"}`,
				"when":     `{mask: email, when: "id BETWEEN 2 AND 7 OR c_name LIKE 'M%'", else: redact}`,
			}
			for _, m := range append(slices.Clone(masks), "template", "when") {
				columns = append(columns, "c_"+m+" varchar(400)")
				rules = append(rules, "c_"+m+": "+cmp.Or(rule[m], m))
			}
			execAll(t, db, "CREATE TABLE v (id int PRIMARY KEY, n bigint, "+strings.Join(columns, ", ")+")")
			for i, v := range values {
				if c.driver != "mysql" {
					v = strings.ReplaceAll(v, `\\`, `\`)
				}
				execAll(t, db, fmt.Sprintf("INSERT INTO v VALUES (%d, %d%s)", i, i*7919+1,
					strings.Repeat(", '"+v+"'", len(columns))))
			}
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Build(t.Context(), "equal", BuildOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Sanitize(t.Context(), "equal", SanitizeOptions{Rules: s.rulesFile(t,
				"key: the same key for all of them\nkeep: ['*v.id']\ntables:\n  '*v': {columns: {n: key, "+
					strings.Join(rules, ", ")+"}}\n")}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), "equal", LoadOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			loaded, err := sql.Open(c.driver, dsnOf(c.driver, target.Destination))
			if err != nil {
				t.Fatal(err)
			}
			defer loaded.Close()
			results <- allRows(t, loaded, "SELECT * FROM v ORDER BY id")
		})
	}
	close(results)
	first := ""
	for got := range results {
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("%s\nis not\n%s", got, first)
		}
	}
	if first == "" {
		t.Error("there is no result")
	}
}

// allRows returns the rows of a query as one text.
func allRows(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			fmt.Fprintf(&b, "%s=%q,%t ", names[i], v.String, v.Valid)
		}
		b.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
