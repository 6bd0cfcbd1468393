package mysql

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"snap/internal/schema"
)

// describe returns a description of a database's structure. It parses the CREATE statements that
// the server itself wrote, because they are consistent with the dump. A part of a statement that it
// does not recognize is listed among the programs, and a load without programs omits that part.
func describe(s structure) *schema.Schema {
	d := &schema.Schema{}
	for _, q := range s.Sequences {
		if sequence, err := describeSequence(q); err == nil {
			d.Sequences = append(d.Sequences, sequence)
		} else {
			d.Programs = append(d.Programs, schema.Program{Kind: "sequence", Name: schema.Name{Name: q.Name}})
		}
	}
	known := s.tableNames()
	for _, t := range s.Tables {
		table, programs, err := describeTable(t, known)
		if err != nil {
			programs = []schema.Program{{Kind: "table", Name: schema.Name{Name: t.Name}}}
		} else {
			d.Tables = append(d.Tables, table)
		}
		d.Programs = append(d.Programs, programs...)
	}
	d.Programs = append(d.Programs, s.programs()...)
	return d
}

// programs lists the objects of a structure that are programs as a whole.
func (s structure) programs() []schema.Program {
	var all []schema.Program
	for _, list := range s.programLists() {
		for _, d := range list.definitions {
			all = append(all, schema.Program{Kind: cmp.Or(strings.ToLower(d.Kind), list.kind),
				Name: schema.Name{Name: d.Name}, On: d.On})
		}
	}
	return all
}

// programList is a list of programs of one kind. A routine's own kind, such as function, takes
// precedence.
type programList struct {
	kind        string
	definitions []definition
}

func (s structure) programLists() []programList {
	return []programList{{"routine", s.Routines}, {"trigger", s.Triggers}, {"view", s.Views}, {"event", s.Events}}
}

// everyVersion accepts every executable comment, as the server that wrote it would.
func everyVersion(bool, int) bool { return true }

var errNotDescribed = errors.New("the definition cannot be described")

// tableReader describes one table.
type tableReader struct {
	table    schema.Table
	programs []schema.Program
	known    map[string]bool // the tables of the database
	period   []string        // the time columns of a system-versioned table
}

// program records a part of the table as a program.
func (t *tableReader) program(kind, name string) {
	t.programs = append(t.programs, schema.Program{Kind: kind, Name: schema.Name{Name: name}, On: t.table.Name.Name})
}

// describeTable parses the output of SHOW CREATE TABLE.
func describeTable(d definition, known map[string]bool) (schema.Table, []schema.Program, error) {
	t := &tableReader{known: known}
	t.table.Name.Name = d.Name
	text, err := expandComments(d.SQL, lexMode{}, everyVersion)
	if err != nil {
		return t.table, nil, err
	}
	r, err := read(text, lexMode{})
	if err != nil {
		return t.table, nil, err
	}
	if !r.accept("CREATE", "TABLE") {
		return t.table, nil, errNotDescribed
	}
	r.skip() // its name
	columns, ok := r.group()
	if !ok {
		return t.table, nil, errNotDescribed
	}
	for _, item := range columns.items() {
		if err := t.item(item); err != nil {
			return t.table, nil, err
		}
	}
	if err := t.options(r); err != nil {
		return t.table, nil, err
	}
	t.removePeriod()
	t.removeComputed()
	t.removeAutoIncrement()
	if !slices.ContainsFunc(t.table.Columns, func(c schema.Column) bool { return !c.Computed }) {
		return t.table, nil, errNotDescribed
	}
	return t.table, t.programs, nil
}

