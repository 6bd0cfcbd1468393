package local

import (
	"database/sql"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
)

// A masked copy that cannot be loaded does not become a sanitized snapshot. It is first loaded into
// a scratch database, which is then dropped. The CHECK constraint of person calls a function, so
// only a database can evaluate it.
func TestMaskedCopiesAreProven(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	source := servertest.Postgres(t)
	destination, _ := servertest.CrashingPostgres(t) // where no other test has scratch databases
	db, err := sql.Open("pgx", source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE FUNCTION is_real(text) RETURNS bool LANGUAGE sql IMMUTABLE AS
			$$ SELECT $1 LIKE '%@real.example' $$;
		CREATE TABLE person (id int PRIMARY KEY, email text CHECK (public.is_real(email)));
		INSERT INTO person VALUES (1, 'maria.meyer@real.example')`); err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	rules := s.rulesFile(t, "keep: ['*.id']\ntables:\n  public.person: {columns: {email: email}}\n")
	sanitize := func(to string, prove *bool) (Snapshot, error) {
		t.Helper()
		if err := s.AddTarget(Target{Name: "proven", Source: source, Destination: to,
			Sanitize: SanitizeSpec{Prove: prove}}); err != nil {
			t.Fatal(err)
		}
		return s.Sanitize(t.Context(), "proven", SanitizeOptions{Rules: rules}, nil)
	}
	if err := s.AddTarget(Target{Name: "proven", Source: source}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), "proven", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	for name, prove := range map[string]*bool{"by default": nil, "prove: true": &yes} {
		_, err := sanitize(destination, prove)
		if err == nil || !strings.Contains(err.Error(), "the masked copy does not load on") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := s.Snapshots("proven"); err != nil || len(all) != 1 {
		t.Errorf("%d snapshots after refused runs, %v", len(all), err)
	}
	if _, err := sanitize(destination, &no); err != nil {
		t.Errorf("prove: false: %v", err)
	}
	const nowhere = "postgres://me@127.0.0.1:1/nowhere"
	if made, err := sanitize(nowhere, nil); err != nil || len(made.Warnings) != 1 ||
		!strings.Contains(made.Warnings[0], "was skipped: cannot reach") {
		t.Errorf("an unreachable server: %v, %v", made.Warnings, err)
	}
	if made, err := sanitize("", nil); err != nil || len(made.Warnings) != 1 ||
		!strings.Contains(made.Warnings[0], "was skipped: the target") {
		t.Errorf("no server: %v, %v", made.Warnings, err)
	}
	if _, err := sanitize("", &yes); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("no server, but one is required: %v", err)
	}
	if _, err := sanitize(nowhere, &yes); snap.CodeOf(err) != snap.CodeDatabase {
		t.Errorf("an unreachable server that is required: %v", err)
	}
	rules = s.rulesFile(t, "keep: ['*.id']\ntables:\n  public.person: {columns: {email: 'null'}}\n")
	if made, err := sanitize(destination, &yes); err != nil || len(made.Warnings) != 0 {
		t.Errorf("%v, %v", made.Warnings, err)
	}
	server, err := sql.Open("pgx", destination)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var left int
	err = server.QueryRow("SELECT count(*) FROM pg_database WHERE datname LIKE '%snapcli%'").Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d scratch databases are left, %v", left, err)
	}
}

// On MySQL, too, a masked copy is refused if it breaks a check that could not be evaluated earlier.
func TestMaskedCopiesAreProvenOnMySQL(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const email = "maria.meyer@real.example"
	target := Target{Name: "proven", Source: servertest.MySQL(t, "mysql-8.0"),
		Destination: servertest.MySQL(t, "mysql-8.0")}
	db, err := sql.Open("mysql", dsnOf("mysql", target.Source))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	execAll(t, db, fmt.Sprintf("CREATE TABLE person (id int PRIMARY KEY, email varchar(80), "+
		"CHECK (crc32(email) = %d)); "+
		"INSERT INTO person VALUES (1, '%s')", crc32.ChecksumIEEE([]byte(email)), email))
	if err := s.AddTarget(target); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), "proven", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	rules := s.rulesFile(t, "keep: ['*.id']\ntables:\n  person: {columns: {email: email}}\n")
	_, err = s.Sanitize(t.Context(), "proven", SanitizeOptions{Rules: rules}, nil)
	if err == nil || !strings.Contains(err.Error(), "the masked copy does not load on") {
		t.Errorf("a check that fails: %v", err)
	}
	if all, err := s.Snapshots("proven"); err != nil || len(all) != 1 {
		t.Errorf("%d snapshots after a refused run, %v", len(all), err)
	}
	rules = s.rulesFile(t, "keep: ['*.id']\ntables:\n  person: {columns: {email: 'null'}}\n")
	if made, err := s.Sanitize(t.Context(), "proven", SanitizeOptions{Rules: rules}, nil); err != nil ||
		len(made.Warnings) != 0 {
		t.Errorf("%v, %v", made.Warnings, err)
	}
}

// On MariaDB, a load accepts rows that violate a check, because the source may have such rows. A
// masked copy is refused if a table that the rules change violates a check. Other tables, and the
// history of a table, may have such rows.
func TestMaskedCopiesAreProvenOnMariaDB(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"mariadb", "mariadb-11.8"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.built(t, server, `CREATE TABLE person (id int PRIMARY KEY, email varchar(80), profile JSON);
				INSERT INTO person VALUES (1, 'erika@real.example', '{"city": "Bremen"}');
				CREATE TABLE legacy (id int PRIMARY KEY, price int CHECK (price > 0), note text);
				CREATE TABLE past (id int PRIMARY KEY, n int, note text) WITH SYSTEM VERSIONING;
				INSERT INTO past VALUES (1, -1, 'Pay Hans Meier'); UPDATE past SET n = 1;
				SET STATEMENT system_versioning_alter_history = KEEP FOR ALTER TABLE past ADD CHECK (n > 0);
				SET STATEMENT check_constraint_checks = 0 FOR INSERT INTO legacy VALUES (1, -1, 'Ask Erika')`)
			sanitize := func(columns string) (Snapshot, error) {
				t.Helper()
				return s.Sanitize(t.Context(), "t", SanitizeOptions{Rules: s.rulesFile(t, "keep: ['*']\n"+
					"tables: {"+columns+"}\n")}, nil)
			}
			for columns, check := range map[string]string{
				"person: {columns: {profile: hash}}": "person.profile",
				"legacy: {columns: {note: redact}}":  "legacy.price",
			} {
				_, err := sanitize(columns)
				if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), "does not load on") ||
					!strings.Contains(err.Error(), "violates the check "+check+";") {
					t.Errorf("%s: %v", columns, err)
				}
			}
			if all, err := s.Snapshots("t"); err != nil || len(all) != 1 {
				t.Errorf("%d snapshots after refused runs, %v", len(all), err)
			}
			made, err := sanitize("person: {columns: {email: email, profile: redact}}, past: {columns: {note: redact}}")
			if err != nil || !made.Proven || len(made.Warnings) != 0 {
				t.Fatalf("%+v, %v", made, err)
			}
			if _, err := s.Load(t.Context(), "t", LoadOptions{Snapshot: made.Name}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
