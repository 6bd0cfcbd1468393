//go:build linux

package local

import (
	"os"
	"path/filepath"
	"testing"

	"snap"
	"snap/internal/servertest"
)

// TestAfterLoadGrants grants a right on every load. SQL that fails replaces nothing.
func TestAfterLoadGrants(t *testing.T) {
	t.Parallel()
	to := servertest.Postgres(t)
	s, _ := pgServer{}.shop(t, to)
	destination := opened(t, to)
	var name string
	if err := destination.QueryRow("SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	leave(t, destination, to)
	role, path := "after_"+name, filepath.Join(t.TempDir(), "fix.sql")
	execute(t, to, "CREATE ROLE "+role)
	t.Cleanup(func() { execute(t, to, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	if _, err := s.Set("targets."+shopTarget+".after_load", path); err == nil {
		t.Error("a file that is missing is accepted")
	}
	run := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Set("targets."+shopTarget+".after_load", path); err != nil {
			t.Fatal(err)
		}
		_, err := s.Load(t.Context(), shopTarget, LoadOptions{}, nil)
		return err
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	may := func() (yes bool) {
		db := opened(t, to)
		defer leave(t, db, to)
		if err := db.QueryRow("SELECT has_table_privilege($1, 'customer', 'SELECT')", role).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if err := run("-- nothing yet"); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := run("GRANT SELECT ON customer TO " + role); err != nil || !may() {
			t.Errorf("%v, %v", err, may())
		}
	}
	if err := run("REVOKE ALL ON customer FROM " + role + "; SELECT nothing"); snap.CodeOf(err) != snap.CodeDatabase ||
		!may() {
		t.Errorf("%v, %v", err, may())
	}
}
