package postgres

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestStandby builds from a standby. A subset cannot be built there, because it needs temporary
// tables, and the error explains that.
func TestStandby(t *testing.T) {
	t.Parallel()
	raw, restart := servertest.CrashingPostgres(t)
	to := servertest.Postgres(t)
	psql(t, raw, script(t, "CREATE TABLE a (b int); INSERT INTO a VALUES (1); CREATE TABLE c (d int)"))
	folder := texts(t, raw, "SHOW data_directory")[0]
	if err := os.WriteFile(filepath.Join(folder, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	restart()
	d := chosen(t, raw, engine.Options{Jobs: 2, Choice: engine.Choice{Exclude: []string{"c"}}})
	if err := load(t, to, d, false); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, to); len(got) != 3 || got[`"public"."a"`] != "(1)" {
		t.Errorf("it has %v", got)
	}
	_, err := Engine{}.Dump(t.Context(), raw, &bytes.Buffer{}, engine.Options{Subset: &engine.Subset{Percent: 10}})
	if err == nil || !strings.Contains(err.Error(), "is read-only") {
		t.Error(err)
	}
}
