package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// content is the part of an existing database that a load replaces.
type content struct {
	Schemas []namespace
	Objects []string // statements that drop the replaced objects outside of the renamed schemas
	fresh   []string // schemas of the snapshot that the database does not have yet
	kept    []string // schemas that the load does not change
	others  []string // extensions that do not belong to the user
}

// namespace is a schema whose objects are replaced.
type namespace struct {
	OID     uint32
	Name    string
	Old     string // its name during the load, if it is renamed
	Renamed bool
	Own     bool     // it belongs to the user
	Inherit []string // statements that give the new schema its owner and privileges
}

func (c content) named(name string) *namespace {
	for i := range c.Schemas {
		if c.Schemas[i].Name == name {
			return &c.Schemas[i]
		}
	}
	return nil
}

func (c content) nameOf(oid uint32) string {
	for _, n := range c.Schemas {
		if n.OID == oid {
			return n.Name
		}
	}
	return ""
}

func (c content) oids() (all []uint32) {
	for _, n := range c.Schemas {
		all = append(all, n.OID)
	}
	return all
}

// existingSchemas lists the schemas of the database, except those of extensions.
const existingSchemas = `
SELECT n.oid, nspname::text, pg_has_role(nspowner, 'USAGE') AND has_database_privilege(current_database(), 'CREATE'),
	EXISTS (SELECT FROM pg_extension WHERE extnamespace = n.oid)
		OR EXISTS (SELECT FROM pg_depend e JOIN pg_depend d USING (classid, objid) WHERE e.deptype = 'e'
			AND d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid),
	array_remove(array_agg(format('GRANT %s ON SCHEMA %I TO %s%s', a.privilege_type, nspname,
		CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
		CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)) FILTER (WHERE a.grantee <> nspowner), NULL)
	|| CASE WHEN pg_get_userbyid(nspowner) <> current_user
		THEN ARRAY[format('ALTER SCHEMA %I OWNER TO %I', nspname, pg_get_userbyid(nspowner))] ELSE '{}' END
FROM pg_namespace n LEFT JOIN aclexplode(nspacl) a ON true
WHERE ` + ownSchemas + ` AND nspname <> '` + engine.Unfinished + `'
	AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_namespace'::regclass AND objid = n.oid AND deptype = 'e')
GROUP BY n.oid, nspname, nspowner ORDER BY nspname`

// contentOf lists the objects that a load of the dump replaces. A snapshot of chosen schemas
// replaces only these schemas.
func contentOf(ctx context.Context, conn *pgx.Conn, dump engine.Dump) (c content, err error) {
	schemas, whole := schemasOf(dump.Info)
	rows, err := conn.Query(ctx, existingSchemas)
	if err != nil {
		return c, err
	}
	var n namespace
	var extended bool
	exists := map[string]bool{}
	_, err = pgx.ForEachRow(rows, []any{&n.OID, &n.Name, &n.Own, &extended, &n.Inherit}, func() error {
		exists[n.Name] = true
		n.Renamed = n.Own && !extended
		if schemas[n.Name] || whole && n.Renamed {
			c.Schemas = append(c.Schemas, n)
		} else {
			c.kept = append(c.kept, charset.Readable(n.Name))
		}
		n.Inherit = nil
		return nil
	})
	if err != nil {
		return c, err
	}
	for name := range schemas {
		if !exists[name] {
			c.fresh = append(c.fresh, name)
		}
	}
	for _, step := range []func(context.Context, *pgx.Conn) error{c.requireNoDependents, c.requireOwned} {
		if err := step(ctx, conn); err != nil {
			return c, err
		}
	}
	if err := requireExtensionSchemas(ctx, conn, dump.Info.Schema); err != nil {
		return c, err
	}
	c.others, err = collect(ctx, conn,
		"SELECT extname::text FROM pg_extension WHERE NOT pg_has_role(extowner, 'USAGE')", pgx.RowTo[string])
	if err != nil {
		return c, err
	}
	c.Objects, err = c.dropStatements(ctx, conn, whole)
	return c, err
}

// schemasOf returns the schemas of a snapshot, each with whether a load replaces it, and whether the
// snapshot has all schemas of its source. A snapshot of the whole database also replaces public,
// even if the source has no public. A snapshot of chosen schemas replaces only schemas that it has
// objects of, because it also has the schemas of the source's extensions.
func schemasOf(info engine.Info) (all map[string]bool, whole bool) {
	all, whole = map[string]bool{}, true
	if s := info.Schema; s != nil {
		for _, o := range s.Omitted {
			// Snapshots of older versions have only the names of omitted schemas.
			whole = whole && o.Kind != schema.OmittedOtherSchemas && o.Kind != schema.OmittedSchemas
		}
		for _, n := range s.Namespaces {
			all[n.Name] = whole
		}
		for _, x := range s.Enums {
			all[x.Schema] = true
		}
		for _, x := range s.Domains {
			all[x.Schema] = true
		}
		for _, q := range s.Sequences {
			all[q.Schema] = true
		}
		for _, p := range s.Programs {
			if p.Schema != "" {
				all[p.Schema] = true
			}
		}
	}
	for _, t := range info.Tables {
		all[t.Schema] = true
	}
	if whole {
		all["public"] = true
	}
	return all, whole
}

