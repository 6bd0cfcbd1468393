package mysql

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestLoadInPlace loads as a user with rights on one database. An exchange is refused, and the
// error names the statement that grants the missing rights. A load in place replaces the content
// with the snapshot's content and then runs the grants.
func TestLoadInPlace(t *testing.T) {
	t.Parallel()
	onEach(t, testLoadInPlace)
}

func testLoadInPlace(t *testing.T, server string) {
	from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
	script(t, from, oddFor(server))
	d, err := parse(to)
	if err != nil {
		t.Fatal(err)
	}
	user := "plain_" + d.name
	account := "'" + user + "'@'127.0.0.1'"
	admin := openAs(t, d)
	for _, statement := range []string{"CREATE USER " + account + " IDENTIFIED BY ''",
		"GRANT ALL PRIVILEGES ON " + strings.ReplaceAll(quote(d.name), "_", `\_`) + ".* TO " + account +
			" WITH GRANT OPTION"} {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { admin.Exec("DROP USER " + account) })
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	script(t, u.String(), "CREATE TABLE child (id INT PRIMARY KEY); CREATE TABLE parent (old INT, "+
		"CONSTRAINT fk FOREIGN KEY (old) REFERENCES child (id)); CREATE VIEW gone AS SELECT 1 AS a; "+
		"CREATE PROCEDURE p() SELECT 2; CREATE "+
		"TRIGGER tr BEFORE INSERT ON parent FOR EACH ROW SET @a = 2;")
	dump, _ := dumped(t, from)
	before := contents(t, to)

	var refused *snap.Error
	err = loadWith(t, u.String(), dump, engine.Options{Into: engine.Existing})
	if !errors.As(err, &refused) || !strings.Contains(refused.Hint, "GRANT ALL PRIVILEGES ON `snapcli\\_%`.* TO") ||
		!strings.Contains(refused.Hint, "--in-place") || contents(t, to) != before {
		t.Fatalf("%v", err)
	}
	hint := refused.Hint
	grant := "GRANT SELECT ON parent TO " + account
	if err := loadWith(t, u.String(), dump, engine.Options{Into: engine.InPlace, Grants: []string{grant}}); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, to), contents(t, from); got != want {
		t.Errorf("it has\n%s\nwant\n%s", got, want)
	}
	err = loadWith(t, u.String(), dump, engine.Options{Into: engine.InPlace,
		Grants: []string{"GRANT SELECT ON missing TO " + account}})
	if !errors.As(err, &refused) || !strings.Contains(refused.Detail, "the database was replaced, but the grant") ||
		strings.Contains(refused.Detail, "incomplete") || contents(t, to) != contents(t, from) {
		t.Errorf("after a failed grant: %v", err)
	}
	_, mend, _ := strings.Cut(hint, "run: ")
	mend, _, _ = strings.Cut(mend, "; or")
	if _, err := admin.Exec(mend); err != nil {
		t.Fatal(err)
	}
	if err := loadWith(t, u.String(), dump, engine.Options{Into: engine.Existing}); err != nil {
		t.Errorf("after %s: %v", mend, err)
	}
}

// TestFailedLoadInPlace checks that a database is marked as incomplete after a failed load, and
// that the next load completes it.
func TestFailedLoadInPlace(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.MariaDB(t)
	script(t, from, odd)
	script(t, to, "CREATE TABLE old (a INT);")
	dump, whole := dumped(t, from)
	broken := dumpOf(whole[:len(whole)-5], dump.Info)
	err := loadWith(t, to, broken, engine.Options{Into: engine.InPlace})
	if err == nil || !strings.Contains(err.Error(), "is incomplete now") {
		t.Fatal(err)
	}
	info, err := Engine{}.Check(t.Context(), to)
	if err != nil || len(info.Warnings) == 0 || info.Warnings[0] != engine.UnfinishedWarning {
		t.Errorf("%v, %v", info.Warnings, err)
	}
	if err := loadWith(t, to, dump, engine.Options{Into: engine.InPlace}); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, to), contents(t, from); got != want {
		t.Errorf("it has\n%s\nwant\n%s", got, want)
	}
}

// TestCheckGrant checks that only single GRANT statements are accepted.
func TestCheckGrant(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"GRANT SELECT ON parent TO b": true, "grant all on x.* to 'a'@'%';": true,
		"DROP TABLE a": false, "GRANT SELECT ON parent TO b; DROP TABLE a": false, "": false, "GRANTED": false} {
		if err := (Engine{}).CheckGrant(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func loadWith(t *testing.T, url string, d engine.Dump, o engine.Options) error {
	t.Helper()
	o.Jobs = 2
	s, err := Engine{}.Restore(t.Context(), url, d, o)
	if err != nil {
		return err
	}
	defer s.Drop(t.Context())
	return s.Swap(t.Context(), false)
}
