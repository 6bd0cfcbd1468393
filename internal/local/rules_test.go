package local

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"snap"
	"snap/internal/archive"
	"snap/internal/sanitize"
	"snap/internal/servertest"
)

// rulesFile writes a rules file.
func (s shop) rulesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSanitizeByRules(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	run(t, s.source,
		`CREATE TABLE note (id INTEGER PRIMARY KEY, who TEXT, body TEXT); INSERT INTO note
		SELECT id, email, 'note ' || id FROM customer;
		CREATE TRIGGER no AFTER UPDATE ON customer BEGIN SELECT RAISE(ABORT, 'must not fire'); END;
		CREATE VIRTUAL TABLE search USING fts5(words); INSERT INTO search SELECT email FROM customer
			LIMIT 50; ANALYZE; CREATE INDEX byemail ON customer (email); ANALYZE`)
	original, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const head = "keep: ['*.id', 'purchase.*', 'note.body']\ntables:\n  customer: {columns: {email: email}}\n"
	sanitize := func(rules string) (Snapshot, error) {
		return s.Sanitize(t.Context(), shopTarget, SanitizeOptions{Rules: s.rulesFile(t, rules)}, nil)
	}
	for name, c := range map[string]struct{ rules, want string }{
		"a column without a rule": {head + "  search: {columns: {words: redact}}\n", "note.who"},
		"the same values in a kept column": {head +
			"  note: {columns: {who: keep}}\n  search: {columns: {words: redact}}\n",
			"those of customer.email in note.who (rows: at least 200)"},
		"the same values in a full-text index": {head +
			"  note: {columns: {who: email}}\n  search: {columns: {words: keep}}\n",
			"those of customer.email in search.words (rows: at least 50)"},
	} {
		if _, err := sanitize(c.rules); snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, _ := s.Snapshots(""); len(all) != 1 {
		t.Errorf("a refused run left %d snapshots", len(all))
	}
	clean, err := sanitize(head + "  note: {columns: {who: email}}\n  search: {columns: {words: redact}}\n")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Verify(t.Context(), clean.Name, nil)
	if how := m.Sanitized; err != nil || how.From != original.Name || how.Masked != 3 || how.Kept != 6 ||
		len(how.Rules) != 64 || how.LeakScan.Values == 0 {
		t.Errorf("manifest %+v, %v", m.Sanitized, err)
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Snapshot: clean.Name}, nil); err != nil {
		t.Fatal(err)
	}
	if got := query(t, s.destination,
		"SELECT count(*) FROM customer JOIN note ON who = email WHERE customer.id = note.id"); got != "2000" {
		t.Errorf("%s rows join, want 2000", got)
	}
	if got := query(t, s.destination,
		"SELECT count(*) || ' ' || count(DISTINCT email) FROM customer "+
			"WHERE email LIKE '%@example.com'"); got != "2000 "+
		"2000" {
		t.Errorf("masked and different: %s", got)
	}
	raw, err := os.ReadFile(s.destination)
	if err != nil || bytes.Contains(raw, []byte("real.example")) {
		t.Errorf("an original value is in the file (%v)", err)
	}
	again, err := sanitize(head + "  note: {columns: {who: email}}\n  search: {columns: {words: redact}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if content(t, again) != content(t, clean) {
		t.Error("the same rules and key gave another result")
	}
}

