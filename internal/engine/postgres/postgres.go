// Package postgres dumps and restores PostgreSQL databases through pg_dump and pg_restore.
//
// A dump is one stream in pg_dump's custom format, without compression. It is taken in one snapshot
// of the server and contains every schema and the large objects. A load restores the dump in
// parallel into a scratch database on the destination's server. One transaction then gives the
// scratch database the destination's name.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/reach"
)

// Engine is the PostgreSQL engine.
type Engine struct {
	// Tools are the only folders that are searched for pg_dump and pg_restore. If there are none,
	// PATH and the usual folders are searched.
	Tools []string

	// LockTimeout is how long a load into an existing database waits for locks that others hold
	// when it replaces the content. 0 means half a minute.
	LockTimeout time.Duration

	// Way is the route to the server. Nil connects directly.
	Way *reach.Way
}

// database is a database on a server, with the settings to connect to it.
type database struct {
	raw    string
	config *pgx.ConnConfig
	way    *reach.Way

	encoding   string     // encoding of the database's strings, set by a dump
	excluded   *exclusion // set by a dump of chosen objects
	withGrants bool       // whether a dump records the rights of other users
	tablesOnly bool       // whether its sessions read only tables and sequences, set by a dump
}

// encodingParameter is a parameter of URLs that is ignored: sessions choose the client encoding
// themselves.
const encodingParameter = "client_encoding"

// serviceFile is a parameter of URLs. PostgreSQL's programs before version 18 accept it only as an
// environment variable.
const serviceFile = "servicefile"

// parse parses a database URL. It also uses libpq's environment variables and password files. The
// connection timeout is 10 seconds, unless connect_timeout or PGCONNECT_TIMEOUT sets another.
func parse(raw string) (database, error) {
	config, err := pgx.ParseConfig(raw)
	if err != nil {
		return database{}, &snap.Error{Code: snap.CodeUsage, Detail: "the PostgreSQL URL is invalid",
			Hint: "use postgres://user@host:5432/database", Cause: err}
	}
	if config.ConnectTimeout == 0 { // neither connect_timeout nor PGCONNECT_TIMEOUT
		config.ConnectTimeout = 10 * time.Second
	}
	config.RuntimeParams["application_name"] = "snapcli"
	delete(config.RuntimeParams, encodingParameter)
	config.AfterConnect = prepareSession
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return database{raw: raw, config: config}, nil
}