// item parses a column, a key or a constraint.
func (t *tableReader) item(r *reader) error {
	name := ""
	if r.accept("CONSTRAINT") {
		name, _ = r.name()
	}
	switch {
	case r.peek().kind == nameToken && name == "":
		return t.column(r)
	case r.accept("PRIMARY", "KEY"):
		t.index(r, schema.Index{Name: "PRIMARY"})
	case r.accept("UNIQUE", "KEY"):
		t.index(r, schema.Index{Unique: true})
	case r.accept("FULLTEXT", "KEY"):
		t.index(r, schema.Index{Method: "fulltext"})
	case r.accept("SPATIAL", "KEY"):
		t.index(r, schema.Index{Method: "spatial"})
	case r.accept("KEY"):
		t.index(r, schema.Index{})
	case r.accept("FOREIGN", "KEY"):
		t.foreignKey(r, name)
	case r.accept("CHECK"):
		t.check(r, name)
	case r.accept("VECTOR", "KEY"):
		name, _ = r.name()
		t.program("vector index", name)
	case r.accept("PERIOD", "FOR", "SYSTEM_TIME"): // part of WITH SYSTEM VERSIONING
	case r.accept("PERIOD", "FOR"):
		name, _ = r.name()
		t.program("period", name)
	default:
		return errNotDescribed
	}
	return nil
}

// column parses a column. It keeps the time columns of a system-versioned table in t.period
// instead.
func (t *tableReader) column(r *reader) error {
	c := schema.Column{}
	c.Name, _ = r.name()
	if err := readType(r, &c.Type); err != nil {
		return err
	}
	for !r.ended() {
		if period := t.attribute(r, &c); period {
			t.period = append(t.period, c.Name)
			return nil // descriptions do not include the columns of a period
		}
	}
	t.table.Columns = append(t.table.Columns, c)
	return nil
}

// afterDefault are the words that can follow a column's default.
var afterDefault = []string{"ON UPDATE", "AUTO_INCREMENT", "INVISIBLE", "COMMENT", "CHECK", "COLUMN_FORMAT", "STORAGE",
	"SRID", "REF_SYSTEM_ID", "WITHOUT SYSTEM"}

// attribute parses one attribute of a column. It returns true for the time columns of a
// system-versioned table.
func (t *tableReader) attribute(r *reader, c *schema.Column) (period bool) {
	switch {
	case r.accept("CHARACTER", "SET"):
		c.Charset, _ = r.word()
	case r.accept("COLLATE"):
		name, _ := r.word()
		c.Collation = &schema.Name{Name: name}
	case r.accept("GENERATED", "ALWAYS", "AS"):
		if r.is("ROW") {
			return true
		}
		r.group()
		c.Computed = true
		t.program("generated column", c.Name)
	case r.accept("NOT", "NULL"):
		c.NotNull = true
	case r.accept("DEFAULT"):
		t.defaultOf(r.until(afterDefault...), c)
	case r.accept("ON", "UPDATE"):
		c.OnUpdate = t.expr(r.until(afterDefault[1:]...), "on update", c.Name)
	case r.accept("AUTO_INCREMENT"):
		c.Identity = &schema.Identity{}
	case r.accept("INVISIBLE"):
		c.Invisible = true
	case r.accept("COMMENT"):
		c.Comment, _ = r.quoted()
	case r.accept("CHECK"):
		if inside, ok := r.group(); ok {
			c.Check = t.expr(inside.rest(), "check constraint", c.Name)
		}
	case r.accept("SRID"), r.accept("REF_SYSTEM_ID", "="):
		c.SRID, _ = r.word()
	case r.accept("COMPRESSED"):
		c.Compressed = true
		if r.accept("=") {
			r.skip()
		}
	case r.accept("NULL"), r.accept("STORED"), r.accept("VIRTUAL"), r.accept("PERSISTENT"), r.accept("VISIBLE"):
	case r.accept("WITHOUT", "SYSTEM", "VERSIONING"): // no effect: descriptions omit the table's versioning
	case r.accept("COLUMN_FORMAT"), r.accept("STORAGE"):
		r.skip()
	default:
		r.skip()
		t.program("column option", c.Name)
	}
	return false
}

func (t *tableReader) defaultOf(text string, c *schema.Column) {
	if !strings.EqualFold(text, "NULL") {
		c.Default = t.expr(text, "default", c.Name)
	}
	if c.Default != nil && len(columnsIn(*c.Default)) > 0 && t.asProgram("default", c.Name) {
		c.Default = nil
	}
}

