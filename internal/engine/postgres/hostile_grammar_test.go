package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// siegeBase is the database whose dump [siege] alters: the tables of [hostileSchema] and a program
// of each kind.
const siegeBase = `CREATE TABLE t (a integer, b integer); CREATE TABLE u (a integer, b integer);
	INSERT INTO t VALUES (1, 2), (3, NULL); INSERT INTO u VALUES (5, 6);
	CREATE FUNCTION f(x integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x; END $$;
	CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
	CREATE PROCEDURE p() LANGUAGE sql AS $$ SELECT 1 $$; CREATE VIEW v AS SELECT f(a) FROM t;
	CREATE MATERIALIZED VIEW m AS SELECT f(a) FROM t; CREATE INDEX i ON t (f(a));
	CREATE INDEX j ON t (b) WHERE f(a) > 0;
	CREATE TRIGGER g BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g();
	CREATE RULE r AS ON DELETE TO u DO ALSO SELECT f(1);
	ALTER TABLE u ADD CHECK (f(a) > 0), ENABLE ROW LEVEL SECURITY;
	CREATE POLICY p ON u USING (f(a) > 0); CREATE TYPE mood AS ENUM ('x', 'y');
	CREATE DOMAIN d AS integer CHECK (f(VALUE) > 0); CREATE AGGREGATE agg(integer) (SFUNC = int4pl, STYPE = integer);`

// siege alters a dump and its description, and loads it on a server.
type siege struct {
	victim
	base   engine.Dump
	conns  [2]*pgx.Conn
	raw    []byte
	pieces []string
	before string
	tried  int
	loaded int
}

func newSiege(t *testing.T) *siege {
	t.Helper()
	s := &siege{victim: newVictim(t)}
	psql(t, s.url, script(t, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; "+
		"GRANT ALL ON SCHEMA public TO PUBLIC;"+siegeBase))
	s.base, s.raw = dumped(t, s.url)
	evil := "COPY (SELECT 1) TO PROGRAM 'cat >" + s.files + "/program'"
	for _, what := range []string{evil, "DROP DATABASE prod", "ALTER ROLE plain PASSWORD 'owned'",
		"CREATE ROLE evil SUPERUSER",
		"ALTER SYSTEM SET work_mem = '1GB'", "ALTER DATABASE prod OWNER TO postgres", "SET ROLE postgres",
		"RESET ROLE",
		"SET SESSION AUTHORIZATION DEFAULT", "SELECT lo_export(1, '" + s.files + "/lo')", "GRANT postgres TO plain",
		"CREATE EXTENSION dblink", "CREATE TABLESPACE evil LOCATION '" + s.files + "'"} {
		dynamic := "BEGIN EXECUTE " + quoteText(what) + "; EXCEPTION WHEN OTHERS THEN NULL; END; "
		s.pieces = append(s.pieces, "; "+what+";", "\n"+what+";\n", "'; "+what+"; --", "$$; "+what+"; SELECT $$",
			`"; `+what+"; --",
			"BEGIN "+dynamic, "BEGIN "+dynamic, dynamic, "*/ "+what+"; /*", "\x00; "+what+";",
			"\n\\! touch "+s.files+"/psql\n")
	}
	s.pieces = append(s.pieces, "SECURITY DEFINER ", "LANGUAGE c ", "SET role = postgres ", "public.",
		"prod.", "pg_catalog.", "ALWAYS ", "OR REPLACE ", "CASCADE", " ", ";", "'", `"`, "$$", "/*", "--",
		"\\", "é", "U&'")
	s.conns = s.connect(t)
	s.before = s.stateIn(t, s.conns)
	return s
}

// dump draws a dump: the base, with pieces inserted into the strings of some entries, and a
// description.
func (s *siege) dump(t *testing.T, r *rapid.T) engine.Dump {
	type change struct {
		field, at, cut int
		piece          string
	}
	changes := map[int]change{}
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(r, "changes") {
		changes[rapid.IntRange(0, 40).Draw(r, "entry")] = change{rapid.SampledFrom([]int{2, 3, 4, 4, 4, 4, 4, 6, 7,
			10}).Draw(r, "field"),
			rapid.IntRange(0, 200).Draw(r, "at"), rapid.SampledFrom([]int{0, 0, 0, 1, 8}).Draw(r, "cut"),
			rapid.SampledFrom(s.pieces).Draw(r, "piece")}
	}
	raw := changeContents(t, s.raw, func(i int, e [][]byte) {
		c, ok := changes[i]
		if !ok || e[c.field] == nil {
			return
		}
		old := e[c.field]
		at := min(c.at, len(old))
		e[c.field] = slices.Concat(old[:at], []byte(c.piece), old[min(len(old), at+c.cut):])
	})
	info := s.base.Info
	if rapid.Bool().Draw(r, "description") {
		info.Schema = hostileSchema(r)
	}
	info.Properties = map[string]string{"encoding": "UTF8", "lc_collate": "C", "lc_ctype": "C"}
	if rapid.IntRange(0, 9).Draw(r, "properties") == 0 {
		info.Properties[rapid.SampledFrom([]string{"encoding", "lc_collate", "icu_locale", "icu_rules",
			"builtin_locale"}).Draw(r, "property")] = rapid.SampledFrom(slices.Concat(nasty, s.pieces)).Draw(r, "value")
	}
	return dumpOf(raw, info)
}

// attack loads a dump and checks that the server's state is unchanged.
func (s *siege) attack(t *testing.T) func(*rapid.T) {
	return func(r *rapid.T) {
		d := s.dump(t, r)
		how := rapid.SampledFrom(everyWay).Draw(r, "way")
		url := rapid.SampledFrom([]string{s.url, s.plain}).Draw(r, "url")
		d.Trust, d.WithPrograms = how.trust, how.withPrograms
		s.tried++
		err := load(t, url, d, true)
		if err == nil {
			s.loaded++
		}
		if after := s.stateIn(t, s.conns); after != s.before {
			before := s.before
			s.before = after
			r.Fatalf("%v (%v) changed the server:\n%s\nbefore\n%s", how, err, without(after, before), without(before,
				after))
		}
	}
}

// TestHostileGrammar loads altered dumps and descriptions on a real server: as many as fit into a
// second, or into the time that SNAP_HOSTILE sets.
func TestHostileGrammar(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	attack, until := s.attack(t), time.Now().Add(servertest.Hostile(t))
	for s.tried == 0 || time.Now().Before(until) {
		rapid.Check(t, func(r *rapid.T) {
			if s.tried == 0 || time.Now().Before(until) {
				attack(r)
			}
		})
	}
	t.Logf("%d dumps were tried, and %d of them loaded", s.tried, s.loaded)
}
