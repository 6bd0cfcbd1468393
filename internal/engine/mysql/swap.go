package mysql

import (
	"context"
	"fmt"
	"strings"
)

// Swap implements [engine.Scratch]. All tables change places in one RENAME
// TABLE statement, which the server does whole or not at all. Triggers cannot
// move with their tables, so those of the old ones are dropped right before it,
// and made again when it fails.
func (s *scratch) Swap(ctx context.Context, terminate bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.place.failure(s.swap(ctx, terminate))
}

func (s *scratch) swap(ctx context.Context, terminate bool) error {
	if _, err := s.server.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(s.place.name)+s.charset()); err != nil {
		return err
	}
	if err := s.clear(ctx, terminate); err != nil {
		return err
	}
	old := s.place.named(randomName("snapcli_replaced_"))
	if _, err := s.lock.ExecContext(ctx, "SELECT get_lock(?, 0)", old.name); err != nil {
		return err
	}
	if _, err := s.server.ExecContext(ctx, "CREATE DATABASE "+quote(old.name)); err != nil {
		return err
	}
	restore, err := s.withoutTriggers(ctx)
	if err == nil {
		err = s.rename(ctx, old.name)
	}
	if err != nil {
		restore()
		_, _ = s.server.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE IF EXISTS "+quote(old.name))
		return err
	}
	// From here on the new tables are in place: what follows must not be left
	// half done by an interruption.
	after := context.WithoutCancel(ctx)
	if err := s.replacePrograms(after); err != nil {
		return err
	}
	_, _ = s.server.ExecContext(after, "DROP DATABASE IF EXISTS "+quote(old.name)) // else the next load sweeps it up
	return nil
}

// clear refuses when others are connected, or ends their connections.
func (s *scratch) clear(ctx context.Context, terminate bool) error {
	who, err := names(ctx, s.server, "SELECT concat(user, ' from ', host) FROM information_schema.processlist WHERE db = ?", s.place.name)
	if err != nil || len(who) == 0 {
		return err
	}
	if !terminate {
		return inUse(s.place.name, who)
	}
	ids, err := names(ctx, s.server, "SELECT id FROM information_schema.processlist WHERE db = ?", s.place.name)
	if err != nil {
		return err
	}
	for _, id := range ids {
		// One that has ended by itself is no error.
		_, _ = s.server.ExecContext(ctx, "KILL "+id)
	}
	return nil
}

// withoutTriggers drops the triggers of the old tables and of the scratch ones
// and returns what makes the old ones again.
func (s *scratch) withoutTriggers(ctx context.Context) (restore func(), err error) {
	var again strings.Builder
	restore = func() {
		if again.Len() > 0 {
			_ = s.run(context.WithoutCancel(ctx), s.place, strings.NewReader(again.String()))
		}
	}
	for _, d := range []database{s.here, s.place} {
		triggers, err := names(ctx, s.server, "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = ? ORDER BY action_order", d.name)
		if err != nil {
			return restore, err
		}
		for _, name := range triggers {
			id := quote(d.name) + "." + quote(name)
			var skip, mode, text string
			var rest [5]any
			row := s.server.QueryRowContext(ctx, "SHOW CREATE TRIGGER "+id)
			if err := row.Scan(&skip, &mode, &text, &rest[0], &rest[1], &rest[2], &rest[3]); err != nil {
				return restore, err
			}
			if d.name == s.place.name {
				fmt.Fprintf(&again, "SET sql_mode = '%s';\nDELIMITER ;;\n%s ;;\nDELIMITER ;\n", mode, text)
			}
			if _, err := s.server.ExecContext(ctx, "DROP TRIGGER "+id); err != nil {
				return restore, err
			}
		}
	}
	return restore, nil
}

// rename moves the old tables away and the new ones in, in one statement.
func (s *scratch) rename(ctx context.Context, old string) error {
	var moves []string
	for _, move := range []struct{ from, to string }{{s.place.name, old}, {s.here.name, s.place.name}} {
		tables, err := names(ctx, s.server, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type IN ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED')", move.from)
		if err != nil {
			return err
		}
		for _, t := range tables {
			moves = append(moves, fmt.Sprintf("%s.%s TO %s.%s", quote(move.from), quote(t), quote(move.to), quote(t)))
		}
	}
	if len(moves) == 0 {
		return nil
	}
	_, err := s.server.ExecContext(ctx, "RENAME TABLE "+strings.Join(moves, ", "))
	return err
}

// replacePrograms removes the old views, routines and events and makes the new
// ones, triggers included.
func (s *scratch) replacePrograms(ctx context.Context) error {
	for _, kind := range []struct{ word, query string }{
		{"VIEW", "SELECT table_name FROM information_schema.views WHERE table_schema = ?"},
		{"PROCEDURE", "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'PROCEDURE' AND routine_schema = ?"},
		{"FUNCTION", "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' AND routine_schema = ?"},
		{"EVENT", "SELECT event_name FROM information_schema.events WHERE event_schema = ?"},
	} {
		list, err := names(ctx, s.server, kind.query, s.place.name)
		if err != nil {
			return err
		}
		for _, name := range list {
			if _, err := s.server.ExecContext(ctx, "DROP "+kind.word+" IF EXISTS "+quote(s.place.name)+"."+quote(name)); err != nil {
				return err
			}
		}
	}
	return s.run(ctx, s.place, strings.NewReader(s.programs.Routines+s.programs.Views+s.programs.Events))
}
