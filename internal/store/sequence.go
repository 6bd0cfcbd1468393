package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/auditlog"
)

// The audit log is written in two steps. A change writes its line into audit_waiting in its own
// transaction, without waiting for other changes. Later, one process at a time numbers an
// organization's waiting lines, adds them to the organization's tree and signs the new root.
//
// The order follows the commits as far as they can be observed: if one line was committed before
// the transaction of another line began, the first has the smaller ID, and the second is never
// numbered before the first.

// sequenceBatch is the number of lines that are numbered in one transaction.
const sequenceBatch = 1000

// Unsequenced returns the organizations with lines to number or to add to the tree.
func (s *Store) Unsequenced(ctx context.Context) ([]int64, error) {
	return collect(ctx, s, `SELECT org_id FROM audit_waiting UNION SELECT org_id FROM audit_heads WHERE size < seq`,
		scanOne[int64])
}

// Sequence numbers all waiting lines of an organization's audit log, adds them to its tree and
// signs the new checkpoint. It also adds to the tree the lines that an older version of the service
// numbered. It returns how many lines it numbered itself. If the log does not match its last signed
// checkpoint, Sequence changes nothing and fails with code conflict.
func (s *Store) Sequence(ctx context.Context, orgID int64, key auditlog.Key) (numbered int, err error) {
	ctx = AllowReserve(ctx) // the audit line of an unshare may use the reserve too
	for {
		var more bool
		err := s.row(ctx, `SELECT EXISTS(SELECT 1 FROM audit_waiting WHERE org_id = $1)
			OR EXISTS(SELECT 1 FROM audit_heads WHERE org_id = $1 AND size < seq)
			OR `+strays, orgID).Scan(&more)
		if err != nil || !more {
			return numbered, err
		}
		var n int
		if err := s.tx(ctx, func(tx *sql.Tx) error {
			b := &batch{s: s, tx: tx, org: orgID, key: key}
			n, err = b.run(ctx)
			return err
		}); err != nil {
			return numbered, err
		}
		numbered += n
	}
}

// strays is the condition that the organization $1 has lines with numbers that were never assigned.
const strays = `EXISTS(SELECT 1 FROM audit WHERE org_id = $1 AND seq < 1)
	OR EXISTS(SELECT 1 FROM audit WHERE org_id = $1
		AND seq > coalesce((SELECT h.seq FROM audit_heads h WHERE h.org_id = $1), 0))`

// errAltered reports that the stored log differs from the log that was written.
func errAltered(difference string) error {
	return &snap.Error{Code: snap.CodeConflict, Detail: "the audit log was altered in the database: " + difference,
		Hint: "compare the database with a backup, and ask who can write to it"}
}

// batch is one transaction of [Store.Sequence].
type batch struct {
	s    *Store
	tx   *sql.Tx
	org  int64
	key  auditlog.Key
	slug string
	seq  int64  // of the newest line
	hash string // of the newest line
	size int64  // lines in the tree
	tree *auditlog.Tree
}

// line is a waiting line.
type line struct {
	id       int64
	body     string // after numbering: the text in the log
	noticeTo sql.NullInt64
	entry    snap.AuditEntry
}

func (b *batch) run(ctx context.Context) (numbered int, err error) {
	b.tree = treeOf(ctx, b.tx, b.org)
	if err := b.begin(ctx); err != nil {
		return 0, err
	}
	lines, err := b.removeOldest(ctx)
	if err != nil {
		return 0, err
	}
	before := b.seq
	for i := range lines {
		if err := b.appendLine(&lines[i]); err != nil {
			return 0, err
		}
	}
	if err := b.write(ctx, lines, before); err != nil {
		return 0, fmt.Errorf("audit: %w", err)
	}
	return len(lines), b.grow(ctx)
}

// begin locks the end of the log and compares it with the last checkpoint.
func (b *batch) begin(ctx context.Context) error {
	var checkpoint string
	err := b.tx.QueryRowContext(ctx, `
		INSERT INTO audit_heads(org_id, seq, hash) VALUES($1, 0, '')
		ON CONFLICT(org_id) DO UPDATE SET seq = audit_heads.seq RETURNING seq, hash, size, checkpoint`, b.org).
		Scan(&b.seq, &b.hash, &b.size, &checkpoint)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	var last, treeSize int64
	var stray bool
	err = b.tx.QueryRowContext(ctx, `SELECT o.slug, coalesce((SELECT max(seq) FROM audit a WHERE a.org_id = $1), 0),
		coalesce((SELECT max(seq) FROM audit_tree t WHERE t.org_id = $1), 0), `+strays+` FROM orgs o WHERE o.id = $1`,
		b.org).Scan(&b.slug, &last, &treeSize, &stray)
	switch {
	case err != nil:
		return err
	case last != b.seq || stray:
		return errAltered(fmt.Sprintf("its newest line is not line %d", b.seq))
	case treeSize != b.size:
		return errAltered(fmt.Sprintf("its tree has %d lines and should have %d", treeSize, b.size))
	case b.size == 0:
		return nil
	}
	signed, err := auditlog.Open(checkpoint, b.slug, b.key.Verifier(b.slug))
	if err != nil {
		return errAltered(err.Error())
	}
	root, err := b.tree.Root(b.size)
	if errors.Is(err, auditlog.ErrDamaged) || err == nil && (root != signed.Root || b.size != signed.Size) {
		return errAltered("its tree does not match the last signed checkpoint")
	}
	return err
}

