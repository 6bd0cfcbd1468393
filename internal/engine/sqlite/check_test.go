package sqlite

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"snap"
	"snap/internal/engine"
)

const checkedSchema = `PRAGMA page_size = 1024;
	CREATE TABLE a (id INTEGER PRIMARY KEY, v TEXT NOT NULL UNIQUE, n INT CHECK (n >= 0));
		CREATE INDEX an ON a (n) WHERE n > 3;
	CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID; CREATE TABLE s (i INT, t TEXT) STRICT;
		CREATE VIRTUAL TABLE f USING fts5(body);
	WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) INSERT INTO a
		SELECT n, 'value ' || hex(n * 7919), n % 9 FROM c;
	INSERT INTO w SELECT v, n FROM a; INSERT INTO s SELECT n, v FROM a; INSERT INTO f SELECT v FROM a WHERE id < 40;
	CREATE TABLE big (b); INSERT INTO big VALUES (zeroblob(9000)), (zeroblob(5000)); DELETE FROM a WHERE id % 3 = 0;`

// The parallel checks refuse exactly the files that PRAGMA integrity_check refuses. The files have
// wrong bytes anywhere.
func TestChecksAddUpToIntegrityCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	makeDB(t, whole, checkedSchema)
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	found := map[bool]int{}
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		wrong := append([]byte(nil), text...)
		for range r.IntN(4) {
			wrong[100+r.IntN(len(wrong)-100)] ^= byte(1 << r.IntN(8))
		}
		path := filepath.Join(dir, "wrong.db")
		if err := os.WriteFile(path, wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		one, several := sound(t, path, 1), sound(t, path, 3)
		if one != several {
			t.Errorf("round %d: sound for integrity_check: %v, for the parallel checks: %v", round, one, several)
		}
		found[one]++
	}
	if found[true] < 10 || found[false] < 10 {
		t.Errorf("sound and damaged: %v", found)
	}
}

func sound(t *testing.T, path string, jobs int) bool {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := scratch{path: path, o: engine.Options{Jobs: jobs}}
	checks, err := s.checks(t.Context(), db, engine.Info{})
	if err != nil {
		return false
	}
	err = s.check(t.Context(), checks)
	if err != nil && snap.CodeOf(err) != snap.CodeCorrupt {
		t.Fatal(err)
	}
	return err == nil
}

// A database that needs collations and functions of its own application is restored too. Only the
// objects that need them are not checked.
func TestCollationsOfAProgram(t *testing.T) {
	t.Parallel()
	for _, jobs := range []int{1, 2} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
		makeDB(t, from,
			`CREATE TABLE t (a TEXT COLLATE NOCASE, g AS (lower(a)), CHECK (lower(a) <> '')); INSERT INTO t
			VALUES ('x'); CREATE INDEX i ON t (a); CREATE INDEX j ON t (lower(a));
			PRAGMA writable_schema = ON; UPDATE sqlite_schema
				SET sql = replace(replace(sql, 'NOCASE', 'LOCALIZED'), 'lower', 'mine');
				PRAGMA writable_schema = RESET;`)
		d, b := dumped(t, from)
		s, err := Engine{}.Restore(t.Context(), URLOf(to), d, engine.Options{Jobs: jobs})
		if err == nil {
			err = s.Swap(t.Context(), false)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, b) {
			t.Errorf("the loaded file has other bytes (%v)", err)
		}
	}
}
