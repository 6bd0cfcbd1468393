package local

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"snap"
	"snap/internal/servertest"
)

// inEncoding creates an empty database with an encoding, next to another database.
func inEncoding(t *testing.T, server, encoding string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + "_" + strings.ToLower(encoding)
	db, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE DATABASE " + name + " TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING '" +
		encoding + "'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = db.Exec("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// A database in an encoding other than UTF-8 works in every step without a parameter in its URL.
// The target is checked, a snapshot is built, rules are suggested, an original in a kept column is
// found, and a copy is masked by rules and SQL and loaded.
func TestEncodingsTheWholeWay(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	for encoding, c := range map[string]struct{ table, label, name, sql, note string }{
		"LATIN1": {"Gr\xf6\xdfe", "Größe", "J\xf6rg M\xfcller",
			"SET application_name = 'Größe'; UPDATE \"Größe\" SET note = 'geändert'", "ge\xe4ndert"},
		"EUC_JP": {"\xbb\xe1\xcc\xbe", "氏名", "\xbb\xb3\xc5\xc4 \xc2\xc0\xcf\xba", "UPDATE \"氏名\" SET note = '変更'",
			"\xca\xd1\xb9\xb9"},
		"SQL_ASCII": {"caf\xe9",
			`caf\xE9`, "J\xf6rg M\xfcller", "UPDATE \"caf\xe9\" SET note = 'changed \xfc'", "changed \xfc"},
	} {
		t.Run(encoding, func(t *testing.T) {
			from := inEncoding(t, server, encoding)
			db, err := sql.Open("pgx", from+"&client_encoding=SQL_ASCII&default_query_exec_mode=exec")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, statement := range []string{
				fmt.Sprintf(`CREATE TABLE "%s" (id int PRIMARY KEY, full_name text, note text, kept text)`, c.table),
				fmt.Sprintf(`INSERT INTO "%s" SELECT n, '%s ' || n, 'of %[2]s ' || n, 'kept ' || n `+
					`FROM generate_series(1, 300) n`, c.table, c.name),
			} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			s := newShop(t)
			to := inEncoding(t, from, "UTF8")
			if err := s.AddTarget(Target{Name: "pg", Source: from, Destination: to}); err != nil {
				t.Fatal(err)
			}
			checks, err := s.CheckTarget(t.Context(), "pg")
			if text, unwritten := json.Marshal(checks); err != nil || unwritten != nil || len(checks) != 2 ||
				checks[0].Err != nil || checks[1].Err != nil || len(checks[0].Missing) > 0 {
				t.Fatalf("%s, %v", text, err)
			}
			built, err := s.Build(t.Context(), "pg",
				BuildOptions{Jobs: 1, Subset: SubsetSpec{Where: map[string]string{c.label: "id <= 200"}}}, nil)
			if err != nil || built.Tables[0].Name != c.label || built.Tables[0].Rows != 200 {
				t.Fatalf("%+v, %v", built, err)
			}
			rules := filepath.Join(t.TempDir(), "rules.yaml")
			if err := s.SuggestRules(t.Context(), "pg", "", rules, nil); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(rules)
			if err != nil || !utf8.Valid(text) || !strings.Contains(string(text),
				"public."+strings.ReplaceAll(c.label,
					`\`, `\\`)) || !strings.Contains(string(text), "full_name: name") {
				t.Fatalf("%v\n%s", err, text)
			}
			masks := "keep: ['*.id', '*.kept']\ntables:\n  'public." + c.label +
				"': {columns: {full_name: %s, note: %s}}\n"
			if _, err := s.Sanitize(t.Context(), "pg",
				SanitizeOptions{Rules: s.rulesFile(t, fmt.Sprintf(masks, "redact", "keep"))},
				nil); snap.CodeOf(err) != snap.CodeInvalid ||
				!strings.Contains(err.Error(), "those of public."+c.label+".full_name in public."+c.label+".note") {
				t.Errorf("originals in another column: %v", err)
			}
			clean, err := s.Sanitize(t.Context(), "pg",
				SanitizeOptions{Rules: s.rulesFile(t, fmt.Sprintf(masks, "redact", "redact")),
					SQL: s.sqlFile(t, c.sql)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ready, err := s.Preflight(t.Context(), "pg", LoadOptions{Snapshot: clean.Name})
			if text, unwritten := json.Marshal(ready); err != nil || unwritten != nil {
				t.Fatalf("%s, %v, %v", text, err, unwritten)
			}
			result, err := s.Load(t.Context(), "pg", LoadOptions{Snapshot: clean.Name}, nil)
			if err != nil || result.Tables[0].Rows != 200 || result.Tables[0].Name != c.label {
				t.Fatalf("%+v, %v", result, err)
			}
			loaded, err := sql.Open("pgx", to+"&client_encoding=SQL_ASCII&default_query_exec_mode=exec")
			if err != nil {
				t.Fatal(err)
			}
			defer loaded.Close()
			var got, name, note string
			if err := loaded.QueryRow(fmt.Sprintf(`SELECT getdatabaseencoding(), full_name, note `+
				`FROM "%s" WHERE kept = 'kept 7'`, c.table)).Scan(&got, &name, &note); err != nil {
				t.Fatal(err)
			}
			if got != encoding || !strings.HasPrefix(name, "xx") || !strings.HasSuffix(name, " 0") || note != c.note {
				t.Errorf("%s: %q, %q", got, name, note)
			}
		})
	}
}
