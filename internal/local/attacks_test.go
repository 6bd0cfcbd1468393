package local

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// attack is a database of a hostile author, on one kind of server.
type attack struct {
	driver  string
	source  func(t *testing.T) string // an empty database on the author's server
	victim  func(t *testing.T) victim
	hostile func(v victim) string // the author's SQL

	// calm is the SQL of a database without attacks. texts are parts of its dump, each with its
	// replacements, which are tried one at a time.
	calm     string
	texts    map[string][]string
	fit      func(text string, n int) []byte // pads a text to n bytes
	sound    []string                        // the texts that are still one statement
	programs string                          // a query that counts the programs in a database
	harmless bool                            // even if loaded as the user's own snapshot

	// does are the keys of the victim's state that change if the hostile database is loaded as the
	// user's own, and works are the replacements in texts that change the state if they are loaded
	// as the user's own.
	does  func(v victim) []string
	works []string
}

// victim is the recipient's machine and server. No other test uses them.
type victim struct {
	driver string
	home   string                    // a folder that everybody can write to
	prod   string                    // another database, with a secret
	fresh  func(t *testing.T) string // an empty database
	state  func(t *testing.T) map[string]string
}

// dots is a part of a dump that other texts of the same length can replace.
var dots = strings.Repeat(".", 300)

func padded(text string, n int) []byte {
	return []byte(text + strings.Repeat(" ", max(0, n-len(text))))
}

func longer(text string, _ int) []byte { return []byte(text) }

func attacks() map[string]attack {
	return map[string]attack{"sqlite": onSQLite(), "postgres": onPostgresServer(), "mariadb": onMySQL("mariadb"),
		"mysql-8.0": onMySQL("mysql-8.0")}
}

// callsFiles and replaces are single statements of the right kind and name. The functions do not
// exist, and a load does not allow REPLACE.
const (
	callsFiles = "', writefile('owned', 'x'), load_extension('x'), '"
	replaces   = "CREATE OR REPLACE TABLE `log`"
)

const secret = "CREATE TABLE secret (token TEXT); INSERT INTO secret VALUES ('the-secret-token')"

// watched returns the files in all places where attacks try to write: all files in a home folder,
// and the files with the attacks' names in the folder around it, in the folder in which the test
// runs and in the home folder of the user who runs the test.
func watched(t *testing.T, home string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files(t, all, home)
	real, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{home + "?*", "*owned*", filepath.Join(real, "*owned*")} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			all[path] = "a file"
		}
	}
	return all
}

func writable(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "hostile-") // t.TempDir is in a folder that the servers' users cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.RemoveAll(home)
		os.Remove(home + "-owned") // from the load as the user's own
	})
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(home, "notes.txt"), "notes")
	return home
}

