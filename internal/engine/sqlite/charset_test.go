package sqlite

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/engine"
)

// An original value is found in a file of any encoding.
func TestSamplesAreFoundInTheFile(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"UTF-8", "UTF-16le", "UTF-16be"} {
		path := filepath.Join(t.TempDir(), "from.db")
		makeDB(t, path,
			"PRAGMA encoding = '"+encoding+"'; CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('Grüße aus 東京 😀')")
		d, raw := dumped(t, path)
		c, err := Engine{}.Inspect(t.Context(), d, 5, engine.Options{Jobs: 1, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		stands := c.Tables[0].Samples[0]
		if c.Stored != nil {
			stands = c.Stored(stands[0])
		}
		if !strings.Contains(string(raw), stands[0]) {
			t.Errorf("%s: %q is not in the file", encoding, stands)
		}
	}
}

// A name that is not valid text is written in a form that manifests can hold,
// and that rules and subsets understand too.
func TestNamesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from,
		"CREATE TABLE \"caf\xe9\" (id INTEGER PRIMARY KEY, \"na\xefve\" TEXT); INSERT INTO \"caf\xe9\" VALUES (1, "+
			"'one'), "+
			"(2, CAST(x'ff' AS TEXT))")
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), "sqlite://"+from, &b,
		engine.Options{Jobs: 1, TempDir: dir, Subset: &engine.Subset{Where: map[string]string{`caf\xE9`: "id = 1"}}})
	if err != nil {
		t.Fatal(err)
	}
	d := dumpOf(b.Bytes(), info)
	if told := d.Info.Tables[0]; told.Name != `caf\xE9` || told.Columns[1].Name != `na\xEFve` ||
		told.Rows != 1 || told.Of != 2 {
		t.Errorf("told is %+v", told)
	}
	plan := keepAll(t, d)
	plan.Tables[[2]string{"", `caf\xE9`}].Columns[`na\xEFve`] = reversed
	if err := rewritten(t, d, plan, to); err != nil {
		t.Fatal(err)
	}
	db, err := open(to, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got string
	if err := db.QueryRow("SELECT \"na\xefve\" FROM \"caf\xe9\"").Scan(&got); err != nil || got != "-eno" {
		t.Errorf("%q, %v", got, err)
	}
}
