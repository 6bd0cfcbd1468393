package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// grantsOnObjects lists the rights of users other than the owner on the database's objects. A
// routine whose default public rights were revoked has an additional row without rights, which
// comes first.
const grantsOnObjects = `
WITH objects AS (
	SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, relnamespace AS at, relname AS name,
		'' AS args,
		'' AS col, relowner AS owner, relacl AS acl FROM pg_class c WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
	UNION ALL SELECT 'TABLE', relnamespace, relname, '', attname, relowner, attacl
		FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE attacl IS NOT NULL AND NOT attisdropped
	UNION ALL SELECT 'ROUTINE', pronamespace, proname, pg_get_function_identity_arguments(p.oid), '', proowner, proacl
		FROM pg_proc p
		WHERE NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
	UNION ALL SELECT 'SCHEMA', oid, '', '', '', nspowner, nspacl FROM pg_namespace
)
SELECT o.kind, n.nspname::text, o.name::text, o.args, o.col::text, coalesce(r.rolname::text, ''),
	coalesce(array_agg(a.privilege_type ORDER BY a.privilege_type) FILTER (WHERE a.privilege_type IS NOT NULL), '{}'),
	coalesce(a.is_grantable, false)
FROM objects o JOIN pg_namespace n ON n.oid = o.at
	CROSS JOIN LATERAL (SELECT * FROM aclexplode(o.acl) x WHERE x.grantee <> o.owner
		UNION ALL SELECT 0, 0, NULL, false WHERE o.kind = 'ROUTINE'
			AND NOT EXISTS (SELECT FROM aclexplode(o.acl) x WHERE x.grantee = 0)) a
	LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE o.acl IS NOT NULL AND (a.grantee = 0 OR r.rolname IS NOT NULL) AND ` + ownSchemas + `
GROUP BY 1, 2, 3, 4, 5, 6, a.is_grantable ORDER BY 1, 2, 3, 4, 5, 6, 8`

// describeGrants adds the grants to the description.
func describeGrants(ctx context.Context, conn *pgx.Conn, s *schema.Schema) error {
	var err error
	s.Grants, err = collect(ctx, conn, grantsOnObjects, func(row pgx.CollectableRow) (g schema.Grant, err error) {
		var column string
		err = row.Scan(&g.Kind, &g.Schema, &g.Name.Name, &g.Arguments, &column, &g.To, &g.Rights, &g.Pass)
		if column != "" {
			g.Columns = []string{column}
		}
		return g, err
	})
	s.Omitted = slices.DeleteFunc(s.Omitted, func(o schema.Omission) bool { return o.Kind == schema.OmittedGrants })
	return err
}

// requireRoles returns an error unless the server has all roles of the grants.
func requireRoles(ctx context.Context, conn *pgx.Conn, grants []schema.Grant) error {
	var wanted []string
	for _, g := range grants {
		if g.To != "" && !slices.Contains(wanted, g.To) {
			wanted = append(wanted, g.To)
		}
	}
	missing, err := collect(ctx, conn, "SELECT r FROM unnest($1::text[]) r WHERE NOT EXISTS (SELECT FROM pg_roles "+
		"WHERE rolname = r) ORDER BY r", pgx.RowTo[string], wanted)
	if err != nil || len(missing) == 0 {
		return err
	}
	var create []string
	for i, role := range missing {
		create = append(create, "CREATE ROLE "+quote(role))
		missing[i] = charset.Readable(role)
	}
	return &snap.Error{Code: snap.CodeDatabase,
		Detail: "the snapshot's grants name roles that the server lacks: " + engine.List(missing),
		Hint: "run: " + charset.Readable(strings.Join(create, "; ")) + "; or load without --with-grants; nothing was " +
			"replaced"}
}