// serversFiles adds the names of the files in the folder of a server's data. It omits the files
// that the server itself creates and removes: ofServer matches their paths.
func serversFiles(t *testing.T, all map[string]string, dir string, ofServer *regexp.Regexp) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if strings.Trim(d.Name(), "0123456789") == "" {
			return nil // a relation of PostgreSQL, which has thousands: faster than the expression
		}
		if name, _ := filepath.Rel(dir, path); !ofServer.MatchString(filepath.ToSlash(name)) {
			all[path] = "a file of the server"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The files that servers create and remove themselves: those of relations, logs, statistics and
// caches, and those of the loaded databases.
var (
	ofPostgres = regexp.MustCompile(`(^|/)(t?[0-9A-F][0-9A-F_.]*(_?(fsm|vm|init|snap))?|[0-9A-F-]+|` +
		`pg_internal\.init(\.[0-9]+)?|PG_VERSION|pg_filenode\.map|pgsql_tmp.*|[a-z0-9_]+\.(stat|tmp)|` +
		`postmaster\.pid)$`)
	ofMySQL = regexp.MustCompile(`^((ib|undo|#|binlog|aria_log|ddl_recovery|multi-master|tc\.log)[^/]*(/.*)?|` +
		`(fresh_|snapcli_)[^/]*/[^/]+\.(ibd|frm|opt|TRG|TRN|sdi|par|MYD|MYI)|.*\.(pid|lock|err))$`)
)

func onSQLite() attack {
	fresh := func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "db.sqlite") }
	return attack{
		driver: "sqlite", source: fresh, fit: padded, harmless: true, sound: []string{callsFiles},
		victim: func(t *testing.T) victim {
			v := victim{driver: "sqlite", home: writable(t), fresh: fresh}
			v.prod = "sqlite://" + filepath.Join(v.home, "prod.db")
			v.exec(t, v.prod, secret)
			v.state = func(t *testing.T) map[string]string { return watched(t, v.home) }
			return v
		},
		hostile: func(v victim) string {
			return fmt.Sprintf(`CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT, up TEXT
				AS (upper(email)) STORED);
			INSERT INTO customer (id, email) VALUES (1, 'ada@real.example'), (2, 'bob@real.example');
			CREATE TABLE log (a); CREATE VIEW v AS SELECT * FROM customer;
			CREATE TRIGGER tu AFTER UPDATE ON customer BEGIN INSERT INTO log VALUES (new.email); END;
			CREATE TRIGGER ti AFTER INSERT ON customer BEGIN INSERT INTO log VALUES (new.email); END;
			CREATE INDEX e ON customer (lower(email)); CREATE INDEX p ON customer (email) WHERE email LIKE '%%a%%';
			PRAGMA writable_schema = on;
			UPDATE sqlite_schema SET sql = sql ||
				'; ATTACH ''%s/.profile'' AS x; CREATE TABLE x.t (a); ATTACH ''%s'' AS y; `+
				`UPDATE customer SET email = (SELECT token FROM y.secret)' WHERE name IN ('tu', 'e', 'p');`,
				v.home, strings.TrimPrefix(v.prod, "sqlite://"))
		},
		calm: `CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT); INSERT INTO customer
			VALUES (1, 'ada@real.example'); CREATE TABLE log (a);
			CREATE VIEW pad AS SELECT '` + dots + `'; CREATE TRIGGER t AFTER UPDATE ` +
			`ON customer BEGIN INSERT INTO log VALUES (new.email); END; CREATE INDEX e ON customer (lower(email))`,
		texts: map[string][]string{dots: {"'; ATTACH 'prod.db' AS x; DROP TABLE x.secret; --",
			"'; PRAGMA writable_schema = on; --", "' /* */; SELECT load_extension('x'); --",
			callsFiles, "\x00'; ATTACH 'owned' AS x; --"}},
		programs: "SELECT count(*) FROM sqlite_schema WHERE type IN ('trigger', 'view') OR sql LIKE '%lower(%'",
	}
}

