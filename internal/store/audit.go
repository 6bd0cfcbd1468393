package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
)

// An audit line is written in the transaction of the change it records, so neither can exist
// without the other. The line gets its number later ([Store.Sequence]), so that no transaction
// waits for the line of another.

// record adds a line to an organization's audit log. It fills in the caller, the time and the
// request's origin.
func (s *Store) record(ctx context.Context, tx *sql.Tx, orgID int64, c snap.Caller, e snap.AuditEntry) error {
	return s.recordFor(ctx, tx, orgID, c, e, 0)
}

// recordFor is like record, but the line also becomes a notice to the user noticeTo, unless that is
// 0.
func (s *Store) recordFor(ctx context.Context, tx *sql.Tx, orgID int64, c snap.Caller, e snap.AuditEntry,
	noticeTo int64) error {
	var w pendingLines
	if err := w.add(orgID, s.fillIn(ctx, c, e), noticeTo); err != nil {
		return err
	}
	return w.insert(ctx, tx)
}

// pendingLines holds lines without numbers, which one statement inserts.
type pendingLines struct {
	rows []string // of placeholders
	args []any
}

func (w *pendingLines) add(orgID int64, e snap.AuditEntry, noticeTo int64) error {
	body, err := json.Marshal(e)
	n := len(w.args)
	w.rows = append(w.rows, fmt.Sprintf("($%d, $%d, $%d)", n+1, n+2, n+3))
	w.args = append(w.args, orgID, string(body), nullID(noticeTo))
	return err
}

// statement returns the statement that inserts the lines. Its arguments are w.args.
func (w *pendingLines) statement() string {
	return `INSERT INTO audit_waiting(org_id, body, notice_to) VALUES` + strings.Join(w.rows, ", ")
}

func (w *pendingLines) insert(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, w.statement(), w.args...); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// fillIn adds the caller, the time and the request's origin to a line.
func (s *Store) fillIn(ctx context.Context, c snap.Caller, e snap.AuditEntry) snap.AuditEntry {
	e.At = time.UnixMilli(s.now().UnixMilli()).UTC()
	e.ActorOrg = c.Org.Slug
	if c.User != nil {
		e.Actor = c.User.Email
	}
	e.Credential = strings.TrimSpace(string(c.Credential.Kind) + " " + c.Credential.Name)
	origin := snap.OriginOf(ctx)
	e.Address, e.RequestID = origin.Address, origin.RequestID
	return e
}

// recordOn records a caller's action on a snapshot in the log of the snapshot's organization. When
// the caller belongs to another organization, recordOn also records the action in the log of that
// organization.
func (s *Store) recordOn(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, action snap.AuditAction,
	d snap.AuditDetail) error {
	w, err := s.linesOn(ctx, c, sn, action, d)
	if err != nil {
		return err
	}
	return w.insert(ctx, tx)
}

// linesOn returns the lines that [Store.recordOn] adds.
func (s *Store) linesOn(ctx context.Context, c snap.Caller, sn snap.Snapshot, action snap.AuditAction,
	d snap.AuditDetail) (w pendingLines, err error) {
	d.Target = sn.Target
	e := s.fillIn(ctx, c, snap.AuditEntry{Action: action, Snapshot: sn.ID, Detail: d})
	err = w.add(sn.Org.ID, e, 0)
	if err == nil && c.Org.ID != 0 && c.Org.ID != sn.Org.ID {
		err = w.add(c.Org.ID, e, 0)
	}
	return w, err
}

// Note records an action that concerns a snapshot but changes nothing: a pull that started or
// ended, or a refused share, deletion or decline.
func (s *Store) Note(ctx context.Context, c snap.Caller, sn snap.Snapshot, action snap.AuditAction,
	d snap.AuditDetail) error {
	w, err := s.linesOn(ctx, c, sn, action, d)
	if err != nil {
		return err
	}
	if err := s.exec(ctx, w.statement(), w.args...); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// recordEach calls record for each item, and returns how many calls returned true. It stops at the
// first error.
func recordEach[T any](ctx context.Context, items []T, record func(context.Context, T) (bool, error)) (n int,
	err error) {
	for _, item := range items {
		recorded, err := record(ctx, item)
		if err != nil {
			return n, err
		}
		if recorded {
			n++
		}
	}
	return n, nil
}

// AuditQuery selects lines of an organization's audit log.
type AuditQuery struct {
	Snapshot, Actor string
	Action          snap.AuditAction
	Since, Until    time.Time // from Since on, and before Until; zero means no limit
	OldestFirst     bool
	Limit           int
	Cursor          string // Next of the previous page
}

// AuditPage is one page of an audit log.
type AuditPage struct {
	Items []snap.AuditEntry
	Next  string
}

// Audit returns lines of the log of the caller's organization. A page may have fewer lines than the
// limit, or none, and still have a next page: Audit reads at most [chunksPerPage] objects of the
// archive. Authorization is the caller's job (snap.ActAdminister).
func (s *Store) Audit(ctx context.Context, c snap.Caller, q AuditQuery) (page AuditPage, err error) {
	var cursor int64
	if q.Cursor != "" {
		if cursor, err = strconv.ParseInt(q.Cursor, 10, 64); err != nil {
			return AuditPage{}, snap.Invalid("the cursor belongs to another listing", "start again without a cursor")
		}
	}
	for {
		archived, err := s.archivedCount(ctx, c.Org.ID)
		if err != nil {
			return AuditPage{}, err
		}
		page, err := s.auditPage(ctx, c.Org.ID, q, cursor, archived)
		if err != nil {
			return AuditPage{}, err
		}
		// If the number has changed, lines were archived in the meantime, and the page is read
		// again.
		if now, err := s.archivedCount(ctx, c.Org.ID); err != nil || now == archived {
			return page, err
		}
	}
}

// auditPage reads a page of a log. archived is the number of lines that are in the archive.
func (s *Store) auditPage(ctx context.Context, org int64, q AuditQuery, cursor, archived int64) (AuditPage, error) {
	if q.Action.Historic() {
		archived = 0 // the database has all lines with this action
	}
	l := &auditLines{s: s, org: org, query: q, cursor: cursor, archived: archived}
	steps := []func(context.Context) error{l.fromTable, l.fromArchive}
	if q.OldestFirst {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return AuditPage{}, err
		}
		if len(l.items) > q.Limit || l.next != 0 {
			break
		}
	}
	if len(l.items) > q.Limit {
		l.items = l.items[:q.Limit]
		l.next = l.items[q.Limit-1].Seq
	}
	if l.next == 0 {
		return AuditPage{Items: l.items}, nil
	}
	return AuditPage{Items: l.items, Next: strconv.FormatInt(l.next, 10)}, nil
}

