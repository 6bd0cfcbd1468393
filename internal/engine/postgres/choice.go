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

// pg_dump neither reads nor locks the tables that are left out, so that the user needs no
// privileges on them. All other objects that are left out, and the objects that depend on them
// according to pg_depend, are removed from the dump's table of contents.

// exclusion is the part of a database that a dump omits. A nil exclusion omits nothing.
type exclusion struct {
	relations []relation // with their fates
	fates     []engine.Fate
	objects   map[[2]string]bool    // the objects that are left out, by the oids of their catalog and of the object
	names     map[excludedName]bool // the same objects, by their names in descriptions
	comments  bool                  // leave out the comments on extensions
	omitted   schema.Schema         // only Omitted is set
}

// relation is a table or a view of the database. Its names are labels.
type relation struct {
	engine.Relation
	oid                uint32
	parents            []uint32
	rawSchema, rawName []byte
}

// excludedName is the name of an object. The field on is the name of the table that the object
// belongs to, if there is one.
type excludedName struct{ schema, name, on string }

// choose finds the objects that a choice leaves out, in conn's transaction.
func choose(ctx context.Context, conn *pgx.Conn, c engine.Choice) (*exclusion, error) {
	if c.Empty() {
		return nil, nil //nolint:nilnil // nothing is left out
	}
	s := &exclusion{comments: c.Omits(engine.OmitExtensionComments)}
	start, err := s.excludeChosen(ctx, conn, c)
	if err == nil {
		err = s.excludeDependents(ctx, conn, start)
	}
	return s, err
}

// excludedObjects are objects that are left out, by the oids of their catalog and of the object.
type excludedObjects struct {
	catalogs, oids []uint32
	quiet          []bool // whether the omission is reported elsewhere
}

func (o *excludedObjects) add(catalog, oid uint32, quiet bool) {
	o.catalogs, o.oids, o.quiet = append(o.catalogs, catalog), append(o.oids, oid), append(o.quiet, quiet)
}

// Oids of catalogs, which are the same in every version.
const (
	pgClass        = 1259
	pgNamespace    = 2615
	pgConstraint   = 2606
	pgExtension    = 3079
	pgEventTrigger = 3466
	pgPublication  = 6104
)

// excludeChosen returns the objects that the choice itself leaves out, without the objects that
// depend on them.
func (s *exclusion) excludeChosen(ctx context.Context, conn *pgx.Conn, c engine.Choice) (o excludedObjects, err error) {
	if s.relations, err = relations(ctx, conn); err != nil {
		return o, err
	}
	schemas, err := namedObjects(ctx, conn, "SELECT oid, convert_to(nspname::text, getdatabaseencoding()) FROM "+
		"pg_namespace WHERE "+ownSchemas+" AND "+notOfExtension("pg_namespace", "pg_namespace.oid")+" ORDER BY nspname")
	if err != nil {
		return o, err
	}
	all := make([]engine.Relation, len(s.relations))
	for i, r := range s.relations {
		all[i] = r.Relation
	}
	if s.fates, err = c.Fates(all, namesOf(schemas)); err != nil {
		return o, err
	}
	s.report(c)
	for i, r := range s.relations {
		if s.fates[i] == engine.LeftOut {
			o.add(pgClass, r.oid, true)
		}
	}
	for _, add := range []func(context.Context, *pgx.Conn, engine.Choice, *excludedObjects) error{
		s.omitExtensions, s.omitKinds, s.omitKeys,
	} {
		if err := add(ctx, conn, c, &o); err != nil {
			return o, err
		}
	}
	err = s.omitSchemas(ctx, conn, c, schemas, &o)
	return o, err
}

// report records the tables that are left out and the tables whose rows are left out. If the choice
// has no schemas, it also records the views that are left out.
func (s *exclusion) report(c engine.Choice) {
	var tables, rows []string
	for i, r := range s.relations {
		label := r.Schema + "." + r.Name
		switch {
		case s.fates[i] == engine.NoRows:
			rows = append(rows, label)
		case s.fates[i] == engine.LeftOut && (!r.View || len(c.Schemas) == 0):
			tables = append(tables, label)
		}
	}
	s.omitted.AddOmission(schema.OmittedTables, tables)
	s.omitted.AddOmission(schema.OmittedRows, rows)
}

