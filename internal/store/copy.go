package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"snap"
)

// CopiedTable is the result of copying one table.
type CopiedTable struct {
	Table string
	Rows  int64
}

// content identifies the rows of a table regardless of their order: their number and the exclusive
// or of their hashes. No two rows are equal, because every table has a key.
type content struct {
	rows int64
	sum  [sha256.Size]byte
}

func (c *content) add(row []any) {
	var text []byte
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			text = append(text, 'n')
		case int64:
			text = binary.BigEndian.AppendUint64(append(text, 'i'), uint64(v))
		case string:
			text = append(binary.BigEndian.AppendUint64(append(text, 't'), uint64(len(v))), v...)
		case []byte:
			text = append(binary.BigEndian.AppendUint64(append(text, 'b'), uint64(len(v))), v...)
		default:
			text = fmt.Append(append(text, '?'), v)
		}
	}
	h := sha256.Sum256(text)
	for i := range c.sum {
		c.sum[i] ^= h[i]
	}
	c.rows++
}

// CopyFrom fills this database, which must be empty, with the content of another one, in one
// transaction. Rows are copied unchanged, including identifiers and audit chains. Only some
// encrypted values change: reseal encrypts the private keys that sign tokens and audit checkpoints,
// and the secrets of webhooks, for this database. If reseal is nil, they are copied unchanged too.
// Before the transaction ends, CopyFrom reads every copied table again and compares it with the
// original. The end of the transaction also ends the transfer ([Store.BeginTransfer]).
func (s *Store) CopyFrom(ctx context.Context, from *Frozen, reseal func(kid string, private []byte) ([]byte, error),
	progress func(CopiedTable)) error {
	ctx = withoutTimeLimit(ctx)
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	begin := []string{`BEGIN IMMEDIATE`}
	if s.dialect == postgres {
		begin = []string{`BEGIN`, `SET LOCAL idle_in_transaction_session_timeout = 0`}
	}
	for _, text := range begin {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	c := &copyRun{s: s, from: from, to: conn, reseal: reseal}
	err = c.copyAll(ctx, progress)
	if err == nil {
		_, err = conn.ExecContext(ctx, excludeOlder, archiveSchema, snap.Version())
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `DELETE FROM transfer`)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) // closing the connection also rolls back
	}
	return err
}

// copyRun is one run of CopyFrom.
type copyRun struct {
	s      *Store
	from   *Frozen
	to     *sql.Conn
	reseal func(kid string, private []byte) ([]byte, error)
}

func (c *copyRun) copyAll(ctx context.Context, progress func(CopiedTable)) error {
	if err := requireEmpty(ctx, c.to); err != nil {
		return err
	}
	for _, t := range copiedTables() {
		rows, err := c.copyTable(ctx, t)
		if err != nil {
			return fmt.Errorf("copy the table %s: %w", t.name, err)
		}
		progress(CopiedTable{t.name, rows})
	}
	return nil
}

var errNotEmpty = snap.Usage("the destination's database is not empty",
	"transfer into a database that no service has used; nothing was changed")

// requireEmpty fails with errNotEmpty unless every table that a transfer copies is empty.
func requireEmpty(ctx context.Context, q querier) error {
	for _, t := range copiedTables() {
		var hasRows bool
		if err := q.QueryRowContext(ctx, `SELECT EXISTS(SELECT 1 FROM `+t.name+`)`).Scan(&hasRows); err != nil {
			return err
		}
		if hasRows {
			return errNotEmpty
		}
	}
	return nil
}

// copyTable copies one table, reads the copy and compares it with the original.
func (c *copyRun) copyTable(ctx context.Context, t table) (int64, error) {
	columns, err := columns(ctx, c.to, t.name)
	if err != nil {
		return 0, err
	}
	read := `SELECT ` + strings.Join(columns, ", ") + ` FROM ` + t.name
	rows, err := c.from.conn.QueryContext(ctx, read) //nolint:rowserrcheck // rowSource.Err does
	if err != nil {
		return 0, err
	}
	source := &rowSource{rows: rows, width: len(columns), edit: c.editor(t, columns)}
	err = errors.Join(c.write(ctx, t, columns, source), rows.Close())
	if err != nil {
		return 0, err
	}
	if err := c.setIdentity(ctx, t); err != nil {
		return 0, err
	}
	copied, err := contentOf(ctx, c.to, read, len(columns))
	if err != nil {
		return 0, err
	}
	if copied != source.content {
		return 0, fmt.Errorf("the copy (%d rows) differs from the original (%d rows)", copied.rows, source.content.rows)
	}
	return source.content.rows, nil
}

// contentOf returns the content of the rows of a query, which have width columns.
func contentOf(ctx context.Context, conn *sql.Conn, text string, width int) (content, error) {
	rows, err := conn.QueryContext(ctx, text) //nolint:rowserrcheck // rowSource.Err does
	if err != nil {
		return content{}, err
	}
	source := &rowSource{rows: rows, width: width}
	for source.Next() {
	}
	return source.content, errors.Join(source.Err(), rows.Close())
}