// emptied returns the schemas that are emptied instead of renamed.
func (c content) emptied() (all []uint32) {
	for _, n := range c.Schemas {
		if !n.Renamed {
			all = append(all, n.OID)
		}
	}
	return all
}

// inSchemas selects the objects in the schemas $1 that belong to no extension, with their owners.
// The server does not record the ownership of its first user, whose oid is 10.
const inSchemas = `
WITH inside AS (
	SELECT DISTINCT d.classid, d.objid, coalesce(s.refobjid, 10) AS owner FROM pg_depend d
		LEFT JOIN pg_shdepend s ON s.classid = d.classid AND s.objid = d.objid AND s.deptype = 'o'
			AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
	WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = ANY ($1::oid[]) AND d.deptype = 'n'
		AND d.classid <> 'pg_extension'::regclass
		AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e')
),
named AS (
	SELECT inside.*, upper(CASE i.type WHEN 'statistics object' THEN 'statistics' ELSE i.type END) AS type, i.identity
	FROM inside, pg_identify_object(classid, objid, 0) i
)`

// requireOwned returns an error if the user has no permission to drop an object in a schema that is
// emptied.
func (c content) requireOwned(ctx context.Context, conn *pgx.Conn) error {
	var what, owner, statement string
	err := conn.QueryRow(ctx, inSchemas+`
		SELECT coalesce(min(lower(type) || ' ' || identity), ''), coalesce(min(pg_get_userbyid(owner)), ''),
			coalesce(min(format('ALTER %s %s OWNER TO %I', type, identity, current_user)), '')
		FROM (SELECT * FROM named WHERE NOT pg_has_role(owner, 'USAGE') ORDER BY type, identity LIMIT 1) others`,
		c.emptied()).Scan(&what, &owner, &statement)
	if err != nil || what == "" {
		return err
	}
	return &snap.Error{Code: snap.CodeDatabase,
		Detail: fmt.Sprintf("the %s belongs to %s, so this user cannot replace it", charset.Readable(what),
			charset.Readable(owner)),
		Hint: "as an administrator, run: " + charset.Readable(statement) + "; nothing was changed"}
}

// dropStatements returns the statements that remove the replaced objects outside of the renamed
// schemas. Publications, event triggers and foreign servers come first. They belong to no schema
// and are only removed if whole is set. Then come relations, because the sequences that they own
// are dropped with them, and then all other objects.
func (c content) dropStatements(ctx context.Context, conn *pgx.Conn, whole bool) ([]string, error) {
	return collect(ctx, conn, inSchemas+`
		SELECT format('DROP %s IF EXISTS %s CASCADE', type, identity) FROM (
			SELECT type, identity, CASE WHEN classid = 'pg_class'::regclass AND type <> 'SEQUENCE' THEN 1 ELSE 2 END
				AS turn, objid FROM named
			UNION ALL SELECT upper(i.type), i.identity, 0, o.objid FROM (
				SELECT 'pg_publication'::regclass AS classid, oid AS objid, pubowner AS owner FROM pg_publication
				UNION ALL SELECT 'pg_event_trigger'::regclass, oid, evtowner FROM pg_event_trigger
				UNION ALL SELECT 'pg_foreign_server'::regclass, oid, srvowner FROM pg_foreign_server
				UNION ALL SELECT 'pg_foreign_data_wrapper'::regclass, oid, fdwowner FROM pg_foreign_data_wrapper
			) o, pg_identify_object(classid, objid, 0) i
			WHERE $2 AND pg_has_role(owner, 'USAGE')
				AND NOT EXISTS (SELECT FROM pg_depend e
					WHERE e.classid = o.classid AND e.objid = o.objid AND e.deptype = 'e')
		) objects ORDER BY turn, objid`, pgx.RowTo[string], c.emptied(), whole)
}

