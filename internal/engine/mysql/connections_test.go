package mysql

import (
	"fmt"
	"testing"

	"snap/internal/servertest"
)

// A dump of many tables must not reach the server's limit of prepared statements.
func TestQueryEndsItsStatement(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		db, _ := openURL(t, servertest.MySQL(t, server))
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		err = c.Raw(func(conn any) error {
			rows, err := query(t.Context(), conn, "SELECT 1")
			if err != nil {
				return err
			}
			return rows.Close()
		})
		var name, ended string
		if err == nil {
			err = c.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Com_stmt_close'").Scan(&name, &ended)
		}
		if err != nil || ended != "1" {
			t.Errorf("%s is %s, %v", name, ended, err)
		}
	})
}

// TestConnectionsThatRunAnyText checks that connections are found and ended while one of them runs a
// statement with an emoji, which MySQL 9 cannot show in information_schema.processlist.
func TestConnectionsThatRunAnyText(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := servertest.MySQL(t, server)
		db, d := openURL(t, url)
		ended := make(chan error, 1)
		go func() {
			_, err := db.ExecContext(t.Context(), fmt.Sprintf("DO GET_LOCK('%s', 0), SLEEP(3600), '😀'", d.name))
			ended <- err
		}()
		for running := false; !running; { // until the statement holds the lock
			select {
			case err := <-ended:
				t.Fatalf("the statement ended: %v", err)
			default:
			}
			err := db.QueryRowContext(t.Context(), "SELECT IS_USED_LOCK(?) IS NOT NULL", d.name).Scan(&running)
			if err != nil {
				t.Fatal(err)
			}
		}
		info, err := Engine{}.Check(t.Context(), url)
		if err != nil || len(info.Connections) == 0 {
			t.Fatalf("connected: %q, %v", info.Connections, err)
		}
		onServer, err := d.open("")
		if err != nil {
			t.Fatal(err)
		}
		defer onServer.Close()
		if err := endConnections(t.Context(), onServer, d.name); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("the statement was not ended")
		}
	})
}