// checkGrants checks that the grants can be loaded, before anything is restored.
func checkGrants(ctx context.Context, conn *pgx.Conn, dump engine.Dump, o engine.Options) error {
	if !o.WithGrants {
		return nil
	}
	if dump.Trust == engine.Foreign {
		return snap.Forbidden("the grants of a snapshot from elsewhere are never applied",
			"omit --with-grants; you can list your own grants in the target's configuration")
	}
	if dump.Info.Schema == nil || len(dump.Info.Schema.Grants) == 0 {
		return snap.Usage("the snapshot has no grants", "build it with --with-grants, or omit --with-grants")
	}
	return requireRoles(ctx, conn, dump.Info.Schema.Grants)
}

var rightName = regexp.MustCompile(`^[A-Z]+( [A-Z]+)?$`)

// applyGrants repeats the grants of the source with generated statements. It skips objects that the
// snapshot omits and objects that the load did not create: the server's own objects, objects of
// extensions, and objects that an existing database keeps. Otherwise, a manipulated description
// could give others access to these objects.
func (s *scratch) applyGrants(ctx context.Context, conn *pgx.Conn) error {
	for _, g := range s.grants {
		if !s.createsIn(g.Schema) {
			continue
		}
		object, err := objectOf(ctx, conn, g)
		if err != nil {
			return s.db.failure(err)
		}
		if object == "" {
			continue
		}
		statement := grantStatement(g, object)
		if statement == "" {
			return wrongDescription("a grant is invalid")
		}
		if _, err := conn.Exec(ctx, statement); err != nil {
			return s.grantFailure(statement, err)
		}
	}
	return nil
}

// createsIn reports whether the load creates the objects of a schema.
func (s *scratch) createsIn(name string) bool {
	if s.into != nil && !slices.Contains(s.into.schemas(), name) {
		return false
	}
	return name != "information_schema" && !strings.HasPrefix(name, "pg_")
}

// objectOf returns the quoted name of the object that a grant is on, or "" if there is no such
// object or it belongs to an extension.
func objectOf(ctx context.Context, conn *pgx.Conn, g schema.Grant) (object string, err error) {
	query, args := "SELECT format('%I.%I', nspname, relname) FROM pg_class JOIN pg_namespace n ON n.oid = "+
		"relnamespace WHERE nspname = $1 AND relname = $2 AND (relkind = 'S') = ($3 = 'SEQUENCE') AND relkind <> 'i' "+
		"AND "+notOfExtension("pg_class", "pg_class.oid"),
		[]any{g.Schema, g.Name.Name, g.Kind}
	switch g.Kind {
	case "SCHEMA":
		query, args = "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname = $1", []any{g.Schema}
	case "ROUTINE":
		query, args = "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace "+
			"WHERE nspname = $1 AND proname = $2 AND pg_get_function_identity_arguments(p.oid) = $3 AND "+
			notOfExtension("pg_proc", "p.oid"),
			[]any{g.Schema, g.Name.Name, g.Arguments}
	}
	err = conn.QueryRow(ctx, query, args...).Scan(&object)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return object, err
}

// grantStatement returns the statement for a grant, or "" for an invalid one.
func grantStatement(g schema.Grant, object string) string {
	to := "PUBLIC"
	if g.To != "" {
		to = quote(g.To)
	}
	if !slices.Contains(schema.GrantKinds(), g.Kind) {
		return ""
	}
	if len(g.Rights) == 0 {
		return fmt.Sprintf("REVOKE ALL ON %s %s FROM %s", g.Kind, object, to)
	}
	var rights []string
	for _, right := range g.Rights {
		if !rightName.MatchString(right) {
			return ""
		}
		if len(g.Columns) > 0 {
			right += " " + columnList(g.Columns)
		}
		rights = append(rights, right)
	}
	option := ""
	if g.Pass {
		option = " WITH GRANT OPTION"
	}
	return fmt.Sprintf("GRANT %s ON %s %s TO %s%s", strings.Join(rights, ", "), g.Kind, object, to, option)
}
