package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// The catalog is read as one JSON object per row, in one round trip. The keys are those of
// [schema.Schema] where its types can be decoded directly.

// catalog is the server's description of a database. Object identifiers are strings.
type catalog struct {
	namespaces  []schema.Namespace
	extensions  []schema.Extension
	types       []catalogType
	enums       []schema.Enum
	domains     []catalogDomain
	sequences   []schema.Sequence
	tables      []catalogTable
	constraints []catalogConstraint
	indexes     []catalogIndex
	programs    []schema.Program
	comment     string
}

// catalogType is the type of a column, a domain's base type or an array's element type.
type catalogType struct {
	OID       string
	Text      string // as format_type writes it
	Schema    string
	Name      string
	Kind      string // pg_type.typtype
	Element   string // of an array
	Extension string
}

type catalogDomain struct {
	schema.Name
	Type    string
	Mod     string // the type with its modifier, if it has one
	NotNull bool   `json:"not_null"`
	Default string
	Checks  []struct{ Name, Expr, Comment string }
	Comment string

	Collation *schema.Name
}

type catalogTable struct {
	OID string
	schema.Name
	Unlogged     bool
	Options      []string
	Identity     string // pg_class.relreplident
	Bound        string
	Parents      []schema.Name
	Partition    bool
	PartitionKey *struct {
		Strategy string
		Expr     string
		Columns  []catalogKey
	}
	Columns []catalogColumn
	Comment string
}

type catalogColumn struct {
	Name      string
	Type      string
	Mod       string
	NotNull   bool `json:"not_null"`
	Default   string
	Generated bool
	Identity  string
	Sequence  *schema.Name
	Local     bool
	Collation *schema.Name
	Comment   string
}

// catalogKey is a column of an index or of a partition key. Name is empty for an expression.
type catalogKey struct {
	Name             string
	Desc, NullsFirst bool
	OpClass          string
	OpSchema         string
	OpExtension      string
	Collation        *schema.Name
}

type catalogConstraint struct {
	Table              string
	Name, Type, Expr   string
	Index              string
	Columns, ToColumns []string
	To                 schema.Name
	Update, Delete     string
	SetColumns         []string
	Full               bool
	Deferrable         bool
	Deferred           bool
	Valid, Enforced    bool
	Period, Local      bool
	NoInherit          bool
	Comment            string
}

type catalogIndex struct {
	OID, Table       string
	Name, Method     string
	Unique           bool
	Constraint       bool
	NullsNotDistinct bool
	Expression       bool
	Partial          bool
	Clustered        bool
	ReplicaIdentity  bool
	Columns          []catalogKey
	Include          []string
	Comment          string
}

// catalogSession makes the server return strings as they are stored, and expressions in the same
// form regardless of the database's settings. It turns off JIT because compiling the queries would
// take longer than running them.
const catalogSession = sessionLikeDump +
	"; SET quote_all_identifiers = off; SET client_encoding = SQL_ASCII; SET jit = off"

// readCatalog reads the catalog in the current transaction of conn.
func readCatalog(ctx context.Context, conn *pgconn.PgConn) (*catalog, error) {
	text := catalogSession + ";\n" + strings.Join(catalogQueries(), ";\n")
	results, err := conn.Exec(ctx, text).ReadAll()
	if err != nil {
		return nil, err
	}
	results = results[strings.Count(catalogSession, ";")+1:]
	c, stored := &catalog{}, charsetOn(conn)
	var comment []struct{ Comment string }
	into := []func(string) error{
		appendTo(&c.namespaces), appendTo(&c.extensions), appendTo(&c.types), appendTo(&c.enums), appendTo(&c.domains),
		appendTo(&c.sequences), appendTo(&c.tables), appendTo(&c.constraints), appendTo(&c.indexes),
		appendTo(&c.programs), appendTo(&comment),
	}
	for i, result := range results {
		for _, row := range result.Rows {
			if err := into[i](labelJSON(stored, string(row[0]))); err != nil {
				return nil, fmt.Errorf("read the catalog: %w", err)
			}
		}
	}
	for _, row := range comment {
		c.comment = row.Comment
	}
	if err := c.readSequences(ctx, conn, results[sequencesResult]); err != nil {
		return nil, err
	}
	reset := "RESET jit; SET client_encoding = " + sessionEncoding(conn.ParameterStatus("server_encoding"))
	_, err = conn.Exec(ctx, reset).ReadAll()
	return c, err
}

