package postgres

import (
	"context"
	"slices"
	"testing"

	"snap/internal/servertest"
)

// A database that a running load uses is not a leftover. When that load has ended, this cleanup or
// the next load of any test removes the database.
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

func servedAt(t *testing.T, url string) database {
	t.Helper()
	d, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
