package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"snap"
)

// This file writes the index for the search by words. [snap.Finds] defines which words find a
// snapshot.

// Matches reports whether a search for q finds a snapshot.
func Matches(sn snap.Snapshot, q string) bool {
	var owner string
	if sn.Owner != nil {
		owner = ownerText(sn.Owner.Email, sn.Owner.Name)
	}
	return snap.Finds(q, sn.ID, append([]string{sn.Name, sn.Target, owner, sn.Description}, sn.Labels...)...)
}

// ownerText returns the text by which an owner is found, as stored in users.words.
func ownerText(email, name string) string { return email + " " + name }

// moment matches a date and time in a folded name, as [snap.SnapshotName] writes it. It is compiled
// when it is first needed, because Unicode's character classes make compiling expensive.
var moment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\pL\pN\pM])([0-9]{8})t([0-9]{6})z?(?:$|[^\pL\pN\pM])`)
})

// naming is a snapshot's name without the words of its target: the moment that it contains, and a
// label with all other words. Each part of the moment is 0, or its digits with a 1 in front.
type naming struct {
	day, time int64
	label     string
}

func namingOf(name, target string) (n naming) {
	words, known := snap.Words(name), snap.Words(target)
	if m := moment().FindStringSubmatch(snap.FoldCase(name)); m != nil {
		n.day, _ = strconv.ParseInt("1"+m[1], 10, 64)
		n.time, _ = strconv.ParseInt("1"+m[2], 10, 64)
		known = append(known, m[1:]...)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return slices.Contains(known, w) })
	n.label = strings.Join(words, " ")
	return n
}

// The kinds of rows in the table words.
const (
	wordsOfTarget = 1
	wordsOfOwner  = 2
	wordsOfLabel  = 3
)

// indexSize is the number of rows that are indexed in one transaction.
const indexSize = 1000

// Index indexes everything that is not indexed yet: rows from an earlier release, and new targets
// and names of users. It is fast if there is nothing to do.
func (s *Store) Index(ctx context.Context) error {
	for {
		if done, err := s.indexSome(ctx); done || err != nil {
			return err
		}
	}
}

// indexSome indexes some of the rows that are not indexed yet. done is true if none are left.
func (s *Store) indexSome(ctx context.Context) (done bool, err error) {
	if done, err := s.indexed(ctx); done || err != nil {
		return done, err
	}
	err = s.txUnique(ctx, func(tx *sql.Tx) error {
		if err := s.indexGrants(ctx, tx); err != nil {
			return err
		}
		if err := s.indexTargets(ctx, tx); err != nil {
			return err
		}
		return s.indexUsers(ctx, tx)
	})
	if err != nil {
		return false, err
	}
	return s.indexed(ctx)
}

// indexed reports whether everything is indexed. Its conditions are those of the partial indexes.
func (s *Store) indexed(ctx context.Context) (done bool, err error) {
	err = s.row(ctx, `SELECT NOT EXISTS(SELECT 1 FROM grants WHERE named_day IS NULL)
		AND NOT EXISTS(SELECT 1 FROM org_targets WHERE indexed = 0)
		AND NOT EXISTS(SELECT 1 FROM users WHERE words <> email || ' ' || name)`).Scan(&done)
	return done, err
}

// indexGrants indexes the snapshots of some grants that are not indexed yet.
func (s *Store) indexGrants(ctx context.Context, tx *sql.Tx) error {
	type named struct {
		key int64
		naming
	}
	all, err := txCollect(ctx, tx, `SELECT key, name, target FROM snapshots WHERE key IN (
		SELECT snapshot FROM grants WHERE named_day IS NULL LIMIT $1)`, func(rows *sql.Rows) (n named, err error) {
		var name, target string
		err = rows.Scan(&n.key, &name, &target)
		n.naming = namingOf(name, target)
		return n, err
	}, indexSize)
	if err != nil || len(all) == 0 {
		return err
	}
	var list [][4]int64
	for _, n := range all {
		label, err := s.labelID(ctx, tx, n.label)
		if err != nil {
			return err
		}
		list = append(list, [4]int64{n.key, n.day, n.time, label})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	entry := func(i string) string { return `CAST(json_extract(value, '$[` + i + `]') AS INTEGER)` }
	each := `json_each($1)`
	if s.dialect == postgres {
		entry = func(i string) string { return `(value->>` + i + `)::bigint` }
		each = `json_array_elements($1::json)`
	}
	from := ` FROM (SELECT ` + entry("0") + ` AS k, ` + entry("1") + ` AS d, ` + entry("2") + ` AS t, ` + entry("3") +
		` AS l FROM ` + each + ` AS e) AS n `
	if _, err := tx.ExecContext(ctx, `UPDATE snapshots SET named_day = n.d, named_time = n.t, label_id = n.l`+from+
		`WHERE snapshots.key = n.k`, string(text)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE grants SET named_day = n.d, named_time = n.t, label_id = n.l,
		owner_id = (SELECT coalesce(s.owner_id, 0) FROM snapshots s WHERE s.key = grants.snapshot)`+from+
		`WHERE grants.snapshot = n.k`, string(text))
	return err
}

// labelID returns the ID of a label, or 0 for an empty one. It adds a label that does not exist and
// indexes its words.
func (s *Store) labelID(ctx context.Context, tx *sql.Tx, label string) (id int64, err error) {
	if label == "" {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, `SELECT id FROM labels WHERE folded = $1`, label).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	if err := tx.QueryRowContext(ctx,
		`INSERT INTO labels(folded) VALUES($1) RETURNING id`, label).Scan(&id); err != nil {
		return 0, err
	}
	return id, s.addWords(ctx, tx, 0, wordsOfLabel, id, label)
}

func (s *Store) addWords(ctx context.Context, tx *sql.Tx, org int64, kind int, id int64, text string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO words(org_id, kind, word, id)
		SELECT CAST($1 AS bigint), CAST($2 AS bigint), value, CAST($3 AS bigint) FROM `+s.eachText("$4")+` AS e
		WHERE 1 = 1 ON CONFLICT(org_id, kind, word, id) DO NOTHING`, org, kind, id,
		jsonArray(snap.Words(text)))
	return err
}

// unindexedRow is a row to index: its organization, ID and text, and the text that is already
// indexed.
type unindexedRow struct {
	org, id     int64
	text, known string
}

func scanUnindexed(rows *sql.Rows) (p unindexedRow, err error) {
	err = rows.Scan(&p.org, &p.id, &p.text, &p.known)
	return p, err
}

func (s *Store) indexTargets(ctx context.Context, tx *sql.Tx) error {
	all, err := txCollect(ctx, tx, `SELECT org_id, target_id, folded, '' FROM org_targets WHERE indexed = 0
		ORDER BY org_id, target_id LIMIT $1`, scanUnindexed, indexSize)
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := s.addWords(ctx, tx, p.org, wordsOfTarget, p.id, p.text); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx,
			`UPDATE org_targets SET indexed = 1 WHERE org_id = $1 AND target_id = $2`, p.org, p.id); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) indexUsers(ctx context.Context, tx *sql.Tx) error {
	all, err := txCollect(ctx, tx, `SELECT org_id, id, email || ' ' || name, words FROM users
		WHERE words <> email || ' ' || name ORDER BY id LIMIT $1`, scanUnindexed, indexSize)
	if err != nil {
		return err
	}
	for _, p := range all {
		if _, err := tx.ExecContext(ctx, `DELETE FROM words WHERE org_id = $1 AND kind = $2 AND id = $3
			AND word IN (SELECT value FROM `+s.eachText("$4")+` AS e)`,
			p.org, wordsOfOwner, p.id, jsonArray(snap.Words(p.known))); err != nil {
			return err
		}
		if err := s.addWords(ctx, tx, p.org, wordsOfOwner, p.id, p.text); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE users SET words = $2 WHERE id = $1`, p.id, p.text); err != nil {
			return err
		}
	}
	return nil
}
