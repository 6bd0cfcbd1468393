package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"snap/internal/engine/charset"
)

// left lists what the database contains and a dump omits, or includes and the user should know
// about: one sentence per kind. It omits objects of the system and of extensions.
const left = `
WITH own AS (SELECT oid FROM pg_namespace WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\_%'),
made AS (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'),
rights AS (
	SELECT c.oid::regclass::text AS name, c.relowner AS owner, c.relacl AS acl FROM pg_class c WHERE relnamespace IN (SELECT oid FROM own) AND NOT EXISTS (SELECT FROM made WHERE classid = 'pg_class'::regclass AND objid = c.oid)
	UNION ALL SELECT p.oid::regprocedure::text, p.proowner, p.proacl FROM pg_proc p WHERE pronamespace IN (SELECT oid FROM own) AND NOT EXISTS (SELECT FROM made WHERE classid = 'pg_proc'::regclass AND objid = p.oid)
	UNION ALL SELECT 'the schema ' || quote_ident(nspname), nspowner, nspacl FROM pg_namespace n WHERE n.oid IN (SELECT oid FROM own) AND nspname <> 'public'
)
SELECT format('the rights of other users are not in the snapshot, such as those on %s (%s in all)', min(name), count(DISTINCT name))
	FROM rights, aclexplode(acl) a WHERE a.grantee NOT IN (0, owner) HAVING count(*) > 0
UNION ALL SELECT format('the default rights for new objects are not in the snapshot: %s', string_agg(DISTINCT quote_ident(pg_get_userbyid(defaclrole)), ', ')) FROM pg_default_acl HAVING count(*) > 0
UNION ALL SELECT format('the snapshot does not keep the owners of objects (here %s): whoever loads it owns them', string_agg(DISTINCT quote_ident(pg_get_userbyid(relowner)), ', '))
	FROM pg_class WHERE relnamespace IN (SELECT oid FROM own) HAVING count(DISTINCT relowner) > 1
UNION ALL SELECT format('the subscription %s is not in the snapshot: a copy must not receive changes from the publisher', string_agg(quote_ident(subname), ', ')) FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()) HAVING count(*) > 0
UNION ALL SELECT format('the rows of the foreign table %s are not in the snapshot: they are on another server', string_agg(oid::regclass::text, ', ')) FROM pg_class WHERE relkind = 'f' HAVING count(*) > 0
UNION ALL SELECT format('the snapshot contains the login options of the foreign server %s, which can include passwords', string_agg(DISTINCT quote_ident(srvname), ', '))
	FROM pg_user_mappings WHERE umoptions IS NOT NULL HAVING count(*) > 0
UNION ALL SELECT format('the settings of the database itself are not in the snapshot (%s): a load keeps those of the destination', string_agg(DISTINCT split_part(s, '=', 1), ', '))
	FROM pg_db_role_setting, unnest(setconfig) s WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) HAVING count(*) > 0
UNION ALL SELECT format('the snapshot does not keep tablespaces: objects in %s are loaded into the default tablespace', string_agg(DISTINCT quote_ident(spcname), ', '))
	FROM pg_class c JOIN pg_tablespace t ON t.oid = c.reltablespace WHERE relnamespace IN (SELECT oid FROM own) HAVING count(*) > 0`

// leftOut returns those sentences. If the user is not allowed to read the catalog, it returns a
// sentence that says so instead of an error.
func leftOut(ctx context.Context, conn *pgx.Conn) []string {
	rows, err := conn.Query(ctx, left)
	if err != nil {
		return []string{fmt.Sprintf("the parts that the snapshot omits could not be listed: %s", message(err))}
	}
	all, err := pgx.CollectRows(rows, sentence)
	if err != nil {
		return []string{fmt.Sprintf("the parts that the snapshot omits could not be listed: %s", message(err))}
	}
	return all
}

// sentence reads a row that is a sentence for people.
func sentence(row pgx.CollectableRow) (said string, err error) {
	err = row.Scan(&said)
	return charset.Readable(said), err
}
