package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// omittedParts lists the parts of the database that a dump omits. Each row has a kind, the first
// name of that kind, and the number of names. Objects of the system and of extensions are not
// listed.
var omittedParts = `
WITH own AS (SELECT oid FROM pg_namespace WHERE ` + ownSchemas + `),
relations AS (
	SELECT c.oid, relowner, relacl, relkind, reltablespace
	FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid -- an index belongs to the extension of its table
	WHERE relnamespace IN (SELECT oid FROM own) AND ` + notOfExtension("pg_class", "coalesce(i.indrelid, c.oid)") + `
		AND ` + notOfExtension("pg_type", "c.reltype") + `
),
acls AS (
	SELECT oid::regclass::text AS name, relowner AS owner, relacl AS acl FROM relations
	UNION ALL SELECT p.oid::regprocedure::text, p.proowner, p.proacl FROM pg_proc p
		WHERE pronamespace IN (SELECT oid FROM own) AND ` + notOfExtension("pg_proc", "p.oid") + `
	UNION ALL SELECT 'SCHEMA ' || quote_ident(nspname), nspowner, nspacl FROM pg_namespace n
		WHERE n.oid IN (SELECT oid FROM own) AND nspname <> 'public'
),
names AS (
	SELECT 'grants' AS kind, name FROM acls, aclexplode(acl) a WHERE a.grantee NOT IN (0, owner)
	UNION ALL SELECT 'default_grants', quote_ident(pg_get_userbyid(defaclrole)) FROM pg_default_acl
	UNION ALL SELECT 'owners', quote_ident(pg_get_userbyid(relowner)) FROM relations
	UNION ALL SELECT 'subscriptions', quote_ident(subname) FROM pg_subscription
		WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
	UNION ALL SELECT 'foreign_rows', oid::regclass::text FROM relations WHERE relkind = 'f'
	UNION ALL SELECT 'settings', split_part(s, '=', 1) FROM pg_db_role_setting, unnest(setconfig) s
		WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
	UNION ALL SELECT 'tablespaces', quote_ident(spcname) FROM relations JOIN pg_tablespace t ON t.oid = reltablespace
)
SELECT kind, min(name COLLATE "C"), count(DISTINCT name) FROM names
	GROUP BY kind HAVING kind <> 'owners' OR count(DISTINCT name) > 1 ORDER BY kind`

// credentials selects the name of one foreign server whose login options are in the dump, or "".
const credentials = `SELECT coalesce(min(srvname), '') FROM pg_user_mappings WHERE umoptions IS NOT NULL`

// describeOmitted records in the description the parts that a dump omits, removes from it the
// objects that are left out, and adds a warning for each kind of omission. If the omitted parts
// cannot be listed, for example because the user is not allowed to read a catalog, it adds a
// warning with the reason instead of failing.
func describeOmitted(ctx context.Context, conn *pgx.Conn, excluded *exclusion, info *engine.Info) error {
	if _, err := conn.Exec(ctx, "SAVEPOINT omitted"); err != nil { // a refusal must not end the dump's transaction
		return err
	}
	var server string
	var err error
	if info.Schema.Omitted, err = collect(ctx, conn, omittedParts, omission); err == nil {
		err = conn.QueryRow(ctx, credentials).Scan(&server)
	}
	excluded.apply(info.Schema)
	info.Warnings = append(info.Warnings, info.Schema.Omissions()...)
	if err != nil {
		info.Warnings = append(info.Warnings, "the parts that the snapshot omits could not be listed: "+message(err))
	}
	if server != "" {
		info.Warnings = append(info.Warnings, fmt.Sprintf("the snapshot contains the login options of the foreign "+
			"server %s, which can include passwords", charset.Readable(server)))
	}
	_, err = conn.Exec(ctx, "ROLLBACK TO omitted")
	return err
}

func omission(row pgx.CollectableRow) (o schema.Omission, err error) {
	err = row.Scan(&o.Kind, &o.First, &o.Count)
	if name, ok := strings.CutPrefix(o.First, "SCHEMA "); ok { // names with a space are quoted
		o.First = "the schema " + name
	}
	const longest = 200
	if o.First = charset.Readable(o.First); len(o.First) > longest {
		o.First = charset.Readable(o.First[:longest]) + "..."
	}
	return o, err
}
