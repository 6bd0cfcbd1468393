package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"snap"
)

// A dump from elsewhere is a dump that this user did not build on this machine. If its statements
// run at all, and if the user is allowed to create accounts, they run as an account that is created
// for the load and has privileges on the scratch database only. The account then owns the loaded
// programs, so that they never run with the privileges of the user who loaded them. After the load,
// the account is locked and its random password is forgotten.

// account is a server account created by a load.
type account struct {
	User string `json:"user"`
	Host string `json:"host"`

	password string
}

// accountPattern matches the user name of an account that a load created.
var accountPattern = regexp.MustCompile(`^snapcli_[0-9a-f]{16}$`)

func (a account) exists() bool { return a.User != "" }

// quoted returns the account as written in a statement.
func (a account) quoted() string { return quoteText(a.User) + "@" + quoteText(a.Host) }

// definer returns the account as written in a DEFINER clause, quoted in a way that is valid in
// every SQL mode.
func (a account) definer() string { return quote(a.User) + "@" + quote(a.Host) }

// accountRights are the privileges of an account on its database.
const accountRights = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY " +
	"TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER"

// confine creates the account for a load whose dump is checked. If that is impossible, it refuses a
// load that needs the account, or whose programs could access files. Any other load runs with the
// user's privileges.
func (s *scratch) confine(ctx context.Context) error {
	if s.trust != checked {
		return nil
	}
	err := s.createAccount(ctx)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	code, why := snap.CodeDatabase, fmt.Sprintf("a MySQL user for this load could not be created (%v)", err)
	mend := "correct the cause on the server"
	if isDenied(err) {
		code = snap.CodeForbidden
		why = fmt.Sprintf("the MySQL user %q is not allowed to create a user for this load", s.dest.user)
		mend = "use a MySQL user with the privileges CREATE USER and GRANT OPTION"
	}
	if s.needsAccount {
		return &snap.Error{
			Code: code, Cause: err,
			Detail: why + ", and programs of a snapshot that you did not build here run only as such a user",
			Hint:   "load without programs, or " + mend,
		}
	}
	if err := s.structure.requireNoRiskyWords(); err != nil {
		return err
	}
	s.o.Notify(fmt.Sprintf("%s, so the snapshot's programs are loaded with the privileges of %q", why, s.dest.user))
	return nil
}

// createAccount creates the account and tests whether it can connect.
func (s *scratch) createAccount(ctx context.Context) error {
	a := account{User: "snapcli_" + s.id, password: newPassword()}
	if err := s.server.QueryRowContext(ctx, "SELECT substring_index(user(), '@', -1)").Scan(&a.Host); err != nil {
		return err
	}
	if _, err := s.server.ExecContext(ctx, "CREATE USER "+a.quoted()+" IDENTIFIED BY "+
		quoteText(a.password)); err != nil {
		return err
	}
	s.account = a
	err := grantOn(ctx, s.server, s.db.name, a)
	if err == nil {
		var db *sql.DB
		if db, err = s.loadDatabase().open(s.db.name); err == nil {
			err = errors.Join(db.PingContext(ctx), db.Close())
		}
	}
	if err != nil {
		_, dropErr := s.server.ExecContext(context.WithoutCancel(ctx), "DROP USER "+a.quoted())
		s.account = account{}
		err = errors.Join(err, dropErr)
	}
	return err
}

func newPassword() string {
	var b [18]byte
	rand.Read(b[:]) // never returns an error
	return fmt.Sprintf("Sn4p-%x", b)
}

// grantOn grants an account its privileges on one database. In the name of a database, the server
// treats _ as a wildcard unless partial revokes are enabled.
func grantOn(ctx context.Context, server *sql.DB, database string, a account) error {
	_, err := server.ExecContext(ctx, "GRANT "+accountRights+" ON "+pattern(ctx, server, database)+".* TO "+a.quoted())
	return err
}

