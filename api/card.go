package api

import (
	"time"

	"snap"
)

// Card describes the content of one snapshot: its tables and columns, and how it was made. It never
// contains a row of data.
type Card struct {
	BuiltAt       *time.Time  `json:"built_at,omitempty" doc:"when the snapshot was made on its machine"`
	ServerVersion string      `json:"server_version,omitempty" doc:"version of the database server"`
	Encoding      string      `json:"encoding,omitempty" doc:"character encoding of the database"`
	Collation     string      `json:"collation,omitempty"`
	From          string      `json:"from,omitempty" doc:"name of the snapshot that a masked copy was made from"`
	Masking       *Masking    `json:"masking,omitempty" doc:"how a masked copy was made; absent for originals"`
	Subset        *CardSubset `json:"subset,omitempty" doc:"absent if the snapshot is not a subset"`
	Unlisted      int         `json:"tables_unlisted,omitempty" doc:"number of tables that are not listed"`
	Tables        []CardTable `json:"tables,omitempty"`

	// Programs is absent in cards from older clients. Their tables have no Parts either.
	Programs []CardPart `json:"programs,omitempty" doc:"views, routines and other programs that belong to no table"`

	// Since identifies the earlier snapshot that the field Differ of the tables refers to. The
	// service never returns Since, because the caller may have no access to that snapshot.
	Since string `json:"since,omitempty" doc:"SHA-256 of the snapshot that differ refers to; sent only to the service"`
}

// CardPart is an object that belongs to a table, or a program of the database.
type CardPart struct {
	Kind       string `json:"kind" doc:"as in SQL, such as index, foreign key or function"`
	Name       string `json:"name"`
	Definition string `json:"definition,omitempty" doc:"in words, if known; never the code of a program"`
}

// Masking describes how a masked copy was made.
type Masking struct {
	Rules   string `json:"rules,omitempty" doc:"SHA-256 of the rules"`
	SQL     string `json:"sql,omitempty" doc:"SHA-256 of the SQL that ran after the rules, or instead of them"`
	Masked  int    `json:"masked,omitempty" doc:"columns changed by a rule"`
	Kept    int    `json:"kept,omitempty" doc:"columns that a rule leaves unmasked"`
	Dropped int    `json:"dropped,omitempty" doc:"tables whose rows were dropped"`
}

// CardSubset describes how the rows of a subset were chosen.
type CardSubset struct {
	Percent    float64         `json:"percent,omitempty" doc:"percentage taken from tables without a condition"`
	Start      []string        `json:"start,omitempty" doc:"tables in which rows were chosen"`
	Conditions []CardCondition `json:"conditions,omitempty"`
}

// CardCondition is the condition that chose the starting rows of one table.
type CardCondition struct {
	Table string `json:"table"`
	Where string `json:"where,omitempty" doc:"SQL; empty in a masked copy, which names only the tables"`
}

// CardTable is one table of a snapshot.
type CardTable struct {
	Schema  string       `json:"schema,omitempty" doc:"PostgreSQL only"`
	Name    string       `json:"name"`
	Rows    int64        `json:"rows" doc:"-1 if they were not counted"`
	Of      int64        `json:"of,omitempty" doc:"in a subset: number of rows of the table in the source"`
	Bytes   int64        `json:"bytes,omitempty" doc:"bytes of the rows before compression; absent if unknown"`
	Dropped bool         `json:"rows_dropped,omitempty" doc:"masking dropped its rows"`
	Columns []CardColumn `json:"columns,omitempty"`
	Parts   []CardPart   `json:"parts,omitempty" doc:"keys, indexes, constraints and triggers"`
	Differ  *CardRows    `json:"differ,omitempty" doc:"differing rows, compared with since; sent only to the service"`
}

// CardRows counts the rows of a table that differ between two snapshots. In a table without a
// primary key, a changed row counts as a removed and an added one.
type CardRows struct {
	Added   int64 `json:"added"`
	Removed int64 `json:"removed"`
	Changed int64 `json:"changed"`
}

