package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"snap"
)

// Card is a snapshot's card (see package card) as it is stored. The store does not interpret it.
type Card struct {
	Head  string
	Pages [][]byte
}

// SetCard replaces the card of a snapshot. A card without a Head deletes the stored one. SetCard
// fails with snap.ErrNotFound if the caller can no longer see the snapshot.
func (s *Store) SetCard(ctx context.Context, c snap.Caller, sn snap.Snapshot, card Card) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		deleted, err := changed(tx.ExecContext(ctx, `DELETE FROM cards WHERE snapshot = $1`, sn.Key))
		if err != nil {
			return err
		}
		if deleted || card.Head != "" && !pushedBy(c, sn) {
			if err := s.recordOn(ctx, tx, c, sn, snap.AuditCardChanged, snap.AuditDetail{Name: sn.Name}); err != nil {
				return err
			}
		}
		if card.Head == "" {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO cards(snapshot, head, pages) VALUES($1, $2, $3)`,
			sn.Key, card.Head, len(card.Pages)); err != nil {
			return err
		}
		for i, page := range card.Pages {
			if _, err := tx.ExecContext(ctx, `INSERT INTO card_pages(snapshot, page, body) VALUES($1, $2, $3)`,
				sn.Key, i+1, page); err != nil {
				return err
			}
		}
		return nil
	})
}

// pushedBy reports whether the caller pushed a snapshot. The organization-level keys of an
// organization count as one pusher.
func pushedBy(c snap.Caller, sn snap.Snapshot) bool {
	if c.User == nil || sn.Owner == nil {
		return c.User == nil && sn.Owner == nil
	}
	return c.User.ID == sn.Owner.ID
}

// mayRead limits a statement about a card to callers who may read it: those who see snapshot s, if
// s belongs to their organization ($4) or was shared with their organization including the schema.
const mayRead = visible + ` AND (s.org_id = $4 OR EXISTS (SELECT 1 FROM grants g
	WHERE g.audience = CAST($4 AS bigint)` + recipientsOf + ` AND g.snapshot = s.key AND g.with_schema = 1 AND ` +
	liveGrant + `))`

// CardPage is one page of a card.
type CardPage struct {
	Head  string
	Pages int
	Body  []byte // nil if there is no such page
}

// CardPage returns a page of a snapshot's card, counted from 1. It fails with snap.ErrNotFound if
// there is no card, and also if the caller is not allowed to read it.
func (s *Store) CardPage(ctx context.Context, c snap.Caller, sn snap.Snapshot, page int) (p CardPage, err error) {
	err = s.row(ctx, `SELECT k.head, k.pages, p.body FROM snapshots s JOIN cards k ON k.snapshot = s.key
		LEFT JOIN card_pages p ON p.snapshot = s.key AND p.page = $5 WHERE s.key = $3 AND `+mayRead,
		c.Principal(), s.now().UnixMilli(), sn.Key, c.Org.ID, page).Scan(&p.Head, &p.Pages, &p.Body)
	return p, hide(err)
}

// MayReadCard reports whether a caller may read a snapshot's card, even if it has none.
func (s *Store) MayReadCard(ctx context.Context, c snap.Caller, sn snap.Snapshot) (may bool, err error) {
	err = s.row(ctx, `SELECT EXISTS (SELECT 1 FROM snapshots s WHERE s.key = $3 AND `+mayRead+`)`,
		c.Principal(), s.now().UnixMilli(), sn.Key, c.Org.ID).Scan(&may)
	return may, err
}

// CardPages returns the bodies of all pages of a snapshot's card, in order. It returns none if
// there is no card or the caller is not allowed to read it.
func (s *Store) CardPages(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([][]byte, error) {
	return collect(ctx, s, `SELECT p.body FROM snapshots s JOIN card_pages p ON p.snapshot = s.key
		WHERE s.key = $3 AND `+mayRead+` ORDER BY p.page`, scanOne[[]byte],
		c.Principal(), s.now().UnixMilli(), sn.Key, c.Org.ID)
}

// Previous returns the newest snapshot before sn that has the same organization, target and type,
// that the caller can see, and that has a card they may read. It fails with snap.ErrNotFound if
// there is none among the target's newest snapshots.
func (s *Store) Previous(ctx context.Context, c snap.Caller, sn snap.Snapshot) (snap.Snapshot, error) {
	page, err := s.Snapshots(ctx, c, Query{Target: sn.Target, Type: sn.Type, Limit: maxLimit})
	if err != nil {
		return snap.Snapshot{}, err
	}
	for _, one := range page.Items {
		if one.Key >= sn.Key || one.Org.ID != sn.Org.ID {
			continue
		}
		if _, err := s.CardPage(ctx, c, one, 1); err == nil || !errors.Is(err, snap.ErrNotFound) {
			return one, err
		}
	}
	return snap.Snapshot{}, snap.ErrNotFound
}

// Describe replaces the description and labels of a snapshot, and makes both searchable.
func (s *Store) Describe(ctx context.Context, c snap.Caller, sn snap.Snapshot, description string,
	labels []string) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		label, err := s.describedLabel(ctx, tx, sn, description+" "+strings.Join(labels, " "))
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx,
			`UPDATE snapshots SET description = $2, tags = $3, label_id = $4 WHERE key = $1`,
			sn.Key, description, jsonArray(labels), label); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE grants SET label_id = $2 WHERE snapshot = $1`,
			sn.Key, label); err != nil {
			return err
		}
		return s.recordOn(ctx, tx, c, sn, snap.AuditDescribed, snap.AuditDetail{Name: sn.Name})
	})
}

