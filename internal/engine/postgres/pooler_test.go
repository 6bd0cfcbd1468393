package postgres

import (
	"bytes"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestPooler builds through a pooler in session mode. If a pooler cannot be used, the error says
// so.
func TestPooler(t *testing.T) {
	t.Parallel()
	direct, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, direct, script(t, chooseFrom))
	session := servertest.PgBouncer(t, direct, "pool_mode = session", "default_pool_size = 20")
	for _, subset := range []*engine.Subset{nil, {Percent: 100}} {
		d := chosen(t, session, engine.Options{Jobs: 2, Subset: subset})
		if err := load(t, to, d, false); err != nil {
			t.Fatal(err)
		}
		same(t, direct, to)
	}
	_, err := Engine{}.Dump(t.Context(), servertest.PgBouncer(t, direct), &bytes.Buffer{}, engine.Options{})
	refused(t, err, "shares the server's sessions")
	d, _ := dumped(t, direct)
	refused(t, load(t, session, d, true), "a load replaces a database")
	for _, into := range ways {
		_, err = Engine{}.into(t, session, d, engine.Options{Into: into})
		refused(t, err, "a load needs its own session")
	}
}

// refused checks that an error names the pooler and the reason.
func refused(t *testing.T, err error, why string) {
	t.Helper()
	if snap.CodeOf(err) != snap.CodeDatabase || !strings.Contains(err.Error(), "a connection pooler") ||
		!strings.Contains(err.Error(), why) {
		t.Error(err)
	}
}
