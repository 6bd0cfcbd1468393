// Package mysql dumps and restores MySQL and MariaDB databases. It implements the servers' protocol
// itself and needs none of their programs.
//
// A dump is a line of JSON in a comment, which holds the definitions, followed by the rows as
// INSERT statements of about 1 MiB with one row per line. A load restores the dump to a scratch
// database on the destination's server. One RENAME TABLE statement then replaces the old tables
// with the new ones, because these servers cannot rename a database. RENAME TABLE cannot move
// views, routines, triggers or events to another database, so they are created immediately
// afterwards from a journal. If the load is killed, the next load creates the remaining ones from
// the journal.
package mysql

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"snap"
	"snap/internal/engine"
	"snap/internal/reach"
)

// Engine is the engine for MySQL and MariaDB.
type Engine struct {
	// Way is the route to the server. Nil connects directly.
	Way *reach.Way
}

// database is a database on a server, with the settings to connect to it.
type database struct {
	name, user, password string
	host, port, socket   string
	tls                  encryption
	way                  *reach.Way
}

// parse parses a database URL and adds the engine's route to the server.
func (e Engine) parse(raw string) (database, error) {
	d, err := parse(raw)
	d.way = e.Way
	return d, err
}

// parse parses a database URL: mysql://user@host:3306/name?tls=true, or with ?socket=/path for a
// local server. Without a password, it reads the user's option file.
func parse(raw string) (database, error) {
	u, err := url.Parse(raw)
	if err != nil || strings.Trim(u.Path, "/") == "" || strings.Contains(strings.Trim(u.Path, "/"), "/") ||
		!isHost(u.Hostname()) {
		return database{}, &snap.Error{Code: snap.CodeUsage, Detail: "the MySQL URL is invalid",
			Hint: "use mysql://user@host:3306/database"}
	}
	d := database{name: strings.Trim(u.Path, "/"), host: cmp.Or(u.Hostname(), "127.0.0.1"),
		port: cmp.Or(u.Port(), "3306")}
	if err := d.readParameters(u.Query()); err != nil {
		return database{}, err
	}
	if u.User != nil {
		d.user = u.User.Username()
		d.password, _ = u.User.Password()
	}
	if d.password == "" {
		err = d.fromOptionFile(optionFile(), u.Host != "")
	}
	return d, err
}

// isHost reports whether name can be a host. net/url also accepts strings that cannot be hosts,
// such as a name with a colon.
func isHost(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ":")
}

func (d database) named(name string) database {
	d.name = name
	return d
}

