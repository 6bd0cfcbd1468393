package archive

import (
	"time"

	"snap"
	"snap/internal/schema"
)

// Manifest says what a snapshot file holds. It stands at the end of the file,
// because rows and checksums are known only when the dump is done.
type Manifest struct {
	Format        int               `json:"format"`
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
	Subset        *Subset           `json:"subset,omitempty"`     // what the rows were limited to
	Schema        *schema.Schema    `json:"schema,omitempty"`     // its objects as data; nil in files of older versions
	Sections      []Section         `json:"sections"`
}

// Subset says that a snapshot does not hold every row of its source, and how
// its rows were chosen. Of in [Table] tells of how many rows each table's are.
type Subset struct {
	Where   map[string]string `json:"where,omitempty"`   // by table: the SQL condition of the rows it began with; of a sanitized copy the tables alone
	Percent float64           `json:"percent,omitempty"` // of the rows of the other tables it began with
	Start   []string          `json:"start,omitempty"`   // the tables it began with
}

// Table is one table of the database and how many rows it has. Rows is -1 when
// they were not counted.
type Table struct {
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Of     int64  `json:"of,omitempty"` // rows of the table of the source, of a subset

	Columns []Column `json:"columns,omitempty"` // those that hold values of their own
}

// Column is one column of a table, with its type as the database writes it.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	NotNull bool   `json:"not_null,omitempty"`

	Generated bool `json:"generated,omitempty"` // computed, but present in the rows of the dump
}

// Section is one stream of the file: a run of blocks. Sections follow
// each other without a gap, from the header to the manifest.
type Section struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Stored int64  `json:"stored"` // bytes in the file
	Size   int64  `json:"size"`   // bytes when decompressed
	SHA256 string `json:"sha256"` // of the stored bytes, lower-case hexadecimal
}

// Sanitized says how a sanitized snapshot came to be.
type Sanitized struct {
	From     string    `json:"from"`                // name of the snapshot it was made from
	SQL      string    `json:"sql,omitempty"`       // SHA-256 of the SQL that was run
	Rules    string    `json:"rules,omitempty"`     // SHA-256 of the rules that were applied
	Masked   int       `json:"masked,omitempty"`    // columns changed by a rule
	Kept     int       `json:"kept,omitempty"`      // columns kept by a rule
	Dropped  int       `json:"dropped,omitempty"`   // tables whose rows were dropped
	LeakScan *LeakScan `json:"leak_scan,omitempty"` // with rules
}

// Progress is called with how many bytes of how many are done. Total is 0 when
// it is not known.
type Progress func(done, total int64)

// LeakScan says how the masked dump was searched for original values. A
// sanitized snapshot with findings is never made.
type LeakScan struct {
	Values int `json:"values"` // sampled original values of masked columns that were looked for
}
