package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// with returns the engine with the oldest available programs that can dump a
// server of this version.
func with(t testing.TB, server int) (Engine, string) {
	t.Helper()
	for v := server; v <= 18; v++ {
		if bin := servertest.PostgresTools(t, v); bin != "" {
			return Engine{Tools: []string{bin}}, bin
		}
	}
	t.Skipf("needs pg_dump %d or newer: `make databases` gets it", server)
	return Engine{}, ""
}

// schemaBy returns the definition of a database that the pg_dump of one version writes.
func schemaBy(t testing.TB, bin, url string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, "pg_dump"), "--schema-only", "--no-owner", "--no-privileges", "-d",
		url).Output()
	if err != nil {
		t.Fatal(err)
	}
	return changing.ReplaceAllString(string(out), "")
}

func sameRows(t testing.TB, from, to string) {
	t.Helper()
	a, b := rows(t, from), rows(t, to)
	if len(a) != len(b) || len(a) == 0 {
		t.Errorf("%d tables, want %d", len(b), len(a))
	}
	for key := range a {
		if a[key] != b[key] {
			t.Errorf("%s differs", key)
		}
	}
}

func (e Engine) build(t testing.TB, url string) engine.Dump {
	t.Helper()
	var b bytes.Buffer
	info, err := e.Dump(t.Context(), url, &b, engine.Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	return dumpOf(b.Bytes(), info)
}

func (e Engine) load(t testing.TB, url string, d engine.Dump) error {
	t.Helper()
	s, err := e.Restore(t.Context(), url, d, engine.Options{Jobs: 2, TempDir: t.TempDir()})
	if err != nil {
		return err
	}
	defer s.Drop(t.Context())
	return s.Swap(t.Context(), false)
}

// Building, loading and masking work with every server version, with the programs of its own version
// or the next available one.
func TestEveryVersion(t *testing.T) {
	t.Parallel()
	for _, v := range servertest.PostgresVersions {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			t.Parallel()
			from, to := servertest.PostgresVersion(t, v), servertest.PostgresVersion(t, v)
			e, bin := with(t, v)
			psql(t, from, script(t, odd))
			d := e.build(t, from)
			if got := major(d.Info.ServerVersion); got != v {
				t.Fatalf("the server says it is %s", d.Info.ServerVersion)
			}
			if err := e.load(t, to, d); err != nil {
				t.Fatal(err)
			}
			if a, b := schemaBy(t, bin, from), schemaBy(t, bin, to); a != b {
				t.Errorf("the schema differs:\n%s\n---- and\n%s", a, b)
			}
			sameRows(t, from, to)

			var masked bytes.Buffer
			info, err := e.Rewrite(t.Context(), d, maskAll(d), &masked, engine.Options{Jobs: 2})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.load(t, to, dumpOf(masked.Bytes(), info)); err != nil {
				t.Fatal(err)
			}
			if a, b := rows(t, from),
				rows(t, to); a[`"public"."part_1"`] == b[`"public"."part_1"`] || len(a) != len(b) {
				t.Errorf("part_1 has %s after masking", b[`"public"."part_1"`])
			}
		})
	}
}

// maskAll keeps everything but the text of the table part_1.
func maskAll(d engine.Dump) engine.Plan {
	p := engine.Plan{Tables: map[[2]string]engine.TablePlan{}, KeepLargeObjects: true}
	for _, t := range d.Info.Tables {
		columns := map[string]engine.Mask{}
		for _, c := range t.Columns {
			columns[c.Name] = nil
			if t.Name == "part_1" && c.Name == "v" {
				columns[c.Name] = func(string) (string, bool) { return "masked", false }
			}
		}
		p.Tables[[2]string{t.Schema, t.Name}] = engine.TablePlan{Columns: columns}
	}
	return p
}

