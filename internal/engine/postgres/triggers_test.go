package postgres

import (
	"testing"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestRunFiresNoTriggers checks that SQL for masking fires no trigger of a partitioned table, which
// has a copy at each partition.
func TestRunFiresNoTriggers(t *testing.T) {
	t.Parallel()
	url := servertest.PostgresVersion(t, 13) // newer versions do not call these copies internal
	psql(t, url, script(t, `CREATE TABLE p (a int) PARTITION BY LIST (a);
		CREATE TABLE q PARTITION OF p DEFAULT; INSERT INTO p VALUES (1);
		CREATE FUNCTION failing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''it fired''; END';
		CREATE TRIGGER failing BEFORE UPDATE ON p FOR EACH ROW EXECUTE FUNCTION failing()`))
	d, _ := dumped(t, url)
	s, err := Engine{}.Restore(t.Context(), url, d, engine.Options{Jobs: 1, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop(t.Context())
	if err := s.Run(t.Context(), "UPDATE p SET a = 2"); err != nil {
		t.Error(err)
	}
}