func appendTo[T any](all *[]T) func(text string) error {
	return func(text string) error {
		var one T
		err := json.Unmarshal([]byte(text), &one)
		*all = append(*all, one)
		return err
	}
}

// labelJSON converts JSON from the database's encoding to UTF-8. It writes a byte that is not part
// of a character in hexadecimal, as [charset.Charset.Label] does.
func labelJSON(stored *charset.Charset, text string) string {
	if stored == nil {
		return text
	}
	var b strings.Builder
	for _, r := range stored.Text(text) {
		if charset.IsByte(r) {
			fmt.Fprintf(&b, `\\x%02X`, r&0xff)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// readSequences reads the values of the listed sequences. It reads each sequence as a table,
// because no function returns the whole state of a sequence on every server version.
func (c *catalog) readSequences(ctx context.Context, conn *pgconn.PgConn, listed *pgconn.Result) error {
	const batch = 500
	for at := 0; at < len(listed.Rows); at += batch {
		var queries []string
		for _, row := range listed.Rows[at:min(at+batch, len(listed.Rows))] {
			queries = append(queries, "SELECT last_value, is_called FROM "+string(row[1]))
		}
		result, err := conn.Exec(ctx, strings.Join(queries, " UNION ALL ")).ReadAll()
		if err != nil {
			return err
		}
		for i, row := range result[0].Rows {
			c.sequences[at+i].Last, c.sequences[at+i].Called = string(row[0]), string(row[1]) == "t"
		}
	}
	return nil
}

// ownSchemas is the condition for the schemas of the database's own objects.
const ownSchemas = `nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\_%'`

// notOfExtension returns the condition for an object that does not belong to an extension.
func notOfExtension(class, oid string) string {
	return fmt.Sprintf("NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = '%s'::regclass AND e.objid = %s AND "+
		"e.deptype = 'e')", class, oid)
}

// ownTables returns the query that selects the tables to describe.
func ownTables() string {
	return `SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND ` +
		ownSchemas + ` AND ` + notOfExtension("pg_class", "c.oid")
}

// relationName returns an expression for the name of a relation, as a JSON object.
func relationName(oid string) string {
	return fmt.Sprintf(`(SELECT json_build_object('schema', rn.nspname, 'name', r.relname) FROM pg_class r
		JOIN pg_namespace rn ON rn.oid = r.relnamespace WHERE r.oid = %s)`, oid)
}

// collationOf returns an expression for the name of a collation, as a JSON object. The expression
// is NULL if the collation is the default.
func collationOf(oid, defaultOID string) string {
	return fmt.Sprintf(`(SELECT json_build_object('schema', ln.nspname, 'name', l.collname) FROM pg_collation l
		JOIN pg_namespace ln ON ln.oid = l.collnamespace WHERE l.oid = %s AND l.oid <> %s)`, oid, defaultOID)
}

// keyOf returns an expression for a column of an index or a partition key, as a JSON object.
func keyOf(attribute, class, collation, flags string) string {
	return fmt.Sprintf(`json_strip_nulls(json_build_object('name', a.attname, 'desc', (%[4]s & 1) <> 0,
		'nullsfirst', (%[4]s & 2) <> 0,
		'opclass', CASE WHEN NOT o.opcdefault THEN o.opcname END, 'opschema', os.nspname, 'opextension', oe.extname,
		'collation', %[3]s)) ORDER BY %[1]s)`, attribute, class, collation, flags)
}

// sequencesResult is the index of the sequences in catalogQueries.
const sequencesResult = 5

// catalogQueries returns the queries, in the order of the fields of [catalog].
func catalogQueries() []string {
	return []string{
		`SELECT json_strip_nulls(json_build_object('name', nspname,
		'comment', nullif(obj_description(oid, 'pg_namespace'), 'standard public schema')))
	FROM pg_namespace WHERE ` +
			ownSchemas + ` AND ` + notOfExtension("pg_namespace", "pg_namespace.oid") + ` ORDER BY nspname`,

		`SELECT json_build_object('name', extname, 'schema', nspname) FROM pg_extension x
		JOIN pg_namespace n ON n.oid = extnamespace
	WHERE extname <> 'plpgsql' ORDER BY x.oid`,

		`WITH used AS (SELECT a.atttypid AS oid FROM pg_attribute a
		WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (` + ownTables() + `)
		UNION SELECT t.typbasetype FROM pg_type t WHERE t.typtype = 'd')
	SELECT json_strip_nulls(json_build_object('oid', t.oid, 'text', format_type(t.oid, NULL), 'schema', n.nspname,
		'name', t.typname, 'kind', t.typtype,
		'element', (SELECT el.oid FROM pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid),
		'extension', (SELECT x.extname FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid
			WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e')))
	FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
	WHERE t.oid IN (SELECT oid FROM used UNION SELECT i.typelem FROM pg_type i JOIN used ON used.oid = i.oid)`,

		`SELECT json_strip_nulls(json_build_object('schema', nspname, 'name', typname,
		'labels', (SELECT coalesce(json_agg(enumlabel ORDER BY enumsortorder), '[]') FROM pg_enum
		WHERE enumtypid = t.oid),
		'comment', obj_description(t.oid, 'pg_type')))
	FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE typtype = 'e' AND ` +
			ownSchemas + ` AND ` + notOfExtension("pg_type", "t.oid") + ` ORDER BY t.oid`,

		`SELECT json_strip_nulls(json_build_object('schema', nspname, 'name', typname, 'type', typbasetype,
		'mod', CASE WHEN typtypmod >= 0 THEN format_type(typbasetype, typtypmod) END,
		'not_null', typnotnull, 'default', pg_get_expr(typdefaultbin, 0), 'comment', obj_description(t.oid, 'pg_type'),
		'collation', ` + collationOf("t.typcollation",
			"(SELECT b.typcollation FROM pg_type b WHERE b.oid = t.typbasetype)") + `,
		'checks', (SELECT json_agg(json_build_object('name', conname, 'expr', pg_get_expr(conbin, 0),
			'comment', obj_description(k.oid, 'pg_constraint')) ORDER BY conname)
			FROM pg_constraint k WHERE contypid = t.oid AND contype = 'c')))
	FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE typtype = 'd' AND ` +
			ownSchemas + ` AND ` + notOfExtension("pg_type", "t.oid") + ` ORDER BY t.oid`,

		sequenceQuery(), tableQuery(), constraintQuery(), indexQuery(), programQuery(),

		`SELECT json_build_object('comment', coalesce(shobj_description(oid, 'pg_database'), '')) FROM pg_database
		WHERE datname = current_database()`,
	}
}

// sequenceQuery returns the query of the sequences. Its second column is the quoted name of each
// sequence.
func sequenceQuery() string {
	return `SELECT json_strip_nulls(json_build_object('schema', nspname, 'name', relname,
	'type', format_type(seqtypid, NULL), 'start', seqstart::text, 'increment', seqincrement::text,
	'min', seqmin::text, 'max', seqmax::text, 'cache', seqcache::text, 'cycle', seqcycle,
		'comment', obj_description(c.oid, 'pg_class'),
	'owner', (SELECT json_build_object('table', ` + relationName("d.refobjid") + `, 'column', a.attname)
		FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
		WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass
			AND d.deptype IN ('a', 'i') LIMIT 1))), format('%I.%I', nspname, relname)
	FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid JOIN pg_namespace n ON n.oid = relnamespace
	WHERE relpersistence <> 't' AND ` +
		ownSchemas + ` AND ` + notOfExtension("pg_class", "c.oid") + ` ORDER BY nspname, relname`
}

func tableQuery() string {
	return `SELECT json_strip_nulls(json_build_object('oid', c.oid, 'schema', n.nspname, 'name', c.relname,
	'unlogged', c.relpersistence = 'u', 'options', c.reloptions, 'identity', c.relreplident,
	'bound', pg_get_expr(c.relpartbound, c.oid), 'partition', c.relispartition,
		'comment', obj_description(c.oid, 'pg_class'),
	'parents', (SELECT json_agg(` + relationName("i.inhparent") + ` ORDER BY inhseqno) FROM pg_inherits i
		WHERE i.inhrelid = c.oid),
	'partitionkey', (SELECT json_build_object('strategy', p.partstrat,
		'expr', pg_get_expr(p.partexprs, c.oid), 'columns',
		(SELECT json_agg(` + keyOf("u.at", "u.class", collationOf("u.coll", "coalesce(a.attcollation, 0)"), "0") + `
			FROM unnest(p.partattrs::int2[], p.partclass::oid[], p.partcollation::oid[])
				WITH ORDINALITY u(number, class, coll, at)
			LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number ` + opClass + `))
		FROM pg_partitioned_table p WHERE p.partrelid = c.oid),
	'columns',
		(SELECT json_agg(json_strip_nulls(json_build_object('name', a.attname, 'type', a.atttypid,
		'mod', CASE WHEN a.atttypmod >= 0 THEN format_type(a.atttypid, a.atttypmod) END,
		'not_null', a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint k
			WHERE k.conrelid = c.oid AND k.contype = 'n' AND k.conkey[1] = a.attnum AND NOT k.convalidated),
		'default', CASE WHEN a.attgenerated = '' THEN (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
			WHERE adrelid = c.oid AND adnum = a.attnum) END,
		'generated', a.attgenerated <> '', 'identity', a.attidentity,
			'local', a.attislocal, 'collation', ` + collationOf("a.attcollation", "t.typcollation") + `,
		'sequence', CASE WHEN a.attidentity <> '' THEN (SELECT ` + relationName("d.objid") + ` FROM pg_depend d
			WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid AND d.refobjsubid = a.attnum
			AND d.classid = 'pg_class'::regclass AND d.deptype = 'i' LIMIT 1) END,
		'comment', col_description(c.oid, a.attnum))) ORDER BY a.attnum)
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
			WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)))
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN (` + ownTables() + `)
	ORDER BY n.nspname, c.relname`
}

func constraintQuery() string {
	return `SELECT json_strip_nulls(json_build_object('table', k.conrelid, 'name', k.conname, 'type', k.contype,
	'expr', pg_get_expr(k.conbin, k.conrelid), 'index', k.conindid,
	'columns', ` + columnsOf("k.conrelid", "k.conkey") + `, 'tocolumns', ` + columnsOf("k.confrelid",
		"k.confkey") + `, 'to', ` + relationName("k.confrelid") + `,
	'update', k.confupdtype, 'delete', k.confdeltype, 'setcolumns', ` + columnsOf("k.conrelid",
		"(SELECT array_agg(s::int2) FROM jsonb_array_elements_text("+
			"CASE jsonb_typeof(j->'confdelsetcols') WHEN 'array' THEN j->'confdelsetcols' END) s)") + `,
	'full', k.confmatchtype = 'f', 'deferrable', k.condeferrable, 'deferred', k.condeferred,
		'valid', k.convalidated, 'enforced', coalesce((j->>'conenforced')::boolean, true),
	'period', coalesce((j->>'conperiod')::boolean, false), 'local', k.conislocal, 'noinherit', k.connoinherit,
		'comment', obj_description(k.oid, 'pg_constraint')))
	FROM pg_constraint k, to_jsonb(k) j WHERE k.contype IN ('c', 'p', 'u', 'f', 'x')
	AND NOT (k.contype = 'f' AND k.conparentid <> 0) AND k.conrelid IN (` + ownTables() + `)
	ORDER BY k.conname, k.oid`
}

func indexQuery() string {
	return `SELECT json_strip_nulls(json_build_object('oid', i.indexrelid, 'table', i.indrelid, 'name', c.relname,
	'method', m.amname, 'unique', i.indisunique,
	'constraint', EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid
		AND k.contype IN ('p', 'u', 'x')),
	'nullsnotdistinct', coalesce((to_jsonb(i)->>'indnullsnotdistinct')::boolean, false),
		'expression', i.indexprs IS NOT NULL, 'partial', i.indpred IS NOT NULL,
	'clustered', i.indisclustered, 'replicaidentity', i.indisreplident,
		'comment', obj_description(c.oid, 'pg_class'),
	'columns',
		(SELECT json_agg(` + keyOf("u.at", "u.class", collationOf("u.coll", "coalesce(a.attcollation, 0)"),
		"u.flags") + `
		FROM unnest(i.indkey::int2[], i.indclass::oid[], i.indcollation::oid[], i.indoption::int2[])
			WITH ORDINALITY u(number, class, coll, flags, at)
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid
			AND a.attnum = u.number ` + opClass + ` WHERE u.at <= i.indnkeyatts),
	'include', (SELECT json_agg(a.attname ORDER BY u.at) FROM unnest(i.indkey::int2[])
		WITH ORDINALITY u(number, at) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.number
		WHERE u.at > i.indnkeyatts)))
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
	WHERE i.indrelid IN (` + ownTables() + `) AND (i.indisvalid OR c.relkind = 'I') ORDER BY c.relname`
}

// opClass joins the operator class of a key's column.
const opClass = `LEFT JOIN pg_opclass o ON o.oid = u.class LEFT JOIN pg_namespace os ON os.oid = o.opcnamespace
	LEFT JOIN pg_depend od ON od.classid = 'pg_opclass'::regclass AND od.objid = o.oid AND od.deptype = 'e'
	LEFT JOIN pg_extension oe ON oe.oid = od.refobjid`

// columnsOf returns an expression for the names of columns by their numbers, NULL if there are
// none.
func columnsOf(table, numbers string) string {
	return fmt.Sprintf(`(SELECT json_agg(a.attname ORDER BY u.at) FROM unnest(%[2]s) WITH ORDINALITY u(number, at)
		JOIN pg_attribute a ON a.attrelid = %[1]s AND a.attnum = u.number)`, table, numbers)
}

// programQuery returns the query that lists the objects with code. It omits expressions, indexes
// and extensions, because [describer] finds them in the rest of the catalog.
func programQuery() string {
	var parts []string
	add := func(kind, schema, name, on, from, condition string) {
		parts = append(parts, fmt.Sprintf("SELECT %s AS kind, %s::text AS schema, (%s)::text AS name, "+
			"(%s)::text AS on_table FROM %s WHERE %s", kind, schema, name, on, from, condition))
	}
	in := func(table, alias, namespace string) string {
		return fmt.Sprintf("%s %s JOIN pg_namespace n ON n.oid = %s.%s", table, alias, alias, namespace)
	}
	implicit := func(class, oid string) string { // created with a type, such as the functions of a range
		return fmt.Sprintf("EXISTS (SELECT FROM pg_depend d WHERE d.classid = '%s'::regclass AND d.objid = %s AND "+
			"d.deptype = 'i')", class, oid)
	}
	own := func(class, oid string) string { return ownSchemas + " AND " + notOfExtension(class, oid) }
	notBuiltIn := func(class string) string { return "o.oid >= 16384 AND " + notOfExtension(class, "o.oid") }
	add("CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END", "n.nspname",
		"p.proname || '(' || CASE WHEN p.prokind = 'a' AND p.pronargs = 0 THEN '*' ELSE (SELECT "+
			"coalesce(string_agg(format_type(t, NULL), ', ' ORDER BY at), '') FROM unnest(p.proargtypes) "+
			"WITH ORDINALITY u(t, at)) END || ')'",
		"NULL", in("pg_proc", "p", "pronamespace"), "NOT "+implicit("pg_proc", "p.oid")+" AND "+own("pg_proc", "p.oid"))
	onTable := "JOIN pg_class c ON c.oid = o.%s JOIN pg_namespace n ON n.oid = c.relnamespace"
	add("'trigger'", "n.nspname", "o.tgname", "c.relname", "pg_trigger o "+fmt.Sprintf(onTable, "tgrelid"),
		"NOT o.tgisinternal AND o.tgparentid = 0 AND "+ownSchemas)
	add("'rule'", "n.nspname", "o.rulename", "c.relname", "pg_rewrite o "+fmt.Sprintf(onTable, "ev_class"),
		"o.rulename <> '_RETURN' AND "+own("pg_class", "c.oid"))
	add("'policy'", "n.nspname", "o.polname", "c.relname", "pg_policy o "+fmt.Sprintf(onTable, "polrelid"), ownSchemas)
	add("'row security'", "n.nspname", "c.relname", "NULL", in("pg_class", "c", "relnamespace"),
		"c.relrowsecurity AND "+own("pg_class", "c.oid"))
	add("CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END", "n.nspname",
		"c.relname", "NULL", in("pg_class", "c", "relnamespace"),
		"c.relkind IN ('v', 'm', 'f') AND c.relpersistence <> 't' AND "+own("pg_class", "c.oid"))
	add("'generated column'", "n.nspname", "o.attname", "c.relname", "pg_attribute o "+fmt.Sprintf(onTable, "attrelid"),
		"o.attgenerated <> '' AND NOT o.attisdropped AND c.relkind IN ('r', 'p') AND "+own("pg_class", "c.oid"))
	add("'type'", "n.nspname", "o.typname", "NULL",
		in("pg_type", "o", "typnamespace")+" LEFT JOIN pg_class c ON c.oid = o.typrelid",
		"(o.typtype IN ('p', 'r') OR o.typtype = 'c' AND c.relkind = 'c' OR o.typtype = 'b' AND "+
			"NOT EXISTS (SELECT FROM pg_type el WHERE el.typarray = o.oid)) AND "+own("pg_type", "o.oid"))
	for _, kind := range [][4]string{
		{"operator", "pg_operator", "oprnamespace", "oprname"},
		{"operator class", "pg_opclass", "opcnamespace", "opcname"},
		{"operator family", "pg_opfamily", "opfnamespace", "opfname"},
		{"collation", "pg_collation", "collnamespace", "collname"},
		{"conversion", "pg_conversion", "connamespace", "conname"},
		{"statistics", "pg_statistic_ext", "stxnamespace", "stxname"},
		{"text search configuration", "pg_ts_config", "cfgnamespace", "cfgname"},
		{"text search dictionary", "pg_ts_dict", "dictnamespace", "dictname"},
		{"text search parser", "pg_ts_parser", "prsnamespace", "prsname"},
		{"text search template", "pg_ts_template", "tmplnamespace", "tmplname"},
	} {
		add("'"+kind[0]+"'", "n.nspname", "o."+kind[3], "NULL", in(kind[1], "o", kind[2]), own(kind[1], "o.oid"))
	}
	for _, kind := range [][3]string{
		{"event trigger", "pg_event_trigger", "evtname"}, {"publication", "pg_publication", "pubname"},
		{"foreign data wrapper", "pg_foreign_data_wrapper", "fdwname"},
		{"foreign server", "pg_foreign_server", "srvname"}, {"access method", "pg_am", "amname"},
		{"language", "pg_language", "lanname"},
	} {
		add("'"+kind[0]+"'", "NULL", "o."+kind[2], "NULL", kind[1]+" o", notBuiltIn(kind[1]))
	}
	add("'user mapping'", "NULL", "format('USER MAPPING %s SERVER %s', o.usename, o.srvname)", "NULL",
		"pg_user_mappings o", "true")
	add("'cast'", "NULL", "format('CAST (%s AS %s)', format_type(o.castsource, NULL), format_type(o.casttarget, NULL))",
		"NULL", "pg_cast o", "NOT "+implicit("pg_cast", "o.oid")+" AND "+notBuiltIn("pg_cast"))
	add("'transform'", "NULL", "format('TRANSFORM FOR %s LANGUAGE %s', format_type(o.trftype, NULL), l.lanname)",
		"NULL", "pg_transform o JOIN pg_language l ON l.oid = o.trflang", notBuiltIn("pg_transform"))
	add("'subscription'", "NULL", "o.subname", "NULL", "pg_subscription o",
		"o.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())")
	return "SELECT json_strip_nulls(json_build_object('kind', kind, 'schema', schema, 'name', name, 'on', on_table)) " +
		"FROM (" + strings.Join(parts, " UNION ALL ") + ") p ORDER BY kind, schema, on_table, name"
}