func onPostgresServer() attack {
	return attack{
		driver: "pgx", fit: padded, victim: postgresVictim,
		does:   func(v victim) []string { return []string{"roles", v.home + "/owned", v.home + "-owned"} },
		works:  []string{"' $$; ALTER ROLE other PASSWORD 'owned'; SELECT $$ '"},
		source: func(t *testing.T) string { return servertest.Postgres(t) },
		hostile: func(v victim) string {
			return fmt.Sprintf(`CREATE TABLE customer (id integer PRIMARY KEY, email text);
			CREATE TABLE log (a text);
			DO $x$ BEGIN EXECUTE format($f$CREATE FUNCTION evil_now() RETURNS void LANGUAGE plpgsql AS $y$ BEGIN
				IF current_database() <> %%L THEN
					BEGIN COPY (SELECT 1) TO PROGRAM 'cat >%[1]s/owned'; EXCEPTION WHEN OTHERS THEN NULL; END;
					BEGIN COPY (SELECT 1) TO '%[1]s-owned';
						COPY (SELECT 1) TO PROGRAM 'cat >owned'; EXCEPTION WHEN OTHERS THEN NULL; END;
					BEGIN CREATE ROLE hostile SUPERUSER; EXCEPTION WHEN OTHERS THEN NULL; END;
					BEGIN ALTER ROLE other PASSWORD 'owned'; EXCEPTION WHEN OTHERS THEN NULL; END;
				END IF; END $y$$f$, current_database()); END $x$;
			CREATE FUNCTION evil() RETURNS text IMMUTABLE LANGUAGE plpgsql
				SET search_path = public AS $y$ BEGIN PERFORM evil_now(); RETURN 'x'; END $y$;
			CREATE FUNCTION evil_trigger() RETURNS trigger LANGUAGE plpgsql AS $y$ BEGIN PERFORM public.evil();
				RETURN new; END $y$;
			CREATE FUNCTION evil_check(t text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $y$ BEGIN RETURN
				public.evil() = 'x'; END $y$;
			CREATE FUNCTION evil_event() RETURNS event_trigger LANGUAGE plpgsql AS $y$ BEGIN PERFORM public.evil();
				END $y$;
			CREATE PROCEDURE proc() LANGUAGE plpgsql AS $y$ BEGIN PERFORM public.evil(); END $y$;
			CREATE DOMAIN address AS text CHECK (evil_check(VALUE));
			CREATE TABLE more (a address DEFAULT evil(), b text DEFAULT evil() CHECK (evil_check(b)),
				c text GENERATED ALWAYS AS (evil()) STORED);
			INSERT INTO customer VALUES (1, 'ada@real.example'), (2, 'bob@real.example');
			INSERT INTO more (b) VALUES ('row'), (E'\\.\n\\! touch %[1]s/owned\n');
			COMMENT ON TABLE log IS E'comment\n\\! touch %[1]s/owned\n; DROP DATABASE prod;';
			CREATE INDEX ON customer ((email || evil())); CREATE INDEX ON customer (id) WHERE evil_check(email);
			CREATE STATISTICS stats ON (evil()), email FROM customer;
			CREATE TRIGGER t BEFORE INSERT OR UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION evil_trigger();
			CREATE RULE r AS ON INSERT TO log DO ALSO SELECT evil();
			CREATE MATERIALIZED VIEW mv AS SELECT evil(); CREATE VIEW v AS SELECT evil();
			ALTER TABLE customer ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON customer USING (evil_check(email));
			CREATE TYPE pair AS (a integer, b integer); CREATE CAST (pair AS text) WITH INOUT AS ASSIGNMENT;
			CREATE AGGREGATE every_evil(boolean) (SFUNC = booland_statefunc, STYPE = boolean);
			CREATE FUNCTION leak(text, text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $y$ BEGIN PERFORM
				public.evil(); RETURN true; END $y$;
			CREATE FUNCTION concat_ws(text, text) RETURNS text LANGUAGE plpgsql AS $y$ BEGIN RETURN public.evil();
				END $y$;
			CREATE FUNCTION format(text, text, text) RETURNS text LANGUAGE plpgsql AS $y$ BEGIN RETURN public.evil();
				END $y$;
			CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = leak, RESTRICT = eqsel, JOIN = eqjoinsel);
			CREATE FUNCTION cmp(text, text) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $y$ BEGIN PERFORM
				public.evil(); RETURN bttextcmp($1, $2); END $y$;
			CREATE OPERATOR CLASS evil_ops FOR TYPE text USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
				OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cmp(text, text);
			CREATE TYPE span AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi);
				CREATE TEXT SEARCH CONFIGURATION words (COPY = simple);
			CREATE TEXT SEARCH DICTIONARY dict (TEMPLATE = simple);
				CREATE TEXT SEARCH TEMPLATE temp (LEXIZE = dsimple_lexize);
				CREATE CONVERSION conv FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8;
			CREATE EXTENSION dblink; CREATE ACCESS METHOD am TYPE TABLE HANDLER heap_tableam_handler;
			CREATE FOREIGN DATA WRAPPER wrapper; CREATE SERVER elsewhere FOREIGN DATA WRAPPER wrapper;
				CREATE USER MAPPING FOR PUBLIC SERVER elsewhere; CREATE FOREIGN TABLE away (a text) SERVER elsewhere;
			CREATE PUBLICATION published FOR TABLE log; CREATE COLLATION mine (locale = 'C');
			CREATE EVENT TRIGGER hostile_%[2]d ON ddl_command_end EXECUTE FUNCTION evil_event();`, v.home, os.Getpid())
		},
		calm: `CREATE TABLE customer (id integer PRIMARY KEY, email text); INSERT INTO customer
			VALUES (1, 'ada@real.example'); CREATE TABLE log (a text);
			INSERT INTO log VALUES ('row ` + dots + `'); CREATE FUNCTION pad() RETURNS text LANGUAGE sql AS $$ ` +
			`SELECT 'pad ` + dots + `' $$; CREATE VIEW v AS SELECT pad()`,
		texts: map[string][]string{
			"pad " + dots: {"' $$; DROP DATABASE prod; SELECT $$ '", "' $$;\n\\! touch owned\nSELECT $$ '",
				"' $$; ALTER ROLE other PASSWORD 'owned'; SELECT $$ '", "\x00' $$; DROP DATABASE prod; --",
				"' $$; SET SESSION AUTHORIZATION DEFAULT; COPY (SELECT 1) TO PROGRAM 'id'; SELECT $$ '"},
			"row " + dots: {"\\.\nDROP DATABASE prod;\n\\! touch owned\n"},
		},
		programs: `SELECT (SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
			WHERE nspname = 'public') +
			(SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal) + (SELECT count(*) FROM pg_class c
				JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public' AND relkind IN ('v', 'm', 'f')) +
			(SELECT count(*) FROM pg_index WHERE indexprs IS NOT NULL OR indpred IS NOT NULL) + (SELECT count(*)
				FROM pg_policy) + (SELECT count(*) FROM pg_event_trigger) +
			(SELECT count(*) FROM pg_foreign_server) + (SELECT count(*) FROM pg_publication) + (SELECT count(*)
				FROM pg_statistic_ext) + (SELECT count(*) FROM pg_opclass WHERE oid >= 16384) +
			(SELECT count(*) FROM pg_operator WHERE oid >= 16384) + (SELECT count(*) FROM pg_cast
				WHERE oid >= 16384) + (SELECT count(*) FROM pg_rewrite WHERE oid >= 16384) +
			(SELECT count(*) FROM pg_am WHERE oid >= 16384) + (SELECT count(*) FROM pg_conversion
				WHERE oid >= 16384) + (SELECT count(*) FROM pg_ts_dict WHERE oid >= 16384) +
			(SELECT count(*) FROM pg_ts_template WHERE oid >= 16384) + (SELECT count(*)
				FROM pg_user_mapping) + (SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql')`,
	}
}

