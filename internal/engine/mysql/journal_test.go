package mysql

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// Other accounts of a server may be hostile and may be able to write to the databases of loads.
func TestHostileAccounts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		own, prod, mallory := withMallory(t, server)
		plantedJournals(t, own, prod, mallory)
		changedJournals(t, own, prod, mallory)
		journalsOfReplacedDatabases(t, server, own, mallory)
		triggersKeepTheirOwner(t, server, own, mallory)
	})
}

// withMallory starts a server with two databases, which are named own and prod. It returns their
// URLs for root, and the URL of own for the account mallory, which is allowed to load into it.
func withMallory(t *testing.T, server string) (own, prod, mallory string) {
	t.Helper()
	own = servertest.OwnMySQL(t, server, "")
	_, d := openURL(t, own)
	prod = d.named("prod").url()
	script(t, own, "CREATE TABLE old (a INT); CREATE DATABASE prod")
	for _, host := range []string{"'127.0.0.1'", "localhost"} {
		script(t, own, "CREATE USER mallory@"+host+"; GRANT ALL ON `snapcli\\_%`.* TO mallory@"+host+
			"; GRANT ALL ON own.* TO mallory@"+host)
	}
	script(t, prod, "CREATE TABLE users (id INT PRIMARY KEY, password TEXT); INSERT INTO users VALUES (1, 's3cret'); "+
		"CREATE VIEW v AS SELECT 1 AS a; CREATE PROCEDURE p() SELECT 1; "+
		"CREATE TRIGGER kept BEFORE INSERT ON users FOR EACH ROW SET NEW.id = 2")
	u, err := url.Parse(own)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("mallory")
	return own, prod, u.String()
}

// accounts returns the accounts of a server with their authentication methods.
func accounts(t *testing.T, url string) string {
	t.Helper()
	return strings.Join(sorted(t, url, "SELECT concat_ws('|', user, host, plugin, authentication_string) FROM "+
		"mysql.user"), "\n")
}

