package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"time"

	"snap"
)

// This file exports internals for tests and benchmarks.

// SetQuotas sets how much users and organizations may push.
func (s *Store) SetQuotas(q Quotas) { s.quotas = q }

// WithoutTimeLimit exempts the statements of a context from the time limit.
var WithoutTimeLimit = withoutTimeLimit

// DB is the store's database.
func (s *Store) DB() *sql.DB { return s.write }

// EndUser ends all access of a user whom the identity provider no longer knows.
func (s *Store) EndUser(ctx context.Context, userID int64) error {
	return s.tx(ctx, func(tx *sql.Tx) error { return s.endUser(ctx, tx, userID) })
}

// Reads is the pool from which listings read.
func (s *Store) Reads() *sql.DB { return s.read }

// IsPostgres reports whether the store is in PostgreSQL.
func (s *Store) IsPostgres() bool { return s.dialect == postgres }

// Statement is a statement of the store with arguments for it.
type Statement struct {
	Name, Text string
	Args       []any
}

// Listings returns the statement of every shape a listing can have for these
// callers, each once.
func (s *Store) Listings(callers map[string]snap.Caller) (all []Statement) {
	seen := map[shape]bool{}
	for who, c := range callers {
		for _, filter := range []snap.Filter{snap.FilterAll, snap.FilterShared, snap.FilterMine, snap.FilterReceived} {
			for _, target := range []int64{0, 1} {
				for _, typ := range []snap.Type{"", snap.TypeSanitized} {
					for _, n := range []int{2, 11, 51, 201} {
						v := selection{filter: filter, target: target, typ: typ}
						sh := s.shapeOf(c, v, n)
						if seen[sh] {
							continue
						}
						seen[sh] = true
						all = append(all, Statement{Name: who + " " + string(filter) + " " + string(typ) +
							fmt.Sprint(sh.scope.kinds()),
							Text: s.listing(sh), Args: s.listingArgs(c, sh, v, math.MaxInt64)})
					}
				}
			}
		}
	}
	return all
}

// Lookups returns the other statements whose cost must not depend on the amount of data.
func (s *Store) Lookups(c snap.Caller, id string) []Statement {
	v := s.viewerArgs(c)
	all := []Statement{
		{"check", selectByID, append(v, id)},
		{"bytes", selectBytes, []any{v[0], v[1], id}},
		{"prefix of an ID",
			selectOne +
				`s.id >= $5 AND s.id < $6 AND s.key < $7 ` +
				`AND ` + visible, append(v, id[:10], id[:10]+"\U0010ffff", int64(math.MaxInt64))},
		{"by keys", selectOne + `s.key IN (SELECT v FROM ` + s.each("$5") + ` AS e) AND ` + visible,
			append(v, "[1, 2, 3]")},
	}
	for _, column := range []string{"target_id", "owner_id", "label_id", "named_day", "named_time"} {
		for _, filter := range []snap.Filter{snap.FilterAll, snap.FilterMine} {
			sh := s.shapeOf(c, selection{filter: filter}, 51)
			of := []any{v[0], v[1], int64(math.MaxInt64)}
			all = append(all, Statement{"search by " + column,
				s.keysText(sh, condition{column: column, values: []int64{1}}),
				append(of, "[1, 2]")},
				Statement{"search by range of " + column, s.keysText(sh, condition{column: column}),
					append(of, int64(1), int64(9))})
		}
	}
	return all
}

// Due is the statement of [Store.DueStandings] for one user who is due at any time.
func Due(org int64) Statement {
	return Statement{"next recheck", selectDue, []any{org, int64(math.MaxInt64), int64(math.MaxInt64), 1}}
}

// Cursor is the cursor after the snapshot with this key.
func Cursor(key int64) string { return cursor(key) }

// Drain reads all rows.
func Drain[T any](rows *sql.Rows, scan func(*sql.Rows) (T, error)) ([]T, error) {
	return drain(rows, scan)
}

// Versions returns how many versions the schema has had.
func Versions() (n int64, err error) {
	files, err := migrations.ReadDir("migrations/sqlite")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(files[len(files)-1].Name()[:4], 10, 64)
}

// FillVersions migrates an empty database from one version of the schema to the next, up to the
// last one, and calls fill at each of them.
func FillVersions(ctx context.Context, o Options, last int64, fill func(*sql.DB) error) error {
	s, err := open(o)
	if err != nil {
		return err
	}
	defer s.Close()
	provider, err := s.migrationProvider()
	if err != nil {
		return err
	}
	for version := int64(1); version <= last; version++ {
		if _, err := provider.UpTo(ctx, version); err != nil {
			return err
		}
		if err := fill(s.write); err != nil {
			return fmt.Errorf("version %d: %w", version, err)
		}
	}
	return nil
}

// These methods make and end single shares in tests.

func (s *Store) Share(ctx context.Context, c snap.Caller, sn snap.Snapshot) error {
	return s.ShareUntil(ctx, c, sn, snap.Shares{OrgWide: true})
}

func (s *Store) ShareUntil(ctx context.Context, c snap.Caller, sn snap.Snapshot, with snap.Shares) error {
	_, _, err := s.ShareWith(ctx, c, sn, with)
	return err
}

func (s *Store) Unshare(ctx context.Context, c snap.Caller, sn snap.Snapshot) error {
	_, err := s.UnshareFrom(ctx, c, sn, snap.Shares{OrgWide: true})
	return err
}

func (s *Store) ShareGroup(ctx context.Context, c snap.Caller, sn snap.Snapshot, group string) (snap.GroupShare,
	error) {
	made, _, err := s.ShareWith(ctx, c, sn, snap.Shares{Groups: []string{group}})
	if err != nil {
		return snap.GroupShare{}, err
	}
	return snap.GroupShare{Group: *made[0].Group, Created: made[0].Created, By: made[0].By}, nil
}

func (s *Store) UnshareGroup(ctx context.Context, c snap.Caller, sn snap.Snapshot, group string) error {
	_, err := s.UnshareFrom(ctx, c, sn, snap.Shares{Groups: []string{group}})
	return err
}

func (s *Store) ShareOrg(ctx context.Context, c snap.Caller, sn snap.Snapshot, slug string,
	expires time.Time) (snap.OrgShare, *snap.OrgShare, error) {
	made, _, err := s.ShareWith(ctx, c, sn, snap.Shares{Orgs: []string{slug}, Expires: expires})
	if err != nil {
		return snap.OrgShare{}, nil, err
	}
	return snap.OrgShare{Org: *made[0].Org, Expires: made[0].Expires, Created: made[0].Created, By: made[0].By},
		made[0].Previous, nil
}

func (s *Store) UnshareOrg(ctx context.Context, c snap.Caller, sn snap.Snapshot, slug string) error {
	_, err := s.UnshareFrom(ctx, c, sn, snap.Shares{Orgs: []string{slug}})
	return err
}

// ArchiveSchema is the schema that a program must know to read archived audit lines.
const ArchiveSchema = archiveSchema