// pattern quotes a database's name for GRANT and REVOKE, and escapes the wildcards in it if
// necessary.
func pattern(ctx context.Context, server querier, database string) string {
	var partialRevokes sql.NullString // stays NULL on older servers, which have no such setting
	_ = server.QueryRowContext(ctx, "SELECT @@partial_revokes").Scan(&partialRevokes)
	if partialRevokes.String == "1" {
		return quote(database)
	}
	return strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(quote(database))
}

// revokeRights revokes the privileges that were needed only to create the account's views and
// routines. With them, a loaded program could create a view that reads files with the privileges of
// the user who queries it, or a routine that runs with its caller's privileges.
func (m creator) revokeRights(ctx context.Context, database string, routines []definition) error {
	if !m.account.exists() {
		return nil
	}
	if _, err := m.own.ExecContext(ctx, "REVOKE CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE ON "+
		pattern(ctx, m.own, database)+".* FROM "+m.account.quoted()); err != nil {
		return err
	}
	for _, r := range routines { // the server grants ALTER ROUTINE to the creator of a routine
		err := execForKind(ctx, m.own, r.Kind, "REVOKE ALTER ROUTINE ON "+r.Kind+" "+quote(database)+"."+quote(r.Name)+
			" FROM "+m.account.quoted())
		if err != nil && number(err) != erNoGrant && number(err) != erNoGrantOn {
			return err
		}
	}
	return nil
}

// loadDatabase returns the scratch database with the credentials of the account, if there is one.
func (s *scratch) loadDatabase() database {
	if !s.account.exists() {
		return s.db
	}
	return s.db.withAccount(s.account)
}

// withAccount returns the database with the account's credentials.
func (d database) withAccount(a account) database {
	d.user, d.password, d.way = a.User, a.password, d.way.WithoutCommand()
	return d
}

// creator creates programs on one connection. The connection belongs to the user or to an account,
// which then owns the programs.
type creator struct {
	c       *sql.Conn
	own     *sql.Conn // the user's connection, if c belongs to an account
	account account
}

// Error numbers about privileges. With a binary log, only a user with additional privileges may
// create functions and triggers.
const (
	erUnsafeFunction = 1418
	erNeedsSuper     = 1419
	erNoGrant        = 1141
	erNoGrantOn      = 1403 // there is no such grant on a routine
)

// create creates one program. If a server with a binary log does not allow the account to create
// it, the user creates it on behalf of the account.
func (m creator) create(ctx context.Context, kind string, d definition) error {
	err := createObject(ctx, m.c, kind, d)
	if !m.account.exists() {
		return err
	}
	if n := number(err); n == erNeedsSuper || n == erUnsafeFunction {
		d.SQL = "CREATE DEFINER=" + m.account.definer() + strings.TrimPrefix(d.SQL, "CREATE")
		err = createObject(ctx, m.own, kind, d)
	}
	if err == nil && (kind == "FUNCTION" || kind == "PROCEDURE") {
		_, err = m.own.ExecContext(ctx, "ALTER "+kind+" "+quote(d.Name)+" SQL SECURITY DEFINER")
	}
	return err
}

// creator connects to a database as the account, after giving the account a new password. own is
// the user's connection, which is used if there is no account. The caller must call done, and
// dropUnused when the load no longer needs the account.
func (a account) creator(ctx context.Context, server *sql.DB, dest database, own *sql.Conn) (m creator, done func(),
	err error) {
	if !a.exists() {
		return creator{c: own}, func() {}, nil
	}
	a.password = newPassword()
	for _, statement := range []string{"ALTER USER " + a.quoted() + " IDENTIFIED BY " + quoteText(a.password),
		"ALTER USER " + a.quoted() + " ACCOUNT UNLOCK"} {
		if _, err := server.ExecContext(ctx, statement); err != nil {
			return m, nil, err
		}
	}
	if err := grantOn(ctx, server, dest.name, a); err != nil {
		return m, nil, err
	}
	db, err := dest.withAccount(a).open(dest.name)
	if err != nil {
		return m, nil, err
	}
	c, err := session(ctx, db)
	if err != nil {
		db.Close()
		return m, nil, err
	}
	return creator{c: c, own: own, account: a}, func() {
		c.Close()
		db.Close()
	}, nil
}

