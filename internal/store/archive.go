package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"snap"
	"snap/internal/auditlog"
)

// Old lines of the audit log move to the object store, 1,024 at a time (auditlog.ChunkLines). The
// log's Merkle tree stays in the database, and each object is verified against the tree whenever it
// is read. Lines that say who could see a snapshot stay in the database too
// (snap.AuditAction.Historic), so that past access can be reconstructed without reading the whole
// archive. Whenever archived lines are returned, they are compared with the lines that stayed.

// archiveSchema is the number of the migration that a program must know to read a log with an
// archive.
const archiveSchema = 25

// ArchivePrefix is the prefix of the keys of all objects of the archive.
const ArchivePrefix = "audit."

// chunksPerPage is the maximum number of archive objects that one page of a listing reads.
const chunksPerPage = 8

// Chunk is an object of the archive.
type Chunk struct {
	Org, First int64 // the organization and the number of the first line
	Object
	unpacked int64 // bytes of the lines
	from, to time.Time
	hash     string // of the last line
}

// last is the number of the chunk's last line.
func (c Chunk) last() int64 { return c.First + auditlog.ChunkLines - 1 }

const chunkColumns = `c.org_id, c.first, c.blob, c.size, c.sha256, c.unpacked`

func scanChunk(rows *sql.Rows) (c Chunk, err error) {
	err = rows.Scan(&c.Org, &c.First, &c.Key, &c.Size, &c.SHA256, &c.unpacked)
	return c, err
}

// archivedCount returns how many lines of an organization's log are in the archive. They are the
// first lines of the log.
func (s *Store) archivedCount(ctx context.Context, org int64) (lines int64, err error) {
	err = s.row(ctx, `SELECT coalesce(max(first) + `+strconv.Itoa(auditlog.ChunkLines-1)+`, 0)
		FROM audit_archive WHERE org_id = $1`, org).Scan(&lines)
	return lines, err
}

// Archivable returns each organization's next chunk if all lines of the chunk precede the given
// time. Only Org and First of the chunks are set. The newest line of a log is never archived.
func (s *Store) Archivable(ctx context.Context, before time.Time) ([]Chunk, error) {
	return collect(ctx, s, `
		SELECT n.org_id, n.first FROM (SELECT h.org_id, h.seq, h.size, coalesce((SELECT max(c.first) + $2
			FROM audit_archive c WHERE c.org_id = h.org_id), 1) AS first FROM audit_heads h) AS n
		WHERE n.first + $2 <= n.seq AND n.first + $2 <= n.size + 1 AND NOT EXISTS (SELECT 1 FROM audit a
			WHERE a.org_id = n.org_id AND a.seq >= n.first AND a.seq < n.first + $2 AND a.at >= $1)
		ORDER BY n.org_id`,
		func(rows *sql.Rows) (c Chunk, err error) {
			err = rows.Scan(&c.Org, &c.First)
			return c, err
		}, before.UnixMilli(), auditlog.ChunkLines)
}

// Pack completes a chunk that [Store.Archivable] returned, and returns the content of its object.
// The content is nil if another replica has archived the chunk since. Pack fails with code conflict
// if the lines do not match the tree.
func (s *Store) Pack(ctx context.Context, c Chunk) (Chunk, []byte, error) {
	entries, lines, err := s.tableLines(ctx, c.Org, c.First, auditlog.ChunkLines)
	if err != nil {
		return c, nil, err
	}
	if err := s.proveChunk(ctx, c, lines); err != nil {
		if _, archived, failed := s.chunkOf(ctx, c.Org, c.First); failed == nil && archived {
			return c, nil, nil // the lines are no longer in the table
		}
		return c, nil, err
	}
	content, unpacked, err := auditlog.PackChunk(lines)
	if err != nil {
		return c, nil, err
	}
	sum := sha256.Sum256(content)
	c.Size, c.SHA256, c.unpacked = int64(len(content)), hex.EncodeToString(sum[:]), unpacked
	c.Key = fmt.Sprintf(ArchivePrefix+"%d.%d.%s", c.Org, c.First, c.SHA256[:16])
	c.hash = entries[len(entries)-1].Hash
	byTime := func(a, b snap.AuditEntry) int { return a.At.Compare(b.At) } // the clocks of replicas differ
	c.from, c.to = slices.MinFunc(entries, byTime).At, slices.MaxFunc(entries, byTime).At
	return c, content, nil
}

