package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// notOfConstraint is the condition for triggers that do not implement constraints. It includes the
// copies of a trigger at partitions, which count as internal before version 15.
const notOfConstraint = "tgconstrindid = 0"

// enabledTriggers selects the enabled triggers and rules of tables, as [trigger] describes them. It
// omits the triggers that implement constraints.
const enabledTriggers = `
	SELECT format('ALTER TABLE ONLY %I.%I DISABLE TRIGGER %I', n.nspname, c.relname, t.tgname),
		format('ALTER TABLE ONLY %I.%I ENABLE %sTRIGGER %I', n.nspname, c.relname,
			CASE t.tgenabled WHEN 'R' THEN 'REPLICA ' WHEN 'A' THEN 'ALWAYS ' ELSE '' END, t.tgname),
		c.oid::text, t.oid::text
	FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE ($1::text[] IS NULL OR n.nspname = ANY ($1))
		AND ` + notOfConstraint + ` AND t.tgenabled <> 'D' AND c.relkind IN ('r', 'p')
	UNION ALL
	SELECT format('ALTER TABLE %I.%I DISABLE RULE %I', n.nspname, c.relname, r.rulename),
		format('ALTER TABLE %I.%I ENABLE %sRULE %I', n.nspname, c.relname,
			CASE r.ev_enabled WHEN 'R' THEN 'REPLICA ' WHEN 'A' THEN 'ALWAYS ' ELSE '' END, r.rulename),
		c.oid::text, r.oid::text
	FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE ($1::text[] IS NULL OR n.nspname = ANY ($1))
		AND r.ev_enabled <> 'D' AND c.relkind IN ('r', 'p') AND r.rulename <> '_RETURN'`

// trigger is an enabled trigger or rule: the statements that disable and enable it, and the oids of
// its table and of itself.
type trigger struct{ Disable, Enable, Table, Object string }

// withoutTriggers calls run while all triggers and rules of tables are disabled, so that none of
// them copies an original value to another table. If run succeeds, withoutTriggers then enables the
// triggers and rules that still exist.
func (s *scratch) withoutTriggers(ctx context.Context, run func() error) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer s.release(ctx, conn)
	list, err := collect(ctx, conn, enabledTriggers, pgx.RowToStructByPos[trigger], s.into.schemas())
	if err != nil {
		return s.db.failure(err)
	}
	for _, t := range list {
		if _, err := conn.Exec(ctx, t.Disable); err != nil {
			return s.db.failure(err)
		}
	}
	if err := run(); err != nil {
		return err
	}
	for _, t := range list {
		var exists bool
		err := conn.QueryRow(ctx,
			"SELECT EXISTS (SELECT FROM pg_class WHERE oid = $1::text::oid) AND (EXISTS (SELECT FROM "+
				"pg_trigger WHERE oid = $2::text::oid) OR EXISTS (SELECT FROM pg_rewrite WHERE oid = $2::text::oid))",
			t.Table, t.Object).Scan(&exists)
		if err == nil && exists {
			_, err = conn.Exec(ctx, t.Enable)
		}
		if err != nil {
			return s.db.failure(err)
		}
	}
	return nil
}