// removeOldest removes the oldest waiting lines from audit_waiting and returns them.
func (b *batch) removeOldest(ctx context.Context) ([]line, error) {
	lines, err := txCollect(ctx, b.tx, `DELETE FROM audit_waiting WHERE id IN (
		SELECT id FROM audit_waiting WHERE org_id = $1 ORDER BY id LIMIT $2) RETURNING id, body, notice_to`,
		func(rows *sql.Rows) (l line, err error) {
			err = rows.Scan(&l.id, &l.body, &l.noticeTo)
			return l, err
		}, b.org, sequenceBatch)
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.id, b.id) })
	return lines, err
}

// appendLine appends a line after the newest one. It keeps the line's original text, because the
// text can have fields that only a newer version of the service knows.
func (b *batch) appendLine(l *line) error {
	rest, begins := strings.CutPrefix(l.body, `{"seq":0,`)
	rest, ends := strings.CutSuffix(rest, `"hash":""}`)
	if !begins || !ends {
		return errAltered("a line that was waiting for its number was changed")
	}
	b.seq++
	unsigned := `{"seq":` + strconv.FormatInt(b.seq, 10) + `,` + rest + `"hash":"`
	b.hash = snap.AuditHash(b.hash, unsigned+`"}`)
	l.body = unsigned + b.hash + `"}`
	var err error
	if l.entry, err = entryOf(l.body); err != nil {
		return errAltered("a line that was waiting for its number was changed")
	}
	return nil
}

const insertLines = `INSERT INTO audit(org_id, seq, at, action, actor, snapshot, body, hash) `

// write writes numbered lines, their webhook deliveries and their notices to users.
func (b *batch) write(ctx context.Context, lines []line, before int64) error {
	if len(lines) == 0 {
		return nil
	}
	if err := b.insert(ctx, lines); err != nil {
		return err
	}
	for _, text := range []string{insertDeliveries, numberDeliveries} {
		if _, err := b.tx.ExecContext(ctx, text, b.org, before, b.seq); err != nil {
			return err
		}
	}
	for _, l := range lines {
		if l.noticeTo.Valid {
			if err := b.s.addNotice(ctx, b.tx, b.org, l.entry.Seq, l.noticeTo.Int64); err != nil {
				return err
			}
		}
	}
	_, err := b.tx.ExecContext(ctx,
		`UPDATE audit_heads SET seq = $2, hash = $3 WHERE org_id = $1`, b.org, b.seq, b.hash)
	return err
}

// insert writes the lines, on PostgreSQL in one statement.
func (b *batch) insert(ctx context.Context, lines []line) error {
	if b.s.dialect == sqlite {
		for _, l := range lines {
			e := l.entry
			if _, err := b.tx.ExecContext(ctx, insertLines+`VALUES($1, $2, $3, $4, $5, $6, $7, $8)`, b.org, e.Seq,
				e.At.UnixMilli(), string(e.Action), e.Actor, e.Snapshot, l.body, e.Hash); err != nil {
				return err
			}
		}
		return nil
	}
	var seqs, ats []int64
	var actions, actors, snapshots, bodies, hashes []string
	for _, l := range lines {
		e := l.entry
		seqs, ats, actions = append(seqs, e.Seq), append(ats, e.At.UnixMilli()), append(actions, string(e.Action))
		actors, snapshots = append(actors, e.Actor), append(snapshots, e.Snapshot)
		bodies, hashes = append(bodies, l.body), append(hashes, e.Hash)
	}
	_, err := b.tx.ExecContext(ctx, insertLines+`SELECT $1, * FROM
		unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])`,
		b.org, seqs, ats, actions, actors, snapshots, bodies, hashes)
	return err
}