// parse parses a database URL. It also sets the engine's route to the server.
func (e Engine) parse(raw string) (database, error) {
	d, err := parse(raw)
	if err == nil && e.Way.Through() != "" {
		d.config.DialFunc = e.Way.Dial
		d.config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	d.way = e.Way
	return d, err
}

// named returns the database with this name on the same server.
func (d database) named(name string) database {
	config := d.config.Copy()
	config.Database = name
	return database{raw: d.raw, config: config, way: d.way}
}

// name returns the database's name.
func (d database) name() string {
	if d.config.Database != "" {
		return d.config.Database
	}
	return d.config.User
}

// url returns the database's URL, with its password.
func (d database) url() string { return d.build(true) }

// public returns the database's URL without secrets, so that it can be a program's argument.
func (d database) public() string { return d.build(false) }

func (d database) build(secret bool) string {
	u, err := url.Parse(d.raw)
	if err != nil || u.Scheme == "" { // a connection string of key=value words
		u = &url.URL{Scheme: "postgres"}
	}
	q := u.Query()
	port := strconv.Itoa(int(d.config.Port))
	switch {
	case (u.Host != "" || q.Has("host")) && (u.Port() != "" || q.Has("port") || d.config.Port == 5432):
	case u.Host != "" || q.Has("host"): // the port is in a variable or a service
		q.Set("port", port)
	case strings.HasPrefix(d.config.Host, "/"):
		q.Set("host", d.config.Host)
		q.Set("port", port)
	default:
		u.Host = net.JoinHostPort(d.config.Host, port)
	}
	for _, parameter := range []string{"password", "dbname", "user", "sslpassword", serviceFile, encodingParameter} {
		q.Del(parameter)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // libpq does not decode + as a space
	u.Path, u.RawPath = "/"+d.name(), ""
	u.User = url.User(d.config.User)
	if secret && d.config.Password != "" {
		u.User = url.UserPassword(d.config.User, d.config.Password)
	}
	return u.String()
}

// environment returns the environment variables that the tools need to connect, in addition to the
// public URL.
func (d database) environment() []string {
	env := []string{"PGAPPNAME=snapcli", "LC_ALL=C",
		fmt.Sprintf("PGCONNECT_TIMEOUT=%d", d.config.ConnectTimeout/time.Second)}
	if d.config.Password != "" {
		env = append(env, "PGPASSWORD="+d.config.Password)
	}
	if u, err := url.Parse(d.raw); err == nil && u.Query().Get(serviceFile) != "" {
		env = append(env, "PGSERVICEFILE="+u.Query().Get(serviceFile))
	}
	return env
}

// connect opens a session in which unqualified names refer to PostgreSQL's own objects. Otherwise,
// a function that somebody else created in the database could run instead of PostgreSQL's, with the
// user's privileges. A session of a build also reads only tables and sequences.
func (d database) connect(ctx context.Context) (*pgx.Conn, error) {
	config := d.config.Copy()
	var err error
	if config.Password, err = d.way.Prepare(ctx, config.Password); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		settings := builtInNames
		if d.tablesOnly {
			settings += "; " + onlyTables
		}
		if _, err = conn.PgConn().Exec(ctx, settings).ReadAll(); err != nil {
			conn.Close(context.WithoutCancel(ctx))
		}
	}
	var tunnel *snap.Error
	if errors.As(err, &tunnel) { // pgx's error repeats it for each address
		return nil, tunnel
	}
	if err != nil {
		return nil, d.failure(err)
	}
	return conn, nil
}

// builtInNames makes unqualified names refer to PostgreSQL's own objects. usersNames restores the
// user's default search path, for SQL that the user wrote.
const (
	builtInNames = "SET search_path = ''"
	usersNames   = "RESET search_path"
)

// onlyTables sets restrict_nonsystem_relation_kind on servers that have it, so that they refuse to
// read views and foreign tables of users. Otherwise, somebody could replace a table with a view
// between the moment when a build lists the table and the moment when it reads the table, and the
// view's functions would run with the user's privileges (CVE-2024-7348). withViews allows views and
// foreign tables again, for SQL that the user wrote.
const (
	onlyTables = "SELECT set_config(" + readableKinds + ", 'view, foreign-table', false)" + ifKnown
	withViews  = "SELECT set_config(" + readableKinds + ", '', false)" + ifKnown

	readableKinds = "'restrict_nonsystem_relation_kind'" // since versions 12.20, 13.16, 14.13, 15.8, 16.4 and 17
	ifKnown       = " WHERE current_setting(" + readableKinds + ", true) IS NOT NULL"
)

// maintenance connects to another database on the server, from which d can be created, renamed and
// dropped.
func (d database) maintenance(ctx context.Context) (*pgx.Conn, error) {
	var first error
	for _, name := range []string{"postgres", "template1"} {
		if name == d.name() {
			continue
		}
		conn, err := d.named(name).connect(ctx)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if snap.CodeOf(err) != snap.CodeNotFound {
			break
		}
	}
	return nil, first
}

// maintenance is [database.maintenance] for the server of a URL. It also returns the URL's database.
func (e Engine) maintenance(ctx context.Context, raw string) (d database, conn *pgx.Conn, err error) {
	if d, err = e.parse(raw); err == nil {
		conn, err = d.maintenance(ctx)
	}
	return d, conn, err
}

// local reports whether the server's address is on this machine.
func (d database) local() bool {
	return d.way.Through() == "" && (snap.IsLoopback(d.config.Host) || strings.HasPrefix(d.config.Host, "/"))
}

func (d database) where() string {
	switch {
	case !strings.HasPrefix(d.config.Host, "/"):
		return "at " + net.JoinHostPort(d.config.Host, strconv.Itoa(int(d.config.Port))) + d.way.Suffix()
	case d.way.Through() != "":
		return "at " + d.config.Host + d.way.Suffix()
	}
	return "on this machine"
}

// SQLSTATE codes, from appendix A of PostgreSQL's manual.
const (
	stateNoDatabase        = "3D000"
	stateDuplicateDatabase = "42P04" // the name is in use
	stateDependents        = "2BP01" // other objects depend on the object to drop
	stateBadPassword       = "28P01"
	stateBadLogin          = "28000"
	stateNoRight           = "42501"
	stateInUse             = "55006"
	stateDiskFull          = "53100"
	stateBadParameter      = "22023"
	stateWrongObject       = "42809"
	stateSyntax            = "42601"
	stateUnsupported       = "0A000"
)

func state(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// failure converts an error of the server or of the connection to a *snap.Error.
func (d database) failure(err error) error {
	var already *snap.Error
	if err == nil || errors.As(err, &already) || errors.Is(err, context.Canceled) {
		return err
	}
	e := &snap.Error{Code: snap.CodeDatabase, Cause: err}
	var pg *pgconn.PgError
	switch {
	case state(err) == stateNoDatabase:
		e.Code = snap.CodeNotFound
		e.Detail = fmt.Sprintf("there is no database %q on the PostgreSQL server %s", d.name(), d.where())
		e.Hint = "check the target's URL with `snapcli targets`"
	case d.refusedConnection(err, e):
	case state(err) == stateBadPassword || state(err) == stateBadLogin:
		e.Detail = fmt.Sprintf("the PostgreSQL server %s refused the user %q or the password", d.where(), d.config.User)
		e.Hint = "set the password as ${NAME} in the URL, in PGPASSWORD or in ~/.pgpass"
		if d.way.HasPasswordCommand() {
			e.Hint = "check the user in the URL, and the program that prints the password"
		}
	case state(err) == stateDiskFull:
		e.Code = snap.CodeStorageFull
		e.Detail = fmt.Sprintf("the PostgreSQL server %s has no space left on its disk", d.where())
		e.Hint = "free some space there and try again; the database is unchanged"
	case state(err) == stateInUse:
		e.Code = snap.CodeConflict
		e.Detail = fmt.Sprintf("the database %q is in use", d.name())
		e.Hint = "close the connections, or end them with --terminate"
	case state(err) == stateNoRight:
		e.Detail = fmt.Sprintf("the PostgreSQL user %q is not allowed to do this: %s", d.config.User, message(err))
		e.Hint = "grant the privilege, or use another user in the target's URL"
	case errors.As(err, &pg):
		e.Detail = fmt.Sprintf("the PostgreSQL server %s failed: %s", d.where(), message(err))
	default:
		e.Detail = fmt.Sprintf("the PostgreSQL server %s cannot be reached", d.where())
		e.Hint = "check that it is running, and check the host and port in the target's URL"
	}
	return e
}

func message(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return charset.Readable(pg.Message)
	}
	return charset.Readable(err.Error())
}

// Check implements [engine.Engine].
func (e Engine) Check(ctx context.Context, raw string) (engine.Info, error) {
	d, err := e.parse(raw)
	if err != nil {
		return engine.Info{}, err
	}
	info := engine.Info{}
	conn, err := d.connect(ctx)
	if snap.CodeOf(err) == snap.CodeNotFound {
		if conn, err = d.maintenance(ctx); err != nil {
			return info, err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		info.ServerVersion, err = version(ctx, conn)
		return info, d.failure(err)
	}
	if err != nil {
		return info, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	info.Exists = true
	if err := inspect(ctx, conn, &info); err != nil {
		return info, d.failure(err)
	}
	if tool, err := e.tool("pg_dump", major(info.ServerVersion)); err == nil {
		info.ToolVersion = tool.version
	}
	return info, nil
}

// emptyDatabase selects whether the current database has only the objects that CREATE DATABASE
// made. The objects of users have IDs from 16384 on (FirstNormalObjectId), and nearly all of them
// have an entry in pg_depend. The other kinds of objects, and the settings of the database, are
// checked one by one.
const emptyDatabase = `SELECT NOT EXISTS (SELECT FROM pg_depend WHERE objid >= 16384)
	AND NOT EXISTS (SELECT FROM pg_namespace WHERE oid >= 16384 AND nspname !~ '^pg_(toast_)?temp_')
	AND NOT EXISTS (SELECT FROM pg_foreign_data_wrapper)
	AND NOT EXISTS (SELECT FROM pg_largeobject_metadata)
	AND NOT EXISTS (SELECT FROM pg_publication)
	AND NOT EXISTS (SELECT FROM pg_subscription JOIN pg_database d ON d.oid = subdbid
		WHERE datname = current_database())
	AND NOT EXISTS (SELECT FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
		WHERE datname = current_database())`

func isEmpty(ctx context.Context, conn *pgx.Conn) (empty bool, err error) {
	err = conn.QueryRow(ctx, emptyDatabase).Scan(&empty)
	return empty, err
}

// inspect sets the fields of info from the connected database.
func inspect(ctx context.Context, conn *pgx.Conn, info *engine.Info) (err error) {
	if info.ServerVersion, err = version(ctx, conn); err != nil {
		return err
	}
	if info.Properties, err = properties(ctx, conn); err != nil {
		return err
	}
	if info.Tables, err = listTables(ctx, conn); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&info.Size); err != nil {
		return err
	}
	if info.Empty, err = isEmpty(ctx, conn); err != nil {
		return err
	}
	var unfinished bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
		engine.Unfinished).Scan(&unfinished); err != nil {
		return err
	}
	if unfinished {
		info.Warnings = append(info.Warnings, engine.UnfinishedWarning)
	}
	info.Connections, err = connections(ctx, conn, conn.Config().Database)
	return err
}

func version(ctx context.Context, conn *pgx.Conn) (v string, err error) {
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&v)
	v, _, _ = strings.Cut(v, " ")
	return v, err
}

