package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// PostgresVersions are the supported major versions.
var PostgresVersions = []int{13, 14, 15, 16, 17, 18}

// PostgresVersion is [Postgres] with a server of this major version. All tests of one process share
// one server of each version. The test is skipped if neither Debian's package nor tools/postgres
// provides one.
func PostgresVersion(t testing.TB, major int) string {
	t.Helper()
	bin := serverBin(t, major)
	once, _ := versions.LoadOrStore(major, sync.OnceValue(func() *server { return startServer(bin) }))
	s := once.(func() *server)()
	s.require(t)
	return s.database(t, "template1")
}

// CrashingPostgresVersion is like [CrashingPostgres], with a server of this major version.
func CrashingPostgresVersion(t testing.TB, major int) (url string, crash func()) {
	t.Helper()
	return ownServer(t, startIn(serverBin(t, major)))
}

// versions holds the servers of this process by major version.
var versions sync.Map

// serverBin returns the folder with the programs of a version's server. It skips the test if there
// is none, or if the server's user cannot run them.
func serverBin(t testing.TB, major int) string {
	t.Helper()
	RequireServers(t, "PostgreSQL")
	for _, bin := range []string{
		fmt.Sprintf("/usr/lib/postgresql/%d/bin", major),
		filepath.Join(Root(t), "tools", "postgres", "node_modules", "postgres-"+strconv.Itoa(major), "native", "bin"),
	} {
		initdb := filepath.Join(bin, "initdb")
		if _, err := os.Stat(initdb); err != nil {
			continue
		}
		as, err := serverUser("postgres")
		if err != nil {
			t.Skipf("needs PostgreSQL %d: %v", major, err)
		}
		cmd := exec.Command(initdb, "--version")
		runAs(cmd, as)
		if err := cmd.Run(); err != nil {
			t.Skipf("needs PostgreSQL %d: the server's user cannot run %s: %v", major, initdb, err)
		}
		return bin
	}
	t.Skipf("needs PostgreSQL %d: `npm ci --prefix tools/postgres` gets it", major)
	return ""
}

// PostgresTools returns the folder that contains pg_dump, pg_restore and psql of this major
// version: that of the system or, if there is none, the one that `make databases` unpacks. It
// returns "" if neither exists.
func PostgresTools(t testing.TB, major int) string {
	t.Helper()
	for _, bin := range []string{
		fmt.Sprintf("/usr/lib/postgresql/%d/bin", major),
		filepath.Join(Root(t), "bin", "postgres", strconv.Itoa(major), "bin"),
	} {
		if _, err := os.Stat(filepath.Join(bin, "pg_dump")); err == nil {
			return bin
		}
	}
	return ""
}
