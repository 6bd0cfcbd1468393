package postgres

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// TestCondensedDumpIsTheSame checks that pg_restore writes the same SQL for a condensed dump as for
// the original dump.
func TestCondensedDumpIsTheSame(t *testing.T) {
	t.Parallel()
	url := various(t)
	raw, err := exec.CommandContext(t.Context(), filepath.Join(servertest.PostgresBin(), "pg_dump"), "-Fc", "-Z0",
		url).Output()
	if err != nil {
		t.Fatal(err)
	}
	var condensed, again bytes.Buffer
	counts, err := condense(bytes.NewReader(raw), nil, nil, &condensed)
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int64{"many": 30000, "large": 3, "none": 0, "empty": 7} {
		if got := counts[[2]string{"public", table}]; got.rows != want || (got.bytes > 0) != (want > 0) {
			t.Errorf("%s: %+v, not %d rows", table, got, want)
		}
	}
	if saved := len(raw) - condensed.Len(); saved < 4*30000 {
		t.Errorf("only %d bytes fewer", saved)
	}
	if asSQL(t, raw) != asSQL(t, condensed.Bytes()) {
		t.Error("the condensed dump holds something else")
	}
	if _, err := condense(bytes.NewReader(condensed.Bytes()), nil, nil, &again); err != nil ||
		!bytes.Equal(again.Bytes(), condensed.Bytes()) {
		t.Errorf("condensed again it differs: %v", err)
	}
}

// various returns a database with large objects and with tables that have many rows, large rows or
// no rows.
func various(t *testing.T) (url string) {
	t.Helper()
	url = servertest.Postgres(t)
	conn := connectTo(t, url)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(),
		`CREATE TABLE many (id int, words text); INSERT INTO many SELECT n, E'tab\t, line\n, \\.\n' || n
		FROM generate_series(1, 30000) n;
		CREATE TABLE large (content text); INSERT INTO large SELECT repeat(n || ' ', 900000)
			FROM generate_series(1, 3) n;
		CREATE TABLE none (id int); CREATE TABLE empty (); INSERT INTO empty SELECT FROM generate_series(1, 7);
		SELECT lo_from_bytea(0, convert_to(repeat('large object ', 9000), 'UTF8')), lo_create(0);`); err != nil {
		t.Fatal(err)
	}
	return url
}

// asSQL returns a dump as SQL.
func asSQL(t *testing.T, dump []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dump")
	if err := os.WriteFile(file, dump, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(servertest.PostgresBin(), "pg_restore"), "-f", "-",
		file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, `\restrict`) && !strings.HasPrefix(line, `\unrestrict`) { // each has a random word
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// A dump of an unknown version is copied unchanged. A truncated dump is an error.
func TestCondenseKeepsWhatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newer := "PGDMP\x01\x63\x00\x04\x08\x01 something of the future"
	if counts, err := condense(strings.NewReader(newer), nil, nil, &out); err != nil || counts != nil ||
		out.String() != newer {
		t.Errorf("%v, %v, %q", counts, err, out.String())
	}
	out.Reset()
	if _, err := condense(strings.NewReader("PGDMP\x01\x0e"), nil, nil, &out); err == nil || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
	full := errors.New("full")
	if _, err := condense(strings.NewReader(newer), nil, nil, &errWriter{w: refusing{full}}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }
