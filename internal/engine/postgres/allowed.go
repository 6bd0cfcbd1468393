package postgres

import (
	"regexp"
	"slices"
)

// This file lists the extensions, index methods and table options that a snapshot from somebody else
// may use.

// extensions are the extensions that a load creates: trusted extensions of PostgreSQL itself, none
// of which runs code from the database, and two others that provide column types.
var extensions = []string{
	"btree_gin", "btree_gist", "citext", "cube", "fuzzystrmatch", "hstore", "intarray", "isn", "ltree", "pg_trgm",
	"pgcrypto", "seg", "unaccent", "uuid-ossp", "postgis", "vector",
}

func allowedExtension(name string) bool { return slices.Contains(extensions, name) }

// indexMethods are the built-in index methods.
var indexMethods = []string{"btree", "hash", "gin", "gist", "spgist", "brin"}

// tableOptions matches the allowed storage parameters of tables. Their values are numbers or
// switches.
var tableOptions = regexp.MustCompile(`^(fillfactor|parallel_workers|toast_tuple_target|vacuum_truncate|` +
	`autovacuum_[a-z_]{1,60})$`)

var optionValue = regexp.MustCompile(`^([0-9]{1,12}(\.[0-9]{1,12})?|on|off|true|false)$`)

func allowedOption(name, value string) bool {
	return tableOptions.MatchString(name) && optionValue.MatchString(value)
}