// Archive records that a chunk's object was written, and removes its lines from the database except
// the historic ones. Before that, it reads the object back and verifies it. If another replica was
// faster, Archive records its own object as garbage.
func (s *Store) Archive(ctx context.Context, c Chunk) error {
	if _, err := s.readChunk(ctx, c); err != nil {
		return err
	}
	return s.tx(ctx, func(tx *sql.Tx) error {
		var blob string
		err := tx.QueryRowContext(ctx, `
			INSERT INTO audit_archive(org_id, first, blob, size, sha256, unpacked, first_at, last_at, hash)
			VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT(org_id, first) DO UPDATE SET first = audit_archive.first RETURNING blob`,
			c.Org, c.First, c.Key, c.Size, c.SHA256, c.unpacked, c.from.UnixMilli(), c.to.UnixMilli(), c.hash).
			Scan(&blob)
		if err != nil {
			return err
		}
		if blob != c.Key {
			return discard(ctx, tx, Garbage{Blob: c.Key})
		}
		if _, err := tx.ExecContext(ctx, excludeOlder, archiveSchema, snap.Version()); err != nil {
			return err
		}
		args := []any{c.Org, c.First, c.last()}
		text := `DELETE FROM audit WHERE org_id = $1 AND seq >= $2 AND seq <= $3`
		for _, a := range snap.AuditActions() {
			if a.Historic() {
				args = append(args, string(a))
				text += ` AND action <> $` + strconv.Itoa(len(args))
			}
		}
		_, err = tx.ExecContext(ctx, text, args...)
		return err
	})
}

// errChunk reports an object of the archive that is missing or damaged.
func errChunk(c Chunk, problem string) error {
	return &snap.Error{Code: snap.CodeConflict,
		Detail: fmt.Sprintf("lines %d to %d of the audit log are archived in the object %s, %s", c.First, c.last(),
			c.Key, problem),
		Hint: "restore this object from a backup or an earlier version of the bucket"}
}

// readChunk reads the lines of an object and verifies them. It fails with code conflict, naming the
// object, if the object is missing or damaged.
func (s *Store) readChunk(ctx context.Context, c Chunk) ([]string, error) {
	object, err := s.OpenObject(ctx, c.Key)
	if errors.Is(err, snap.ErrNotFound) {
		return nil, errChunk(c, "which is missing")
	}
	if err != nil {
		return nil, err
	}
	defer object.Close()
	content, err := io.ReadAll(io.LimitReader(object, c.Size+1))
	if errors.Is(err, snap.ErrNotFound) { // S3 reports errors at the first byte
		return nil, errChunk(c, "which is missing")
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); int64(len(content)) != c.Size || hex.EncodeToString(sum[:]) != c.SHA256 {
		return nil, errChunk(c, "which is damaged")
	}
	lines, err := auditlog.UnpackChunk(content, c.unpacked)
	if err != nil {
		return nil, errChunk(c, "which is damaged")
	}
	return lines, s.proveChunk(ctx, c, lines)
}

// proveChunk compares lines with the tree.
func (s *Store) proveChunk(ctx context.Context, c Chunk, lines []string) error {
	root, err := s.AuditTree(ctx, c.Org).ChunkRoot(c.First)
	if err == nil {
		err = auditlog.CheckChunk(lines, root)
	}
	switch {
	case errors.Is(err, auditlog.ErrDamaged):
		return errAltered(err.Error())
	case errors.Is(err, auditlog.ErrChunk) && c.Key == "":
		return errAltered(fmt.Sprintf("lines %d to %d do not match its tree", c.First, c.last()))
	case errors.Is(err, auditlog.ErrChunk):
		return errChunk(c, "whose lines do not match the tree")
	}
	return err
}

// archivedLines is like readChunk, but also compares the object with the lines that stayed in the
// database. Code that returns lines of the log must use it instead of readChunk.
func (s *Store) archivedLines(ctx context.Context, c Chunk) ([]string, error) {
	lines, err := s.readChunk(ctx, c)
	if err != nil {
		return nil, err
	}
	_, kept, err := s.tableLines(ctx, c.Org, c.First, auditlog.ChunkLines)
	if err != nil {
		return nil, err
	}
	historic := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		e, err := entryOf(line)
		return err != nil || !e.Action.Historic()
	})
	if !slices.Equal(kept, historic) {
		return nil, errAltered(fmt.Sprintf("its lines %d to %d do not match the archive", c.First, c.last()))
	}
	return lines, nil
}

// tableLines returns the lines first to first+n-1 that are in the database, decoded as entries and
// as texts.
func (s *Store) tableLines(ctx context.Context, org, first, n int64) (entries []snap.AuditEntry, texts []string,
	err error) {
	entries, err = collect(ctx, s, `SELECT `+entryColumns+` FROM audit a
		WHERE a.org_id = $1 AND a.seq >= $2 AND a.seq < $3 ORDER BY a.seq`,
		func(rows *sql.Rows) (snap.AuditEntry, error) {
			e, text, err := scanLine(rows)
			texts = append(texts, text)
			return e, err
		}, org, first, first+n)
	return entries, texts, err
}

