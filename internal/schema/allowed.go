package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The lists in this file define what an expression may contain. Each operator and function is built
// into the database and reads only its arguments, the clock or a random source. Only the expressions
// for which [Expr.grows] is true, and padded types, can turn a small value into a large one.

// fixedOps are the word operators with their minimum and maximum number of arguments.
var fixedOps = map[string][2]int{
	"AND": {2, 2}, "OR": {2, 2}, "XOR": {2, 2}, "NOT": {1, 1}, "NEG": {1, 1}, "POS": {1, 1}, "INVERT": {1, 1},
	"IS NULL": {1, 1}, "IS NOT NULL": {1, 1}, "IS TRUE": {1, 1}, "IS NOT TRUE": {1, 1}, "IS FALSE": {1, 1},
	"IS NOT FALSE": {1, 1}, "IS UNKNOWN": {1, 1}, "IS NOT UNKNOWN": {1, 1}, "IS": {2, 2}, "IS NOT": {2, 2},
	"IS DISTINCT FROM": {2, 2}, "IS NOT DISTINCT FROM": {2, 2},
	"LIKE": {2, 3}, "NOT LIKE": {2, 3}, "GLOB": {2, 2}, "NOT GLOB": {2, 2}, "REGEXP": {2, 2}, "NOT REGEXP": {2, 2},
	"IN": {2, 1000}, "NOT IN": {2, 1000}, "BETWEEN": {3, 3}, "NOT BETWEEN": {3, 3},
	"CASE": {2, 1000}, "CASE OF": {3, 1000}, "ARRAY": {0, 1000}, "SUBSCRIPT": {2, 2},
	"AT TIME ZONE": {2, 2}, "COLLATE": {2, 2}, "DIV": {2, 2}, "MOD": {2, 2},
}

// missingOps are the entries of [fixedOps] that a dialect lacks.
var missingOps = map[Dialect][]string{
	PostgreSQL: {"XOR", "IS", "IS NOT", "GLOB", "NOT GLOB", "REGEXP", "NOT REGEXP", "DIV", "MOD"},
	MySQL: {
		"IS", "IS NOT", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "GLOB", "NOT GLOB", "ARRAY", "SUBSCRIPT",
		"AT TIME ZONE",
	},
	SQLite: {
		"XOR", "IS UNKNOWN", "IS NOT UNKNOWN", "REGEXP", "NOT REGEXP", "ARRAY", "SUBSCRIPT", "AT TIME ZONE", "DIV",
		"MOD",
	},
}

// calls are the allowed functions of each dialect. Defaults need functions that return the time or
// a random value.
var calls = map[Dialect]map[string]bool{
	PostgreSQL: set(`abs, age, array_length, array_position, btrim, cardinality, ceil, ceiling, char_length,
		character_length, clock_timestamp, coalesce, current_date, current_time, current_timestamp,
		date_part, date_trunc, degrees, div, extract, floor, gen_random_uuid, greatest, initcap, isempty,
		isfinite, json_typeof, jsonb_typeof, json_array_length, jsonb_array_length, jsonb_exists,
		jsonb_exists_all, jsonb_exists_any, least, left, length, ln, localtime, localtimestamp, log, lower,
		lower_inc, lower_inf, ltrim, make_date, md5, mod, now, nullif, num_nonnulls, num_nulls,
		octet_length, overlaps, position, power, radians, random, regexp_like, replace, right, round,
		rtrim, scale, sign, split_part, sqrt, starts_with, statement_timestamp, strpos, substr, substring,
		timezone, to_date, to_timestamp, transaction_timestamp, trim, trunc, upper, upper_inc, upper_inf,
		uuidv4, uuidv7, family, masklen, bit_length, xml_is_well_formed`),
	MySQL: set(`abs, bin_to_uuid, bit_length, ceil, ceiling, char_length, character_length, coalesce, concat,
		concat_ws, curdate, current_date, current_time, current_timestamp, curtime, date, datediff, day,
		dayofmonth, dayofweek, dayofyear, field, find_in_set, floor, greatest, hour, if, ifnull, instr,
		is_uuid, isnull, json_array, json_contains, json_contains_path, json_depth, json_extract,
		json_length, json_object, json_type, json_unquote, json_valid, json_value, least, left, length,
		localtime, localtimestamp, locate, lower, ltrim, minute, mod, month, now, nullif, octet_length,
		position, pow, power, quarter, rand, regexp_instr, regexp_like, replace, reverse, right, round,
		rtrim, second, sign, sqrt, strcmp, substr, substring, sysdate, time, trim, truncate, unhex, hex,
		unix_timestamp, upper, utc_date, utc_time, utc_timestamp, uuid, uuid_to_bin, week, weekday, year,
		lcase, ucase, mid, to_days, json_query`),
	SQLite: set(`abs, coalesce, current_date, current_time, current_timestamp, date, datetime, hex, ifnull, iif,
		instr, json_array_length, json_extract, json_type, json_valid, julianday, length, lower, ltrim,
		max, min, nullif, octet_length, random, replace, round, rtrim, sign, strftime, substr, substring,
		time, trim, typeof, unicode, unixepoch, upper, json, json_array, json_object, likelihood, likely,
		unlikely`),
}