// requireNoDependents returns a conflict if an object that the load keeps depends on an object that
// it replaces, because dropping the latter would drop both.
func (c content) requireNoDependents(ctx context.Context, conn *pgx.Conn) error {
	var kept, replaced string
	err := conn.QueryRow(ctx, `
		WITH placed (classid, objid, at) AS (
			SELECT 'pg_class'::regclass, oid, relnamespace FROM pg_class
			UNION ALL SELECT 'pg_type'::regclass, oid, typnamespace FROM pg_type
			UNION ALL SELECT 'pg_proc'::regclass, oid, pronamespace FROM pg_proc
			UNION ALL SELECT 'pg_constraint'::regclass, oid, connamespace FROM pg_constraint
			UNION ALL SELECT 'pg_rewrite'::regclass, r.oid, relnamespace
				FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class
			UNION ALL SELECT 'pg_trigger'::regclass, r.oid, relnamespace
				FROM pg_trigger r JOIN pg_class c ON c.oid = tgrelid
			UNION ALL SELECT 'pg_attrdef'::regclass, r.oid, relnamespace
				FROM pg_attrdef r JOIN pg_class c ON c.oid = adrelid
			UNION ALL SELECT 'pg_policy'::regclass, r.oid, relnamespace
				FROM pg_policy r JOIN pg_class c ON c.oid = polrelid
		)
		SELECT coalesce(min(coalesce((SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite
				WHERE d.classid = 'pg_rewrite'::regclass AND oid = d.objid),
				pg_describe_object(d.classid, d.objid, 0))), ''),
			coalesce(min(pg_describe_object(d.refclassid, d.refobjid, 0)), '')
		FROM (SELECT d.* FROM pg_depend d
			JOIN placed o ON o.classid = d.classid AND o.objid = d.objid
			JOIN placed r ON r.classid = d.refclassid AND r.objid = d.refobjid
			JOIN pg_namespace n ON n.oid = o.at
			WHERE d.deptype IN ('n', 'a') AND r.at = ANY ($1::oid[]) AND o.at <> ALL ($1::oid[]) AND `+ownSchemas+`
				AND NOT EXISTS (SELECT FROM pg_depend e
					WHERE e.classid = d.refclassid AND e.objid = d.refobjid AND e.deptype = 'e')
			ORDER BY d.classid, d.objid LIMIT 1) d`, c.oids()).Scan(&kept, &replaced)
	if err != nil || kept == "" {
		return err
	}
	return &snap.Error{Code: snap.CodeConflict,
		Detail: fmt.Sprintf("the load would keep the %s, which needs the %s that it replaces", charset.Readable(kept),
			charset.Readable(replaced)),
		Hint: fmt.Sprintf("drop the %s first, and create it again after the load; nothing was changed",
			charset.Readable(kept))}
}

// requireExtensionSchemas returns a conflict if an extension that the snapshot needs is in a
// different schema of the database, where the snapshot's objects would not find it.
func requireExtensionSchemas(ctx context.Context, conn *pgx.Conn, s *schema.Schema) error {
	if s == nil {
		return nil
	}
	installed, err := collect(ctx, conn, "SELECT extname::text, nspname::text FROM pg_extension "+
		"JOIN pg_namespace n ON n.oid = extnamespace", pgx.RowToStructByPos[schema.Extension])
	if err != nil {
		return err
	}
	for _, x := range s.Extensions {
		at := slices.IndexFunc(installed, func(have schema.Extension) bool { return have.Name == x.Name })
		if at >= 0 && installed[at].Schema != x.Schema && x.Schema != "" && x.Schema != "pg_catalog" {
			return &snap.Error{Code: snap.CodeConflict,
				Detail: fmt.Sprintf("the extension %q is in the schema %q in the destination, but in %q in the "+
					"snapshot", x.Name, installed[at].Schema, x.Schema),
				Hint: fmt.Sprintf("as its owner, run: ALTER EXTENSION %s SET SCHEMA %s; nothing was changed",
					quote(x.Name), quote(x.Schema))}
		}
	}
	return nil
}

// skip removes from the layout the entries that pg_restore must not restore: schemas that already
// exist, and comments on schemas and extensions that are kept or belong to other users.
func (x *existing) skip(l *layout) {
	l.others = slices.DeleteFunc(l.others, func(id int) bool {
		named, ok := l.outer[id]
		if !ok {
			return false
		}
		kind, name, _ := strings.Cut(named, " ")
		switch kind {
		case "SCHEMA":
			n := x.content.named(name)
			return name == "public" || n != nil && !n.Renamed || slices.Contains(x.content.kept, name)
		case "comment:SCHEMA":
			return !x.commentsOn(name)
		}
		return kind == "comment:EXTENSION" && slices.Contains(x.content.others, name)
	})
}

// commentsOn reports whether the load sets the comment on a schema: not if the schema is kept or
// belongs to another user.
func (x *existing) commentsOn(name string) bool {
	if x == nil {
		return true
	}
	n := x.content.named(name)
	return (n == nil || n.Own) && !slices.Contains(x.content.kept, name)
}
