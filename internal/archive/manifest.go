package archive

import (
	"time"

	"snap"
	"snap/internal/schema"
)

// Manifest describes the content of a snapshot file. It is at the end of the file, because row
// counts and checksums are known only after the dump.
type Manifest struct {
	Format        int               `json:"format"`
	Encoder       int               `json:"encoder,omitempty"` // see [Encoder]; 0 in files of older versions
	Engine        snap.Engine       `json:"engine"`
	ServerVersion string            `json:"server_version"`         // of the database server, or of the SQLite library
	ToolVersion   string            `json:"tool_version,omitempty"` // of the program that wrote the dump
	Target        string            `json:"target"`
	Name          string            `json:"name"`
	Type          snap.Type         `json:"type"`
	Created       time.Time         `json:"created"`
	Tables        []Table           `json:"tables"`
	Properties    map[string]string `json:"properties,omitempty"` // of the database, such as its encoding
	Sanitized     *Sanitized        `json:"sanitized,omitempty"`  // how a sanitized snapshot was made
	Subset        *Subset           `json:"subset,omitempty"`     // set if the rows were limited
	Schema        *schema.Schema    `json:"schema,omitempty"`     // nil in files of older versions
	Sections      []Section         `json:"sections"`
}

// Subset describes how the rows of a snapshot were chosen, if it does not have every row of its
// source. [Table].Of is the number of rows in the source.
type Subset struct {
	Where   map[string]string `json:"where,omitempty"`   // conditions by table, empty in a sanitized copy
	Percent float64           `json:"percent,omitempty"` // of the rows in tables without a connection to one in Where
	Start   []string          `json:"start,omitempty"`   // the tables with starting rows
}

// Table is one table of the database and its number of rows. Rows is -1 if they were not counted.
type Table struct {
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Of     int64  `json:"of,omitempty"`    // in a subset: number of rows in the source's table
	Bytes  int64  `json:"bytes,omitempty"` // of its rows in the dump; 0 if not measured

	Columns []Column `json:"columns,omitempty"` // the columns present in the dump's rows

	Masks   map[string]string `json:"masks,omitempty"`        // in a masked copy: the mask of each column with a rule
	Dropped bool              `json:"rows_dropped,omitempty"` // masking dropped its rows
}

// Column is one column of a table, with its type as the database writes it.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	NotNull bool   `json:"not_null,omitempty"`

	Generated bool `json:"generated,omitempty"` // computed, but present in the rows of the dump
}

// Section is one stream of the file: a sequence of blocks. Sections follow each other without gaps,
// from the header to the manifest.
type Section struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Stored int64  `json:"stored"` // bytes in the file
	Size   int64  `json:"size"`   // bytes when decompressed
	SHA256 string `json:"sha256"` // of the stored bytes, lower-case hexadecimal
}

// Sanitized describes how a sanitized snapshot was made.
type Sanitized struct {
	From     string    `json:"from"`                // name of the snapshot it was made from
	SQL      string    `json:"sql,omitempty"`       // SHA-256 of the SQL that was run
	Rules    string    `json:"rules,omitempty"`     // SHA-256 of the rules that were applied
	Masked   int       `json:"masked,omitempty"`    // number of columns that a rule changed
	Kept     int       `json:"kept,omitempty"`      // number of columns that a rule kept
	Dropped  int       `json:"dropped,omitempty"`   // number of tables whose rows were dropped
	LeakScan *LeakScan `json:"leak_scan,omitempty"` // nil if no search was possible
}

// Progress is called with the number of bytes done and in total. Total is 0 if unknown.
type Progress func(done, total int64)

// LeakScan describes the search of the masked dump for original values. If a row contains one, no
// sanitized snapshot is created. The rules decide about schema objects that contain one.
type LeakScan struct {
	Values int `json:"values"`                   // number of sampled original values searched for
	Schema int `json:"schema_objects,omitempty"` // objects of the schema in which originals were kept or redacted
}