// expr parses an expression. If descriptions do not allow the expression, it is recorded as a
// program, and expr returns nil.
func (t *tableReader) expr(text, kind, name string) *schema.Expr {
	e, err := schema.ParseExpr(schema.MySQL, text)
	if err != nil {
		t.program(kind, name)
		return nil
	}
	return &e
}

// readType reads the type of a column.
func readType(r *reader, to *schema.Type) error {
	var ok bool
	if to.Name, ok = r.word(); !ok || !types()[to.Name] {
		return errNotDescribed
	}
	if args, ok := r.group(); ok {
		for _, a := range args.items() {
			if label, ok := a.quoted(); ok {
				to.Labels = append(to.Labels, label)
			} else {
				number, _ := a.word()
				to.Args = append(to.Args, number)
			}
		}
	}
	to.Unsigned = r.accept("UNSIGNED")
	to.Zerofill = r.accept("ZEROFILL")
	return nil
}

// types are the column types allowed in a description.
var types = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`
		tinyint smallint mediumint int bigint decimal float double bit date time datetime timestamp year
		char varchar binary varbinary tinyblob blob mediumblob longblob tinytext text mediumtext longtext
		enum set json geometry point linestring polygon multipoint multilinestring multipolygon
		geometrycollection geomcollection uuid inet4 inet6 vector`) {
		all[name] = true
	}
	return all
})

// index parses the columns of an index and its options. If x has no name, index first parses the
// name.
func (t *tableReader) index(r *reader, x schema.Index) {
	if x.Name == "" {
		x.Name, _ = r.name()
	}
	columns, ok := r.group()
	if !ok {
		t.program("index", x.Name)
		return
	}
	for _, item := range columns.items() {
		c, ok := keyColumn(item)
		if !ok {
			t.program("expression index", x.Name)
			return
		}
		x.Columns = append(x.Columns, c)
	}
	for !r.ended() {
		t.indexOption(r, &x)
	}
	if x.Name == "PRIMARY" {
		t.table.Keys = append(t.table.Keys, schema.Key{Primary: true, Columns: x.Columns, Comment: x.Comment})
		return
	}
	t.table.Indexes = append(t.table.Indexes, x)
}

// keyColumn parses a column of an index. It fails for an expression and for a MariaDB period.
func keyColumn(r *reader) (c schema.KeyColumn, ok bool) {
	if c.Name, ok = r.name(); !ok {
		return c, false
	}
	if length, ok := r.group(); ok {
		digits, _ := length.word()
		c.Prefix, _ = strconv.Atoi(digits)
	}
	c.Desc = r.accept("DESC")
	r.accept("ASC")
	return c, r.ended()
}

func (t *tableReader) indexOption(r *reader, x *schema.Index) {
	switch {
	case r.accept("USING"):
		if method, _ := r.word(); x.Method == "" {
			x.Method = method
		}
	case r.accept("COMMENT"):
		x.Comment, _ = r.quoted()
	case r.accept("INVISIBLE"), r.accept("IGNORED"):
		x.Invisible = true
	case r.accept("WITH", "PARSER"):
		x.Parser, _ = r.name()
	case r.accept("KEY_BLOCK_SIZE"):
		r.accept("=")
		r.skip()
	default:
		r.skip()
		t.program("index option", x.Name)
	}
}

func (t *tableReader) foreignKey(r *reader, name string) {
	f := schema.ForeignKey{Name: name}
	columns, ok := r.group()
	ok = ok && r.accept("REFERENCES")
	if ok {
		f.To.Name, ok = r.name()
	}
	references, named := r.group()
	if !ok || !named || !t.known[f.To.Name] { // the table may be in another database
		t.program("foreign key", name)
		return
	}
	f.Columns, f.ToColumns = nameList(columns), nameList(references)
	for r.accept("ON") {
		event, _ := r.word()
		action := strings.ToUpper(r.until("ON"))
		if event == "delete" {
			f.OnDelete = action
		} else {
			f.OnUpdate = action
		}
	}
	t.table.ForeignKeys = append(t.table.ForeignKeys, f)
}

