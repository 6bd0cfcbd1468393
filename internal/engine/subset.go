package engine

// Subset limits a dump to some rows and the rows that they need, so that every foreign key of the
// source holds in the dump too. Package subset has the rules.
type Subset struct {
	Where   map[string]string // by table: the SQL condition of the rows to start from
	Percent float64           // percentage of rows of the tables that no key connects with a table in Where; 0 is all
	Rows    int64             // for Dump, instead of Where and Percent: the largest number of rows; 0 is no limit
	Bytes   int64             // for Dump, instead of Where and Percent: the largest size of the tables; 0 is no limit
	Start   []string          // set by Dump: the tables whose rows were selected first
}

// ForeignKeys is the key in a dump's Info.Properties under which a subset's dump holds the result
// of checking its foreign keys, for engines that do not check them while loading.
const ForeignKeys = "foreign_keys"