// longestWord is how many bytes of a word of a description are indexed. A search word is always
// shorter.
const longestWord = 400

// describedLabel returns the ID of the label by which a search finds a snapshot: the label of its
// name or, unless text is blank, a label of the snapshot's own that also has the words of text.
func (s *Store) describedLabel(ctx context.Context, tx *sql.Tx, sn snap.Snapshot, text string) (int64, error) {
	named := namingOf(sn.Name, sn.Target).label
	if err := forgetWords(ctx, tx, sn); err != nil {
		return 0, err
	}
	if strings.TrimSpace(text) == "" {
		return s.labelID(ctx, tx, named)
	}
	var words []string
	for _, w := range snap.Words(named + " " + text) {
		words = append(words, strings.ToValidUTF8(w[:min(len(w), longestWord)], ""))
	}
	id, err := s.labelID(ctx, tx, ownLabel(sn))
	if err != nil {
		return 0, err
	}
	return id, s.addWords(ctx, tx, 0, wordsOfLabel, id, strings.Join(words, " "))
}

// ownLabel is the folded form of a described snapshot's own label. No name folds to it.
func ownLabel(sn snap.Snapshot) string { return "\x01" + sn.ID }

// forgetWords removes the words of a snapshot's description from the index.
func forgetWords(ctx context.Context, tx *sql.Tx, sn snap.Snapshot) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM words WHERE org_id = 0 AND kind = $1
		AND id IN (SELECT id FROM labels WHERE folded = $2)`, wordsOfLabel, ownLabel(sn))
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM labels WHERE folded = $1`, ownLabel(sn))
	}
	return err
}

// CountPull counts a completed pull by the caller.
func (s *Store) CountPull(ctx context.Context, c snap.Caller, sn snap.Snapshot) error {
	return s.exec(ctx, `INSERT INTO pulls(snapshot, org_id, user_id, times, last_at)
		SELECT key, $2, $3, 1, $4 FROM snapshots WHERE key = $1
		ON CONFLICT(snapshot, org_id, user_id) DO UPDATE SET times = pulls.times + 1, last_at = excluded.last_at`,
		sn.Key, c.Org.ID, userID(c).Int64, s.now().UnixMilli())
}

// Pull says how often a user, the keys of an organization, or another organization pulled a
// snapshot.
type Pull struct {
	Email, Organization string // Email is empty for keys and for people of other organizations
	Times               int64
	Last                time.Time
}

// Pulls returns who pulled a snapshot of the caller's organization, starting with the most recent
// pull. It returns at most 200 entries. The people of another organization are counted together.
func (s *Store) Pulls(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]Pull, error) {
	return collect(ctx, s, `SELECT coalesce(max(u.email), ''), max(o.slug), sum(p.times), max(p.last_at)
		FROM snapshots s JOIN pulls p ON p.snapshot = s.key JOIN orgs o ON o.id = p.org_id
		LEFT JOIN users u ON u.id = p.user_id AND u.org_id = s.org_id
		WHERE s.key = $3 AND s.org_id = $4 AND `+visible+`
		GROUP BY p.org_id, CASE WHEN p.org_id = s.org_id THEN p.user_id ELSE 0 END
		ORDER BY max(p.last_at) DESC LIMIT 200`,
		func(rows *sql.Rows) (p Pull, err error) {
			err = rows.Scan(&p.Email, &p.Organization, &p.Times, toTime(&p.Last))
			return p, err
		}, c.Principal(), s.now().UnixMilli(), sn.Key, c.Org.ID)
}
