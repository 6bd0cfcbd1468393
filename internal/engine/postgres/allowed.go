package postgres

import (
	"regexp"
	"slices"
)

// The lists in this file are what the snapshot of somebody else may use.

// extensions are those that a load creates by itself. All are part of PostgreSQL
// and trusted by it, without those that run code of the database, and two that
// bring types of columns.
var extensions = []string{
	"btree_gin", "btree_gist", "citext", "cube", "fuzzystrmatch", "hstore", "intarray", "isn", "ltree", "pg_trgm",
	"pgcrypto", "seg",
	"unaccent", "uuid-ossp", "postgis", "vector",
}

func allowedExtension(name string) bool { return slices.Contains(extensions, name) }

// indexMethods are the built-in kinds of indexes.
var indexMethods = []string{"btree", "hash", "gin", "gist", "spgist", "brin"}

// tableOptions are the storage parameters of tables, all with a number or a
// switch as their value.
var tableOptions = regexp.MustCompile(`^(fillfactor|parallel_workers|toast_tuple_target|vacuum_truncate|autovacuum_[a-z_]{1,60})$`)

var optionValue = regexp.MustCompile(`^([0-9]{1,12}(\.[0-9]{1,12})?|on|off|true|false)$`)

func allowedOption(name, value string) bool {
	return tableOptions.MatchString(name) && optionValue.MatchString(value)
}
