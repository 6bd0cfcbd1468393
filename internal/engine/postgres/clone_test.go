package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// If databases cannot be created, the error gives the reason and the remedy.
func TestCloneRefusals(t *testing.T) {
	t.Parallel()
	raw := servertest.Postgres(t)
	role := "cloner_" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "_")
	rawly(t, raw, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { psql(t, raw, script(t, "DROP ROLE "+role)) })
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	lacking := *u
	lacking.User = url.User(role)
	pooled := *u
	pooled.Host = pooler(t, u.Host)
	for name, c := range map[string]struct {
		url, hint string
		code      snap.Code
	}{
		"no right":         {lacking.String(), "ALTER ROLE " + role + " CREATEDB", snap.CodeForbidden},
		"through a pooler": {pooled.String(), "the server's own host and port", snap.CodeDatabase},
		"a right":          {raw, "", ""},
	} {
		err := Engine{}.CheckCanClone(t.Context(), c.url)
		var e *snap.Error
		if snap.CodeOf(err) != c.code || c.code != "" && (!errors.As(err, &e) || !strings.Contains(e.Hint, c.hint)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A user needs only CREATEDB to make a template, copy it, reset a copy and drop it.
func TestCloneNeedsOnlyCreateDB(t *testing.T) {
	t.Parallel()
	raw := servertest.Postgres(t)
	rawly(t, raw, "CREATE ROLE onlycreatedb LOGIN CREATEDB")
	t.Cleanup(func() { psql(t, raw, script(t, "DROP ROLE onlycreatedb")) })
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("onlycreatedb")
	e := Engine{}
	named := func(name string) string {
		url, err := e.Named(u.String(), name)
		if err != nil {
			t.Fatal(err)
		}
		return url
	}
	template, copied := named("snapcli_clone_template_only"), named("snapcli_clone_only")
	d, err := parse(u.String())
	if err != nil {
		t.Fatal(err)
	}
	admin, err := d.maintenance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE snapcli_clone_template_only"); err != nil {
		t.Fatal(err)
	}
	rawly(t, template, "CREATE TABLE a AS SELECT 1 AS n")
	mark, err := e.Seal(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Copy(t.Context(), template, copied, engine.CopyOptions{Mark: mark}); err != nil {
		t.Errorf("copy: %v", err)
	}
	if err := e.Reset(t.Context(), template, copied, engine.CopyOptions{Mark: mark}); err != nil {
		t.Errorf("reset: %v", err)
	}
	for _, url := range []string{copied, template} {
		if err := e.Drop(t.Context(), url); err != nil {
			t.Error(err)
		}
	}
	found, err := e.States(t.Context(), []string{copied, template})
	if err != nil || found[0].Exists || found[1].Exists {
		t.Errorf("after the drop: %+v, %v", found, err)
	}
}

// Only clones are ever dropped or replaced.
func TestCloneDropsOnlyClones(t *testing.T) {
	t.Parallel()
	raw := servertest.Postgres(t)
	e := Engine{}
	for what, err := range map[string]error{"drop": e.Drop(t.Context(), raw), "recover": e.Recover(t.Context(), raw),
		"reset": e.Reset(t.Context(), raw, raw, engine.CopyOptions{})} {
		if err == nil {
			t.Errorf("%s of a database of the user: %v", what, err)
		}
	}
	if info, err := e.Check(t.Context(), raw); err != nil || !info.Exists {
		t.Errorf("the database is gone: %v", err)
	}
}

// A standby cannot create databases, and the error explains that.
func TestCloneOnAStandby(t *testing.T) {
	t.Parallel()
	raw, crash := servertest.CrashingPostgres(t)
	var folder string
	d, err := parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := d.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&folder); err != nil {
		t.Fatal(err)
	}
	conn.Close(t.Context())
	if err := os.WriteFile(filepath.Join(folder, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	crash()
	err = Engine{}.CheckCanClone(t.Context(), raw)
	if snap.CodeOf(err) != snap.CodeDatabase || !strings.Contains(err.Error(), "is a standby") {
		t.Errorf("on a standby: %v", err)
	}
}

// pooler is a proxy that gives its clients process IDs of its own, as connection poolers do.
func pooler(t *testing.T, server string) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go pool(client, server)
		}
	}()
	return ln.Addr().String()
}

func pool(client net.Conn, server string) {
	defer client.Close()
	backend, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer backend.Close()
	go func() {
		_, _ = io.Copy(backend, client)
		backend.Close()
	}()
	for head := make([]byte, 5); ; {
		if _, err := io.ReadFull(backend, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(backend, body); err != nil {
			return
		}
		if head[0] == 'K' {
			binary.BigEndian.PutUint32(body, 4711)
		}
		if _, err := client.Write(slices.Concat(head, body)); err != nil {
			return
		}
	}
}

// A large database is copied file by file. Before PostgreSQL 15, the statement names no strategy.
// On PostgreSQL 18, copying also works if the file system cannot share blocks.
func TestLargeCopies(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	for _, version := range []int{13, 18} {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			t.Parallel()
			from := servertest.PostgresVersion(t, version)
			rawly(t, from, "CREATE TABLE a AS SELECT n, repeat('x', 1000) FROM generate_series(1, 34000) n")
			e := Engine{}
			to, err := e.Named(from, engine.ClonePrefix+"large")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := e.Drop(context.WithoutCancel(t.Context()), to); err != nil {
					t.Error(err)
				}
			})
			for _, act := range []func(context.Context, string, string, engine.CopyOptions) error{e.Copy, e.Reset} {
				if err := act(t.Context(), from, to, engine.CopyOptions{Terminate: true}); err != nil {
					t.Fatal(err)
				}
				rawly(t, to, "DO $$BEGIN ASSERT (SELECT count(*) = 34000 FROM a); END$$", "TRUNCATE a")
			}
			found, err := e.States(t.Context(), []string{from})
			if err != nil || found[0].Size < largeDatabase {
				t.Errorf("the database is not large: %+v, %v", found, err)
			}
		})
	}
}

// A URL that cannot be parsed is an error.
func TestNamedOfAnInvalidURL(t *testing.T) {
	t.Parallel()
	if _, err := (Engine{}).Named("postgres://u@h:port/x", engine.ClonePrefix+"a"); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("%v", err)
	}
}