// Label returns the table's name with its schema, if it has one.
func (t CardTable) Label() string { return snap.TableName(t.Schema, t.Name) }

// CardColumn is one column of a table.
type CardColumn struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty" doc:"as the database writes it"`
	NotNull bool   `json:"not_null,omitempty"`
	Key     string `json:"key,omitempty" enum:"primary,unique" doc:"the key that the column is part of"`
	Refers  string `json:"references,omitempty" doc:"column that its foreign key refers to, as table.column"`
	Mask    string `json:"mask,omitempty" doc:"mask in a masked copy, or the word keep if a rule keeps the originals"`
}

// CardTotals counts the tables, columns, rows and bytes of a card.
type CardTotals struct {
	Tables  int   `json:"tables"`
	Columns int   `json:"columns"`
	Rows    int64 `json:"rows" doc:"of the tables whose rows were counted"`
	Bytes   int64 `json:"bytes,omitempty" doc:"of the tables whose size is known"`
}

// CardChange is one difference between two cards.
type CardChange struct {
	Table  string `json:"table" doc:"empty if the change is about a program that belongs to no table"`
	Column string `json:"column,omitempty" doc:"absent if the change is about the whole table"`
	Part   string `json:"part,omitempty" doc:"kind and name of the changed part or program"`
	Change string `json:"change" enum:"added,removed,changed,rows"`
	Before string `json:"before,omitempty" doc:"definition of a changed column or part before the change"`
	After  string `json:"after,omitempty" doc:"definition of a changed column or part after the change"`
	Rows   int64  `json:"rows,omitempty" doc:"number of rows in the newer snapshot"`
	More   int64  `json:"more,omitempty" doc:"by how many rows the table grew; negative if it shrank"`

	Differ *CardRows `json:"differ,omitempty" doc:"number of rows that differ; absent if unknown"`
}

// SnapshotCard is a snapshot with a page of its card.
type SnapshotCard struct {
	Snapshot Snapshot    `json:"snapshot"`
	Card     *Card       `json:"card,omitempty" doc:"with the tables of this page; absent if none is shown"`
	Withheld bool        `json:"withheld" doc:"the organization that shared the snapshot does not show its schema"`
	Totals   *CardTotals `json:"totals,omitempty" doc:"of all tables"`
	Found    *CardTotals `json:"found,omitempty" doc:"of the tables and columns that the search finds"`
	Page     int         `json:"page" doc:"counted from 1"`
	Pages    int         `json:"pages"`
}

// CardChanges is the difference between a snapshot's card and that of the previous snapshot.
type CardChanges struct {
	Previous *Snapshot    `json:"previous,omitempty" doc:"previous snapshot of the same target and type, if any"`
	Counted  bool         `json:"counted" doc:"true if the rows were compared; false if only the numbers of rows were"`
	Changes  []CardChange `json:"changes" doc:"at most 1000 changes"`
	More     int          `json:"more,omitempty" doc:"number of further changes that are not listed"`
}

// DescribeRequest is the body of POST /snapshots/{id}/about.
type DescribeRequest struct {
	Description string   `json:"description" maxLength:"1000" example:"Before July" doc:"plain text; may be empty"`
	Labels      []string `json:"labels" maxItems:"20" example:"[\"release\"]" doc:"each of at most 40 characters"`
}

// PullCount is how often somebody pulled a snapshot.
type PullCount struct {
	Email        string    `json:"email,omitempty" doc:"absent for keys, former members and other organizations"`
	Organization string    `json:"organization" doc:"slug"`
	Times        int64     `json:"times" doc:"how often they pulled it"`
	LastAt       time.Time `json:"last_at"`
}

// PullCounts is the body of GET pulls.
type PullCounts struct {
	Items []PullCount `json:"items" doc:"most recent first, at most 200"`
}

// PutCardRequest is the body of POST /snapshots/{id}/card. It contains the card, either as JSON or
// compressed.
type PutCardRequest struct {
	Card *Card  `json:"card,omitempty"`
	Gzip []byte `json:"gzip,omitempty" doc:"instead of card: gzip of its JSON, for requests that would exceed 1 MiB"`
}
