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

// Statements of a dump that is not the user's own run as an account that is made
// for the load and that has rights on the scratch database only. The programs
// among them belong to it afterwards, so that they never run with the rights of
// the user who loaded them. It is locked then, and nobody knows its password.

// account is a user of the server that a load has made.
type account struct {
	User string `json:"user"`
	Host string `json:"host"`

	password string
}

var ofAccounts = regexp.MustCompile(`^snapcli_[0-9a-f]{16}$`)

func (a account) exists() bool { return a.User != "" }

// quoted is the account as a statement has it.
func (a account) quoted() string { return quoteText(a.User) + "@" + quoteText(a.Host) }

// definer is the account as a DEFINER clause has it, in quotes that are the same
// in every mode.
func (a account) definer() string { return quote(a.User) + "@" + quote(a.Host) }

// accountRights are what an account may do in its database.
const accountRights = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY " +
	"TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER"

// confine makes the account of a load whose dump is checked. Where that is not
// possible, a dump of the user's own organization is loaded with the user's
// rights, and one of somebody else is refused.
func (s *scratch) confine(ctx context.Context) error {
	if s.trust != checked {
		return nil
	}
	err := s.makeAccount(ctx)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if s.needsAccount {
		return &snap.Error{
			Code: snap.CodeForbidden, Cause: err,
			Detail: fmt.Sprintf("the MySQL user %q may not make a user for this load, without which programs of "+
				"somebody else are not run", s.place.user),
			Hint: "load without programs, or use a MySQL user with the rights CREATE USER and GRANT OPTION",
		}
	}
	if err := s.structure.riskyWords(); err != nil {
		return err
	}
	s.o.Notify(fmt.Sprintf("the MySQL user %q may not make a user for this load, so the snapshot's programs are "+
		"loaded with the rights of %[1]q", s.place.user))
	return nil
}

// makeAccount makes the account, and tries whether it can connect.
func (s *scratch) makeAccount(ctx context.Context) error {
	a := account{User: "snapcli_" + s.id, password: newPassword()}
	if err := s.server.QueryRowContext(ctx, "SELECT substring_index(user(), '@', -1)").Scan(&a.Host); err != nil {
		return err
	}
	if _, err := s.server.ExecContext(ctx, "CREATE USER "+a.quoted()+" IDENTIFIED BY "+
		quoteText(a.password)); err != nil {
		return err
	}
	s.account = a
	err := grantOn(ctx, s.server, s.here.name, a)
	if err == nil {
		var db *sql.DB
		if db, err = s.inside().open(s.here.name); err == nil {
			err = errors.Join(db.PingContext(ctx), db.Close())
		}
	}
	if err != nil {
		_, dropped := s.server.ExecContext(context.WithoutCancel(ctx), "DROP USER "+a.quoted())
		s.account = account{}
		err = errors.Join(err, dropped)
	}
	return err
}

func newPassword() string {
	var b [18]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("Sn4p-%x", b)
}

// grantOn gives an account its rights on one database. In its name the server
// takes _ for any character, but where rights can be taken away in part.
func grantOn(ctx context.Context, server *sql.DB, database string, a account) error {
	_, err := server.ExecContext(ctx, "GRANT "+accountRights+" ON "+pattern(ctx, server, database)+".* TO "+a.quoted())
	return err
}

// pattern is a database's name as GRANT and REVOKE read it.
func pattern(ctx context.Context, server querier, database string) string {
	var literally sql.NullString
	_ = server.QueryRowContext(ctx, "SELECT @@partial_revokes").Scan(&literally) // servers without it know patterns
	if literally.String == "1" {
		return quote(database)
	}
	return strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(quote(database))
}

// revokeRights takes the rights from an account that only making its views and routines
// needed. With them, a program could make a view that reads files for whoever
// looks at it, or a routine that runs with its caller's rights.
func (m maker) revokeRights(ctx context.Context, database string, routines []definition) error {
	if !m.account.exists() {
		return nil
	}
	if _, err := m.own.ExecContext(ctx, "REVOKE CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE ON "+
		pattern(ctx, m.own, database)+".* FROM "+m.account.quoted()); err != nil {
		return err
	}
	for _, r := range routines { // the server gives it to who makes a routine
		_, err := m.own.ExecContext(ctx, "REVOKE ALTER ROUTINE ON "+r.Kind+" "+quote(database)+"."+quote(r.Name)+
			" FROM "+m.account.quoted())
		if err != nil && number(err) != erNoGrant && number(err) != erNoGrantOn {
			return err
		}
	}
	return nil
}

