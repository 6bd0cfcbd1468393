// Package corpus builds, loads, samples and masks databases with schemas from other projects. For
// each kind of server, it also uses a schema of our own with every kind of object in the server's
// manual. An oracle compares the results: the database's own dump program for the definitions, and
// queries for the rows.
//
// `make corpus` unpacks the Debian packages with the schemas, downloads Go modules with more, and
// runs these tests. SNAP_CORPUS names the folders of both, SNAP_CORPUS_SERVERS the servers, such as
// "postgres mysql-9.7", and SNAP_CORPUS_MORE further schemas, such as
// "postgres=/tmp/structure.sql".
package corpus

import (
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"snap/internal/local"
	"snap/internal/servertest"
)

func TestCorpus(t *testing.T) {
	folders := filepath.SplitList(os.Getenv("SNAP_CORPUS"))
	if len(folders) == 0 {
		t.Skip("needs the packages with schemas: run make corpus")
	}
	servers := strings.Fields(os.Getenv("SNAP_CORPUS_SERVERS"))
	if len(servers) == 0 {
		servers = []string{"postgres", "sqlite", "mariadb", "mysql-8.0", "mysql-9.7", "mariadb-11.8"}
	}
	all := slices.Concat(projects(), hostile(), more(os.Getenv("SNAP_CORPUS_MORE")))
	for _, server := range servers {
		for _, p := range all {
			if p.servers != kindOf(server) || p.only != "" && !strings.HasPrefix(server, p.only) {
				continue
			}
			t.Run(server+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				paths := p.paths(folders)
				if len(paths) == 0 {
					t.Skipf("no file matches %v", p.files)
				}
				examine(t, server, p, paths)
			})
		}
	}
}

func kindOf(server string) string {
	if slices.Contains(servertest.MySQLServers(), server) {
		return "mysql"
	}
	return server
}

// hostile returns our own schemas.
func hostile() (all []project) {
	for _, kind := range []string{"postgres", "sqlite", "mysql", "mariadb"} {
		path, _ := filepath.Abs("testdata/" + kind + ".sql")
		p := project{name: "hostile", servers: kind, files: []string{path}}
		if kind == "mysql" || kind == "mariadb" {
			p.servers, p.only = "mysql", kind
		}
		all = append(all, p)
	}
	return all
}

// more returns the schemas in a list of KIND=FILE.
func more(list string) (all []project) {
	for _, entry := range strings.Fields(list) {
		kind, path, _ := strings.Cut(entry, "=")
		all = append(all, project{name: filepath.Base(path), servers: kind, files: []string{path}})
	}
	return all
}

// examine takes one schema through everything.
func examine(t *testing.T, server string, p project, paths []string) {
	from, to := open(t, server), open(t, server)
	if from.kind == "mysql" { // as the schemas' manuals say
		from.script(t, "ALTER DATABASE "+from.url[strings.LastIndex(from.url, "/")+1:]+" CHARACTER SET utf8mb4")
	}
	for _, path := range paths {
		from.script(t, p.text(content(t, path)))
	}
	empty := fill(t, from, 1)
	if from.kind == "postgres" { // a load computes them
		for _, r := range from.query(t, "SELECT format('REFRESH MATERIALIZED VIEW %I.%I', schemaname, "+
			"matviewname) FROM pg_matviews WHERE ispopulated") {
			from.script(t, r[0])
		}
	}
	from.SetMaxIdleConns(0) // a load replaces a database, which nobody may be connected to
	to.SetMaxIdleConns(0)
	want := from.state(t)
	rows := 0
	for name := range want.rows {
		rows += want.count(name)
	}
	t.Logf("%d tables, %d rows; empty: %v", len(want.rows), rows, empty)
	a := agent(t, local.Target{Name: "corpus", Source: from.url, Destination: to.url})
	load := func(what string, s local.Snapshot) (state, bool) {
		if _, err := a.Load(t.Context(), "corpus", local.LoadOptions{Snapshot: s.Name, Terminate: true},
			nil); err != nil {
			t.Errorf("%s: the load: %v", what, err)
			return state{}, false
		}
		return to.state(t), true
	}
	whole, err := a.Build(t.Context(), "corpus", local.BuildOptions{}, nil)
	if err != nil {
		t.Fatalf("the build: %v", err)
	}
	if _, err := a.Verify(t.Context(), whole.Name, nil); err != nil {
		t.Errorf("the check of the snapshot: %v", err)
	}
	if got, ok := load("the whole", whole); ok {
		same(t, "the whole", want, got)
	}
	for _, percent := range []float64{1, 10, 50, 100} {
		what := fmt.Sprintf("%v %%", percent)
		s, err := a.Build(t.Context(), "corpus", local.BuildOptions{Subset: local.SubsetSpec{Percent: percent}}, nil)
		if err != nil {
			t.Errorf("%s: the build: %v", what, err)
			continue
		}
		got, ok := load(what, s)
		if !ok {
			continue
		}
		partOf(t, what, to, want, got, percent)
		if percent == 100 {
			for name := range want.rows {
				if got.count(name) != want.count(name) {
					t.Errorf("100 %%: %s has %d of %d rows", name, got.count(name), want.count(name))
				}
			}
		}
	}
	masked(t, a, to, whole, want, load)
	same(t, "the source afterwards", want, from.state(t))
}

var (
	undecided = regexp.MustCompile(`: decide( .*)?\n`)
	wouldHold = regexp.MustCompile(`: decide .*; (\S+) would work\n`)
)