// major returns the leading number of a version such as 15.4.
func major(version string) int {
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if digits >= 0 {
		version = version[:digits]
	}
	n, _ := strconv.Atoi(version)
	return n
}

// properties returns the settings that a copy of the database must be created with.
func properties(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	var encoding, collate, ctype, provider, locale, rules string
	// Versions 15 to 17 added the columns of the locale provider.
	err := conn.QueryRow(ctx,
		`SELECT pg_encoding_to_char(encoding), datcollate, datctype, coalesce(j->>'datlocprovider', 'c'),
		coalesce(j->>'datlocale', j->>'daticulocale', ''), coalesce(j->>'daticurules', '')
		FROM pg_database d, to_jsonb(d) j
			WHERE datname = current_database()`).Scan(&encoding, &collate, &ctype, &provider, &locale, &rules)
	if err != nil {
		return nil, err
	}
	all := map[string]string{"encoding": encoding, "lc_collate": collate, "lc_ctype": ctype}
	switch provider {
	case "i":
		all["icu_locale"] = locale
		if rules != "" {
			all["icu_rules"] = rules
		}
	case "b":
		all["builtin_locale"] = locale
	}
	return all, nil
}

// listTables lists the tables that store rows. It omits foreign tables, and partitioned tables
// because their rows are in their partitions. It does not count rows. Names are decoded from their
// stored bytes, in the same way as the names in a dump.
func listTables(ctx context.Context, conn *pgx.Conn) ([]engine.Table, error) {
	stored := charsetOn(conn.PgConn())
	return collect(ctx, conn,
		`SELECT convert_to(n.nspname::text, e), convert_to(c.relname::text, e),
		array_agg(convert_to(a.attname::text, e) ORDER BY a.attnum),
			array_agg(convert_to(format_type(a.atttypid, a.atttypmod), e) ORDER BY a.attnum),
				array_agg(a.attnotnull ORDER BY a.attnum)
		FROM getdatabaseencoding() e, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND `+ownSchemas+`
		GROUP BY 1, 2 ORDER BY 1, 2`, func(row pgx.CollectableRow) (engine.Table, error) {
			var schema, name []byte
			var columns, types [][]byte // nil for a table without columns
			var notNull []*bool
			err := row.Scan(&schema, &name, &columns, &types, &notNull)
			t := engine.Table{Schema: stored.Label(string(schema)), Name: stored.Label(string(name)), Rows: -1}
			for i := range columns {
				if columns[i] != nil {
					t.Columns = append(t.Columns, engine.Column{Name: stored.Label(string(columns[i])),
						Type: stored.Label(string(types[i])), NotNull: *notNull[i]})
				}
			}
			return t, err
		})
}

// connections lists the other connections to a database.
func connections(ctx context.Context, conn *pgx.Conn, name string) ([]string, error) {
	return collect(ctx, conn,
		`SELECT coalesce(usename, '') || coalesce(' (' || nullif(application_name, '') || ')', '')
			|| coalesce(' from ' || host(client_addr), '')
		FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()
			AND (backend_type = 'client backend' OR backend_type IS NULL AND usename IS NOT NULL) -- NULL if hidden
		ORDER BY backend_start`, readText, name)
}

// collect runs a query, calls read for each row, and returns the results.
func collect[T any](ctx context.Context, conn *pgx.Conn, query string, read pgx.RowToFunc[T], args ...any) ([]T,
	error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}

// readText reads a row that has one column with text for the user.
func readText(row pgx.CollectableRow) (text string, err error) {
	err = row.Scan(&text)
	return charset.Readable(text), err
}
