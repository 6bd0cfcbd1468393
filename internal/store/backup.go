package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"snap"
	"snap/internal/auditlog"
)

// BackUp writes the SQLite database of a data directory, as of one moment, to a new file; the file
// must not exist. The service may keep writing in the meantime. The copy leaves out rows that are
// useless elsewhere, such as those of running processes and of pushes in progress, and records that
// refresh tokens may be old when it is used, as [Store.DoubtRefresh] does. The file is synced and
// readable by its owner only. BackUp fails with code usage if the service was moved elsewhere, and
// with code storage_full if the new file's disk is full.
func BackUp(ctx context.Context, dataDir, file string) error {
	if err := CheckExists(Options{DataDir: dataDir}); err != nil {
		return err
	}
	s, err := open(Options{DataDir: dataDir})
	if err != nil {
		return err
	}
	defer s.Close()
	known, err := s.hasTable(ctx, "snapshots")
	if err != nil {
		return fmt.Errorf("read the database in %s: %w", dataDir, err)
	}
	if !known {
		return snap.Usage("the database in "+dataDir+" is empty",
			"start the service once, or name its configuration with --config")
	}
	if err := s.CheckMoved(ctx); err != nil {
		return err
	}
	if err := restrictToOwner(file); err != nil { // SQLite treats an empty file as a new database
		return err
	}
	if _, err = s.write.ExecContext(ctx, `VACUUM INTO $1`, file); err == nil {
		err = errors.Join(trim(ctx, file), syncFile(file))
	}
	if isDiskFull(err) {
		return &snap.Error{Code: snap.CodeStorageFull, Detail: "the disk of " + file + " is full",
			Hint: "free some space on it, then run the command again", Cause: err}
	}
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}

// trim removes from a copy the rows that are useless outside this service, and records that its
// refresh tokens may be old.
func trim(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", fileURL(file)+"?_pragma=journal_mode(DELETE)&_pragma=foreign_keys(1)")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, t := range tables() {
		// The table serving stays, because it also keeps programs that are too old from using the
		// copy.
		if t.whyNotCopied == "" || t.name == "serving" {
			continue
		}
		var known bool // databases from older services may lack the table
		if err := db.QueryRowContext(ctx, hasTableSQLite, t.name).Scan(&known); err != nil {
			return err
		}
		if !known {
			continue
		}
		if _, err := db.ExecContext(ctx, `DELETE FROM `+t.name); err != nil {
			return fmt.Errorf("remove %s from the copy: %w", t.name, err)
		}
	}
	if known, err := hasColumn(ctx, db, "sign_ins", "doubts"); err != nil || !known {
		return err
	}
	_, err = db.ExecContext(ctx, doubtRefresh)
	return err
}