// grow adds the next lines to the tree and signs its new root.
func (b *batch) grow(ctx context.Context) error {
	bodies, err := txCollect(ctx, b.tx, `SELECT `+entryColumns+` FROM audit a
		WHERE a.org_id = $1 AND a.seq > $2 ORDER BY a.seq LIMIT $3`, func(rows *sql.Rows) (string, error) {
		_, body, err := scanLine(rows)
		return body, err
	}, b.org, b.size, sequenceBatch)
	if err != nil || len(bodies) == 0 {
		return err
	}
	var seqs []int64
	var nodes [][]byte
	for _, body := range bodies {
		node, err := b.tree.Append(b.size, body)
		if err != nil {
			return err
		}
		b.size++
		seqs, nodes = append(seqs, b.size), append(nodes, node)
	}
	if err := b.writeNodes(ctx, seqs, nodes); err != nil {
		return err
	}
	root, err := b.tree.Root(b.size)
	if err != nil {
		return err
	}
	signed, err := b.key.Sign(auditlog.Checkpoint{Organization: b.slug, Size: b.size, Root: root})
	if err != nil {
		return err
	}
	_, err = b.tx.ExecContext(ctx, `UPDATE audit_heads SET size = $2, checkpoint = $3 WHERE org_id = $1`,
		b.org, b.size, signed)
	return err
}

// writeNodes writes nodes of the tree, on PostgreSQL in one statement.
func (b *batch) writeNodes(ctx context.Context, seqs []int64, nodes [][]byte) error {
	if b.s.dialect == postgres {
		_, err := b.tx.ExecContext(ctx, `INSERT INTO audit_tree(org_id, seq, hashes)
			SELECT $1, * FROM unnest($2::bigint[], $3::bytea[])`, b.org, seqs, nodes)
		return err
	}
	for i, seq := range seqs {
		if _, err := b.tx.ExecContext(ctx, `INSERT INTO audit_tree(org_id, seq, hashes) VALUES($1, $2, $3)`,
			b.org, seq, nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// treeOf returns an organization's tree, which reads its nodes with q.
func treeOf(ctx context.Context, q querier, orgID int64) *auditlog.Tree {
	return &auditlog.Tree{Nodes: func(lines []int64) (map[int64][]byte, error) {
		args := []any{orgID}
		placeholders := make([]string, len(lines))
		for i, n := range lines {
			args = append(args, n)
			placeholders[i] = "$" + strconv.Itoa(i+2)
		}
		rows, err := q.QueryContext(ctx, `SELECT seq, hashes FROM audit_tree WHERE org_id = $1 AND seq IN (`+
			strings.Join(placeholders, ", ")+`)`, args...)
		if err != nil {
			return nil, err
		}
		nodes := map[int64][]byte{}
		_, err = drain(rows, func(rows *sql.Rows) (struct{}, error) {
			var seq int64
			var hashes []byte
			err := rows.Scan(&seq, &hashes)
			nodes[seq] = hashes
			return struct{}{}, err
		})
		return nodes, err
	}}
}

// AuditTree returns an organization's tree as it is stored.
func (s *Store) AuditTree(ctx context.Context, orgID int64) *auditlog.Tree {
	return treeOf(ctx, s.read, orgID)
}

// AuditCheckpoint returns the newest signed checkpoint of an organization's log, or "" if the log
// has no lines.
func (s *Store) AuditCheckpoint(ctx context.Context, orgID int64) (signed string, err error) {
	err = s.row(ctx, `SELECT checkpoint FROM audit_heads WHERE org_id = $1`, orgID).Scan(&signed)
	return signed, noRowsAs(err, nil)
}

// Receipt is the newest line of the owning organization's log that records that a snapshot was
// shared with another organization.
type Receipt struct {
	Org    snap.OrgRef // the owning organization
	Line   int64
	Record string // the text of the line
}

// Receipt returns the receipt of a snapshot that was shared with the caller's organization. It
// fails with snap.ErrNotFound if there is none.
func (s *Store) Receipt(ctx context.Context, c snap.Caller, sn snap.Snapshot) (Receipt, error) {
	all, err := collect(ctx, s, `SELECT `+entryColumns+` FROM audit a
		WHERE a.org_id = $1 AND a.snapshot = $2 AND a.action = $3 ORDER BY a.seq DESC`,
		func(rows *sql.Rows) (r Receipt, err error) {
			e, body, err := scanLine(rows)
			if err == nil && e.Detail.Organization == c.Org.Slug {
				r = Receipt{sn.Org, e.Seq, body}
			}
			return r, err
		}, sn.Org.ID, sn.ID, string(snap.AuditReceipt))
	if err != nil {
		return Receipt{}, err
	}
	for _, r := range all {
		if r.Line != 0 {
			return r, nil
		}
	}
	return Receipt{}, snap.ErrNotFound
}