// content returns the dump of a snapshot.
func content(t *testing.T, s Snapshot) string {
	t.Helper()
	r, err := archive.Open(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, err := r.Section(dumpSection)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every PostgreSQL sample database is sanitized by the rules that are suggested for
// it. The copy loads, has every row, and has none of the originals.
func TestSanitizeSamplesByRules(t *testing.T) {
	t.Parallel()
	samples := servertest.Samples(t)
	chinook, err := os.ReadFile(filepath.Join(samples, "chinook", "Chinook_PostgreSql.sql"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "chinook.sql")
	text := regexp.MustCompile(`(?mi)^(DROP DATABASE|CREATE DATABASE|\\c ).*$`).ReplaceAll(chinook, nil)
	if err := os.WriteFile(own, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files  []string
		table  string
		column string
		kept   string
	}{
		"chinook": {[]string{own}, "customer", "email",
			"SELECT string_agg(t::text, '|' ORDER BY invoice_line_id) FROM invoice_line t"},
		"northwind": {[]string{filepath.Join(samples, "northwind-postgres", "northwind.sql")}, "customers", "phone",
			"SELECT string_agg(t::text, '|' ORDER BY order_id, product_id) FROM order_details t"},
		"sakila": {[]string{filepath.Join(samples, "sakila-postgres", "schema.sql"),
			filepath.Join(samples, "sakila-postgres", "data-copy.sql")}, "customer", "email",
			"SELECT string_agg(t::text, '|' ORDER BY payment_id) FROM payment t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := servertest.Postgres(t), servertest.Postgres(t)
			for _, file := range c.files {
				if out, err := exec.Command(filepath.Join(servertest.PostgresBin(), "psql"), "-X", "-q", "-v",
					"ON_ERROR_STOP=1",
					"-o", os.DevNull, "-d", from, "-f", file).CombinedOutput(); err != nil {
					t.Fatalf("psql: %v\n%s", err, out)
				}
			}
			s := newShop(t)
			if err := s.AddTarget(Target{Name: "pg", Source: from, Destination: to}); err != nil {
				t.Fatal(err)
			}
			original, err := s.Build(t.Context(), "pg", BuildOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			clean := s.sanitizeAsSuggested(t, "pg")
			if _, err := s.Load(t.Context(), "pg", LoadOptions{Snapshot: clean.Name}, nil); err != nil {
				t.Fatal(err)
			}
			if countsOf(clean.Tables) != countsOf(original.Tables) {
				t.Errorf("rows %v\nwant %v", clean.Tables, original.Tables)
			}
			a, b := texts(t, from, c.kept), texts(t, to, c.kept)
			if a != b || len(a) < 1000 {
				t.Errorf("a kept table differs (%d and %d bytes)", len(a), len(b))
			}
			values := fmt.Sprintf("SELECT string_agg(%s, '|') FROM %s", c.column, c.table)
			masked := map[string]bool{}
			for _, v := range strings.Split(texts(t, to, values), "|") {
				masked[v] = true
			}
			for _, v := range strings.Split(texts(t, from, values), "|") {
				if masked[v] {
					t.Errorf("%s.%s still has %q", c.table, c.column, v)
				}
			}
		})
	}
}

var (
	undecided = regexp.MustCompile(`: decide( .*)?\n`)
	wouldHold = regexp.MustCompile(`: decide .*; (\S+) would work\n`)
)

// firstRules returns the rules that are suggested for a target.
func (s shop) firstRules(t *testing.T, target string) (text []byte, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rules.yaml")
	if err := s.SuggestRules(t.Context(), target, "", path, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text, path
}

// sanitizeAsSuggested sanitizes by the suggested rules. It redacts undecided columns, or uses the
// suggested mask where there is one.
func (s shop) sanitizeAsSuggested(t *testing.T, target string) Snapshot {
	t.Helper()
	return s.sanitizeAsDecided(t, target, "{mask: redact, shared: true}")
}

// sanitizeAsDecided sanitizes by the suggested rules, with a decision for the undecided columns
// without a suggested mask.
func (s shop) sanitizeAsDecided(t *testing.T, target, decision string) Snapshot {
	t.Helper()
	text, path := s.firstRules(t, target)
	if undecided.Match(text) {
		if _, err := s.Sanitize(t.Context(), target, SanitizeOptions{Rules: path},
			nil); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("undecided rules: %v", err)
		}
	}
	decided := wouldHold.ReplaceAll(text, []byte(": {mask: $1, shared: true}\n"))
	decided = undecided.ReplaceAll(decided, []byte(": "+decision+"\n"))
	clean, err := s.Sanitize(t.Context(), target, SanitizeOptions{Rules: s.rulesFile(t, string(decided))}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, decided)
	}
	return clean
}

// countsOf lists the tables and their numbers of rows.
func countsOf(tables []archive.Table) string {
	var b strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&b, "%s.%s %d\n", t.Schema, t.Name, t.Rows)
	}
	return b.String()
}