// A snapshot of an older server can be loaded into every newer server, also with programs that are
// older than the newer server.
func TestOlderSnapshotIntoNewerServer(t *testing.T) {
	t.Parallel()
	oldest := servertest.PostgresVersion(t, 13)
	e, _ := with(t, 13)
	psql(t, oldest, script(t, odd))
	d := e.build(t, oldest)
	for _, v := range servertest.PostgresVersions[1:] {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			t.Parallel()
			to := servertest.PostgresVersion(t, v)
			if err := e.load(t, to, d); err != nil {
				t.Fatal(err)
			}
			sameRows(t, oldest, to)
		})
	}
}

// The programs can be newer than the server, as on a machine with only one version of them:
// pg_restore 17 and later set a setting that servers before 17 do not know.
func TestNewerProgramsThanTheServer(t *testing.T) {
	t.Parallel()
	for _, tools := range []int{17, 18} {
		for v := 13; v <= tools; v++ {
			t.Run(fmt.Sprintf("%d for %d", tools, v), func(t *testing.T) {
				t.Parallel()
				bin := servertest.PostgresTools(t, tools)
				if bin == "" {
					t.Skipf("needs pg_dump %d: `make databases` gets it", tools)
				}
				from, to := servertest.PostgresVersion(t, v), servertest.PostgresVersion(t, v)
				e := Engine{Tools: []string{bin}}
				psql(t, from, script(t, odd))
				d := e.build(t, from)
				if err := e.load(t, to, d); err != nil {
					t.Fatal(err)
				}
				sameRows(t, from, to)
			})
		}
	}
}

// Programs that are older than the server cannot dump its databases. The message names the package
// to install.
func TestOlderProgramsThanTheServer(t *testing.T) {
	t.Parallel()
	url := servertest.PostgresVersion(t, 18)
	old := servertest.PostgresTools(t, 15)
	if old == "" {
		t.Skip("needs pg_dump 15: install the package postgresql-client-15")
	}
	_, err := Engine{Tools: []string{old}}.Dump(t.Context(), url, io.Discard, engine.Options{Jobs: 1})
	var e *snap.Error
	if !errors.As(err, &e) || e.Code != snap.CodeNoTool || !strings.Contains(e.Detail, "version 15") ||
		!strings.Contains(e.Hint, "apt install postgresql-client-18") {
		t.Errorf("%v", err)
	}
}

// A dump that an older server does not support is refused with the reason, and the old database
// remains.
func TestNewerSnapshotIntoOlderServer(t *testing.T) {
	t.Parallel()
	from, to := servertest.PostgresVersion(t, 18), servertest.PostgresVersion(t, 13)
	e, _ := with(t, 18)
	psql(t, to, script(t, "CREATE TABLE old (a int); INSERT INTO old VALUES (1)"))
	before := rows(t, to)

	psql(t, from,
		script(t,
			"CREATE TABLE plain (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text NOT NULL); INSERT INTO "+
				"plain (v) "+
				"VALUES ('x')"))
	plain := e.build(t, from)
	psql(t, from, script(t, "CREATE TABLE newer (a int, b int GENERATED ALWAYS AS (a + 1) VIRTUAL, r int4multirange)"))
	err := e.load(t, to, e.build(t, from))
	if snap.CodeOf(err) != snap.CodeDatabase || !strings.Contains(err.Error(), "is from PostgreSQL 18") ||
		!strings.Contains(err.Error(), "is older") {
		t.Errorf("load of 18 into 13: %v", err)
	}
	if after := rows(t, to); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the old database changed")
	}
	if err := e.load(t, to, plain); err != nil {
		t.Errorf("what both understand: %v", err)
	}
}

// TestUnknownOperatorClass checks that the error for an operator class that only newer servers have
// names the versions of both servers.
func TestUnknownOperatorClass(t *testing.T) {
	t.Parallel()
	g := newGenerator(&schema.Schema{})
	g.keyColumns([]schema.KeyColumn{{Name: "a", OpClass: "int4_bloom_ops"}})
	err := olderServer(g.err, "14.1", "13.9")
	if err == nil || !strings.Contains(err.Error(), `no operator class "int4_bloom_ops"`) ||
		!strings.Contains(err.Error(), "13.9, is older") {
		t.Error(err)
	}
}