// withoutParentheses are the functions that are written without parentheses.
var withoutParentheses = set(`current_date, current_time, current_timestamp, localtime, localtimestamp`)

// builtinTypes are the types allowed for a column or a cast.
var builtinTypes = map[Dialect]map[string]bool{
	PostgreSQL: set(`smallint, integer, bigint, numeric, real, double precision, money, text, character, bpchar,
		character varying, "char", name, bytea, boolean, date, time, timestamp, time without time zone,
		time with time zone, timestamp without time zone, timestamp with time zone, interval, uuid, json,
		jsonb, jsonpath, xml, inet, cidr, macaddr, macaddr8, bit, bit varying, point, line, lseg, box,
		path, polygon, circle, tsvector, tsquery, int4range, int8range, numrange, tsrange, tstzrange,
		daterange, int4multirange, int8multirange, nummultirange, tsmultirange, tstzmultirange,
		datemultirange, oid, xid, xid8, cid, tid, pg_lsn, txid_snapshot, pg_snapshot`),
	MySQL: set(`tinyint, smallint, mediumint, int, integer, bigint, decimal, numeric, float, double, real, bit,
		boolean, date, time, datetime, timestamp, year, char, varchar, binary, varbinary, tinyblob, blob,
		mediumblob, longblob, tinytext, text, mediumtext, longtext, enum, set, json, geometry, point,
		linestring, polygon, multipoint, multilinestring, multipolygon, geometrycollection, geomcollection,
		uuid, inet4, inet6, vector, xmltype, signed, unsigned`),
}

// padded are the types whose values PostgreSQL or MySQL fills up to the length of the type, and
// maxPadded is their maximum length. A table with many columns of ten million characters would turn a small row
// into one of gigabytes.
var padded = set(`character, bit, binary`)

const maxPadded = 64 << 10

// extensionTypes are the types of each extension that a foreign snapshot may need.
var extensionTypes = map[string][]string{
	"citext":  {"citext"},
	"hstore":  {"hstore"},
	"ltree":   {"ltree", "lquery", "ltxtquery"},
	"cube":    {"cube"},
	"isn":     {"ean13", "isbn", "isbn13", "ismn", "ismn13", "issn", "issn13", "upc"},
	"postgis": {"geometry", "geography", "box2d", "box3d"},
	"vector":  {"vector", "halfvec", "sparsevec"},
}

// isSQLiteType reports whether text can be the name of a declared type of SQLite, which consists of
// words. The numbers of a type are stored separately. SQLite only looks for certain parts in the
// name, so any words are harmless.
func isSQLiteType(text string) bool {
	for i, r := range text {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || r != ' ' && !unicode.IsNumber(r)) {
			return false
		}
	}
	return text != "" && utf8.RuneCountInString(text) <= 121
}

// typeArg matches an argument of a type: a number, or a word for PostGIS types and intervals.
var typeArg = regexp.MustCompile(`^(-?[0-9]{1,9}|[A-Za-z]{1,24})$`)

// collationName matches the names of built-in collations.
var collationName = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,63}$`)

// set returns the names in a comma-separated list.
func set(list string) map[string]bool {
	names := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		names[strings.TrimSpace(name)] = true
	}
	return names
}

// symbolOp reports whether a symbol is a binary operator.
func symbolOp(d Dialect, op string) bool {
	return slices.Contains(symbols[d], op) && !slices.Contains([]string{"(", ")", "[", "]", ",", ".", "::", "!"}, op)
}

// allowedOp reports whether the dialect has the operator for n arguments.
func allowedOp(d Dialect, op string, n int) bool {
	for _, quantifier := range []string{" ANY", " ALL"} {
		if base, ok := strings.CutSuffix(op, quantifier); ok && d == PostgreSQL {
			return symbolOp(d, base) && n == 2
		}
	}
	if bounds, ok := fixedOps[op]; ok {
		return !slices.Contains(missingOps[d], op) && bounds[0] <= n && n <= bounds[1]
	}
	return symbolOp(d, op) && n == 2
}
