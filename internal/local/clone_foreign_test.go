package local

import (
	"strings"
	"testing"

	"snap"
)

// spies creates programs of a hostile author, and spied counts the triggers of a database.
var (
	spies = map[snap.Engine][]string{
		snap.SQLite: {"CREATE TRIGGER spy AFTER INSERT ON customer BEGIN DELETE FROM purchase; END"},
		snap.Postgres: {"CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
			"CREATE TRIGGER spy BEFORE INSERT ON customer FOR EACH ROW EXECUTE FUNCTION spy()"},
		snap.MySQL: {"CREATE PROCEDURE spy() SQL SECURITY INVOKER DROP DATABASE own"},
	}
	spied = map[snap.Engine]string{
		snap.SQLite:   "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'",
		snap.Postgres: "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal",
		snap.MySQL:    "SELECT count(*) FROM information_schema.triggers WHERE trigger_schema = database()",
	}
)

// Somebody else's snapshot is cloned by the same rules as it is loaded: as data, and with its
// programs only if the author is trusted. Trust is checked for every clone.
func TestClonesOfForeignSnapshots(t *testing.T) {
	onClones(t, func(t *testing.T, s *cloneShop) {
		target, err := s.Target(shopTarget)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range spies[s.kind] {
			s.exec(t, target.Source, statement)
		}
		foreign, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		foreign.From = Provenance{Origin: Theirs, Organization: "globex"}
		if err := s.writeRecord(foreign); err != nil {
			t.Fatal(err)
		}
		triggers := func(c Cloned) (n int) {
			db := s.db(t, c.Secret)
			defer db.Close()
			if err := db.QueryRow(spied[s.kind]).Scan(&n); err != nil || s.rows(t, c.Secret) != 2000 {
				t.Errorf("%d rows, %v", s.rows(t, c.Secret), err)
			}
			return n
		}
		data := s.clone(t, CloneOptions{Name: "data", Snapshot: foreign.Name})
		if n := triggers(data); n != 0 || !strings.Contains(data.LeftOut, "1 trigger") {
			t.Errorf("%d triggers, left out %q", n, data.LeftOut)
		}
		o := CloneOptions{Name: "programs", Snapshot: foreign.Name, WithPrograms: true}
		if _, err = s.Clone(t.Context(), shopTarget, o, nil); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("programs without trust: %v", err)
		}
		o.Trust = func(Preflight) error { return nil }
		all := s.clone(t, o)
		if n := triggers(all); n != 1 {
			t.Errorf("%d triggers with trust", n)
		}
		if s.kind == snap.MySQL {
			if _, err := s.db(t, all.Secret).Exec("CALL spy()"); err == nil || s.rows(t, target.Source) != 2000 {
				t.Errorf("a procedure left its database: %v", err)
			}
		}
		o.Name, o.Trust = "later", nil
		if _, err = s.Clone(t.Context(), shopTarget, o, nil); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("programs without trust, after a clone with trust: %v", err)
		}
		if n := triggers(s.clone(t, CloneOptions{Name: "data2", Snapshot: foreign.Name})); n != 0 {
			t.Errorf("%d triggers in a clone without programs, after one with them", n)
		}
		if _, err := s.ResetClone(t.Context(), "data", CloneOptions{}, nil); err != nil || triggers(data) != 0 {
			t.Errorf("a reset: %v", err)
		}
	})
}