// dropUnused drops the account if it owns no programs, and locks it otherwise.
func (a account) dropUnused(ctx context.Context, server *sql.DB) error {
	if !a.exists() {
		return nil
	}
	programs, err := a.programs(ctx, server)
	if err != nil {
		return err
	}
	if programs > 0 {
		return a.lock(ctx, server)
	}
	_, err = server.ExecContext(ctx, "DROP USER IF EXISTS "+a.quoted())
	return err
}

func (a account) lock(ctx context.Context, server *sql.DB) error {
	_, err := server.ExecContext(ctx, "ALTER USER IF EXISTS "+a.quoted()+" ACCOUNT LOCK")
	return err
}

// programs counts the programs that the account owns, except in databases that loads left behind.
func (a account) programs(ctx context.Context, server querier) (n int, err error) {
	err = server.QueryRowContext(ctx, `SELECT count(*) FROM (
		SELECT definer, table_schema AS place FROM information_schema.views
		UNION ALL SELECT definer, trigger_schema FROM information_schema.triggers
		UNION ALL SELECT definer, routine_schema FROM information_schema.routines
		UNION ALL SELECT definer, event_schema FROM information_schema.events) p
			WHERE definer = ? AND place NOT REGEXP ?`,
		a.User+"@"+a.Host, loadDatabasePattern).Scan(&n)
	return n, err
}

// seesPrograms reports whether the server shows the user the triggers and events of all databases.
// It ignores privileges that the user has through a role.
func seesPrograms(ctx context.Context, server querier) (yes bool, err error) {
	err = server.QueryRowContext(ctx, "SELECT count(*) = 2 FROM information_schema.user_privileges WHERE "+
		"replace(grantee, '''', '') = current_user() AND privilege_type IN ('TRIGGER', 'EVENT')").Scan(&yes)
	return yes, err
}

// sweepAccounts drops the accounts of ended loads that own no programs, and locks the others. It
// drops none for a user who cannot see all programs. The user can have the privilege to list
// accounts without the one to change them.
func sweepAccounts(ctx context.Context, server *sql.DB, c *sql.Conn) error {
	all, err := endedAccounts(ctx, c)
	if err != nil {
		return err
	}
	sees, err := seesPrograms(ctx, c)
	if err != nil {
		return err
	}
	for _, a := range all {
		end := a.dropUnused
		if !sees {
			end = a.lock
		}
		if err := end(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

// unusedAccounts lists the accounts that sweepAccounts drops.
func unusedAccounts(ctx context.Context, server querier) (unused []string, err error) {
	if sees, err := seesPrograms(ctx, server); err != nil || !sees {
		return nil, err
	}
	all, err := endedAccounts(ctx, server)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		n, err := a.programs(ctx, server)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			unused = append(unused, a.User)
		}
	}
	return unused, nil
}

// endedAccounts returns the accounts of loads that no longer run and have no journal. It returns
// none to a user who is not allowed to list accounts.
func endedAccounts(ctx context.Context, server querier) (ended []account, err error) {
	rows, err := server.QueryContext(ctx,
		"SELECT user, host FROM mysql.user WHERE user LIKE 'snapcli\\_%' ORDER BY user")
	if err != nil {
		return nil, nil
	}
	defer rows.Close()
	var all []account
	for rows.Next() {
		var a account
		if err := rows.Scan(&a.User, &a.Host); err != nil {
			return nil, err
		}
		if accountPattern.MatchString(a.User) {
			all = append(all, a)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, a := range all {
		id := strings.TrimPrefix(a.User, "snapcli_")
		var free sql.NullInt64
		if err := server.QueryRowContext(ctx, "SELECT is_free_lock(?) AND NOT EXISTS (SELECT 1 FROM "+
			"information_schema.schemata WHERE schema_name = ?)", id, journalPrefix+id).Scan(&free); err != nil {
			return nil, err
		}
		if free.Int64 == 1 {
			ended = append(ended, a)
		}
	}
	return ended, nil
}