// relations lists the tables and views. Their Parents are positions in this list.
func relations(ctx context.Context, conn *pgx.Conn) ([]relation, error) {
	stored := charsetOn(conn.PgConn())
	all, err := collect(ctx, conn, `SELECT c.oid, c.relkind::text, c.relispartition, convert_to(n.nspname::text, e),
			convert_to(c.relname::text, e), ARRAY(SELECT inhparent FROM pg_inherits WHERE inhrelid = c.oid)
		FROM getdatabaseencoding() e, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND c.relpersistence <> 't' AND `+ownSchemas+` AND `+
		notOfExtension("pg_class", "c.oid")+` ORDER BY n.nspname, c.relname`,
		func(row pgx.CollectableRow) (r relation, err error) {
			var kind string
			err = row.Scan(&r.oid, &kind, &r.Partition, &r.rawSchema, &r.rawName, &r.parents)
			r.Schema, r.Name = stored.Label(string(r.rawSchema)), stored.Label(string(r.rawName))
			r.View = kind == "v" || kind == "m"
			return r, err
		})
	at := map[uint32]int{}
	for i, r := range all {
		at[r.oid] = i
	}
	for i, r := range all {
		for _, parent := range r.parents {
			if above, ok := at[parent]; ok {
				all[i].Parents = append(all[i].Parents, above)
			}
		}
	}
	return all, err
}

// namedObject is an object with its label.
type namedObject struct {
	oid  uint32
	name string
}

func namedObjects(ctx context.Context, conn *pgx.Conn, query string) ([]namedObject, error) {
	stored := charsetOn(conn.PgConn())
	return collect(ctx, conn, query, func(row pgx.CollectableRow) (o namedObject, err error) {
		var raw []byte
		err = row.Scan(&o.oid, &raw)
		o.name = stored.Label(string(raw))
		return o, err
	})
}

func namesOf(all []namedObject) []string {
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.name
	}
	return names
}

// omitExtensions adds to o the extensions that are left out.
func (s *exclusion) omitExtensions(ctx context.Context, conn *pgx.Conn, c engine.Choice, o *excludedObjects) error {
	if len(c.Extensions) == 0 {
		return nil
	}
	all, err := namedObjects(ctx, conn, "SELECT oid, convert_to(extname::text, getdatabaseencoding()) FROM "+
		"pg_extension WHERE extname <> 'plpgsql' ORDER BY extname")
	if err != nil {
		return err
	}
	chosen, err := engine.Names(c.Extensions, namesOf(all), "extension")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(x namedObject) bool { return !chosen[x.name] })
	for _, x := range all {
		o.add(pgExtension, x.oid, true)
	}
	s.omitted.AddOmission(schema.OmittedExtensions, namesOf(all))
	return nil
}

// omitKinds adds to o the objects of the kinds that are left out.
func (s *exclusion) omitKinds(ctx context.Context, conn *pgx.Conn, c engine.Choice, o *excludedObjects) error {
	for _, kind := range []struct {
		omit, as, query string
		catalog         uint32
	}{
		{engine.OmitPublications, schema.OmittedPublications, "SELECT oid, convert_to(pubname::text, " +
			"getdatabaseencoding()) FROM pg_publication ORDER BY pubname", pgPublication},
		{engine.OmitEventTriggers, schema.OmittedEventTriggers, "SELECT oid, convert_to(evtname::text, " +
			"getdatabaseencoding()) FROM pg_event_trigger ORDER BY evtname", pgEventTrigger},
		{engine.OmitExtensionComments, schema.OmittedExtensionComments, "SELECT x.oid, convert_to(extname::text, " +
			"getdatabaseencoding()) FROM pg_extension x WHERE obj_description(x.oid, 'pg_extension') IS NOT NULL " +
			"ORDER BY extname", 0},
	} {
		if !c.Omits(kind.omit) {
			continue
		}
		all, err := namedObjects(ctx, conn, kind.query)
		if err != nil {
			return err
		}
		s.omitted.AddOmission(kind.as, namesOf(all))
		for _, x := range all {
			if kind.catalog != 0 {
				o.add(kind.catalog, x.oid, true)
			}
		}
	}
	return nil
}