// editor returns the function that changes each row of a table while it is copied, or nil if no row
// changes.
func (c *copyRun) editor(t table, columns []string) func(row []any) error {
	if c.reseal == nil || t.name != "signing_keys" && t.name != "secrets" && t.name != "webhooks" {
		return nil
	}
	at := func(column string) int { return slices.Index(columns, column) }
	if t.name == "webhooks" {
		return func(row []any) error { return c.resealWebhook(row, at) }
	}
	name, value := "kid", "private"
	if t.name == "secrets" {
		name, value = "name", "value"
	}
	return func(row []any) (err error) {
		if t.name == "secrets" && row[at(name)] != AuditKeyName {
			return nil
		}
		row[at(value)], err = c.reseal(row[at(name)].(string), row[at(value)].([]byte))
		return err
	}
}

// resealWebhook encrypts the secrets of a webhook again if they are encrypted. at returns the index
// of a column.
func (c *copyRun) resealWebhook(row []any, at func(column string) int) (err error) {
	name := HookSecretName(row[at("org_id")].(int64))
	for _, column := range []string{"secret", "old_secret"} {
		stored, _ := row[at(column)].([]byte)
		if len(stored) <= HookSecretSize {
			continue
		}
		if row[at(column)], err = c.reseal(name, stored); err != nil {
			return err
		}
	}
	return nil
}

func (c *copyRun) write(ctx context.Context, t table, columns []string, rows *rowSource) error {
	if c.s.dialect == sqlite {
		return c.insert(ctx, t, columns, rows)
	}
	return c.to.Raw(func(driver any) error {
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{t.name}, columns, rows)
		return err
	})
}

func (c *copyRun) insert(ctx context.Context, t table, columns []string, rows *rowSource) error {
	var placeholders []string
	for i := range columns {
		placeholders = append(placeholders, "$"+strconv.Itoa(i+1))
	}
	stmt, err := c.to.PrepareContext(ctx,
		`INSERT INTO `+t.name+`(`+strings.Join(columns, ", ")+`) VALUES(`+strings.Join(placeholders, ", ")+`)`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for rows.Next() {
		if _, err := stmt.ExecContext(ctx, rows.row...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// setIdentity sets the destination's identity counter to the source's, so that no identifier is
// ever used twice.
func (c *copyRun) setIdentity(ctx context.Context, t table) error {
	if t.identity == "" {
		return nil
	}
	last, err := lastIdentity(ctx, c.from.conn, c.from.s.dialect, t)
	if err != nil || last == 0 {
		return err
	}
	if c.s.dialect == postgres {
		_, err = c.to.ExecContext(ctx, `SELECT setval(pg_get_serial_sequence($1, $2), $3)`, t.name, t.identity, last)
		return err
	}
	known, err := changed(c.to.ExecContext(ctx, `UPDATE sqlite_sequence SET seq = $2 WHERE name = $1`, t.name, last))
	if err != nil || known {
		return err
	}
	_, err = c.to.ExecContext(ctx, `INSERT INTO sqlite_sequence(name, seq) VALUES($1, $2)`, t.name, last)
	return err
}

// lastIdentity returns the last identifier that a table's counter generated, or 0.
func lastIdentity(ctx context.Context, conn *sql.Conn, d dialect, t table) (last int64, err error) {
	if d == sqlite {
		err = conn.QueryRowContext(ctx, `SELECT seq FROM sqlite_sequence WHERE name = $1`, t.name).Scan(&last)
		return last, noRowsAs(err, nil)
	}
	var sequence string
	if err := conn.QueryRowContext(ctx,
		`SELECT pg_get_serial_sequence($1, $2)`, t.name, t.identity).Scan(&sequence); err != nil {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM `+sequence).Scan(&last)
	return last, err
}

func columns(ctx context.Context, q querier, table string) ([]string, error) {
	rows, err := q.QueryContext(ctx, `SELECT * FROM `+table+` WHERE 1 = 0`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all, err := rows.Columns()
	return all, errors.Join(err, rows.Err())
}

// rowSource reads rows one by one and hashes them. It is a [pgx.CopyFromSource].
type rowSource struct {
	rows    *sql.Rows
	width   int
	edit    func(row []any) error // nil means no change
	row     []any
	err     error
	content content
}

// Next reads the next row and reports whether there is one.
func (r *rowSource) Next() bool {
	if r.err != nil || !r.rows.Next() {
		return false
	}
	r.row = make([]any, r.width)
	into := make([]any, r.width)
	for i := range into {
		into[i] = &r.row[i]
	}
	r.err = r.rows.Scan(into...)
	if r.err == nil && r.edit != nil {
		r.err = r.edit(r.row)
	}
	if r.err == nil {
		r.content.add(r.row)
	}
	return r.err == nil
}

// Values returns the row.
func (r *rowSource) Values() ([]any, error) { return r.row, nil }

// Err returns the error that ended the rows, if any.
func (r *rowSource) Err() error { return errors.Join(r.err, r.rows.Err()) }
