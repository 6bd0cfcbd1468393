package postgres

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// A database in another encoding is built and loaded through UTF-8, and keeps
// its own; without that in its URL, the error says so.
func TestDatabaseInAnotherEncoding(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + "_latin1"
	execute(t, server, "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING 'LATIN1'")
	t.Cleanup(func() { execute(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	var told *snap.Error
	if _, err := (Engine{}).Check(t.Context(), u.String()); !errors.As(err, &told) || !strings.Contains(told.Hint, "client_encoding=UTF8") {
		t.Errorf("%v", err)
	}
	q := u.Query()
	q.Set("client_encoding", "UTF8")
	u.RawQuery = q.Encode()
	execute(t, u.String(), "CREATE TABLE words (word text); INSERT INTO words VALUES ('café')")
	d, _ := dumped(t, u.String())
	execute(t, u.String(), "DELETE FROM words")
	s, err := Engine{}.Restore(t.Context(), u.String(), d, engine.Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop(t.Context())
	if err := s.Swap(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := slices.Concat(texts(t, u.String(), "SELECT word FROM words"), texts(t, u.String(), "SHOW server_encoding")); !slices.Equal(got, []string{"café", "LATIN1"}) {
		t.Errorf("it came back as %q", got)
	}
}