// omitKeys adds to o the foreign keys from tables whose rows are in the dump to tables whose rows
// are left out.
func (s *exclusion) omitKeys(ctx context.Context, conn *pgx.Conn, _ engine.Choice, o *excludedObjects) error {
	var empty []uint32
	for i, r := range s.relations {
		if s.fates[i] == engine.NoRows {
			empty = append(empty, r.oid)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	keys, err := collect(ctx, conn, "SELECT oid FROM pg_constraint WHERE contype = 'f' AND confrelid = ANY ($1) AND "+
		"NOT conrelid = ANY ($1)", pgx.RowTo[uint32], empty)
	for _, oid := range keys {
		o.add(pgConstraint, oid, false)
	}
	return err
}

// omitSchemas adds to o the objects of the schemas that are not chosen. A schema that has a chosen
// table or an extension remains, without its other objects.
func (s *exclusion) omitSchemas(ctx context.Context, conn *pgx.Conn, c engine.Choice, schemas []namedObject,
	o *excludedObjects) error {
	if len(c.Schemas) == 0 {
		return nil
	}
	chosen, err := engine.Names(c.Schemas, namesOf(schemas), "schema")
	if err != nil {
		return err
	}
	var kept, others []uint32
	for i, r := range s.relations {
		if s.fates[i] != engine.LeftOut {
			kept = append(kept, r.oid)
		}
	}
	names := map[uint32]string{}
	for _, n := range schemas {
		if !chosen[n.name] {
			others, names[n.oid] = append(others, n.oid), n.name
		}
	}
	rows, err := conn.Query(ctx, `SELECT d.classid, d.objid FROM pg_depend d
			WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = ANY ($1)
				AND d.classid <> 'pg_extension'::regclass
				AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = d.classid AND e.objid = d.objid
					AND e.deptype = 'e')
				AND NOT (d.classid = 'pg_class'::regclass AND (d.objid = ANY ($2) OR EXISTS (SELECT FROM pg_depend q
					WHERE q.classid = d.classid AND q.objid = d.objid AND q.refclassid = d.classid
						AND q.refobjid = ANY ($2) AND q.deptype IN ('a', 'i'))))
		UNION SELECT 'pg_namespace'::regclass, n FROM unnest($1::oid[]) n
			WHERE NOT EXISTS (SELECT FROM pg_extension WHERE extnamespace = n) AND NOT EXISTS (SELECT FROM pg_class
				WHERE relnamespace = n AND oid = ANY ($2))`,
		others, kept)
	if err != nil {
		return err
	}
	var catalog, oid uint32
	var left []string
	_, err = pgx.ForEachRow(rows, []any{&catalog, &oid}, func() error {
		o.add(catalog, oid, true)
		if catalog == pgNamespace {
			left = append(left, names[oid])
		}
		return nil
	})
	slices.Sort(left)
	s.omitted.AddOmission(schema.OmittedOtherSchemas, c.Schemas)
	s.omitted.AddOmission(schema.OmittedSchemas, left)
	return err
}

// dependents selects the given objects and all objects that cannot exist without them. For each
// object, it returns the oids of its catalog and of the object; whether it is quiet; whether it is
// a foreign key; whether the choice is invalid because a table needs the object; the object or the
// table that it belongs to, for messages; its identity; and its schema, name and table in
// descriptions. Operators with the same name are one object there, which is named only if all of
// them are left out. In the query, o2 is the table that an object belongs to. o is the same table,
// or NULL if the table is left out too.
const dependents = `
WITH RECURSIVE started AS (SELECT * FROM unnest($1::oid[], $2::oid[], $3::bool[]) s (classid, objid, quiet)),
gone AS (
	SELECT classid, objid FROM started
	UNION SELECT x.classid, x.objid FROM gone g CROSS JOIN LATERAL (
		SELECT d.classid, d.objid FROM pg_depend d
			WHERE d.refclassid = g.classid AND d.refobjid = g.objid AND d.deptype IN ('n', 'a', 'i', 'e', 'x', 'P', 'S')
		UNION ALL SELECT 'pg_class'::regclass, r.ev_class FROM pg_rewrite r
			WHERE g.classid = 'pg_rewrite'::regclass AND r.oid = g.objid AND r.rulename = '_RETURN') x
),
known AS (
	SELECT g.*, coalesce(s.quiet, false) AS quiet, c.relkind, k.contype, t.typrelid, t.typelem, tg.tgisinternal,
		k.conparentid, k.contypid,
		coalesce(k.conrelid, tg.tgrelid, rw.ev_class, po.polrelid, ad.adrelid, ix.indrelid, st.stxrelid,
			pr.prrelid) AS own,
		coalesce(c.relnamespace, p.pronamespace, t.typnamespace) AS namespace,
		coalesce(c.relname, k.conname, tg.tgname, rw.rulename, po.polname, t.typname, ns.nspname, xt.extname,
			pb.pubname, ev.evtname, op.oprname)::text AS name,
		p.proname || '(' || CASE WHEN p.prokind = 'a' AND p.pronargs = 0
			THEN '*' ELSE (SELECT coalesce(string_agg(format_type(a, NULL), ', ' ORDER BY at), '')
			FROM unnest(p.proargtypes) WITH ORDINALITY u (a, at)) END || ')' AS called
	FROM gone g LEFT JOIN started s USING (classid, objid)
	LEFT JOIN pg_class c ON g.classid = 'pg_class'::regclass AND c.oid = g.objid
	LEFT JOIN pg_constraint k ON g.classid = 'pg_constraint'::regclass AND k.oid = g.objid
	LEFT JOIN pg_trigger tg ON g.classid = 'pg_trigger'::regclass AND tg.oid = g.objid
	LEFT JOIN pg_rewrite rw ON g.classid = 'pg_rewrite'::regclass AND rw.oid = g.objid
	LEFT JOIN pg_policy po ON g.classid = 'pg_policy'::regclass AND po.oid = g.objid
	LEFT JOIN pg_attrdef ad ON g.classid = 'pg_attrdef'::regclass AND ad.oid = g.objid
	LEFT JOIN pg_index ix ON g.classid = 'pg_class'::regclass AND ix.indexrelid = g.objid
	LEFT JOIN pg_statistic_ext st ON g.classid = 'pg_statistic_ext'::regclass AND st.oid = g.objid
	LEFT JOIN pg_publication_rel pr ON g.classid = 'pg_publication_rel'::regclass AND pr.oid = g.objid
	LEFT JOIN pg_proc p ON g.classid = 'pg_proc'::regclass AND p.oid = g.objid
	LEFT JOIN pg_type t ON g.classid = 'pg_type'::regclass AND t.oid = g.objid
	LEFT JOIN pg_namespace ns ON g.classid = 'pg_namespace'::regclass AND ns.oid = g.objid
	LEFT JOIN pg_extension xt ON g.classid = 'pg_extension'::regclass AND xt.oid = g.objid
	LEFT JOIN pg_publication pb ON g.classid = 'pg_publication'::regclass AND pb.oid = g.objid
	LEFT JOIN pg_event_trigger ev ON g.classid = 'pg_event_trigger'::regclass AND ev.oid = g.objid
	LEFT JOIN pg_operator op ON g.classid = 'pg_operator'::regclass AND op.oid = g.objid
		AND NOT EXISTS (SELECT FROM pg_operator other WHERE other.oprname = op.oprname
			AND other.oprnamespace = op.oprnamespace AND ('pg_operator'::regclass, other.oid) NOT IN (TABLE gone))
)
SELECT k.classid::oid::text, k.objid::text, coalesce(k.quiet
		OR k.classid IN ('pg_amop'::regclass, 'pg_amproc'::regclass, 'pg_attrdef'::regclass,
			'pg_publication_rel'::regclass)
		OR k.relkind IN ('S', 't', 'c', 'I') OR coalesce(k.tgisinternal, false) OR k.contype <> 'f'
			OR k.conparentid <> 0
		OR k.typelem <> 0 OR coalesce((SELECT r.relkind <> 'c' FROM pg_class r WHERE r.oid = k.typrelid), false)
		OR k.classid = 'pg_rewrite'::regclass AND k.name = '_RETURN'
		OR k.own IS NOT NULL AND o.oid IS NULL
		OR EXISTS (SELECT FROM pg_depend e WHERE e.classid = k.classid AND e.objid = k.objid AND e.deptype = 'e'),
			false),
	coalesce(k.contype = 'f', false),
	coalesce(NOT k.quiet AND (k.relkind IN ('r', 'p', 'f') AND NOT (k.classid, k.objid) IN (SELECT classid, objid
		FROM started)
		OR o.oid IS NOT NULL AND (k.contype IN ('c', 'p', 'u', 'x') OR k.classid = 'pg_attrdef'::regclass)
		OR k.contype = 'c' AND k.own = 0 AND NOT EXISTS (SELECT FROM gone WHERE gone.classid = 'pg_type'::regclass
			AND gone.objid = k.contypid)), false),
	convert_to(coalesce(CASE WHEN o.oid IS NOT NULL THEN format('table %I.%I', n2.nspname, o.relname) END,
		i.type || ' ' || i.identity), e),
	convert_to(i.type || ' ' || i.identity, e), convert_to(coalesce(n.nspname, n2.nspname, i.schema, '')::text, e),
	convert_to(coalesce(k.called, k.name, i.name, ''), e),
	convert_to(CASE WHEN k.classid = 'pg_statistic_ext'::regclass THEN '' ELSE coalesce(o2.relname, '') END::text, e)
FROM getdatabaseencoding() e, known k CROSS JOIN LATERAL pg_identify_object(k.classid, k.objid, 0) i
LEFT JOIN pg_class o2 ON o2.oid = k.own
LEFT JOIN pg_class o ON o.oid = k.own AND NOT EXISTS (SELECT FROM gone WHERE gone.classid = 'pg_class'::regclass
	AND gone.objid = o.oid)
LEFT JOIN pg_namespace n ON n.oid = k.namespace LEFT JOIN pg_namespace n2 ON n2.oid = o2.relnamespace
ORDER BY i.type, i.identity`

// excludeDependents finds the objects that depend on the objects that are left out, and leaves them
// out too. It fails if a remaining table needs one of them.
func (s *exclusion) excludeDependents(ctx context.Context, conn *pgx.Conn, o excludedObjects) error {
	s.objects, s.names = map[[2]string]bool{}, map[excludedName]bool{}
	rows, err := conn.Query(ctx, dependents, o.catalogs, o.oids, o.quiet)
	if err != nil {
		return err
	}
	stored := charsetOn(conn.PgConn())
	var catalog, oid string
	var quiet, isKey, needs bool
	var table, identity, namespace, name, on []byte
	var keys, programs []string
	_, err = pgx.ForEachRow(rows, []any{&catalog, &oid, &quiet, &isKey, &needs, &table, &identity, &namespace, &name,
		&on}, func() error {
		what := stored.Label(string(identity))
		s.objects[[2]string{catalog, oid}] = true
		s.names[excludedName{stored.Label(string(namespace)), stored.Label(string(name)),
			stored.Label(string(on))}] = true
		switch {
		case needs:
			return snap.Usage(fmt.Sprintf("the %s needs something that the choice leaves out",
				charset.Readable(stored.Label(string(table)))), "leave it out as well, or include what it needs")
		case quiet:
		case isKey:
			keys = append(keys, strings.TrimPrefix(what, "table constraint "))
		default:
			programs = append(programs, what)
		}
		return nil
	})
	s.omitted.AddOmission(schema.OmittedForeignKeys, keys)
	s.omitted.AddOmission(schema.OmittedPrograms, programs)
	return err
}

// arguments returns the arguments of pg_dump that exclude tables and rows. Each argument names many
// tables, because pg_dump searches the whole catalog for each argument.
func (s *exclusion) arguments() (args []string) {
	if s == nil {
		return nil
	}
	const longest = 64 << 10
	add := func(option string, fate engine.Fate) {
		names, size := map[string][]string{}, map[string]int{}
		flush := func(namespace string) {
			args = append(args, option+quote(namespace)+".("+strings.Join(names[namespace], "|")+")")
			names[namespace], size[namespace] = nil, 0
		}
		for i, r := range s.relations {
			if s.fates[i] != fate || r.View {
				continue
			}
			key, quoted := string(r.rawSchema), quote(string(r.rawName))
			names[key], size[key] = append(names[key], quoted), size[key]+len(quoted)
			if size[key] > longest {
				flush(key)
			}
		}
		for namespace := range names {
			if len(names[namespace]) > 0 {
				flush(namespace)
			}
		}
	}
	add("--exclude-table=", engine.LeftOut)
	add("--exclude-table-data=", engine.NoRows)
	return args
}

// unlocked returns the oids of the tables that pg_dump does not lock.
func (s *exclusion) unlocked() []uint32 {
	all := []uint32{}
	if s != nil {
		for i, r := range s.relations {
			if s.fates[i] == engine.LeftOut {
				all = append(all, r.oid)
			}
		}
	}
	return all
}

// skipped returns the fates of the tables and views that are not in the dump completely, by schema
// and name.
func (s *exclusion) skipped() map[[2]string]engine.Fate {
	all := map[[2]string]engine.Fate{}
	if s != nil {
		for i, r := range s.relations {
			if s.fates[i] != engine.Whole {
				all[[2]string{r.Schema, r.Name}] = s.fates[i]
			}
		}
	}
	return all
}

// omits reports whether an entry of the table of contents is left out. Comments and attachments
// have no oid. They are left out with the entries that they depend on, whose ids are in excluded.
func (s *exclusion) omits(e dumpEntry, excluded map[string]bool) bool {
	switch {
	case s == nil:
		return false
	case s.comments && e.desc == "COMMENT" && strings.HasPrefix(e.tag, "EXTENSION "):
		return true
	case e.object[0] == "0":
		return slices.ContainsFunc(e.needs, func(id string) bool { return excluded[id] })
	}
	return s.objects[e.object]
}

// emptyTables adds to the dumped tables those whose rows are left out, and sorts them.
func (s *exclusion) emptyTables(listed, dumped []engine.Table) []engine.Table {
	fates := s.skipped()
	for _, t := range listed {
		if fates[[2]string{t.Schema, t.Name}] == engine.NoRows {
			t.Rows = 0
			dumped = append(dumped, t)
		}
	}
	engine.Sort(dumped)
	return dumped
}

// apply removes from a description the objects that are left out.
func (s *exclusion) apply(d *schema.Schema) {
	if s == nil {
		return
	}
	excluded := func(n schema.Name, on string) bool { return s.names[excludedName{n.Schema, n.Name, on}] }
	fates := s.skipped()
	left := func(n schema.Name) bool { return fates[[2]string{n.Schema, n.Name}] == engine.LeftOut }
	d.Namespaces = slices.DeleteFunc(d.Namespaces, func(n schema.Namespace) bool {
		return s.names[excludedName{"", n.Name, ""}]
	})
	d.Extensions = slices.DeleteFunc(d.Extensions, func(x schema.Extension) bool {
		return s.names[excludedName{"", x.Name, ""}]
	})
	d.Enums = slices.DeleteFunc(d.Enums, func(x schema.Enum) bool { return excluded(x.Name, "") })
	d.Domains = slices.DeleteFunc(d.Domains, func(x schema.Domain) bool { return excluded(x.Name, "") })
	d.Sequences = slices.DeleteFunc(d.Sequences, func(x schema.Sequence) bool { return excluded(x.Name, "") })
	d.Tables = slices.DeleteFunc(d.Tables, func(t schema.Table) bool { return left(t.Name) })
	for i := range d.Tables {
		t := &d.Tables[i]
		t.ForeignKeys = slices.DeleteFunc(t.ForeignKeys, func(k schema.ForeignKey) bool {
			return excluded(schema.Name{Schema: t.Schema, Name: k.Name}, t.Name.Name)
		})
		t.Indexes = slices.DeleteFunc(t.Indexes, func(x schema.Index) bool {
			return excluded(schema.Name{Schema: t.Schema, Name: x.Name}, t.Name.Name)
		})
	}
	d.Programs = slices.DeleteFunc(d.Programs, func(p schema.Program) bool {
		table := p.Name
		if p.On != "" {
			table.Name = p.On
		}
		return excluded(p.Name, p.On) || left(table)
	})
	d.Omitted = append(d.Omitted, s.omitted.Omitted...)
}