// swept begins a load, which first cleans up after killed loads, and drops it before the exchange.
// It returns the notices of that load.
func swept(t *testing.T, url string, d engine.Dump) (said []string) {
	t.Helper()
	s, err := Engine{}.Restore(t.Context(), url, d, engine.Options{Jobs: 1, Notice: func(text string) {
		said = append(said, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Drop(context.Background()); err != nil {
		t.Fatal(err)
	}
	return said
}

// The journal of another account of the server is foreign data. No load runs any part of it,
// whatever its content and seal, and it blocks no load.
func plantedJournals(t *testing.T, own, prod, mallory string) {
	t.Helper()
	d := emptyDump(t)
	before := contents(t, prod) + accounts(t, own)
	evil := definition{Name: "evil", On: "users",
		SQL: "CREATE TRIGGER evil BEFORE INSERT ON users FOR EACH ROW DELETE FROM own.old"}
	text, err := json.Marshal(journal{Place: "prod", Triggers: []definition{evil},
		New: structure{Triggers: []definition{evil},
			Defaults: []definition{{Name: "users", SQL: "password TEXT DEFAULT (load_file('/etc/passwd'))"}}},
		Account: account{User: "root", Host: "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{"before", "after"} {
		for _, sign := range []string{"TABLE %.whole (a INT)", "TABLE %.whole AS SELECT '" + digest(planted, text) +
			"' AS digest", "VIEW %.whole AS SELECT '" + digest(planted, text) + "' AS digest"} {
			at := quote(journalPrefix + planted)
			script(t, mallory, "CREATE DATABASE "+at+"; CREATE TABLE "+at+"."+side+
				" (part INT PRIMARY KEY, text MEDIUMBLOB NOT NULL); INSERT INTO "+at+"."+side+" VALUES (0, '"+
				escapeText(string(text))+"'); CREATE "+strings.ReplaceAll(sign, "%", at))
			said := swept(t, own, d)
			if after := contents(t, prod) + accounts(t, own); after != before {
				t.Fatalf("%s: the journal was run: %s", sign, difference(before, after))
			}
			if len(said) != 1 || !strings.Contains(said[0], journalPrefix+planted) {
				t.Errorf("%s: said %q", sign, said)
			}
			removed, err := Engine{}.RemoveLeftovers(t.Context(), own)
			if kept := side == "before"; kept == slices.Contains(removed, journalPrefix+planted) ||
				kept == (err == nil) ||
				kept && !strings.Contains(err.Error(), `triggers of the database "prod": evil`) {
				t.Errorf("%s %s: removed %q, %v", side, sign, removed, err)
			}
			script(t, own, "DROP DATABASE IF EXISTS "+at)
			if after := contents(t, prod) + accounts(t, own); after != before {
				t.Fatalf("%s: the journal was run by doctor: %s", sign, difference(before, after))
			}
		}
	}
}

const planted = "00000000000000aa"

// The journal of a user's own killed load is not run if somebody else has changed it.
func changedJournals(t *testing.T, own, prod, mallory string) {
	t.Helper()
	d := emptyDump(t)
	before := contents(t, prod)
	text, err := json.Marshal(journal{Place: "prod"}) // it drops all programs of prod
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"", "ALTER VIEW %.whole AS ", "ALTER DEFINER=root@localhost VIEW %.whole AS ",
		"CREATE OR REPLACE VIEW %.whole AS ", "CREATE OR REPLACE DEFINER=root@localhost VIEW %.whole AS "} {
		id := killedInSwap(t, own, d, true)
		at := quote(journalPrefix + id)
		script(t, mallory, "UPDATE "+at+".`after` SET text = '"+escapeText(string(text))+"'")
		if change != "" {
			db, _ := openURL(t, mallory)
			_, err := db.Exec(strings.ReplaceAll(change, "%", at) + "SELECT '" + digest(id, text) + "' AS digest")
			if err == nil && !strings.HasPrefix(change, "CREATE OR REPLACE VIEW") {
				t.Errorf("%s: the statement was not refused", change)
			}
			db.Close()
		}
		if said := swept(t, own, d); len(said) != 1 || !strings.Contains(said[0], journalPrefix+id) {
			t.Errorf("%s: said %q", change, said)
		}
		if after := contents(t, prod); after != before {
			t.Fatalf("%s: the journal was run: %s", change, difference(before, after))
		}
		if err := load(t, own, d, false); err != nil { // this load replaces the target of the killed one
			t.Fatal(err)
		}
		if _, err := (Engine{}).RemoveLeftovers(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		if left, err := (Engine{}).Leftovers(t.Context(), own); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	}
}

// A killed load of another account is not completed once its database has been replaced.
func journalsOfReplacedDatabases(t *testing.T, server, own, mallory string) {
	t.Helper()
	from := servertest.MySQL(t, server)
	script(t, from, "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT 5 AS a")
	d, _ := dumped(t, from)
	id := killedInSwap(t, mallory, emptyDump(t), true)
	if err := load(t, own, d, false); err != nil {
		t.Fatal(err)
	}
	if left, err := (Engine{}).Leftovers(t.Context(), own); err != nil || slices.Contains(left, journalPrefix+id) {
		t.Errorf("left: %q, %v", left, err)
	}
	swept(t, mallory, d)
	if got, want := contents(t, own), contents(t, from); got != want {
		t.Errorf("the loaded database changed: %s", difference(want, got))
	}
	// A journal with the only copy of triggers is kept, and its own account restores them.
	script(t, mallory, "CREATE TRIGGER only BEFORE INSERT ON t FOR EACH ROW SET @a = 1")
	id = killedInSwap(t, mallory, emptyDump(t), false)
	if removed, err := (Engine{}).RemoveLeftovers(t.Context(), own); slices.Contains(removed, journalPrefix+id) ||
		snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), `"own": only`) {
		t.Errorf("removed %q, %v", removed, err)
	}
	// The kept journal does not keep a clone from being recovered or dropped.
	const name = engine.ClonePrefix + "x"
	clone, others := strings.Replace(own, "/own", "/"+name, 1), strings.Replace(mallory, "/own", "/"+name, 1)
	script(t, own, "CREATE DATABASE "+name)
	if err := errors.Join(Engine{}.Recover(t.Context(), clone), Engine{}.Drop(t.Context(), clone)); err != nil {
		t.Error(err)
	}
	swept(t, mallory, d)
	if got := sorted(t, own,
		"SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'own'"); !slices.
		Equal(got, []string{"only"}) {
		t.Errorf("the triggers are %q", got)
	}
	if removed, err := (Engine{}).RemoveLeftovers(t.Context(), own); err != nil || len(removed) > 0 {
		t.Errorf("removed %q, %v", removed, err)
	}
	// The journals of a clone are removed when it is dropped.
	script(t, own, "CREATE DATABASE "+name)
	script(t, others, "CREATE TABLE t (a INT); CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @a = 1")
	id = killedInSwap(t, others, emptyDump(t), false)
	if err := (Engine{}).Drop(t.Context(), clone); err != nil {
		t.Error(err)
	}
	if left, err := (Engine{}).Leftovers(t.Context(), own); err != nil || slices.Contains(left, journalPrefix+id) {
		t.Errorf("left: %q, %v", left, err)
	}
}

// If a load ends before its exchange, the triggers of the old database are restored with their
// owners. Triggers of another account never run with the rights of the user who loads.
func triggersKeepTheirOwner(t *testing.T, server, own, mallory string) {
	t.Helper()
	from := servertest.MySQL(t, server)
	script(t, from, "CREATE TABLE t (a INT); CREATE TRIGGER evil BEFORE INSERT ON t FOR EACH ROW DELETE FROM t")
	d, _ := dumped(t, from)
	owners := func() string {
		return strings.Join(sorted(t, own, "SELECT concat_ws('|', trigger_name, definer) FROM "+
			"information_schema.triggers WHERE trigger_schema = 'own'"), "\n")
	}
	if err := load(t, own, as(d, engine.Foreign, true), false); err != nil {
		t.Fatal(err)
	}
	script(t, own, "CREATE DEFINER='nobody''s'@'%' TRIGGER other BEFORE DELETE ON t FOR EACH ROW SET @a = 1")
	before := owners()
	if !strings.Contains(before, "evil|snapcli_") {
		t.Fatalf("the triggers belong to %s", before)
	}
	killedInSwap(t, own, emptyDump(t), false)
	if got := owners(); got != "" {
		t.Fatalf("the triggers are still there: %s", got)
	}
	swept(t, own, emptyDump(t))
	if got := owners(); got != before {
		t.Errorf("the triggers belong to %s, before to %s", got, before)
	}
	// A user who is not allowed to create triggers for others does not remove the triggers of
	// others.
	s, err := Engine{}.Restore(t.Context(), mallory, emptyDump(t), engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop(t.Context())
	if err := s.Swap(t.Context(), false); snap.CodeOf(err) != snap.CodeForbidden ||
		!strings.Contains(err.Error(), "nobody's") {
		t.Errorf("a load by another: %v", err)
	}
	if got := owners(); got != before {
		t.Errorf("the triggers belong to %s, before to %s", got, before)
	}
	// If the user is allowed to create accounts, the account of the earlier load creates its
	// trigger again.
	script(t, own, "DROP TRIGGER other")
	for _, host := range []string{"'127.0.0.1'", "localhost"} {
		script(t, own, "GRANT CREATE USER ON *.* TO mallory@"+host+"; GRANT ALL ON own.* TO mallory@"+host+
			" WITH GRANT OPTION")
	}
	before = owners()
	killedInSwap(t, mallory, emptyDump(t), false)
	swept(t, mallory, emptyDump(t))
	if got := owners(); got != before {
		t.Errorf("the triggers belong to %s, before to %s", got, before)
	}
}

// A load that cannot complete a journal sets it aside and continues. RemoveLeftovers removes the
// journal.
func TestJournalsAreSetAside(t *testing.T) {
	t.Parallel()
	to := servertest.OwnMySQL(t, "mariadb", "")
	from := servertest.MariaDB(t)
	script(t, from, odd)
	script(t, to, "CREATE TABLE old (a INT)")
	d, _ := dumped(t, from)
	id := killedInSwapWithout(t, to, d)
	db, _ := openURL(t, to)
	at := quote(journalPrefix + id)
	for _, spoil := range []string{"UPDATE " + at + ".`before` SET text = 'not JSON'", "CREATE OR REPLACE VIEW " + at +
		".whole AS SELECT '" + digest(id, []byte("not JSON")) + "' AS digest"} {
		if _, err := db.Exec(spoil); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	var said []string
	s, err := Engine{}.Restore(t.Context(), to, d, engine.Options{Jobs: 1, Notice: func(text string) {
		said = append(said, text)
	}})
	if err != nil || len(said) != 1 || !strings.Contains(said[0], journalPrefix+id+" was set aside") {
		t.Fatalf("%v, %q", err, said)
	}
	if err := s.Drop(context.Background()); err != nil {
		t.Fatal(err)
	}
	left, err := Engine{}.Leftovers(t.Context(), to)
	if err != nil || !slices.Contains(left, journalPrefix+id) {
		t.Errorf("%q, %v", left, err)
	}
	removed, err := (Engine{}).RemoveLeftovers(t.Context(), to)
	if err != nil || !slices.Contains(removed, journalPrefix+id) {
		t.Errorf("%q, %v", removed, err)
	}
	if left, err := (Engine{}).Leftovers(t.Context(), to); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
	if err := load(t, to, d, false); err != nil {
		t.Error(err)
	}
	server, dest := openURL(t, to)
	err = setAside(t.Context(), server, dest, id, errors.New("refused")) // a journal that no longer exists
	if !isSkipped(err) || !strings.Contains(err.Error(), journalPrefix+id+" could not be set aside") {
		t.Error(err)
	}
}

// killedInSwapWithout is like [killedInSwap], for a database without triggers.
func killedInSwapWithout(t *testing.T, url string, d engine.Dump) string {
	t.Helper()
	return killedInSwap(t, url, d, false)
}
