// Package schema describes the objects of a database as data: tables with their columns, types,
// keys, constraints and indexes, enums, domains and sequences. A snapshot contains such a
// description, so that a snapshot from another organization can be loaded without running any of
// the snapshot's SQL. The loader generates every statement from the description, and does the
// quoting itself.
//
// Objects that can run code are programs. The description contains only their kinds, their names
// and the tables they belong to, so that they can be listed.
//
// A description from a file is untrusted input. Nothing may use it before [Schema.Check].
package schema

// Schema describes one database. Names are unquoted.
type Schema struct {
	Namespaces []Namespace `json:"namespaces,omitempty"` // PostgreSQL schemas, including "public"
	Extensions []Extension `json:"extensions,omitempty"` // allowed extensions only
	Enums      []Enum      `json:"enums,omitempty"`
	Domains    []Domain    `json:"domains,omitempty"`
	Sequences  []Sequence  `json:"sequences,omitempty"`
	Tables     []Table     `json:"tables,omitempty"`
	Programs   []Program   `json:"programs,omitempty"` // everything in the snapshot that can run code
	Omitted    []Omission  `json:"omitted,omitempty"`  // the parts of the source that the snapshot lacks
	Comment    string      `json:"comment,omitempty"`  // comment on the database
	Grants     []Grant     `json:"grants,omitempty"`   // rights of other users, if the build included them
}

// Name is the name of an object. Schema is empty in databases without schemas.
type Name struct {
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
}

// Namespace is a PostgreSQL schema.
type Namespace struct {
	Name    string `json:"name"`
	Comment string `json:"comment,omitempty"`
}

// Extension is a PostgreSQL extension that the data needs.
type Extension struct {
	Name   string `json:"name"`
	Schema string `json:"schema,omitempty"`
}

// Enum is an enumerated type.
type Enum struct {
	Name
	Labels  []string `json:"labels"`
	Comment string   `json:"comment,omitempty"`
}

// Domain is a type with conditions. In its checks, the column VALUE is the value to check.
type Domain struct {
	Name
	Type      Type    `json:"type"`
	NotNull   bool    `json:"not_null,omitempty"`
	Default   *Expr   `json:"default,omitempty"`
	Checks    []Check `json:"checks,omitempty"`
	Collation *Name   `json:"collation,omitempty"`
	Comment   string  `json:"comment,omitempty"`
}

// Sequence is a sequence and its last value. Numbers are decimal strings, because they can exceed
// the range that JSON decoders represent exactly.
type Sequence struct {
	Name
	Type      string `json:"type,omitempty"` // a built-in integer type
	Start     string `json:"start,omitempty"`
	Increment string `json:"increment,omitempty"`
	Min       string `json:"min,omitempty"`
	Max       string `json:"max,omitempty"`
	Cache     string `json:"cache,omitempty"`
	Cycle     bool   `json:"cycle,omitempty"`
	Last      string `json:"last,omitempty"`   // last value; in MariaDB, the next one
	Called    bool   `json:"called,omitempty"` // Last was returned; the next value is Last plus Increment
	Owner     *Owner `json:"owner,omitempty"`  // the column that owns it
	Comment   string `json:"comment,omitempty"`
}

// Owner is the column that owns a sequence.
type Owner struct {
	Table  Name   `json:"table"`
	Column string `json:"column"`
}

// Table is a table that holds rows.
type Table struct {
	Name
	Virtual     string            `json:"virtual,omitempty"` // module in SQLite: fts3, fts4, fts5, rtree
	Columns     []Column          `json:"columns"`
	Keys        []Key             `json:"keys,omitempty"`
	Checks      []Check           `json:"checks,omitempty"`
	ForeignKeys []ForeignKey      `json:"foreign_keys,omitempty"`
	Indexes     []Index           `json:"indexes,omitempty"`
	Partitions  *Partitions       `json:"partitions,omitempty"`   // how its rows are partitioned
	PartitionOf *PartitionOf      `json:"partition_of,omitempty"` // the table it is a partition of
	Inherits    []Name            `json:"inherits,omitempty"`
	Options     map[string]string `json:"options,omitempty"` // only options from a fixed list for each kind of database
	Comment     string            `json:"comment,omitempty"`
}

