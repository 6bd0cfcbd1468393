package store

import (
	"context"
	"errors"
)

// Reference is an object that the database refers to.
type Reference struct {
	Object
	Snapshot string // ID of one of the snapshots that need it
	Org      string // slug of its organization; empty for an upload or garbage
}

// References returns every object that the database refers to, by key: the objects of snapshots, of
// archived audit lines and of pushes in progress, and garbage. It does not change the schema, which
// may be that of the previous release. A missing database is not created and refers to nothing.
func References(ctx context.Context, o Options) (all map[string]Reference, err error) {
	if CheckExists(o) != nil {
		return nil, nil
	}
	s, err := open(o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	text := `SELECT s.blob, max(s.size), max(s.sha256), max(s.id), max(o.slug)
			FROM snapshots s JOIN orgs o ON o.id = s.org_id GROUP BY s.blob
		UNION ALL SELECT blob, 0, '', '', '' FROM uploads
		UNION ALL SELECT blob, 0, '', '', '' FROM garbage`
	archives, err := s.hasTable(ctx, "audit_archive")
	if err != nil {
		return nil, err
	}
	if archives {
		text += ` UNION ALL SELECT a.blob, a.size, a.sha256, '', o.slug
			FROM audit_archive a JOIN orgs o ON o.id = a.org_id`
	}
	rows, err := s.read.QueryContext(withoutTimeLimit(ctx), text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all = map[string]Reference{}
	for rows.Next() {
		var r Reference
		if err := rows.Scan(&r.Key, &r.Size, &r.SHA256, &r.Snapshot, &r.Org); err != nil {
			return nil, err
		}
		if all[r.Key].Snapshot == "" {
			all[r.Key] = r
		}
	}
	return all, errors.Join(rows.Err(), rows.Close())
}