func texts(t *testing.T, url, query string) (v string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A masked value that happens to equal another row's original does not stop a run, whatever its stored
// form and however often the file contains it.
func TestCoincidencesDoNotStop(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	path := filepath.Join(s.dir, "cars.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	statements := "CREATE TABLE car (plate TEXT PRIMARY KEY); CREATE INDEX again ON car (lower(plate));"
	for c := 'A'; c <= 'Z'; c++ { // the mask "key" permutes them among themselves
		statements += fmt.Sprintf(" INSERT INTO car VALUES ('%c\\-/-/-/-');", c)
	}
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
	if err := s.AddTarget(Target{Name: "cars", Source: "sqlite://" + path}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), "cars", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	rules := s.rulesFile(t, "tables: {car: {columns: {plate: key}}}\n")
	if _, err := s.Sanitize(t.Context(), "cars", SanitizeOptions{Rules: rules}, nil); err != nil {
		t.Error(err)
	}
}

// The mask "key" keeps unique integers of every size unique, as integers of the same length and
// sign, and foreign keys still match.
func TestKeyMasksIntegersOfEverySize(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	path := filepath.Join(s.dir, "numbers.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	numbers := []int64{math.MinInt64, math.MinInt64 + 1, -1<<62 - 1, -1 << 62, -1<<62 + 1, -1 << 31, -1<<31 - 1, -1, 0,
		1, 1<<31 - 1, 1 << 31, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for n := range int64(40) { // so that some new values are old values of other rows
		numbers = append(numbers, 100+n, -100-n, 1<<31+10*n+7, math.MaxInt64-1000*n-7, math.MinInt64+1000*n+7)
	}
	rules, names := "tables:\n", []string{}
	for i, kind := range []string{"INTEGER", "INT", "BIGINT", "NUMERIC"} {
		for j, option := range []string{"", "STRICT", "WITHOUT ROWID"} {
			if option == "STRICT" && i > 1 {
				continue
			}
			name := fmt.Sprintf("t%d%d", i, j)
			names = append(names, name)
			rules += fmt.Sprintf("  %[1]s: {columns: {id: key, u: key}}\n  %[1]s_child: {columns: {id: keep, "+
				"parent: key, of: key}}\n", name)
			for _, statement := range []string{
				"CREATE TABLE %[1]s (id %[2]s PRIMARY KEY, u %[2]s UNIQUE) %[3]s",
				"CREATE TABLE %[1]s_child (id INTEGER PRIMARY KEY, parent %[2]s REFERENCES %[1]s (id), " +
					"of %[2]s REFERENCES %[1]s (u))",
				"INSERT INTO %[1]s SELECT value, value FROM json_each('%[4]s')",
				"INSERT INTO %[1]s_child (parent, of) SELECT id, u FROM %[1]s",
			} {
				list, _ := json.Marshal(numbers)
				if _, err := db.Exec(fmt.Sprintf(statement, name, kind, option, list)); err != nil {
					t.Fatal(statement, err)
				}
			}
		}
	}
	if err := s.AddTarget(Target{Name: "numbers", Source: "sqlite://" + path,
		Destination: "sqlite://" + s.destination}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), "numbers", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	clean, err := s.Sanitize(t.Context(), "numbers", SanitizeOptions{Rules: s.rulesFile(t, rules)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), "numbers", LoadOptions{Snapshot: clean.Name}, nil); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%[1]d %[1]d %[1]d", len(numbers))
	for _, name := range names {
		if got := query(t, s.destination, fmt.Sprintf("SELECT count(*) || ' ' || count(DISTINCT p.u) || ' ' || "+
			"sum(typeof(p.id) = 'integer' AND typeof(p.u) = 'integer') "+
			"FROM %[1]s_child AS c JOIN %[1]s AS p ON p.id = c.parent AND p.u = c.of", name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		forms := fmt.Sprintf("SELECT length(id) || ' ' || (id < 0) || ' ' || count(*) FROM %s "+
			"GROUP BY length(id), id < 0", name)
		if got, want := query(t, s.destination, forms), query(t, path, forms); got != want {
			t.Errorf("%s: lengths and signs %s, want %s", name, got, want)
		}
	}
}

// Concurrent commands that need this machine's first mask key get the same key.
// Only its owner can read it, and a damaged key is not replaced.
func TestMaskKeyOfThisMachine(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var keys [8]string
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			key, err := s.maskKey(&sanitize.Rules{})
			if err != nil {
				t.Error(err)
			}
			keys[i] = string(key)
		})
	}
	all.Wait()
	for _, key := range keys {
		if len(key) != 64 || key != keys[0] {
			t.Errorf("the keys are %q", keys)
		}
	}
	path := filepath.Join(s.data, "mask.key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := s.maskKey(&sanitize.Rules{}); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("a damaged key: %q, %v", key, err)
	}
}

// A key that is too short, or whose environment variable is not set, is refused. The error names
// its position in the rules file.
func TestBadMaskKeysNameThePlace(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for key, want := range map[string]string{"short": "shorter than 16 characters",
		"${NO_SUCH_KEY}": "the key uses the environment variable NO_SUCH_KEY, which is not set"} {
		path := s.rulesFile(t, "\nkey: "+key+"\n")
		rules, err := sanitize.ReadRules(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.maskKey(rules); snap.CodeOf(err) != snap.CodeUsage ||
			!strings.Contains(err.Error(), path+":2:1: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// The SQLite database of the sample chinook is also sanitized by the rules that are suggested for
// it.
func TestSanitizeSQLiteSampleByRules(t *testing.T) {
	t.Parallel()
	sample := filepath.Join(servertest.Samples(t), "chinook", "Chinook_Sqlite.sqlite")
	s := newShop(t)
	to := filepath.Join(s.dir, "chinook copy.db")
	if err := s.AddTarget(Target{Name: "chinook", Source: "sqlite://" + sample, Destination: "sqlite://" +
		to}); err != nil {
		t.Fatal(err)
	}
	original, err := s.Build(t.Context(), "chinook", BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	clean := s.sanitizeAsSuggested(t, "chinook")
	if _, err := s.Load(t.Context(), "chinook", LoadOptions{Snapshot: clean.Name}, nil); err != nil {
		t.Fatal(err)
	}
	if countsOf(clean.Tables) != countsOf(original.Tables) {
		t.Errorf("rows %v\nwant %v", clean.Tables, original.Tables)
	}
	raw, err := os.ReadFile(to)
	if err != nil || bytes.Contains(raw, []byte("luisg@embraer.com.br")) {
		t.Errorf("an original value is in the file (%v)", err)
	}
	const kept = "SELECT InvoiceLineId||' '||TrackId||' '||UnitPrice FROM InvoiceLine"
	if query(t, to, kept) != query(t, sample, kept) {
		t.Error("a kept table differs")
	}
}
