//go:build linux

package local

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// A build and each load report the rights that the snapshot omits. A build also drops the scratch
// database that a killed command left on the destination's server.
func TestPostgresReportsOmittedRights(t *testing.T) {
	t.Parallel()
	to := servertest.Postgres(t)
	s, from := pgServer{}.shop(t, to)
	source, destination := opened(t, from), opened(t, to)
	var name string
	if err := source.QueryRow("SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	reader, scratch := "reader_"+name, "snapcli_scratch_"+fmt.Sprintf("%016x", len(name)+2e9)
	execute(t, to, "CREATE DATABASE "+scratch)
	execute(t, from, "CREATE ROLE "+reader+"; GRANT SELECT ON customer TO "+reader)
	t.Cleanup(func() { execute(t, from, "DROP OWNED BY "+reader+"; DROP ROLE "+reader) })
	source.Close()

	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var left int
	err = destination.QueryRow("SELECT count(*) FROM pg_database WHERE datname = $1", scratch).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("the scratch database is still there: %d, %v", left, err)
	}
	destination.Close()
	loaded, err := s.Load(t.Context(), shopTarget, LoadOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, sentences := range map[string][]string{"build": built.Warnings, "load": loaded.Notices} {
		if !slices.ContainsFunc(sentences, func(s string) bool {
			return strings.Contains(s, "omits the privileges of other users on public.customer")
		}) {
			t.Errorf("%s reports %q", what, sentences)
		}
	}
}

func opened(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
