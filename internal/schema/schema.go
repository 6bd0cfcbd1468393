// Package schema describes the objects of a database as data: tables with their
// columns, types, keys, constraints and indexes, enums, domains and sequences. A
// snapshot carries such a description, so that the snapshot of somebody else can
// be loaded without running a word of its SQL: the loader generates every
// statement from the description, with its own quoting.
//
// Objects that can compute are programs. The description names them, so that
// they can be listed, and says nothing else about them.
//
// A description that came with a file is input from a stranger. Nothing may use
// it before [Schema.Check].
package schema

// Schema describes one database. Names are as the database has them, unquoted.
type Schema struct {
	Namespaces []Namespace `json:"namespaces,omitempty"` // PostgreSQL's schemas, "public" included
	Extensions []Extension `json:"extensions,omitempty"` // those of the allowed list
	Enums      []Enum      `json:"enums,omitempty"`
	Domains    []Domain    `json:"domains,omitempty"`
	Sequences  []Sequence  `json:"sequences,omitempty"`
	Tables     []Table     `json:"tables,omitempty"`
	Programs   []Program   `json:"programs,omitempty"` // everything in the snapshot that can compute
	Comment    string      `json:"comment,omitempty"`  // on the database
}

// Name is the name of an object. Schema is empty where the kind of database has
// no schemas.
type Name struct {
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
}

// Namespace is a schema of PostgreSQL.
type Namespace struct {
	Name    string `json:"name"`
	Comment string `json:"comment,omitempty"`
}

// Extension is an extension of PostgreSQL that the data needs.
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

// Domain is a type with conditions. In its checks the value is the column named
// VALUE.
type Domain struct {
	Name
	Type    Type    `json:"type"`
	NotNull bool    `json:"not_null,omitempty"`
	Default *Expr   `json:"default,omitempty"`
	Checks  []Check `json:"checks,omitempty"`
	Comment string  `json:"comment,omitempty"`
}

// Sequence is a sequence with the value it had. Numbers are decimal text, since
// they exceed what JSON readers keep exact.
type Sequence struct {
	Name
	Type      string `json:"type,omitempty"` // smallint, integer or bigint
	Start     string `json:"start,omitempty"`
	Increment string `json:"increment,omitempty"`
	Min       string `json:"min,omitempty"`
	Max       string `json:"max,omitempty"`
	Cache     string `json:"cache,omitempty"`
	Cycle     bool   `json:"cycle,omitempty"`
	Last      string `json:"last,omitempty"` // its last value
	Called    bool   `json:"called,omitempty"`
	Owner     *Owner `json:"owner,omitempty"` // the column that it belongs to
	Comment   string `json:"comment,omitempty"`
}

// Owner is the column that a sequence belongs to.
type Owner struct {
	Table  Name   `json:"table"`
	Column string `json:"column"`
}

// Table is a table that holds rows.
type Table struct {
	Name
	Virtual     string            `json:"virtual,omitempty"` // the module of a virtual table of SQLite: fts3, fts4, fts5, rtree
	Columns     []Column          `json:"columns"`
	Keys        []Key             `json:"keys,omitempty"`
	Checks      []Check           `json:"checks,omitempty"`
	ForeignKeys []ForeignKey      `json:"foreign_keys,omitempty"`
	Indexes     []Index           `json:"indexes,omitempty"`
	Partitions  *Partitions       `json:"partitions,omitempty"`   // how its rows are divided
	PartitionOf *PartitionOf      `json:"partition_of,omitempty"` // the table it is a part of
	Inherits    []Name            `json:"inherits,omitempty"`
	Options     map[string]string `json:"options,omitempty"` // closed list of each kind of database
	Comment     string            `json:"comment,omitempty"`
}

// Column is one column of a table, in the table's order.
type Column struct {
	Name    string `json:"name"`
	Type    Type   `json:"type"`
	NotNull bool   `json:"not_null,omitempty"`
	Default *Expr  `json:"default,omitempty"`
	// NotNullConflict is what SQLite does with a row that has NULL there.
	NotNullConflict string    `json:"not_null_conflict,omitempty"`
	OnUpdate        *Expr     `json:"on_update,omitempty"` // of MySQL
	Identity        *Identity `json:"identity,omitempty"`
	// Computed says that the column is generated. How it is computed is a
	// program, so a load without programs leaves the column out.
	Computed  bool   `json:"computed,omitempty"`
	Local     bool   `json:"local,omitempty"` // declared by a table that inherits
	Collation *Name  `json:"collation,omitempty"`
	Charset   string `json:"charset,omitempty"` // of MySQL
	Comment   string `json:"comment,omitempty"`

	// Of MySQL and MariaDB.
	Invisible  bool   `json:"invisible,omitempty"`
	Compressed bool   `json:"compressed,omitempty"`
	SRID       string `json:"srid,omitempty"`  // of a spatial column, decimal
	Check      *Expr  `json:"check,omitempty"` // that the column itself declares
}

// Identity says that the database numbers the column by itself.
type Identity struct {
	Always   bool  `json:"always,omitempty"`
	Sequence *Name `json:"sequence,omitempty"` // of PostgreSQL, among [Schema.Sequences]
}