// nameList parses a comma-separated list of names.
func nameList(r *reader) []string {
	var all []string
	for _, item := range r.items() {
		if name, ok := item.name(); ok {
			all = append(all, name)
		}
	}
	return all
}

func (t *tableReader) check(r *reader, name string) {
	inside, ok := r.group()
	if !ok {
		t.program("check constraint", name)
		return
	}
	if e := t.expr(inside.rest(), "check constraint", name); e != nil {
		t.table.Checks = append(t.table.Checks, schema.Check{Name: name, Expr: *e,
			NotEnforced: r.accept("NOT", "ENFORCED")})
	}
}

// options parses the table options after the columns.
func (t *tableReader) options(r *reader) error {
	t.table.Options = map[string]string{}
	for !r.ended() {
		switch {
		case r.accept("WITH", "SYSTEM", "VERSIONING"):
			t.program("system versioning", t.table.Name.Name)
		case r.accept("PARTITION", "BY"):
			if t.table.Partitions = readPartitions(r); t.table.Partitions == nil {
				t.program("partitioning", t.table.Name.Name)
			}
			return nil
		case r.accept("DEFAULT"), r.accept(","):
		default:
			if err := t.option(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// option reads one option and its value.
func (t *tableReader) option(r *reader) error {
	name, _ := r.name()
	name = strings.ToLower(name)
	r.accept("=")
	value := r.skip().value
	switch form := optionPattern(name); {
	case name == "engine" && !engines[strings.ToLower(value)]:
		return errNotDescribed
	case name == "comment":
		t.table.Comment = value
	case form != nil && form.MatchString(value):
		t.table.Options[name] = value
	default:
		t.program("table option", name)
	}
	return nil
}

// engines are the allowed storage engines. Unlike FEDERATED, they read no rows from other servers.
var engines = map[string]bool{"innodb": true, "myisam": true, "aria": true, "memory": true, "archive": true,
	"csv": true, "rocksdb": true, "blackhole": true}

// optionPattern returns the pattern for the value of a table option, or nil for an option that
// descriptions do not contain.
func optionPattern(name string) *regexp.Regexp {
	switch name {
	case "engine", "charset", "collate", "row_format", "compression":
		return anyWord
	case "auto_increment", "key_block_size", "stats_persistent", "stats_auto_recalc", "stats_sample_pages", "checksum",
		"delay_key_write", "pack_keys", "max_rows", "min_rows", "avg_row_length", "page_checksum", "transactional",
		"page_compressed", "page_compression_level":
		return digitsOrDefault
	}
	return nil
}

var (
	anyWord         = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
	digitsOrDefault = regexp.MustCompile(`^([0-9]{1,20}|[Dd][Ee][Ff][Aa][Uu][Ll][Tt])$`)
)

// readPartitions parses how a table is partitioned. It returns nil for partitioning that
// descriptions do not support.
func readPartitions(r *reader) *schema.Partitions {
	p := &schema.Partitions{Linear: r.accept("LINEAR")}
	p.Method, _ = r.word()
	columns := r.accept("COLUMNS") || p.Method == "key"
	if !slices.Contains([]string{"range", "list", "hash", "key"}, p.Method) {
		return nil
	}
	of, ok := r.group()
	if !ok {
		return nil
	}
	if columns {
		for _, name := range nameList(of) {
			p.Columns = append(p.Columns, schema.KeyColumn{Name: name})
		}
	} else if p.Expr = partitionExpr(of); p.Expr == nil {
		return nil
	}
	if r.accept("PARTITIONS") {
		count, _ := r.word()
		p.Count, _ = strconv.Atoi(count)
	}
	if list, ok := r.group(); ok {
		for _, item := range list.items() {
			part, ok := readPart(item, p.Method)
			if !ok {
				return nil
			}
			p.Parts = append(p.Parts, part)
		}
	}
	if !r.ended() {
		return nil
	}
	return p
}

// partitionExpr parses the partitioning expression. A name may be unquoted.
func partitionExpr(r *reader) *schema.Expr {
	if len(r.tokens) == 1 {
		if name, ok := r.name(); ok {
			return &schema.Expr{Column: name}
		}
	}
	e, err := schema.ParseExpr(schema.MySQL, r.rest())
	if err != nil {
		return nil
	}
	return &e
}

// readPart reads one partition: its name and its bound.
func readPart(r *reader, method string) (part schema.Part, ok bool) {
	r.accept("PARTITION")
	if part.Name, ok = r.name(); !ok {
		return part, false
	}
	switch {
	case r.accept("VALUES", "LESS", "THAN"):
		part.Bound.To, ok = partValues(r)
	case r.accept("VALUES", "IN"):
		part.Bound.In, ok = partLists(r)
	case r.accept("DEFAULT"):
		part.Bound.Default = true
	default:
		ok = method == "hash" || method == "key"
	}
	for !r.ended() {
		switch {
		case r.accept("COMMENT"):
			r.accept("=")
			part.Comment, _ = r.quoted()
		case r.is("("): // subpartitions
			return part, false
		default: // storage options
			r.skip()
		}
	}
	return part, ok
}

// partValues parses MAXVALUE or a list of values: the upper bound of a range partition, or one
// tuple of a list partition.
func partValues(r *reader) ([]schema.Expr, bool) {
	if r.accept("MAXVALUE") {
		return []schema.Expr{{Column: "maxvalue"}}, true
	}
	list, ok := r.group()
	if !ok {
		return nil, false
	}
	var all []schema.Expr
	for _, item := range list.items() {
		v, ok := partValue(item)
		if !ok {
			return nil, false
		}
		all = append(all, v)
	}
	return all, true
}

// partValue reads one value of a bound.
func partValue(r *reader) (schema.Expr, bool) {
	if r.accept("MAXVALUE") {
		return schema.Expr{Column: "maxvalue"}, true
	}
	e, err := schema.ParseExpr(schema.MySQL, r.rest())
	return e, err == nil && (e.Literal != nil || negative(e))
}

// negative reports whether an expression is a negated literal, such as -1.
func negative(e schema.Expr) bool {
	return e.Op == "NEG" && len(e.Args) == 1 && e.Args[0].Literal != nil
}

// partLists parses the values of a list partition.
func partLists(r *reader) ([][]schema.Expr, bool) {
	list, ok := r.group()
	if !ok {
		return nil, false
	}
	var all [][]schema.Expr
	for _, item := range list.items() {
		var values []schema.Expr
		if item.is("(") {
			values, ok = partValues(item)
		} else {
			values = make([]schema.Expr, 1)
			values[0], ok = partValue(item)
		}
		if !ok {
			return nil, false
		}
		all = append(all, values)
	}
	return all, true
}

// removePeriod removes the time columns of a system-versioned table from its keys, because the
// description does not include these columns.
func (t *tableReader) removePeriod() {
	without := func(columns []schema.KeyColumn) []schema.KeyColumn {
		return slices.DeleteFunc(columns, func(c schema.KeyColumn) bool { return slices.Contains(t.period, c.Name) })
	}
	for i, k := range t.table.Keys {
		t.table.Keys[i].Columns = without(k.Columns)
	}
	for i, x := range t.table.Indexes {
		t.table.Indexes[i].Columns = without(x.Columns)
	}
	t.table.Indexes = slices.DeleteFunc(t.table.Indexes, func(x schema.Index) bool { return len(x.Columns) == 0 })
}

// removeAutoIncrement records AUTO_INCREMENT as a program if the key that it needs was removed.
func (t *tableReader) removeAutoIncrement() {
	var keyed []schema.KeyColumn
	for _, k := range t.table.Keys {
		keyed = append(keyed, k.Columns...)
	}
	for _, x := range t.table.Indexes {
		keyed = append(keyed, x.Columns...)
	}
	for i, c := range t.table.Columns {
		same := func(k schema.KeyColumn) bool { return k.Name == c.Name }
		if c.Identity != nil && !slices.ContainsFunc(keyed, same) && t.asProgram("auto_increment", c.Name) {
			t.table.Columns[i].Identity = nil
		}
	}
}

// removeComputed removes everything that needs a generated column, and records it as programs.
func (t *tableReader) removeComputed() {
	computed := map[string]bool{}
	for _, c := range t.table.Columns {
		computed[c.Name] = c.Computed
	}
	needs := func(columns []schema.KeyColumn) bool {
		return slices.ContainsFunc(columns, func(c schema.KeyColumn) bool { return computed[c.Name] })
	}
	named := func(columns []string) bool {
		return slices.ContainsFunc(columns, func(c string) bool { return computed[c] })
	}
	t.table.Keys = slices.DeleteFunc(t.table.Keys, func(k schema.Key) bool {
		return needs(k.Columns) && t.asProgram("primary key", t.table.Name.Name)
	})
	t.table.Indexes = slices.DeleteFunc(t.table.Indexes, func(x schema.Index) bool {
		return needs(x.Columns) && t.asProgram("index", x.Name)
	})
	t.table.ForeignKeys = slices.DeleteFunc(t.table.ForeignKeys, func(f schema.ForeignKey) bool {
		return named(f.Columns) && t.asProgram("foreign key", f.Name)
	})
	t.table.Checks = slices.DeleteFunc(t.table.Checks, func(c schema.Check) bool {
		return named(columnsIn(c.Expr)) && t.asProgram("check constraint", c.Name)
	})
	for i, c := range t.table.Columns {
		if c.Check != nil && named(columnsIn(*c.Check)) && t.asProgram("check constraint", c.Name) {
			t.table.Columns[i].Check = nil
		}
	}
	if p := t.table.Partitions; p != nil && (needs(p.Columns) || p.Expr != nil && named(columnsIn(*p.Expr))) &&
		t.asProgram("partitioning", t.table.Name.Name) {
		t.table.Partitions = nil
	}
}

// asProgram calls [tableReader.program] and returns true, for use in conditions.
func (t *tableReader) asProgram(kind, name string) bool {
	t.program(kind, name)
	return true
}

// columnsIn returns the columns in an expression.
func columnsIn(e schema.Expr) []string {
	var all []string
	if e.Column != "" {
		all = append(all, e.Column)
	}
	for _, arg := range e.Args {
		all = append(all, columnsIn(arg)...)
	}
	return all
}

// describeSequence parses the output of SHOW CREATE SEQUENCE.
func describeSequence(d definition) (schema.Sequence, error) {
	q := schema.Sequence{Name: schema.Name{Name: d.Name}, Last: d.Next}
	r, err := read(d.SQL, lexMode{})
	if err != nil {
		return q, err
	}
	if !r.accept("CREATE", "SEQUENCE") {
		return q, errNotDescribed
	}
	r.skip() // its name
	number := func() string {
		sign := ""
		if r.accept("-") {
			sign = "-"
		}
		digits, _ := r.word()
		return sign + digits
	}
	for !r.ended() {
		switch {
		case r.accept("AS"):
			q.Type = strings.ToLower(r.until("START"))
		case r.accept("START", "WITH"):
			q.Start = number()
		case r.accept("MINVALUE"):
			q.Min = number()
		case r.accept("MAXVALUE"):
			q.Max = number()
		case r.accept("INCREMENT", "BY"):
			q.Increment = number()
		case r.accept("CACHE"):
			q.Cache = number()
		case r.accept("NOCACHE"):
			q.Cache = "0"
		case r.accept("CYCLE"):
			q.Cycle = true
		case r.accept("NOCYCLE"):
		case r.accept("ENGINE", "="):
			r.skip()
		case r.accept("COMMENT", "="):
			q.Comment, _ = r.quoted()
		default:
			return q, errNotDescribed
		}
	}
	return q, nil
}