// PrimaryKey returns the names of the primary key's columns, or nil if there is no primary key.
func (t Table) PrimaryKey() (columns []string) {
	for _, k := range t.Keys {
		if k.Primary {
			for _, c := range k.Columns {
				columns = append(columns, c.Name)
			}
			return columns
		}
	}
	return nil
}

// Column is one column of a table. Columns are in the table's order.
type Column struct {
	Name    string `json:"name"`
	Type    Type   `json:"type"`
	NotNull bool   `json:"not_null,omitempty"`
	Default *Expr  `json:"default,omitempty"`
	// NotNullConflict is SQLite's conflict clause for NOT NULL.
	NotNullConflict string    `json:"not_null_conflict,omitempty"`
	OnUpdate        *Expr     `json:"on_update,omitempty"` // MySQL only
	Identity        *Identity `json:"identity,omitempty"`
	// Computed means that the column is generated. Its expression is a program, so a load without
	// programs omits the column.
	Computed  bool   `json:"computed,omitempty"`
	Local     bool   `json:"local,omitempty"` // declared by a table that also inherits columns
	Collation *Name  `json:"collation,omitempty"`
	Charset   string `json:"charset,omitempty"` // MySQL only
	Comment   string `json:"comment,omitempty"`

	// MySQL and MariaDB only.
	Invisible  bool   `json:"invisible,omitempty"`
	Compressed bool   `json:"compressed,omitempty"`
	SRID       string `json:"srid,omitempty"`  // of a spatial column, in decimal
	Check      *Expr  `json:"check,omitempty"` // the column's own check
}

// Identity means that the database generates the column's values.
type Identity struct {
	Always   bool  `json:"always,omitempty"`
	Sequence *Name `json:"sequence,omitempty"` // PostgreSQL only; one of [Schema.Sequences]
}

// Type is the type of a column: a built-in type, a type of an allowed extension, or an enum or
// domain of the description, for which Own is set.
type Type struct {
	Name      string   `json:"name"`
	Schema    string   `json:"schema,omitempty"`
	Own       bool     `json:"own,omitempty"`       // an enum or domain of this description
	Extension string   `json:"extension,omitempty"` // the allowed extension it belongs to
	Args      []string `json:"args,omitempty"`      // length, precision and scale; words for PostGIS types
	Dims      int      `json:"dims,omitempty"`      // dimensions of an array
	Labels    []string `json:"labels,omitempty"`    // MySQL only: ENUM and SET
	Unsigned  bool     `json:"unsigned,omitempty"`
	Zerofill  bool     `json:"zerofill,omitempty"`
}

// Key is a primary key or a unique constraint.
type Key struct {
	Name              string      `json:"name,omitempty"`
	Primary           bool        `json:"primary,omitempty"`
	Columns           []KeyColumn `json:"columns"`
	Include           []string    `json:"include,omitempty"`
	NullsNotDistinct  bool        `json:"nulls_not_distinct,omitempty"`
	Deferrable        bool        `json:"deferrable,omitempty"`
	InitiallyDeferred bool        `json:"initially_deferred,omitempty"`
	Comment           string      `json:"comment,omitempty"`
	OnConflict        string      `json:"on_conflict,omitempty"` // SQLite only
}

// KeyColumn is a column of a key or an index.
type KeyColumn struct {
	Name       string `json:"name"`
	Desc       bool   `json:"desc,omitempty"`
	NullsFirst bool   `json:"nulls_first,omitempty"`
	NullsLast  bool   `json:"nulls_last,omitempty"`
	Prefix     int    `json:"prefix,omitempty"`    // MySQL only: characters or bytes
	OpClass    string `json:"op_class,omitempty"`  // built in or of an allowed extension
	Collation  *Name  `json:"collation,omitempty"` // built in
	Expr       *Expr  `json:"expr,omitempty"`      // replaces the name in a partition key
}

