package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Archiving is a PostgreSQL server that archives its write-ahead log, so that its databases can be
// recovered as of any moment after [Archiving.BackUp]. The server ends with the test.
type Archiving struct {
	*server
	bin, dir string // the server's programs; the base backup and the archived log
	as       *account
}

// ArchivingPostgres starts a server of the test's own that archives its log, and returns the URL of
// a database on it. The test is skipped when PostgreSQL is not installed.
func ArchivingPostgres(t testing.TB) (url string, a *Archiving) {
	t.Helper()
	RequireServers(t, "PostgreSQL")
	a = &Archiving{bin: PostgresBin()}
	var err error
	if a.as, err = serverUser("postgres"); err != nil {
		t.Fatal(err)
	}
	if a.dir, err = os.MkdirTemp("", "servertest-archive-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(a.dir) })
	if err := os.Mkdir(filepath.Join(a.dir, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := changeOwner(a.as, a.dir); err != nil {
		t.Fatal(err)
	}
	archive := fmt.Sprintf("archive_mode = on\narchive_command = 'cp %%p %s/log/%%f'\n", a.dir)
	a.server = startWith(a.bin, func(dir string, as *account) (string, error) {
		return archive, initialize(a.bin, dir, as)
	})
	url, _ = ownServer(t, a.server)
	return url, a
}

// BackUp makes the base backup from which the server is recovered.
func (a *Archiving) BackUp(t testing.TB) {
	t.Helper()
	a.command(t, filepath.Join(a.bin, "pg_basebackup"), "-h", "127.0.0.1", "-p", fmt.Sprint(a.port), "-U", "postgres",
		"-D", filepath.Join(a.dir, "base"), "-X", "none", "--checkpoint=fast", "--no-sync")
}

// Moment returns the time of the server's clock. All earlier commits are before this time, and all
// transactions that begin later are after it.
func (a *Archiving) Moment(t testing.TB) (at time.Time) {
	t.Helper()
	if err := a.admin.QueryRow(`SELECT clock_timestamp()`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// Lose ends the server for good, after its whole log was archived.
func (a *Archiving) Lose(t testing.TB) {
	t.Helper()
	var last string
	if err := a.admin.QueryRow(`SELECT pg_walfile_name(pg_switch_wal())`).Scan(&last); err != nil {
		t.Fatal(err)
	}
	err := waitReady(a.alive, func(ctx context.Context) error {
		var archived bool
		err := a.admin.QueryRowContext(ctx,
			`SELECT coalesce(last_archived_wal >= $1, false) FROM pg_stat_archiver`, last).Scan(&archived)
		if err == nil && !archived {
			err = errors.New("the log is not archived yet")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	a.admin.Close()
	a.alive.Close()
}

// Recover starts another server with everything that was committed until a moment, and returns the
// URL of the database on it.
func (a *Archiving) Recover(t testing.TB, until time.Time) (url string) {
	t.Helper()
	settings := fmt.Sprintf("archive_mode = off\nrestore_command = 'cp %s/log/%%f %%p'\nrecovery_target_time = '%s'\n"+
		"recovery_target_action = promote\nhot_standby = off\n", a.dir, until.Format("2006-01-02 15:04:05.999999-07"))
	s := startWith(a.bin, func(dir string, _ *account) (string, error) {
		a.command(t, "cp", "-a", filepath.Join(a.dir, "base"), filepath.Join(dir, "data"))
		a.command(t, "touch", filepath.Join(dir, "data", "recovery.signal"))
		return settings, nil
	})
	s.require(t)
	t.Cleanup(func() {
		s.admin.Close()
		s.alive.Close()
	})
	return s.url("test")
}

func (a *Archiving) command(t testing.TB, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	runAs(cmd, a.as)
	cmd.Dir = a.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
