package cloud_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// SPEC 5.3 rule 2: timing does not reveal whether a snapshot is hidden or never existed. Both cases
// send the database the same number of statements, on every route.
func TestHiddenTakesAsManyQueriesAsAbsent(t *testing.T) {
	t.Parallel()
	database, statements := counted(t, cloudtest.Postgres(t))
	c := cloudtest.Start(t, cloudtest.Options{DatabaseURL: database, Clock: clocktest.New(time.Now())})
	s := newScene(t, c)
	count := func(pattern, id, body, key string) int64 {
		before := statements.Load()
		fetch(t, s, pattern, id, body, key)
		return statements.Load() - before
	}
	for _, pattern := range c.Service.Routes() {
		if !strings.Contains(pattern, "/snapshots/{id}") || slices.Contains(onlyUsers, pattern) {
			continue
		}
		for _, caller := range []string{"member", "viewer", "outsider"} {
			key, body := credential(t, c, caller), matrix[pattern].body
			count(pattern, s.id, body, key) // the first use of a key is recorded
			hidden := count(pattern, s.id, body, key)
			for _, absent := range []string{snap.NewSnapshotID(), "x"} {
				if never := count(pattern, absent, body, key); never != hidden || hidden == 0 {
					t.Errorf("%s as %s: %d statements for a hidden snapshot, %d for %s, which never was", pattern,
						caller, hidden,
						never, absent)
				}
			}
		}
	}
}

// counted returns a PostgreSQL URL through which every statement that is
// executed is counted.
func counted(t *testing.T, database string) (through string, statements *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(database)
	must(t, err)
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	statements = new(atomic.Int64)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client, server, statements)
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), statements
}

// relay forwards one connection. The client first sends a startup message, which has no type. Each
// later message is a type, a length and the rest (PostgreSQL's frontend/backend protocol). The
// types Execute and Query run statements. A connection that was idle for a second is tested first;
// that does not count as a statement.
func relay(client net.Conn, server string, statements *atomic.Int64) {
	defer client.Close()
	db, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer db.Close()
	go func() {
		defer client.Close()
		io.Copy(client, db)
	}()
	in := bufio.NewReader(client)
	for startup := true; ; startup = false {
		head := 5
		if startup {
			head = 4
		}
		start, err := in.Peek(head)
		if err != nil {
			return
		}
		kind, length := start[0], int64(binary.BigEndian.Uint32(start[head-4:]))+int64(head-4)
		if !startup && (kind == 'E' || kind == 'Q') && !isPing(in, length) {
			statements.Add(1)
		}
		if _, err := io.CopyN(db, in, length); err != nil {
			return
		}
	}
}

// isPing reports whether the next message is the query with which pgx tests a connection.
func isPing(in *bufio.Reader, length int64) bool {
	const ping = "Q\x00\x00\x00\x0c-- ping\x00"
	if length != int64(len(ping)) {
		return false
	}
	message, _ := in.Peek(len(ping))
	return string(message) == ping
}
