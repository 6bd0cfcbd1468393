package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

var _ engine.Inspector = Engine{}

// oldestTool is the oldest supported version of pg_dump and pg_restore. A load requires a pg_restore
// that is at least as new as the pg_dump that wrote the dump.
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
	needs, err := missing(ctx, conn, rights, d.name())
	if err != nil {
		return nil, d.failure(err)
	}
	var lacks *snap.Error
	if _, err := e.tool(name, atLeast); errors.As(err, &lacks) {
		needs = append([]engine.Need{{Code: lacks.Code, What: lacks.Detail, Remedy: lacks.Hint}}, needs...)
	}
	return needs, nil
}

// missing runs a query for missing rights. Each row has a description of a right and the statement
// that grants the right.
func missing(ctx context.Context, conn *pgx.Conn, query, database string) ([]engine.Need, error) {
	rows, err := conn.Query(ctx, query, database)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (engine.Need, error) {
		n := engine.Need{Code: snap.CodeDatabase}
		err := row.Scan(&n.What, &n.Remedy)
		n.What, n.Remedy = charset.Readable(n.What), charset.Readable(n.Remedy)
		return n, err
	})
}

// rightsToBuild finds the rights that pg_dump needs and the user lacks. Objects of extensions are
// not dumped.
const rightsToBuild = `
WITH me AS (SELECT quote_ident(current_user) AS name),
own AS (
	SELECT c.oid, c.relkind, c.relrowsecurity, n.nspname, n.oid AS schema, format('%I.%I', n.nspname, c.relname) AS label FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'S') AND c.relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%' AND $1 <> ''
	AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
)
SELECT format('the user %s is not allowed to use the schema %I', me.name, nspname), format('GRANT USAGE ON SCHEMA %I TO %s', nspname, me.name)
	FROM own, me WHERE NOT has_schema_privilege(schema, 'USAGE') GROUP BY me.name, nspname
UNION ALL
SELECT CASE count(*) WHEN 1 THEN format('the user %s is not allowed to read the table %s', me.name, min(label)) ELSE format('the user %s is not allowed to read %s tables of the schema %I, such as %s', me.name, count(*), nspname, min(label)) END,
	CASE count(*) WHEN 1 THEN format('GRANT SELECT ON TABLE %s TO %s', min(label), me.name) ELSE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %s', nspname, me.name) END
	FROM own, me WHERE relkind <> 'S' AND NOT has_table_privilege(oid, 'SELECT') GROUP BY me.name, nspname
UNION ALL
SELECT CASE count(*) WHEN 1 THEN format('the user %s is not allowed to read the sequence %s', me.name, min(label)) ELSE format('the user %s is not allowed to read %s sequences of the schema %I, such as %s', me.name, count(*), nspname, min(label)) END,
	CASE count(*) WHEN 1 THEN format('GRANT SELECT ON SEQUENCE %s TO %s', min(label), me.name) ELSE format('GRANT SELECT ON ALL SEQUENCES IN SCHEMA %I TO %s', nspname, me.name) END
	FROM own, me WHERE relkind = 'S' AND NOT has_table_privilege(oid, 'SELECT') GROUP BY me.name, nspname
UNION ALL
SELECT format('row-level security hides rows of %s from the user %s', string_agg(label, ', ' ORDER BY label), me.name), format('ALTER ROLE %s BYPASSRLS', me.name)
	FROM own, me WHERE relrowsecurity AND row_security_active(oid) GROUP BY me.name
UNION ALL
SELECT format(CASE count(*) WHEN 1 THEN 'the user %s is not allowed to read a large object' ELSE 'the user %s is not allowed to read %s large objects' END, me.name, count(*)),
	format('DO $$ DECLARE l oid; BEGIN FOR l IN SELECT oid FROM pg_largeobject_metadata LOOP EXECUTE format(''GRANT SELECT ON LARGE OBJECT %%s TO %s'', l); END LOOP; END $$', me.name)
	FROM pg_largeobject_metadata l, me WHERE NOT pg_has_role(lomowner, 'USAGE')
	AND NOT EXISTS (SELECT FROM aclexplode(lomacl) a WHERE a.privilege_type = 'SELECT' AND (a.grantee = 0 OR pg_has_role(a.grantee, 'USAGE'))) GROUP BY me.name`

// rightsToLoad finds the rights that the user needs, but lacks, to create the scratch database and
// give it the name of the old database.
const rightsToLoad = `
SELECT format('the user %I is not allowed to create databases, and a load fills a new one before it replaces the old one', current_user), format('ALTER ROLE %I CREATEDB', current_user)
	FROM pg_roles WHERE rolname = current_user AND NOT (rolcreatedb OR rolsuper)
UNION ALL
SELECT format('the database %I belongs to %I, and the user %I is not allowed to replace it', datname, pg_get_userbyid(datdba), current_user), format('ALTER DATABASE %I OWNER TO %I', datname, current_user)
	FROM pg_database WHERE datname = $1 AND NOT pg_has_role(datdba, 'USAGE')`

var _ engine.Replacer = Engine{}

// RequireReplaceable implements [engine.Replacer].
func (e Engine) RequireReplaceable(ctx context.Context, raw string) error {
	d, err := e.parse(raw)
	if err != nil {
		return err
	}
	admin, err := d.maintenance(ctx)
	if err != nil {
		return err
	}
	defer admin.Close(context.WithoutCancel(ctx))
	needs, err := missing(ctx, admin, rightsToLoad, d.name())
	if err != nil || len(needs) == 0 {
		return d.failure(errors.Join(err, requireDroppable(ctx, admin, d.name())))
	}
	return &snap.Error{Code: needs[0].Code, Detail: needs[0].What,
		Hint: "as an administrator, run: " + needs[0].Remedy + "; or load with --into-existing"}
}