// fileURL returns the name of a database file in the form that the SQLite driver expects. It adds
// no slashes before a relative path, because the text after two slashes would be read as a host.
func fileURL(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

func syncFile(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Copy is a read-only copy of the database that [BackUp] made.
type Copy struct{ db *sql.DB }

// OpenCopy opens a copy.
func OpenCopy(file string) (*Copy, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", fileURL(file)+"?mode=ro&immutable=1&_pragma=query_only(1)")
	return &Copy{db}, err
}

// Close closes the copy.
func (c *Copy) Close() error { return c.db.Close() }

// Objects is like [Frozen.Objects], for the copy.
func (c *Copy) Objects(ctx context.Context, after string, limit int) ([]Object, error) {
	needed, err := c.neededObjects(ctx)
	if err != nil {
		return nil, err
	}
	return objects(ctx, c.db, needed, after, limit)
}

// neededObjects returns a subquery for the objects that the copy needs. A copy from an older
// service has no archive.
func (c *Copy) neededObjects(ctx context.Context) (string, error) {
	archives, err := hasColumn(ctx, c.db, "audit_archive", "blob")
	if err == nil && !archives {
		return `(SELECT blob, size, sha256 FROM snapshots)`, nil
	}
	return neededObjects, err
}

// Check runs SQLite's integrity check on the whole copy and verifies every audit chain.
func (c *Copy) Check(ctx context.Context) error {
	var verdict string
	if err := c.db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("the database is damaged: %s", verdict)
	}
	return checkChains(ctx, c.db)
}

// CheckAudit verifies every organization's audit chain. It fails if a line was changed.
func (s *Store) CheckAudit(ctx context.Context) error {
	return checkChains(withoutTimeLimit(ctx), s.read)
}

func checkChains(ctx context.Context, q querier) error {
	hasSize, err := hasColumn(ctx, q, "audit_heads", "size")
	if err != nil {
		return err
	}
	columns := `coalesce(h.size, 0), coalesce(h.checkpoint, '')`
	if !hasSize { // written by an older service
		columns = `0, ''`
	}
	rows, err := q.QueryContext(ctx,
		`SELECT o.id, `+columns+` FROM orgs o LEFT JOIN audit_heads h ON h.org_id = o.id ORDER BY o.id`)
	if err != nil {
		return err
	}
	heads, err := drain(rows, func(rows *sql.Rows) (h head, err error) {
		err = rows.Scan(&h.org, &h.size, &h.checkpoint)
		return h, err
	})
	if err != nil {
		return err
	}
	for _, h := range heads {
		if err := h.check(ctx, q); err != nil {
			return fmt.Errorf("the audit log of organization %d: %w", h.org, err)
		}
	}
	return nil
}

// head is the newest checkpoint of an organization's audit log and the number of lines that it
// covers.
type head struct {
	org, size  int64
	checkpoint string
}

// check verifies the chain of an organization's lines and compares it with the checkpoint. It
// cannot verify the checkpoint's signature. For archived lines, it verifies only the hashes of
// their subtrees. The objects that hold these lines are compared with their SHA-256 elsewhere, like
// all other objects.
func (h head) check(ctx context.Context, q querier) error {
	var chain snap.AuditChain
	var sum auditlog.Sum
	archived, err := h.addArchived(ctx, q, &chain, &sum)
	if err != nil {
		return err
	}
	rows, err := q.QueryContext(ctx, `SELECT `+entryColumns+` FROM audit a WHERE a.org_id = $1 AND a.seq > $2
		ORDER BY a.seq`, h.org, archived)
	if err != nil {
		return err
	}
	defer rows.Close()
	var signed tlog.Hash
	for rows.Next() {
		e, body, err := scanLine(rows)
		if err == nil {
			err = chain.Next(e)
		}
		if err != nil {
			return err
		}
		sum.Add(body)
		if sum.Size() == h.size {
			signed = sum.Root()
		}
	}
	if err := rows.Err(); err != nil || h.size == 0 {
		return err
	}
	c, err := auditlog.Read(h.checkpoint)
	if err != nil || c.Size != h.size || c.Root != signed {
		return errAltered("its lines do not match its signed checkpoint")
	}
	return nil
}

// addArchived adds the archived lines to the chain and the tree, and returns their number.
func (h head) addArchived(ctx context.Context, q querier, chain *snap.AuditChain, sum *auditlog.Sum) (int64, error) {
	if archives, err := hasColumn(ctx, q, "audit_archive", "blob"); err != nil || !archives {
		return 0, err
	}
	rows, err := q.QueryContext(ctx, `SELECT hash FROM audit_archive WHERE org_id = $1 ORDER BY first`, h.org)
	if err != nil {
		return 0, err
	}
	lastHashes, err := drain(rows, scanOne[string])
	if err != nil {
		return 0, err
	}
	tree := treeOf(ctx, q, h.org)
	for _, hash := range lastHashes {
		root, err := tree.ChunkRoot(sum.Size() + 1)
		if err != nil {
			return 0, err
		}
		sum.AddChunk(root)
		chain.Skip(sum.Size(), hash)
	}
	return sum.Size(), nil
}

// hasColumn reports whether a table exists and has a column, which a copy from an older service may
// lack. On PostgreSQL, which has no such copies, it fails if the table does not exist.
func hasColumn(ctx context.Context, q querier, table, column string) (bool, error) {
	names, err := columns(ctx, q, table)
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return false, nil
	}
	return slices.Contains(names, column), err
}

// Count returns how many objects the copy refers to.
func (c *Copy) Count(ctx context.Context) (n int64, err error) {
	needed, err := c.neededObjects(ctx)
	if err == nil {
		err = c.db.QueryRowContext(ctx, `SELECT count(DISTINCT blob) FROM `+needed+` AS o`).Scan(&n)
	}
	return n, err
}

// NeedsObject reports whether the SQLite database of a data directory still needs an object.
func NeedsObject(ctx context.Context, dataDir, key string) (needed bool, err error) {
	s, err := open(Options{DataDir: dataDir})
	if err != nil {
		return false, err
	}
	defer s.Close()
	objects, err := (&Copy{s.read}).neededObjects(ctx)
	if err == nil {
		err = s.read.QueryRowContext(ctx, `SELECT EXISTS(SELECT 1 FROM `+objects+` AS o WHERE blob = $1)`, key).
			Scan(&needed)
	}
	return needed, err
}
