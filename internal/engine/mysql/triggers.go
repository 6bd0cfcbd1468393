package mysql

import (
	"context"
	"database/sql"
)

// withoutTriggers calls run while the scratch database has no triggers, so that no trigger copies a
// value to another table. If run succeeds, withoutTriggers then restores the triggers of the tables
// that still exist.
func (s *scratch) withoutTriggers(ctx context.Context, run func() error) error {
	c, err := session(ctx, s.server, "USE "+quote(s.db.name))
	if err != nil {
		return err
	}
	defer endSession(c)
	had, err := triggersOf(ctx, c, s.db.name)
	if err != nil {
		return err
	}
	for name := range had {
		if _, err := c.ExecContext(ctx, "DROP TRIGGER "+quote(name)); err != nil {
			return err
		}
	}
	if err := run(); err != nil {
		return err
	}
	return s.remakeTriggers(ctx, c, had)
}

func (s *scratch) remakeTriggers(ctx context.Context, c *sql.Conn, had map[string]bool) error {
	if len(had) == 0 {
		return nil
	}
	tables, err := names(ctx, c, "SELECT table_name FROM information_schema.tables WHERE table_schema = ?", s.db.name)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, t := range tables {
		there[t] = true
	}
	m := maker{c: c}
	if s.account.exists() {
		db, owner, err := s.account.asOwner(ctx, s.server, s.db)
		if err != nil {
			return err
		}
		defer db.Close()
		defer owner.Close()
		m = maker{c: owner, own: c, account: s.account}
	}
	for _, d := range s.structure.Triggers {
		if !had[d.Name] || d.On != "" && !there[d.On] {
			continue
		}
		if err := m.one(ctx, "TRIGGER", d); err != nil {
			return err
		}
	}
	return nil
}