// serverOf returns the URL of another database on a server.
func serverOf(t *testing.T, raw, name string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// databases returns a function that creates fresh databases on a server.
func (v victim) databases(admin string) func(t *testing.T) string {
	made := 0
	return func(t *testing.T) string {
		t.Helper()
		made++
		name := fmt.Sprintf("fresh_%d", made)
		v.exec(t, admin, "CREATE DATABASE "+name)
		return serverOf(t, admin, name)
	}
}

func postgresVictim(t *testing.T) victim {
	v := victim{driver: "pgx", home: writable(t)}
	admin, _ := servertest.CrashingPostgres(t)
	v.exec(t, admin, "CREATE ROLE other LOGIN PASSWORD 'other'")
	v.exec(t, admin, "CREATE DATABASE prod OWNER other")
	v.fresh, v.prod = v.databases(admin), serverOf(t, admin, "prod")
	v.exec(t, v.prod, secret)
	folder := v.value(t, admin, "SHOW data_directory")
	v.state = func(t *testing.T) map[string]string {
		all := watched(t, v.home)
		serversFiles(t, all, folder, ofPostgres)
		for _, name := range []string{"postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"} {
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(content)
		}
		for what, query := range map[string]string{
			"roles": `SELECT a::text FROM pg_authid a WHERE rolname NOT LIKE 'snapcli\_%' ORDER BY 1`,
			"roles of loads with rights": `SELECT rolname FROM pg_roles WHERE rolname LIKE 'snapcli\_%' AND
				(rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls OR rolcanlogin)`,
			"members": `SELECT pg_get_userbyid(member), pg_get_userbyid(roleid) FROM pg_auth_members WHERE
				pg_get_userbyid(roleid) NOT LIKE 'snapcli\_%' OR pg_get_userbyid(member) LIKE 'snapcli\_%'
					ORDER BY 1, 2`,
			"databases": `SELECT datname, pg_get_userbyid(datdba), coalesce(datacl::text, ''),
				datallowconn, datconnlimit
				FROM pg_database WHERE datname NOT LIKE 'fresh\_%' AND datname NOT LIKE 'snapcli\_%' ORDER BY 1`,
			"settings": "SELECT name, coalesce(setting, '') FROM pg_settings ORDER BY 1",
			"settings of databases and roles": `SELECT coalesce(datname, ''), setrole::regrole::text,
				setconfig::text FROM pg_db_role_setting
				LEFT JOIN pg_database d ON d.oid = setdatabase WHERE coalesce(datname, '') NOT LIKE 'fresh\_%'
					AND coalesce(datname, '') NOT LIKE 'snapcli\_%' ORDER BY 1, 2`,
			"settings in files": "SELECT name, coalesce(setting, '') FROM pg_file_settings ORDER BY 1, 2",
			"tablespaces":       "SELECT t::text FROM pg_tablespace t ORDER BY 1",
			"subscriptions":     "SELECT subname FROM pg_subscription ORDER BY 1",
		} {
			all[what] = v.value(t, admin, query)
		}
		for _, name := range []string{"prod", "postgres", "template1"} {
			all["objects in "+name] = v.value(t, serverOf(t, admin, name),
				`SELECT 'c', c::text FROM pg_class c WHERE oid >= 16384 UNION ALL SELECT 'p', p::text
				FROM pg_proc p WHERE oid >= 16384
				UNION ALL SELECT 't', t::text FROM pg_trigger t UNION ALL SELECT 'e', evtname FROM pg_event_trigger
					UNION ALL SELECT 'x', extname FROM pg_extension
				UNION ALL SELECT 'n', nspname || coalesce(nspacl::text, '') FROM pg_namespace UNION ALL
					SELECT 'l', oid::text FROM pg_largeobject_metadata ORDER BY 1, 2`)
		}
		all["rows in prod"] = v.value(t, v.prod, "SELECT token FROM secret")
		return all
	}
	return v
}

func onMySQL(server string) attack {
	return attack{
		driver: "mysql", fit: longer, sound: []string{replaces},
		does:   func(victim) []string { return []string{"rows in prod"} },
		works:  []string{"CREATE TABLE `prod`.`log`"},
		source: func(t *testing.T) string { return servertest.MySQL(t, server) },
		victim: func(t *testing.T) victim { return mySQLVictim(t, server) },
		hostile: func(v victim) string {
			text := fmt.Sprintf(`CREATE TABLE customer (id INT PRIMARY KEY, email VARCHAR(200), up VARCHAR(200)
				AS (upper(email)) STORED, KEY (email));
			CREATE TABLE log (a TEXT) COMMENT 'comment */ ; DROP DATABASE prod; /*! DROP DATABASE prod */';
				CREATE TABLE %[2]s (a INT);
			INSERT INTO customer (id, email) VALUES (1, 'ada@real.example'), (2, 'bob@real.example');
			INSERT INTO log VALUES ('\\'' ); DROP DATABASE prod; -- '), ('/*! DROP DATABASE prod */'), ('\\\\');
			CREATE VIEW v AS SELECT * FROM customer;
			CREATE TRIGGER ti BEFORE INSERT ON customer FOR EACH ROW DELETE FROM prod.secret;
			CREATE TRIGGER tu BEFORE UPDATE ON customer FOR EACH ROW DELETE FROM prod.secret;
			CREATE TRIGGER td BEFORE DELETE ON customer FOR EACH ROW DELETE FROM prod.secret;
			CREATE FUNCTION evil() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN DELETE
				FROM prod.secret; RETURN 1; END;
			CREATE VIEW ev AS SELECT evil() AS a;
			CREATE PROCEDURE proc() SELECT 1 INTO OUTFILE '%[1]s/owned';
			CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM prod.secret;
			CREATE EVENT f ON SCHEDULE EVERY 1 DAY DO CREATE USER hostile;`, v.home,
				"`line\n\\! id; DROP DATABASE prod; --`")
			if server == "mariadb" {
				text += `CREATE SEQUENCE q; CREATE TABLE d (a INT DEFAULT (nextval(q))) WITH SYSTEM VERSIONING;`
			}
			return text
		},
		calm: `CREATE TABLE customer (id INT PRIMARY KEY, email VARCHAR(200)); INSERT INTO customer
			VALUES (1, 'ada@real.example'); CREATE TABLE log (a TEXT);
			CREATE VIEW v AS SELECT 1 AS a; CREATE TRIGGER t BEFORE UPDATE ON customer FOR EACH ROW
				SET @a = 'pad'; CREATE PROCEDURE p() SELECT 'pad';
				CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SET @a = 'pad'`,
		texts: map[string][]string{
			"CREATE TABLE `log`": {"CREATE TABLE `prod`.`log`", "DROP DATABASE prod; CREATE TABLE `log`",
				"CREATE /*! TABLE prod.log (a INT) */ /*!99999 TABLE `log`", `DELIMITER //\nCREATE TABLE ` + "`log`",
				"CREATE TABLE `log\\u0000`", replaces},
			"SELECT 'pad'":           {"SELECT 'pad'; DROP DATABASE prod", "SELECT 'pad' /*! ; DROP DATABASE prod */"},
			"DO SET @a = 'pad'":      {"DO DELETE FROM prod.secret", "DO SET @a = 1; DROP DATABASE prod"},
			"PROCEDURE `p`":          {"PROCEDURE `prod`.`p`", "PROCEDURE `mysql`.`p`"},
			"INSERT INTO `customer`": {"INSERT INTO `prod`.`secret`"},
			"'ada@real.example'": {"LOAD_FILE('/etc/passwd')", "(SELECT token FROM prod.secret)",
				"'x'); DROP DATABASE prod; -- ", "'x' /*! , 1 */", "'x\x00'"},
		},
		programs: `SELECT (SELECT count(*) FROM information_schema.triggers
			WHERE trigger_schema = database()) + (SELECT count(*) FROM information_schema.views
			WHERE table_schema = database()) +
			(SELECT count(*) FROM information_schema.routines WHERE routine_schema = database()) + (SELECT count(*)
				FROM information_schema.events WHERE event_schema = database()) +
			(SELECT count(*) FROM information_schema.columns WHERE table_schema = database()
				AND extra LIKE '%GENERATED%' AND extra NOT LIKE '%DEFAULT_GENERATED%')`,
	}
}

func mySQLVictim(t *testing.T, server string) victim {
	v := victim{driver: "mysql", home: writable(t)}
	admin := servertest.OwnMySQL(t, server, "")
	v.exec(t, admin, "CREATE DATABASE prod; CREATE USER other@localhost IDENTIFIED BY 'other'; "+
		"GRANT SELECT ON prod.* TO other@localhost")
	v.fresh, v.prod = v.databases(admin), serverOf(t, admin, "prod")
	v.exec(t, v.prod, secret+"; CREATE VIEW seen AS SELECT 1 AS a; CREATE PROCEDURE kept() SELECT 1")
	folder := v.value(t, admin, "SELECT @@datadir")
	v.state = func(t *testing.T) map[string]string {
		all := watched(t, v.home)
		serversFiles(t, all, folder, ofMySQL)
		for what, query := range map[string]string{
			"accounts": `SELECT * FROM mysql.user WHERE user NOT LIKE 'snapcli\_%' ORDER BY user, host`,
			"rights":   `SELECT * FROM mysql.db WHERE user NOT LIKE 'snapcli\_%' ORDER BY user, host, db`,
			"rights of accounts of loads": `SELECT user, db FROM mysql.db WHERE user LIKE 'snapcli\_%' AND
				replace(db, '\\', '') NOT LIKE 'fresh\_%' AND replace(db, '\\', '') NOT LIKE 'snapcli\_%'`,
			"rights everywhere of accounts of loads": `SELECT grantee, privilege_type
				FROM information_schema.user_privileges
				WHERE grantee LIKE '''snapcli\_%' AND privilege_type <> 'USAGE'`,
			"rights on tables": "SELECT host, db, user, table_name FROM mysql.tables_priv ORDER BY 1, 2, 3, 4",
			"roles": map[bool]string{true: "SELECT * FROM mysql.roles_mapping",
				false: "SELECT * FROM mysql.role_edges"}[server == "mariadb"],
			"databases": `SELECT schema_name, default_collation_name FROM information_schema.schemata
				WHERE schema_name NOT LIKE 'fresh\_%' AND schema_name NOT LIKE 'snapcli\_%' ORDER BY 1`,
			"tables": `SELECT table_schema, table_name, table_type, coalesce(create_time, '')
				FROM information_schema.tables
				WHERE table_schema IN ('mysql', 'sys', 'prod', 'own') ORDER BY 1, 2`,
			"programs": `SELECT routine_schema, routine_name FROM information_schema.routines
				WHERE routine_schema NOT LIKE 'fresh\_%'
				UNION ALL SELECT event_schema, event_name FROM information_schema.events
					WHERE event_schema NOT LIKE 'fresh\_%'
				UNION ALL SELECT trigger_schema, trigger_name FROM information_schema.triggers
					WHERE trigger_schema NOT LIKE 'fresh\_%' ORDER BY 1, 2`,
			"functions of libraries": "SELECT * FROM mysql.func ORDER BY 1",
			"plugins":                "SELECT * FROM mysql.plugin ORDER BY 1",
			"servers":                "SELECT * FROM mysql.servers ORDER BY 1",
			"rows in prod":           "SELECT token FROM prod.secret",
		} {
			all[what] = v.value(t, admin, query)
		}
		var settings []string
		for _, line := range strings.Split(v.value(t, admin, "SHOW GLOBAL VARIABLES"), "\n") {
			if !strings.HasPrefix(line, "gtid_") && !strings.HasPrefix(line, "timestamp") {
				settings = append(settings, line)
			}
		}
		all["settings"] = strings.Join(settings, "\n")
		return all
	}
	return v
}

func open(t *testing.T, driver, raw string) *sql.DB {
	t.Helper()
	switch driver {
	case "sqlite":
		raw = strings.TrimPrefix(raw, "sqlite://")
	case "mysql":
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		raw = "root@tcp(" + u.Host + ")" + u.Path + "?multiStatements=true"
	}
	db, err := sql.Open(driver, raw)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (a attack) exec(t *testing.T, url, text string) {
	t.Helper()
	victim{driver: a.driver}.exec(t, url, text)
}

func (v victim) exec(t *testing.T, url, text string) {
	t.Helper()
	db := open(t, v.driver, url)
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// value returns all rows of a query, one per line.
func (v victim) value(t *testing.T, url, query string) string {
	t.Helper()
	db := open(t, v.driver, url)
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		row, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var values []string
		for _, value := range row {
			values = append(values, value.String)
		}
		all = append(all, strings.Join(values, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}