// Check is a check constraint.
type Check struct {
	Name      string `json:"name,omitempty"`
	Expr      Expr   `json:"expr"`
	NotValid  bool   `json:"not_valid,omitempty"`
	NoInherit bool   `json:"no_inherit,omitempty"`
	Inherited bool   `json:"inherited,omitempty"` // inherited from another table
	Comment   string `json:"comment,omitempty"`

	NotEnforced bool `json:"not_enforced,omitempty"` // MySQL only
}

// ForeignKey is a foreign key. Actions are SQL keywords; "" means NO ACTION.
type ForeignKey struct {
	Name              string   `json:"name,omitempty"`
	Columns           []string `json:"columns"`
	To                Name     `json:"to"`
	ToColumns         []string `json:"to_columns,omitempty"` // empty: the primary key
	OnUpdate          string   `json:"on_update,omitempty"`
	OnDelete          string   `json:"on_delete,omitempty"`
	SetColumns        []string `json:"set_columns,omitempty"` // columns of ON DELETE SET NULL and SET DEFAULT
	MatchFull         bool     `json:"match_full,omitempty"`
	Deferrable        bool     `json:"deferrable,omitempty"`
	InitiallyDeferred bool     `json:"initially_deferred,omitempty"`
	NotValid          bool     `json:"not_valid,omitempty"`
	Comment           string   `json:"comment,omitempty"`
}

// Index is a plain index: on columns, without expressions and without a predicate.
type Index struct {
	Name             string      `json:"name"`
	Method           string      `json:"method,omitempty"` // such as btree or gin; fulltext or spatial in MySQL
	Unique           bool        `json:"unique,omitempty"`
	Columns          []KeyColumn `json:"columns"`
	Include          []string    `json:"include,omitempty"`
	NullsNotDistinct bool        `json:"nulls_not_distinct,omitempty"`
	Invisible        bool        `json:"invisible,omitempty"` // MySQL and MariaDB only
	Parser           string      `json:"parser,omitempty"`    // of a MySQL fulltext index: ngram or mecab
	Clustered        bool        `json:"clustered,omitempty"`
	ReplicaIdentity  bool        `json:"replica_identity,omitempty"`
	Comment          string      `json:"comment,omitempty"`
}

// Partitions describes how the rows of a table are partitioned.
type Partitions struct {
	Method  string      `json:"method"` // range, list, hash; also key in MySQL
	Columns []KeyColumn `json:"columns"`
	Expr    *Expr       `json:"expr,omitempty"`   // MySQL only, instead of Columns
	Linear  bool        `json:"linear,omitempty"` // MySQL's hash and key only
	Parts   []Part      `json:"parts,omitempty"`  // MySQL only, where partitions are not tables
	Count   int         `json:"count,omitempty"`  // MySQL's hash and key only
}

// PartitionOf describes which rows of another table a partition holds.
type PartitionOf struct {
	Table Name  `json:"table"`
	Bound Bound `json:"bound"`
}

// Part is a MySQL partition.
type Part struct {
	Name    string `json:"name"`
	Bound   Bound  `json:"bound"`
	Comment string `json:"comment,omitempty"`
}

// Bound is the bound of a partition. A value is a literal, or MINVALUE or MAXVALUE, which are
// stored in [Expr.Column].
type Bound struct {
	Default   bool     `json:"default,omitempty"`
	In        [][]Expr `json:"in,omitempty"`
	From      []Expr   `json:"from,omitempty"`
	To        []Expr   `json:"to,omitempty"`
	Modulus   int      `json:"modulus,omitempty"`
	Remainder int      `json:"remainder,omitempty"`
}

// Program is an object that can run code. Kind is its SQL name, singular and in lower case:
// function, procedure, trigger, event, view, materialized view, rule, policy, expression index,
// partial index, generated column, check constraint, default, cast, operator, aggregate, extension,
// event trigger, publication, foreign server, virtual table and so on. Name includes the schema if
// the object has one. On is the table it belongs to.
type Program struct {
	Kind string `json:"kind"`
	Name
	On string `json:"on,omitempty"`
}
