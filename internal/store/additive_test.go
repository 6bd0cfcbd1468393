package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// baseline is the schema of the first release. Earlier schemas never ran next to an older release.
const baseline = "0005"

// contracts are the migrations that remove something. Each has the reason why no release that may
// still run next to it uses the removed part.
var contracts = map[string]string{}

// Old and new replicas run side by side for one release, so a migration only
// adds. A removal waits until a later release, when nothing uses the removed
// part, and is listed in contracts.
func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*/*.sql")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file)[:4] <= baseline || contracts[filepath.Base(file)] != "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range breaks(string(text)) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// The rule above finds each kind of migration that breaks an older program.
func TestMigrationsThatBreakAreFound(t *testing.T) {
	t.Parallel()
	for text, breaking := range map[string]bool{
		"CREATE TABLE a(x bigint NOT NULL); CREATE UNIQUE INDEX a_x ON a(x);": false,
		"ALTER TABLE users ADD COLUMN nick text;":                             false,
		"ALTER TABLE users ADD COLUMN n bigint NOT NULL DEFAULT 0;":           false,
		"CREATE INDEX users_name ON users(name);":                             false,
		"-- DROP TABLE users\nCREATE TABLE b(x text);":                        false,
		"ALTER TABLE users ADD COLUMN n bigint NOT NULL;":                     true,
		"CREATE UNIQUE INDEX users_name ON users(name);":                      true,
		"ALTER TABLE users ADD CONSTRAINT c CHECK (name <> '');":              true,
		"ALTER TABLE users DROP COLUMN name;":                                 true,
		"alter table users rename column name to label;":                      true,
		"ALTER TABLE users ALTER COLUMN name SET NOT NULL;":                   true,
		"ALTER TABLE users ALTER COLUMN name TYPE bytea;":                     true,
		"DROP TABLE users;":       true,
		"DROP INDEX users_email;": false, // slower, not wrong
		"CREATE TRIGGER t BEFORE INSERT ON users EXECUTE FUNCTION f();":        true,
		"-- +goose Up\nCREATE TABLE c(x text);\n-- +goose Down\nDROP TABLE c;": true,
	} {
		if found := breaks(text); (len(found) > 0) != breaking {
			t.Errorf("%q: %v", text, found)
		}
	}
}

var (
	sqlComment = regexp.MustCompile(`--[^\n]*`)
	newTable   = regexp.MustCompile(`(?i)CREATE TABLE (\w+)`)
	uniqueOn   = regexp.MustCompile(`(?i)CREATE UNIQUE INDEX \w+ ON (\w+)`)
	addColumn  = regexp.MustCompile(`(?i)ADD (COLUMN )?\w+ [^,;]*NOT NULL`)
	takesAway  = regexp.MustCompile(`(?i)\b(DROP (TABLE|COLUMN|VIEW)|RENAME|ADD CONSTRAINT|SET NOT NULL|` +
		`ALTER COLUMN \w+ (SET DATA )?TYPE|CREATE (OR REPLACE )?(TRIGGER|RULE|FUNCTION)|TRUNCATE)\b`)
)

// breaks returns the statements of a migration that would break an older replica.
func breaks(text string) (problems []string) {
	if strings.Contains(text, "+goose Down") {
		problems = append(problems,
			"it has a Down part: a release is taken back by running the one before on the new schema")
	}
	text = sqlComment.ReplaceAllString(text, "")
	made := map[string]bool{}
	for _, m := range newTable.FindAllStringSubmatch(text, -1) {
		made[m[1]] = true
	}
	for _, statement := range strings.Split(text, ";") {
		statement = strings.Join(strings.Fields(statement), " ")
		if found := takesAway.FindString(statement); found != "" {
			problems = append(problems, found+": an older replica may use what changes")
		}
		if addColumn.MatchString(statement) && strings.Contains(strings.ToUpper(statement), "ALTER TABLE") &&
			!strings.Contains(strings.ToUpper(statement), "DEFAULT") {
			problems = append(problems, "a column that must be given: an older replica does not give it")
		}
		if m := uniqueOn.FindStringSubmatch(statement); m != nil && !made[m[1]] {
			problems = append(problems, "a new unique index: an older replica may write what it forbids")
		}
	}
	return problems
}

// special are features of PostgreSQL that compatible databases are known to lack or to implement
// differently.
var special = regexp.MustCompile(`(?i)\b(pg_\w+(?:\(|\b)|to_regclass|LOCK TABLE|LISTEN|NOTIFY|SKIP LOCKED|FOR SHARE|` +
	`INCLUDE|CREATE (?:OR REPLACE )?(?:FUNCTION|TRIGGER|EXTENSION)|ctid|xmin|tsvector|plan_cache_mode|` +
	`random_page_cost|SessionLocker|CopyFrom\(|LATERAL|lock_timeout|idle_in_transaction_session_timeout|` +
	`tcp_user_timeout|statement_timeout|setval|n_distinct)\b?`)

// Features that other databases lack are used only with a note in docs/operations.md.
func TestSpecialFeaturesAreNoted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("migrations/postgres/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(servertest.Root(t), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, there := strings.Cut(string(page), "### PostgreSQL-compatible databases")
	if !there {
		t.Fatal("docs/operations.md has no section for databases that speak PostgreSQL's protocol")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var used []string
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code := regexp.MustCompile(`(?m)^\s*(//|--).*$`).ReplaceAllString(string(text), "")
		for _, found := range special.FindAllString(code, -1) {
			found = strings.TrimSuffix(found, "(")
			if !slices.Contains(used, found) {
				used = append(used, found)
			}
		}
	}
	if len(used) == 0 {
		t.Error("nothing special is found, which cannot be")
	}
	for _, feature := range used {
		if !strings.Contains(section, "`"+feature+"`") {
			t.Errorf("docs/operations.md does not note %s", feature)
		}
	}
}