// url returns the database's URL, with its password.
func (d database) url() string {
	u := url.URL{Scheme: "mysql", Host: net.JoinHostPort(d.host, d.port), Path: "/" + d.name,
		User: url.UserPassword(d.user, d.password)}
	q := url.Values{}
	for key, value := range map[string]string{"socket": d.socket, "tls": d.tls.mode, "tls-ca": d.tls.ca,
		"tls-cert": d.tls.cert, "tls-key": d.tls.key} {
		if value != "" {
			q.Set(key, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// open returns a pool of connections that use the database with this name, or no database if the
// name is empty. It does not connect yet.
func (d database) open(name string) (*sql.DB, error) {
	c := driver.NewConfig()
	c.User, c.Passwd, c.DBName = d.user, d.password, name
	c.Net, c.Addr = "tcp", net.JoinHostPort(d.host, d.port)
	if d.socket != "" {
		c.Net, c.Addr = "unix", d.socket
	}
	c.Timeout = 10 * time.Second
	if d.tls.mode == tlsPreferred {
		c.TLSConfig = tlsPreferred
	}
	var err error
	if c.TLS, err = d.tls.config(d.host); err != nil {
		return nil, err
	}
	c.MaxAllowedPacket = 0 // use the server's limit
	c.Params = map[string]string{"wait_timeout": sessionSettings}
	c.Logger = &driver.NopLogger{}
	c.DialFunc = d.way.Dial
	// Unlike a password, a token must be sent unhashed. Only a verified server receives it.
	c.AllowCleartextPasswords = d.way.HasPasswordCommand() && (d.tls.mode == tlsVerify || d.tls.mode == tlsVerifyCA)
	err = c.Apply(driver.BeforeConnect(func(ctx context.Context, c *driver.Config) (err error) {
		c.Passwd, err = d.way.Prepare(ctx, c.Passwd)
		return err
	}))
	if err != nil {
		return nil, err
	}
	connector, err := driver.NewConnector(c)
	if err != nil {
		return nil, &snap.Error{Code: snap.CodeUsage, Detail: "the MySQL URL is invalid",
			Hint: "use mysql://user@host:3306/database", Cause: err}
	}
	return sql.OpenDB(connector), nil
}

// sessionSettings is the value of wait_timeout in every session of this package, followed by other
// settings. With these settings, a session may be idle for a day, table sizes are current, and no
// limit that the server sets for other sessions ends long statements or silently omits rows.
const sessionSettings = "86400, net_write_timeout = 86400, sql_select_limit = 18446744073709551615 /*!80000 , " +
	"max_execution_time = 0, information_schema_stats_expiry = 0 */" +
	"/*M!100300 , max_statement_time = 0, idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, " +
	"idle_write_transaction_timeout = 0 */"

func (d database) where() string {
	if d.socket != "" {
		return "at " + d.socket + d.way.Suffix()
	}
	return "at " + net.JoinHostPort(d.host, d.port) + d.way.Suffix()
}

// Error numbers of the server, from its manual.
const (
	erDatabaseDenied = 1044
	erAccessDenied   = 1045
	erNoDatabase     = 1049
	erNoSchema       = 3503 // from ALTER DATABASE in MySQL
	erTableDenied    = 1142
	erNoRight        = 1227
	erNoTable        = 1146
	erTableExists    = 1050
	erNoColumn       = 1054
	erTableChanged   = 1412
	erLockTimeout    = 1205
	erDeadlock       = 1213
	erEmptyQuery     = 1065
	erNoCollation    = 1273
	erNotNull        = 1048
	erOutOfRange     = 1264
	erTruncated      = 1265
	erWrongText      = 1366
	erWrongTime      = 1292
	erTruncatedText  = 1406
	erNoVariable     = 1193
	erWrongValue     = 1231
	erPacketTooLarge = 1153
	erDiskFull       = 1021
	erRecordFull     = 1114
	erTLSRequired    = 3159
	erCheckFailed    = 4025 // MariaDB
)

func number(err error) uint16 {
	if e, ok := errors.AsType[*driver.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// failure converts an error of the server or the connection to one for the user.
func (d database) failure(err error) error {
	var already *snap.Error
	if err == nil || errors.As(err, &already) || errors.Is(err, context.Canceled) {
		return err
	}
	e := &snap.Error{Code: snap.CodeDatabase, Cause: err}
	serverErr, _ := errors.AsType[*driver.MySQLError](err)
	switch number(err) {
	case erNoDatabase:
		e.Code = snap.CodeNotFound
		e.Detail = fmt.Sprintf("there is no database %q on the MySQL server %s", d.name, d.where())
		e.Hint = "check the target's URL with `snapcli targets`"
	case erAccessDenied:
		e.Detail = fmt.Sprintf("the MySQL server %s refused the user %q or the password", d.where(), d.user)
		e.Hint = "set the password as ${NAME} in the URL, or in ~/.my.cnf"
		if d.way.HasPasswordCommand() {
			e.Hint = "check the user in the URL, and the program that prints the password"
		}
		if d.tls.mode == "" || d.tls.mode == tlsOff {
			e.Hint += "; if the account requires TLS, add ?tls=true to the URL"
		}
	case erTLSRequired:
		e.Detail = fmt.Sprintf("the MySQL server %s requires TLS", d.where())
		e.Hint = "add ?tls=true to the URL, and &tls-ca=FILE if it has a private certificate authority"
	case erDatabaseDenied, erTableDenied, erNoRight:
		e.Detail = fmt.Sprintf("the MySQL user %q is not allowed to do this: %s", d.user, serverErr.Message)
		e.Hint = "grant the privilege, or use another user in the target's URL"
	case erLockTimeout:
		e.Code = snap.CodeConflict
		e.Detail = fmt.Sprintf("the database %q is in use: one of its tables stayed locked", d.name)
		e.Hint = "close the connections that use it and try again; nothing was changed"
	case erPacketTooLarge:
		e.Detail = fmt.Sprintf("a row is larger than the MySQL server %s accepts", d.where())
		e.Hint = "raise max_allowed_packet on the server and try again; nothing was changed"
	case erDiskFull, erRecordFull: // a table of the engine MEMORY can also be full
		e.Code = snap.CodeStorageFull
		e.Detail = fmt.Sprintf("the MySQL server %s has no space left: %s", d.where(), serverErr.Message)
		e.Hint = "free some disk space there, or raise max_heap_table_size if the table has the engine MEMORY; then " +
			"try again; the database is unchanged"
	case 0:
		e.Detail, e.Hint = d.unreached(err)
	default:
		e.Detail = fmt.Sprintf("the MySQL server %s failed: %s", d.where(), serverErr.Message)
	}
	return e
}

// unreached describes an error that is not a response of the server to a statement.
func (d database) unreached(err error) (detail, hint string) {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return fmt.Sprintf("the certificate of the MySQL server %s cannot be verified: %s", d.where(), untrusted.Err),
			"give the certificate authority with &tls-ca=FILE in the URL, and use a host that the certificate names"
	case errors.Is(err, driver.ErrCleartextPassword):
		return fmt.Sprintf("the MySQL server %s asks for the password as plain text", d.where()),
			"add ?tls=true to the URL, and set password_command: the password is only sent to a verified server"
	case errors.Is(err, driver.ErrNoTLS):
		return fmt.Sprintf("the MySQL server %s does not offer TLS", d.where()),
			"turn TLS on there, or remove tls from the URL"
	case isConnectionLost(err):
		return fmt.Sprintf("the MySQL server %s ended the connection", d.where()),
			"look for the reason in its log, and try again when it is running"
	}
	return fmt.Sprintf("the MySQL server %s cannot be reached", d.where()),
		"check that it is running, and check the host and port in the target's URL"
}

// isDenied reports whether the server refused a statement because a privilege is missing.
func isDenied(err error) bool {
	return slices.Contains([]uint16{erDatabaseDenied, erTableDenied, erNoRight}, number(err))
}

// isConnectionLost reports whether an established connection broke.
func isConnectionLost(err error) bool {
	return errors.Is(err, driver.ErrInvalidConn) || errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Check implements [engine.Engine].
func (e Engine) Check(ctx context.Context, raw string) (info engine.Info, err error) {
	err = e.withServer(raw, func(d database, db *sql.DB) (err error) {
		info, err = inspect(ctx, db, d.name)
		return err
	})
	return info, err
}

// inspect describes the database.
func inspect(ctx context.Context, db *sql.DB, name string) (engine.Info, error) {
	var info engine.Info
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&info.ServerVersion); err != nil {
		return info, err
	}
	var charset, collation string
	err := db.QueryRowContext(ctx, "SELECT default_character_set_name, default_collation_name FROM "+
		"information_schema.schemata WHERE schema_name = ?", name).Scan(&charset, &collation)
	if errors.Is(err, sql.ErrNoRows) {
		return info, nil
	}
	if err != nil {
		return info, err
	}
	info.Exists, info.Properties = true, map[string]string{"charset": charset, "collation": collation}
	if info.Tables, err = listTables(ctx, db, name); err != nil {
		return info, err
	}
	if slices.ContainsFunc(info.Tables, func(t engine.Table) bool { return t.Name == engine.Unfinished }) {
		info.Warnings = append(info.Warnings, engine.UnfinishedWarning)
	}
	state, err := databaseState(ctx, db, name)
	if err != nil {
		return info, err
	}
	info.Size, info.Connections = state.Size, state.Connections
	if info.Empty, err = isEmpty(ctx, db, name); err != nil {
		return info, err
	}
	unsafe, err := queryStrings(ctx, db, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND "+
		"table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND engine NOT IN ('InnoDB', 'ROCKSDB', 'MEMORY')", name)
	if err != nil {
		return info, err
	}
	if len(unsafe) > 0 {
		info.Warnings = append(info.Warnings, "these tables are not transactional, so their rows can be newer than "+
			"those of other tables: "+strings.Join(unsafe, ", "))
	}
	_, lost, err := histories(ctx, db, name)
	if err != nil {
		return info, err
	}
	if len(lost) > 0 {
		info.Warnings = append(info.Warnings, historyLost(lost))
	}
	hidden, err := hiddenWarnings(ctx, db, name)
	if err != nil {
		return info, err
	}
	info.Warnings = append(info.Warnings, hidden...)
	return info, nil
}

// isEmpty reports whether a database has no objects.
func isEmpty(ctx context.Context, q querier, name string) (yes bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = ?)
		AND NOT EXISTS (SELECT 1 FROM information_schema.routines WHERE routine_schema = ?)
		AND NOT EXISTS (SELECT 1 FROM information_schema.events WHERE event_schema = ?)`,
		name, name, name).Scan(&yes)
	return yes, err
}

// querier is a pool of connections or a single connection.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// queryStrings returns the values of a query with one column.
func queryStrings(ctx context.Context, db querier, query string, args ...any) ([]string, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// listTables lists the tables with their columns. It does not count rows.
func listTables(ctx context.Context, db querier, name string) ([]engine.Table, error) {
	list, err := namesOf(ctx, db, name, "TABLE")
	if err != nil {
		return nil, err
	}
	at, all := map[string]int{}, make([]engine.Table, len(list))
	for i, table := range list {
		all[i], at[table] = engine.Table{Name: table, Rows: -1}, i
	}
	rows, err := db.QueryContext(ctx,
		`SELECT table_name, column_name, column_type, is_nullable = 'NO', coalesce(generation_expression, '') <> ''
		FROM information_schema.columns
		WHERE table_schema = ? ORDER BY table_name, ordinal_position`, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var c engine.Column
		if err := rows.Scan(&table, &c.Name, &c.Type, &c.NotNull, &c.Generated); err != nil {
			return nil, err
		}
		if i, ok := at[table]; ok {
			all[i].Columns = append(all[i].Columns, c)
		}
	}
	return all, rows.Err()
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
