package postgres

import (
	"context"
	"slices"
	"testing"

	"snap/internal/servertest"
)

// A database that a running load uses is not a leftover. When that load has ended, RemoveLeftovers
// or the next load of any test removes the database.
func TestMendDropsWhatNoLoadHolds(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	conn, place := connectTo(t, url), servedAt(t, url)
	holder, err := place.maintenance(t.Context()) // locks belong to one database
	if err != nil {
		t.Fatal(err)
	}
	name := randomName("snapcli_scratch_")
	if err := holdName(t.Context(), holder, name); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	there := func() (n int) {
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1",
			name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	left, err := Engine{}.Leftovers(t.Context(), url)
	if err != nil || slices.Contains(left, name) {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := (Engine{}).RemoveLeftovers(t.Context(), url); err != nil || there() != 1 {
		t.Errorf("a database that is held was dropped: %v", err)
	}
	holder.Close(context.Background())
	for there() == 1 { // the server needs a moment to release the lock
		if _, err := (Engine{}).RemoveLeftovers(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := (Engine{}).Leftovers(t.Context(), url); err != nil || slices.Contains(left, name) {
		t.Errorf("left after mending: %v, %v", left, err)
	}
}

// A load into the database postgres takes its locks in template1. Leftovers and RemoveLeftovers of
// another database of the server neither list nor drop what that load uses.
func TestLocksInOtherDatabasesCount(t *testing.T) {
	t.Parallel()
	url, _ := servertest.CrashingPostgres(t)
	conn, place := connectTo(t, url), servedAt(t, url)
	holder, err := place.named("postgres").maintenance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	name, role := randomName("snapcli_scratch_"), randomName(rolePrefix)
	for _, held := range []string{name, role} {
		if err := holdName(t.Context(), holder, held); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{"CREATE DATABASE " + name + " TEMPLATE template0", "CREATE ROLE " + role} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := (Engine{}).Leftovers(t.Context(), url); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if removed, err := (Engine{}).RemoveLeftovers(t.Context(), url); err != nil || len(removed) > 0 {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if there := linesOf(t, url, "SELECT datname::text FROM pg_database WHERE datname = '"+name+"' UNION ALL SELECT "+
		"rolname::text FROM pg_roles WHERE rolname = '"+role+"'"); len(there) != 2 {
		t.Errorf("only %v are left", there)
	}
}

func servedAt(t *testing.T, url string) database {
	t.Helper()
	d, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