// inside is the scratch database as the load reaches it.
func (s *scratch) inside() database {
	d := s.here
	if s.account.exists() {
		d.user, d.password = s.account.User, s.account.password
	}
	return d
}

// maker makes programs: on one connection, or on that of an account, which they
// belong to then.
type maker struct {
	c       *sql.Conn
	own     *sql.Conn // of the user, when c is of an account
	account account
}

// Error numbers about rights. With a binary log, only a user with more of them may
// make functions and triggers.
const (
	erUnsafeFunction = 1418
	erNeedsSuper     = 1419
	erNoGrant        = 1141
	erNoGrantOn      = 1403 // a routine
)

// one makes one program. In a server with a binary log the user makes it in the
// name of the account.
func (m maker) one(ctx context.Context, kind string, d definition) error {
	err := makeOne(ctx, m.c, kind, d)
	if !m.account.exists() {
		return err
	}
	if n := number(err); n == erNeedsSuper || n == erUnsafeFunction {
		d.SQL = "CREATE DEFINER=" + m.account.definer() + strings.TrimPrefix(d.SQL, "CREATE")
		err = makeOne(ctx, m.own, kind, d)
	}
	if err == nil && (kind == "FUNCTION" || kind == "PROCEDURE") {
		_, err = m.own.ExecContext(ctx, "ALTER "+kind+" "+quote(d.Name)+" SQL SECURITY DEFINER")
	}
	return err
}

// asOwner opens a connection to a database as an account, whose password is
// new then. The caller closes what it gets, and locks the account.
func (a account) asOwner(ctx context.Context, server *sql.DB, place database) (*sql.DB, *sql.Conn, error) {
	a.password = newPassword()
	for _, statement := range []string{"ALTER USER " + a.quoted() + " IDENTIFIED BY " + quoteText(a.password),
		"ALTER USER " + a.quoted() + " ACCOUNT UNLOCK"} {
		if _, err := server.ExecContext(ctx, statement); err != nil {
			return nil, nil, err
		}
	}
	if err := grantOn(ctx, server, place.name, a); err != nil {
		return nil, nil, err
	}
	place.user, place.password = a.User, a.password
	db, err := place.open(place.name)
	if err != nil {
		return nil, nil, err
	}
	c, err := session(ctx, db)
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, c, nil
}

// dropUnused drops an account that no program belongs to, and locks it else.
func (a account) dropUnused(ctx context.Context, server *sql.DB) error {
	if !a.exists() {
		return nil
	}
	programs, err := a.programs(ctx, server)
	if err != nil {
		return err
	}
	if programs > 0 {
		_, err = server.ExecContext(ctx, "ALTER USER "+a.quoted()+" ACCOUNT LOCK")
	} else {
		_, err = server.ExecContext(ctx, "DROP USER IF EXISTS "+a.quoted())
	}
	return err
}

// programs counts what belongs to an account, but for what loads left behind.
func (a account) programs(ctx context.Context, server querier) (n int, err error) {
	err = server.QueryRowContext(ctx, `SELECT count(*) FROM (
		SELECT definer, table_schema AS place FROM information_schema.views
		UNION ALL SELECT definer, trigger_schema FROM information_schema.triggers
		UNION ALL SELECT definer, routine_schema FROM information_schema.routines
		UNION ALL SELECT definer, event_schema FROM information_schema.events) p WHERE definer = ? AND place NOT REGEXP ?`,
		a.User+"@"+a.Host, ofLoads).Scan(&n)
	return n, err
}

// sweepAccounts drops accounts of loads that have ended and whose programs are
// gone.
func sweepAccounts(ctx context.Context, server *sql.DB, c *sql.Conn) error {
	all, err := endedAccounts(ctx, c)
	if err != nil {
		return err
	}
	for _, a := range all {
		if err := a.dropUnused(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

// unusedAccounts names the accounts that sweepAccounts drops.
func unusedAccounts(ctx context.Context, server querier) (unused []string, err error) {
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

// endedAccounts returns the accounts of loads that no longer run and whose exchange
// is finished. A user who may not see accounts has made none.
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
		if ofAccounts.MatchString(a.User) {
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
