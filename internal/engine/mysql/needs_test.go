package mysql

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// The statements that Needs returns grant all missing privileges.
func TestNeedsAreMendedByTheirStatements(t *testing.T) {
	t.Parallel()
	for _, server := range servertest.MySQLServers() {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			raw := servertest.MySQL(t, server)
			d, err := parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			admin := openAs(t, d)
			user := "poor_" + d.name
			for _, statement := range []string{"CREATE USER '" + user + "'@'127.0.0.1' IDENTIFIED BY ''",
				"GRANT SHOW VIEW ON " + quote(d.name) + ".* TO '" + user + "'@'127.0.0.1'"} {
				if _, err := admin.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { admin.Exec("DROP USER '" + user + "'@'127.0.0.1'") })
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			u.User = url.User(user)
			for _, c := range []struct { // a load needs everything that a build needs, so the load comes second
				use  engine.Use
				want []string
			}{{engine.ForBuild, []string{"lacks SELECT on the database " + d.name}},
				{engine.ForLoad, []string{"lacks ", "snapcli_%"}}} {
				needs, err := Engine{}.Needs(t.Context(), u.String(), c.use)
				if err != nil || len(needs) == 0 {
					t.Fatalf("%v, %v", needs, err)
				}
				for _, text := range c.want {
					if !strings.Contains(fmt.Sprint(needs), text) {
						t.Errorf("%q is not in %v", text, needs)
					}
				}
				for _, n := range needs {
					if _, err := admin.Exec(n.Remedy); err != nil {
						t.Errorf("%s: %v", n.Remedy, err)
					}
				}
				if needs, err := (Engine{}).Needs(t.Context(), u.String(), c.use); err != nil || len(needs) > 0 {
					t.Errorf("still missing: %v, %v", needs, err)
				}
			}
		})
	}
}

func openAs(t *testing.T, d database) *sql.DB {
	t.Helper()
	c := driver.NewConfig()
	c.User, c.Net, c.Addr = d.user, "tcp", d.host+":"+d.port
	connector, err := driver.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestPatternsOfGrants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"shop", "shop", true}, {"shop", "shops", false}, {"sh_p", "shop", true},
		{`sh\_p`, "shop", false}, {`sh\_p`, "sh_p", true},
		{"%", "shop", true}, {"s%p", "shop", true}, {"s%x", "shop", false},
		{`snapcli\_%`, "snapcli_scratch_x", true}, {"", "x", false}, {"%", "", true},
	} {
		if got := like(c.pattern, c.name); got != c.want {
			t.Errorf("like(%q, %q) is %t", c.pattern, c.name, got)
		}
	}
}
