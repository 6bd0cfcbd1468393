package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

var _ engine.Inspector = Engine{}

// oldestTool is the oldest supported version of pg_dump and pg_restore. A load requires a
// pg_restore that is at least as new as the pg_dump that wrote the dump.
const oldestTool = 13

// Needs implements [engine.Inspector].
func (e Engine) Needs(ctx context.Context, raw string, u engine.Use) ([]engine.Need, error) {
	d, err := e.parse(raw)
	if err != nil {
		return nil, err
	}
	connect, name, atLeast, rights := d.connect, "pg_dump", oldestTool, rightsToBuild
	if u == engine.ForLoad {
		connect, name, rights = d.maintenance, "pg_restore", rightsToLoad
	}
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if u == engine.ForBuild {
		server, err := version(ctx, conn)
		if err != nil {
			return nil, d.failure(err)
		}
		atLeast = major(server)
	}
	needs, err := missingRights(ctx, conn, rights, d.name())
	if err != nil {
		return nil, d.failure(err)
	}
	var noTool *snap.Error
	if _, err := e.tool(name, atLeast); errors.As(err, &noTool) {
		needs = append([]engine.Need{{Code: noTool.Code, What: noTool.Detail, Remedy: noTool.Hint}}, needs...)
	}
	return needs, nil
}

// missingRight is a right that the user needs and does not have. The names are quoted for SQL.
type missingRight struct {
	Kind   string // a value of the first column of the queries below
	User   string
	Within string // the schema, or the owner of the database
	Name   string // the object, or the first of several; for the kind policy, all tables
	Count  int
	Remedy string // the statement that grants the right
}

// describe returns a clause that names the action and the user who may not perform it.
func (l missingRight) describe() string {
	switch l.Kind {
	case "schema":
		return fmt.Sprintf("the user %s is not allowed to use the schema %s", l.User, l.Name)
	case "policy":
		return fmt.Sprintf("row-level security hides rows of %s from the user %s", l.Name, l.User)
	case "large object":
		return fmt.Sprintf("the user %s is not allowed to read %s", l.User, snap.Plural(l.Count, l.Kind, l.Kind+"s"))
	case "create":
		return fmt.Sprintf("the user %s is not allowed to create databases, and a load fills a new one before it "+
			"replaces the old one", l.User)
	case "database":
		return fmt.Sprintf("the database %s belongs to %s, and the user %s is not allowed to replace it", l.Name,
			l.Within, l.User)
	}
	if l.Count == 1 {
		return fmt.Sprintf("the user %s is not allowed to read the %s %s", l.User, l.Kind, l.Name)
	}
	return fmt.Sprintf("the user %s is not allowed to read %d %ss of the schema %s, such as %s", l.User, l.Count,
		l.Kind, l.Within, l.Name)
}

// missingRights runs a query for missing rights. Its columns are the fields of missingRight.
func missingRights(ctx context.Context, conn *pgx.Conn, query, database string) ([]engine.Need, error) {
	return collect(ctx, conn, query, func(row pgx.CollectableRow) (engine.Need, error) {
		l, err := pgx.RowToStructByPos[missingRight](row)
		return engine.Need{Code: snap.CodeDatabase, What: charset.Readable(l.describe()),
			Remedy: charset.Readable(l.Remedy)}, err
	}, database)
}

// rightsToBuild finds the rights that pg_dump needs and the user lacks. Objects of extensions are
// not dumped.
const rightsToBuild = `
WITH me AS (SELECT quote_ident(current_user) AS name),
own AS (
	SELECT c.oid, c.relkind, c.relrowsecurity, quote_ident(n.nspname) AS within, n.oid AS schema,
		format('%I.%I', n.nspname, c.relname) AS label
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'S') AND c.relpersistence <> 't'
	AND ` + ownSchemas + ` AND $1 <> ''
	AND NOT EXISTS (
		SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
)
SELECT 'schema', me.name, within, within, 1, format('GRANT USAGE ON SCHEMA %s TO %s', within, me.name)
	FROM own, me WHERE NOT has_schema_privilege(schema, 'USAGE') GROUP BY me.name, within
UNION ALL
SELECT 'table', me.name, within, min(label), count(*)::int, format(CASE count(*)
		WHEN 1 THEN 'GRANT SELECT ON TABLE %1$s TO %3$s'
		ELSE 'GRANT SELECT ON ALL TABLES IN SCHEMA %2$s TO %3$s' END,
		min(label), within, me.name)
	FROM own, me WHERE relkind <> 'S' AND NOT has_table_privilege(oid, 'SELECT') GROUP BY me.name, within
UNION ALL
SELECT 'sequence', me.name, within, min(label), count(*)::int, format(CASE count(*)
		WHEN 1 THEN 'GRANT SELECT ON SEQUENCE %1$s TO %3$s'
		ELSE 'GRANT SELECT ON ALL SEQUENCES IN SCHEMA %2$s TO %3$s' END,
		min(label), within, me.name)
	FROM own, me WHERE relkind = 'S' AND NOT has_table_privilege(oid, 'SELECT') GROUP BY me.name, within
UNION ALL
SELECT 'policy', me.name, '', string_agg(label, ', ' ORDER BY label), 1, format('ALTER ROLE %s BYPASSRLS', me.name)
	FROM own, me WHERE relrowsecurity AND row_security_active(oid) GROUP BY me.name
UNION ALL
SELECT 'large object', me.name, '', '', count(*)::int, format('DO $$ DECLARE l oid; BEGIN '
		'FOR l IN SELECT oid FROM pg_largeobject_metadata LOOP '
		'EXECUTE format(''GRANT SELECT ON LARGE OBJECT %%s TO %s'', l); END LOOP; END $$', me.name)
	FROM pg_largeobject_metadata l, me WHERE NOT pg_has_role(lomowner, 'USAGE') AND NOT EXISTS (
		SELECT FROM aclexplode(lomacl) a
		WHERE a.privilege_type = 'SELECT' AND (a.grantee = 0 OR pg_has_role(a.grantee, 'USAGE')))
	GROUP BY me.name`

// rightsToLoad finds the rights that the user needs, but lacks, to create the scratch database and
// give it the name of the old database.
const rightsToLoad = `
SELECT 'create', quote_ident(current_user), '', '', 1, format('ALTER ROLE %I CREATEDB', current_user)
	FROM pg_roles WHERE rolname = current_user AND NOT (rolcreatedb OR rolsuper)
UNION ALL
SELECT 'database', quote_ident(current_user), quote_ident(pg_get_userbyid(datdba)), quote_ident(datname), 1,
	format('ALTER DATABASE %I OWNER TO %I', datname, current_user)
	FROM pg_database WHERE datname = $1 AND NOT pg_has_role(datdba, 'USAGE')`

var _ engine.Replacer = Engine{}

// RequireReplaceable implements [engine.Replacer].
func (e Engine) RequireReplaceable(ctx context.Context, raw string) error {
	d, admin, err := e.maintenance(ctx, raw)
	if err != nil {
		return err
	}
	defer admin.Close(context.WithoutCancel(ctx))
	needs, err := missingRights(ctx, admin, rightsToLoad, d.name())
	if err != nil || len(needs) == 0 {
		return d.failure(errors.Join(err, requireDroppable(ctx, admin, d.name())))
	}
	return &snap.Error{Code: needs[0].Code, Detail: needs[0].What,
		Hint: "as an administrator, run: " + needs[0].Remedy + "; or load with --into-existing"}
}
