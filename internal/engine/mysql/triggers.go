package mysql

import (
	"context"
	"database/sql"
	"slices"
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
	dropped, err := triggersOf(ctx, c, s.db.name)
	if err != nil {
		return err
	}
	for name := range dropped {
		if _, err := c.ExecContext(ctx, "DROP TRIGGER "+quote(name)); err != nil {
			return err
		}
	}
	if err := run(); err != nil {
		return err
	}
	return s.remakeTriggers(ctx, c, dropped)
}

// remakeTriggers creates the dropped triggers again, except those of tables that no longer exist.
func (s *scratch) remakeTriggers(ctx context.Context, c *sql.Conn, dropped map[string]bool) error {
	if len(dropped) == 0 {
		return nil
	}
	tables, err := queryStrings(ctx, c, "SELECT table_name FROM information_schema.tables WHERE table_schema = ?",
		s.db.name)
	if err != nil {
		return err
	}
	m, done, err := s.account.creator(ctx, s.server, s.db, c)
	if err != nil {
		return err
	}
	defer done()
	for _, d := range s.structure.Triggers {
		if !dropped[d.Name] || d.On != "" && !slices.Contains(tables, d.On) {
			continue
		}
		if err := m.create(ctx, "TRIGGER", d); err != nil {
			return err
		}
	}
	return nil
}