// auditLines collects the lines of one page.
type auditLines struct {
	s                     *Store
	org, cursor, archived int64
	query                 AuditQuery
	items                 []snap.AuditEntry
	next                  int64 // cursor of the next page; 0 if there is none
}

// fromTable adds the lines that are not archived.
func (l *auditLines) fromTable(ctx context.Context) error {
	where, args := []string{`org_id = $1`}, []any{l.org}
	and := func(condition string, value any) {
		args = append(args, value)
		where = append(where, condition+` $`+strconv.Itoa(len(args)))
	}
	and(`seq >`, l.archived)
	q := l.query
	if q.Snapshot != "" {
		and(`snapshot =`, q.Snapshot)
	}
	if q.Actor != "" {
		and(`actor =`, q.Actor)
	}
	if q.Action != "" {
		and(`action =`, string(q.Action))
	}
	if !q.Since.IsZero() {
		and(`at >=`, q.Since.UnixMilli())
	}
	if !q.Until.IsZero() {
		and(`at <`, q.Until.UnixMilli())
	}
	order, beyond := `DESC`, `seq <`
	if q.OldestFirst {
		order, beyond = `ASC`, `seq >`
	}
	if l.cursor != 0 {
		and(beyond, l.cursor)
	}
	items, err := collect(ctx, l.s, `SELECT `+entryColumns+` FROM audit a WHERE `+strings.Join(where, ` AND `)+
		` ORDER BY seq `+order+` LIMIT $`+strconv.Itoa(len(args)+1), scanEntry, append(args, q.Limit+1-len(l.items))...)
	l.items = append(l.items, items...)
	return err
}

// entryColumns are the columns of audit lines a that [scanEntry] reads.
const entryColumns = `a.seq, a.at, a.action, a.actor, a.snapshot, a.hash, a.body`

// scanEntry reads a line. Some columns repeat parts of the line's text for searching. scanEntry
// fails if the columns do not match the text, so that a line that was altered in one of them is
// never shown.
func scanEntry(rows *sql.Rows) (e snap.AuditEntry, err error) {
	e, _, err = scanLine(rows)
	return e, err
}

// scanLine is like scanEntry, and also returns the text whose hash is in the tree. preceding holds
// pointers for the columns that precede those of the entry.
func scanLine(rows *sql.Rows, preceding ...any) (e snap.AuditEntry, body string, err error) {
	var seq, at int64
	var action, actor, snapshot, hash string
	if err := rows.Scan(append(preceding, &seq, &at, &action, &actor, &snapshot, &hash, &body)...); err != nil {
		return e, "", err
	}
	if e, err = entryOf(body); err != nil {
		return e, "", errAltered(fmt.Sprintf("line %d is malformed", seq))
	}
	if e.Seq != seq || e.At.UnixMilli() != at || string(e.Action) != action || e.Actor != actor ||
		e.Snapshot != snapshot || e.Hash != hash {
		return e, "", errAltered(fmt.Sprintf("the columns of line %d do not match its text", seq))
	}
	return e, body, nil
}

func entryOf(body string) (e snap.AuditEntry, err error) {
	err = json.Unmarshal([]byte(body), &e)
	return e, err
}

// History returns the lines that are needed to say who could see a snapshot at the given time, the
// oldest first. These are the lines up to that time that the database has about the snapshot, about
// the organization's users and keys, and about the organization's closing, opening and policy.
func (s *Store) History(ctx context.Context, c snap.Caller, snapshotID string, until time.Time) ([]snap.AuditEntry,
	error) {
	return collect(ctx, s,
		`SELECT `+entryColumns+` FROM audit a WHERE org_id = $1 AND (snapshot = $2
			OR action IN ($3, $4, $5, $6, $7, $8, $9)) AND at <= $10 ORDER BY seq`, scanEntry, c.Org.ID, snapshotID,
		string(snap.AuditUserChanged), string(snap.AuditUserLeft), string(snap.AuditKeyCreated),
		string(snap.AuditKeyRevoked), string(snap.AuditOrgClosed), string(snap.AuditOrgOpened),
		string(snap.AuditPolicy), until.UnixMilli())
}