// masked masks a snapshot by the rules that the program proposes. Afterwards, kept columns have the
// same values as before, and the other columns have no original value that a leak scan would find.
func masked(t *testing.T, a *local.Agent, d database, whole local.Snapshot, want state, load func(string,
	local.Snapshot) (state, bool)) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := a.SuggestRules(t.Context(), "corpus", whole.Name, path, nil); err != nil {
		t.Errorf("the first rules: %v", err)
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = wouldHold.ReplaceAll(text, []byte(": {mask: $1, shared: true}\n"))
	text = undecided.ReplaceAll(text, []byte(": {mask: redact, shared: true}\n"))
	text = append([]byte("schema_literals: keep\n"), text...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := a.Sanitize(t.Context(), "corpus", local.SanitizeOptions{Snapshot: whole.Name, Rules: path}, nil)
	if err != nil && strings.Contains(err.Error(), "original values are still") {
		t.Logf("sanitize refuses the draft, as it should: %.300s", err)
		return
	}
	if err != nil {
		t.Errorf("sanitize: %v", err)
		return
	}
	got, ok := load("sanitized", s)
	if !ok {
		return
	}
	sameSchema(t, "sanitized", want, got)
	var rules struct {
		Tables map[string]struct {
			Columns map[string]any `yaml:"columns"`
		} `yaml:"tables"`
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for name := range want.rows {
		if d.computed(t, name) {
			continue
		}
		if want.count(name) != got.count(name) {
			t.Errorf("sanitized: %s has %d of %d rows", name, got.count(name), want.count(name))
		}
		columns := rules.Tables[plain.ReplaceAllString(name, "")].Columns
		for column, rule := range columns {
			key := name + "." + column
			if settings, ok := rule.(map[string]any); ok && settings["mask"] == "keep" {
				rule = "keep"
			}
			switch before, after := want.columns[key], got.columns[key]; {
			case rule == "keep" && !maps.Equal(before, after):
				t.Errorf("sanitized: %s is kept and differs%s", key, columnsOf(want, got, name))
			case rule != "keep":
				changed++
				left := slices.DeleteFunc(slices.Collect(maps.Keys(before)), func(v string) bool {
					empty := strings.Trim(v, "0-: ") == "" // MySQL's empty time
					return d.length(v) < longText || after[v] == 0 || empty
				})
				if len(left) > 0 {
					t.Errorf("sanitized: %s, masked by %v, still has %.100q", key, rule, left)
				}
			}
		}
	}
	t.Logf("%d columns masked", changed)
}

// longText is the length from which a masked value does not equal an original one by chance.
const longText = 12

// length returns the number of bytes of a value in a state, in which values of SQLite are
// hexadecimal.
func (d database) length(v string) int {
	digits, ok := strings.CutPrefix(v, "text")
	if d.kind != "sqlite" || !ok {
		return len(v)
	}
	return len(digits) / 2
}

// plain removes quotes from the name of a table.
var plain = regexp.MustCompile("[\"`]")

func agent(t *testing.T, target local.Target) *local.Agent {
	dir := t.TempDir()
	a, err := local.Open(local.Options{ConfigFile: filepath.Join(dir, "config.yaml"), DataDir: filepath.Join(dir,
		"data"),
		Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.AddTarget(target); err != nil {
		t.Fatal(err)
	}
	return a
}

// open returns an empty database.
func open(t *testing.T, server string) database {
	d := database{kind: kindOf(server)}
	var driver, source string
	switch d.kind {
	case "postgres":
		d.url = servertest.Postgres(t)
		driver, source = "pgx", d.url
	case "mysql":
		d.my, d.url, driver = server, servertest.MySQL(t, server), "mysql"
		host, name, _ := strings.Cut(strings.TrimPrefix(d.url, "mysql://root@"), "/")
		source = "root@tcp(" + host + ")/" + name + "?multiStatements=true"
	default:
		path := filepath.Join(t.TempDir(), "corpus.db")
		d.url, driver, source = "sqlite://"+path, "sqlite", path+"?_pragma=synchronous(off)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	d.DB = db
	return d
}

// content reads a file, which may be compressed.
func content(t *testing.T, path string) string {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// script runs SQL with the database's own client, as its authors do.
func (d database) script(t *testing.T, text string) {
	t.Helper()
	var cmd *exec.Cmd
	switch d.kind {
	case "postgres":
		cmd = exec.CommandContext(t.Context(), "psql", "-X", "-q", "-o", os.DevNull, "-d", d.url)
	case "mysql":
		cmd = d.client("", "--force", "--loose-commands", "--skip-comments") // for DELIMITER in MySQL 9
	default:
		if _, err := d.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		return
	}
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "ERROR") {
		t.Fatalf("the script: %v: %.2000s", err, out)
	}
}

// client returns a client program of a MySQL server, connected to the database: its shell, or "dump".
func (d database) client(which string, args ...string) *exec.Cmd {
	folder, names := "", map[string]string{"": "mariadb", "dump": "mariadb-dump"}
	if d.my != "mariadb" {
		folder = filepath.Join("..", "..", "bin", d.my, "bin")
	}
	if strings.HasPrefix(d.my, "mysql") {
		names = map[string]string{"": "mysql", "dump": "mysqldump"}
	}
	host, name, _ := strings.Cut(strings.TrimPrefix(d.url, "mysql://root@"), "/")
	at, port, _ := strings.Cut(host, ":")
	all := append([]string{"--no-defaults", "-h", at, "-P", port, "-u", "root", "--default-character-set=utf8mb4"},
		args...)
	if strings.HasPrefix(d.my, "mysql") && which == "dump" {
		all = append(all, "--set-gtid-purged=OFF", "--column-statistics=0")
	}
	program := filepath.Join(folder, names[which])
	if folder == "" {
		program = names[which]
	}
	return exec.CommandContext(context.Background(), program, append(all, name)...)
}