// AuditRecords returns at most limit lines of an organization's log. from is the number of the
// first line. Each record is the text whose hash is in the tree.
func (s *Store) AuditRecords(ctx context.Context, orgID, from int64, limit int) (records []string, err error) {
	for len(records) < limit {
		next := from + int64(len(records))
		c, archived, err := s.chunkOf(ctx, orgID, next)
		if err != nil {
			return nil, err
		}
		if !archived {
			entries, lines, err := s.tableLines(ctx, orgID, next, int64(limit-len(records)))
			if err != nil {
				return nil, err
			}
			if len(entries) < limit-len(records) || entries[len(entries)-1].Seq != next+int64(len(entries))-1 {
				_, moved, err := s.chunkOf(ctx, orgID, next)
				if err != nil {
					return nil, err
				}
				if moved {
					continue // the line has been archived in the meantime
				}
			}
			return append(records, lines...), nil
		}
		lines, err := s.archivedLines(ctx, c)
		if err != nil {
			return nil, err
		}
		lines = lines[next-c.First:]
		records = append(records, lines[:min(len(lines), limit-len(records))]...)
	}
	return records, nil
}

// chunkOf returns the chunk that holds a line, if the line is archived.
func (s *Store) chunkOf(ctx context.Context, orgID, line int64) (c Chunk, archived bool, err error) {
	c, err = one(collect(ctx, s,
		`SELECT `+chunkColumns+` FROM audit_archive c WHERE c.org_id = $1 AND c.first = $2`,
		scanChunk, orgID, (line-1)/auditlog.ChunkLines*auditlog.ChunkLines+1))
	return c, err == nil, noRowsAs(err, nil)
}

// fromArchive adds archived lines to a page, from at most [chunksPerPage] objects.
func (l *auditLines) fromArchive(ctx context.Context) error {
	chunks, err := l.chunks(ctx)
	if err != nil {
		return err
	}
	for i, c := range chunks {
		if i == chunksPerPage {
			l.next = c.last() + 1
			if l.query.OldestFirst {
				l.next = c.First - 1
			}
			return nil
		}
		lines, err := l.s.archivedLines(ctx, c)
		if err != nil {
			return err
		}
		if !l.query.OldestFirst {
			slices.Reverse(lines)
		}
		for _, line := range lines {
			e, err := entryOf(line)
			if err != nil {
				return errChunk(c, "which has a malformed line")
			}
			if l.wants(e) {
				l.items = append(l.items, e)
			}
			if len(l.items) > l.query.Limit {
				return nil
			}
		}
	}
	return nil
}

// chunks returns the chunks that may have lines for the page. It returns at most one more than the
// page may read, to show that there are more.
func (l *auditLines) chunks(ctx context.Context) ([]Chunk, error) {
	if l.archived == 0 {
		return nil, nil
	}
	from, until, order := int64(0), int64(1<<62), `DESC`
	if l.query.OldestFirst {
		from, order = l.cursor, `ASC`
	} else if l.cursor != 0 {
		until = l.cursor
	}
	since, before := int64(-1<<62), int64(1<<62)
	if !l.query.Since.IsZero() {
		since = l.query.Since.UnixMilli()
	}
	if !l.query.Until.IsZero() {
		before = l.query.Until.UnixMilli()
	}
	return collect(ctx, l.s, `SELECT `+chunkColumns+` FROM audit_archive c WHERE c.org_id = $1
		AND c.first + $2 > $3 AND c.first < $4 AND c.last_at >= $5 AND c.first_at < $6
		ORDER BY c.first `+order+` LIMIT $7`, scanChunk, l.org, auditlog.ChunkLines-1, from, until, since, before,
		chunksPerPage+1)
}

// wants reports whether an archived line belongs on the page.
func (l *auditLines) wants(e snap.AuditEntry) bool {
	q := l.query
	switch {
	case l.cursor != 0 && (q.OldestFirst && e.Seq <= l.cursor || !q.OldestFirst && e.Seq >= l.cursor):
		return false
	case !q.Since.IsZero() && e.At.UnixMilli() < q.Since.UnixMilli():
		return false
	case !q.Until.IsZero() && e.At.UnixMilli() >= q.Until.UnixMilli():
		return false
	}
	return (q.Snapshot == "" || e.Snapshot == q.Snapshot) && (q.Actor == "" || e.Actor == q.Actor) &&
		(q.Action == "" || e.Action == q.Action)
}
