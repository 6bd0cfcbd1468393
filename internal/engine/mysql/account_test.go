package mysql

import (
	"context"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// asUser creates a user with the given rights, and returns the URL of the database for that user.
func asUser(t *testing.T, url string, grants ...string) string {
	t.Helper()
	db, d := openURL(t, url)
	name, host := "few_"+d.name, ""
	if err := db.QueryRowContext(t.Context(), "SELECT substring_index(user(), '@', -1)").Scan(&host); err != nil {
		t.Fatal(err)
	}
	user := account{User: name, Host: host}.quoted()
	for _, statement := range append([]string{"CREATE USER " + user}, grants...) {
		if strings.HasPrefix(statement, "GRANT") {
			statement += " TO " + user
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	t.Cleanup(func() {
		db, _ := openURL(t, url)
		if _, err := db.ExecContext(context.Background(), "DROP USER "+user); err != nil {
			t.Error(err)
		}
	})
	return strings.Replace(url, "root@", name+"@", 1)
}

// TestNoAccount checks that an error names the reason why the account of a load was not created.
func TestNoAccount(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := servertest.MySQL(t, server)
		for _, c := range []struct {
			url, id, says string
			code          snap.Code
		}{
			{asUser(t, url), randomID(), "is not allowed to create a user for this load", snap.CodeForbidden},
			{url, strings.Repeat("0", 200), "could not be created (Error 1470", snap.CodeDatabase},
		} {
			db, d := openURL(t, c.url)
			var said string
			s := &scratch{server: db, dest: d, db: d, id: c.id, trust: checked, needsAccount: true,
				o: engine.Options{Notice: func(text string) { said = text }}}
			if err := s.confine(t.Context()); snap.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			s.needsAccount = false
			if err := s.confine(t.Context()); err != nil || !strings.Contains(said, c.says) {
				t.Errorf("%q, %v", said, err)
			}
		}
	})
}

// TestAccountsOfOthers loads and cleans up as a user who may list the server's accounts but not
// change them, while an account of another user's load owns a view.
func TestAccountsOfOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := servertest.OwnMySQL(t, server, "") // no other test cleans up here
		owner := "snapcli_" + randomID() + "@localhost"
		script(t, url, "CREATE USER "+owner+"; CREATE DATABASE other; CREATE DEFINER="+owner+
			" VIEW other.v AS SELECT 1 AS a")
		few := asUser(t, url, "GRANT SELECT ON *.*", "GRANT ALL ON `snapcli\\_%`.*", "GRANT ALL ON own.*")
		if err := load(t, few, emptyDump(t), false); err != nil {
			t.Error(err)
		}
		err := Engine{}.Drop(t.Context(), strings.Replace(few, "/own", "/"+engine.ClonePrefix+"none", 1))
		if err != nil {
			t.Error(err)
		}
	})
}

// TestAccountsOfHiddenTriggers cleans up as a user who may drop accounts but cannot see the trigger
// that one of them owns. The account stays until the trigger is gone.
func TestAccountsOfHiddenTriggers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := servertest.OwnMySQL(t, server, "") // no other test cleans up here
		owner := "snapcli_" + randomID()
		script(t, url, "CREATE USER "+owner+"@localhost; CREATE DATABASE other; CREATE TABLE other.t (a int); "+
			"CREATE DEFINER="+owner+"@localhost TRIGGER other.tr BEFORE INSERT ON other.t FOR EACH ROW SET @a = 1")
		remove := func(url string, want ...string) {
			t.Helper()
			removed, err := Engine{}.RemoveLeftovers(t.Context(), url)
			if err != nil || !slices.Equal(removed, want) {
				t.Errorf("removed %v, want %v; %v", removed, want, err)
			}
		}
		remove(asUser(t, url, "GRANT SELECT, CREATE USER ON *.*"))
		script(t, url, "DROP DATABASE other")
		remove(url, owner)
	})
}