// Type is the type of a column: a built-in one, or an enum or domain of the
// description, which has a Schema or is Own.
type Type struct {
	Name      string   `json:"name"`
	Schema    string   `json:"schema,omitempty"`
	Own       bool     `json:"own,omitempty"`       // an enum or domain of this description
	Extension string   `json:"extension,omitempty"` // the allowed extension it belongs to
	Args      []string `json:"args,omitempty"`      // length, precision and scale; words of PostGIS
	Dims      int      `json:"dims,omitempty"`      // dimensions of an array
	Labels    []string `json:"labels,omitempty"`    // of ENUM and SET of MySQL
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
	OnConflict        string      `json:"on_conflict,omitempty"` // of SQLite
}

// KeyColumn is a column of a key or an index.
type KeyColumn struct {
	Name       string `json:"name"`
	Desc       bool   `json:"desc,omitempty"`
	NullsFirst bool   `json:"nulls_first,omitempty"`
	NullsLast  bool   `json:"nulls_last,omitempty"`
	Prefix     int    `json:"prefix,omitempty"`    // characters or bytes, of MySQL
	OpClass    string `json:"op_class,omitempty"`  // a built-in one, or one of an allowed extension
	Collation  *Name  `json:"collation,omitempty"` // a built-in one
	Expr       *Expr  `json:"expr,omitempty"`      // instead of a name: of what a table is divided by
}

// Check is a check constraint.
type Check struct {
	Name      string `json:"name,omitempty"`
	Expr      Expr   `json:"expr"`
	NotValid  bool   `json:"not_valid,omitempty"`
	NoInherit bool   `json:"no_inherit,omitempty"`
	Inherited bool   `json:"inherited,omitempty"` // declared by a table that this one inherits from
	Comment   string `json:"comment,omitempty"`

	NotEnforced bool `json:"not_enforced,omitempty"` // of MySQL
}

// ForeignKey is a foreign key. Actions are in the words of SQL; an empty one is
// NO ACTION.
type ForeignKey struct {
	Name              string   `json:"name,omitempty"`
	Columns           []string `json:"columns"`
	To                Name     `json:"to"`
	ToColumns         []string `json:"to_columns,omitempty"` // empty: the primary key
	OnUpdate          string   `json:"on_update,omitempty"`
	OnDelete          string   `json:"on_delete,omitempty"`
	SetColumns        []string `json:"set_columns,omitempty"` // of ON DELETE SET NULL and SET DEFAULT
	MatchFull         bool     `json:"match_full,omitempty"`
	Deferrable        bool     `json:"deferrable,omitempty"`
	InitiallyDeferred bool     `json:"initially_deferred,omitempty"`
	NotValid          bool     `json:"not_valid,omitempty"`
	Comment           string   `json:"comment,omitempty"`
}

// Index is a plain index: of columns, without an expression and a predicate.
type Index struct {
	Name             string      `json:"name"`
	Method           string      `json:"method,omitempty"` // btree, hash, gin, gist, brin, spgist; fulltext or spatial of MySQL
	Unique           bool        `json:"unique,omitempty"`
	Columns          []KeyColumn `json:"columns"`
	Include          []string    `json:"include,omitempty"`
	NullsNotDistinct bool        `json:"nulls_not_distinct,omitempty"`
	Invisible        bool        `json:"invisible,omitempty"` // of MySQL and MariaDB
	Parser           string      `json:"parser,omitempty"`    // of a fulltext index of MySQL: ngram or mecab
	Clustered        bool        `json:"clustered,omitempty"`
	ReplicaIdentity  bool        `json:"replica_identity,omitempty"`
	Comment          string      `json:"comment,omitempty"`
}

// Partitions says how the rows of a table are divided.
type Partitions struct {
	Method  string      `json:"method"` // range, list, hash; key of MySQL
	Columns []KeyColumn `json:"columns"`
	Expr    *Expr       `json:"expr,omitempty"`   // of MySQL, instead of Columns
	Linear  bool        `json:"linear,omitempty"` // of MySQL's hash and key
	Parts   []Part      `json:"parts,omitempty"`  // of MySQL, where parts are no tables
	Count   int         `json:"count,omitempty"`  // of MySQL's hash and key
}

// PartitionOf says which rows of another table a table holds.
type PartitionOf struct {
	Table Name  `json:"table"`
	Bound Bound `json:"bound"`
}

// Part is a partition of MySQL.
type Part struct {
	Name    string `json:"name"`
	Bound   Bound  `json:"bound"`
	Comment string `json:"comment,omitempty"`
}

// Bound is the bound of a partition. A value is a literal, or MINVALUE or
// MAXVALUE as a column expression.
type Bound struct {
	Default   bool     `json:"default,omitempty"`
	In        [][]Expr `json:"in,omitempty"`
	From      []Expr   `json:"from,omitempty"`
	To        []Expr   `json:"to,omitempty"`
	Modulus   int      `json:"modulus,omitempty"`
	Remainder int      `json:"remainder,omitempty"`
}

// Program is an object that can compute. Kind is in the words of SQL, in lower
// case and singular: function, procedure, trigger, event, view, materialized
// view, rule, policy, expression index, partial index, generated column, check
// constraint, default, cast, operator, aggregate, extension, event trigger,
// publication, foreign server, virtual table and so on. Name has the schema
// where the object has one; On is the table it belongs to.
type Program struct {
	Kind string `json:"kind"`
	Name
	On string `json:"on,omitempty"`
}
