package sanitize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"snap"
	"snap/internal/engine"
	"snap/internal/personal"
)

// maskOf returns the mask of a rule, adapted to the column's type. It returns nil if the rule keeps
// the column.
func maskOf(key []byte, rule ColumnRule, c *column) engine.Mask {
	mask := makers()[rule.Mask](key, rule, limitOf(c))
	if mask == nil || rule.Mask == "null" || rule.Mask == "constant" {
		return mask
	}
	if len(c.fields) > 0 {
		mask = compositeMask(key, rule, c)
	}
	if c.typ.Dims == 0 {
		return folded(rule.avoid.wrap(fitted(mask, key, rule, c), rule.Mask, key, limitOf(c)), rule, c)
	}
	element := *c
	element.typ.Dims = 0
	element.NotNull = false
	return elements(rule.avoid.wrap(fitted(mask, key, rule, &element), rule.Mask, key, limitOf(&element)))
}

// limitOf returns the maximum number of characters of a column, or 0 if unlimited.
func limitOf(c *column) int {
	if c.typ.Class == personal.Text {
		return c.typ.Length
	}
	return 0
}

// fitted wraps a mask so that its results fit the column's type.
func fitted(mask engine.Mask, key []byte, rule ColumnRule, c *column) engine.Mask {
	switch {
	case c.typ.Class == personal.Integer && rule.Mask == "key":
		p, largest := permutation{newSource(key, "key")}, new(big.Int).SetUint64(maxOf(c.typ))
		mask = func(v string) (string, bool) {
			if n, ok := p.integer(v, largest); ok {
				return n, false
			}
			return p.text(v), false // SQLite can store a string in any column
		}
	case c.typ.Class == personal.Integer && rule.Mask == "noise":
		mask = mirrored(mask, c.typ)
	case c.typ.Class == personal.Integer:
		mask = bounded(mask, c.typ)
	case c.typ.Class == personal.Year:
		mask = withinYears(mask)
	case c.id[0] == "" && c.typ.Name == "timestamp" && rule.Mask == "shift":
		mask = withinTimestamps(mask)
	case c.typ.Class == personal.Decimal && c.typ.Digits > 0:
		mask = scaled(mask, c.typ)
	case c.typ.Class == personal.JSON && rule.Mask == "redact":
		mask = neverNull(redactJSON)
	case c.typ.Class == personal.UUID && rule.Mask == "hash":
		mask = asUUID(mask, c)
	}
	if c.NotNull && rule.Mask != "null" {
		mask = filled(mask, c.typ)
	}
	return mask
}

// maxOf returns the largest value of an integer type.
func maxOf(t personal.Type) uint64 {
	bits := 8 * cmp.Or(t.Bytes, 4)
	if !t.Unsigned {
		bits--
	}
	return math.MaxUint64 >> (64 - bits)
}

// bounded wraps a mask so that integers stay within their type. A larger integer is replaced with
// its remainder after division by the largest integer of the type.
func bounded(mask engine.Mask, t personal.Type) engine.Mask {
	largest := new(big.Int).SetUint64(maxOf(t))
	return func(v string) (string, bool) {
		masked, null := mask(v)
		n, ok := new(big.Int).SetString(masked, 10)
		if null || !ok || new(big.Int).Abs(n).Cmp(largest) <= 0 {
			return masked, null
		}
		return n.Rem(n, largest).String(), false
	}
}

// mirrored wraps a mask that moves integers, so that they stay within their type: if the type's
// limit is in the way, the integer moves by the same amount in the other direction.
func mirrored(mask engine.Mask, t personal.Type) engine.Mask {
	return func(v string) (string, bool) {
		masked, null := mask(v)
		original, isInteger := new(big.Int).SetString(v, 10)
		moved, ok := new(big.Int).SetString(masked, 10)
		if null || !isInteger || !ok || valid(masked, t) {
			return masked, null
		}
		return moved.Sub(original.Lsh(original, 1), moved).String(), false
	}
}

// withinYears wraps a mask so that years stay within MySQL's type YEAR. A year outside of it is
// replaced with one inside.
func withinYears(mask engine.Mask) engine.Mask {
	const first, last = 1901, 2155
	return func(v string) (string, bool) {
		masked, null := mask(v)
		year, err := strconv.Atoi(masked)
		if null || err != nil || year == 0 || first <= year && year <= last {
			return masked, null
		}
		const span = last - first + 1
		return strconv.Itoa(first + ((year-first)%span+span)%span), false
	}
}

// withinTimestamps wraps a mask that moves dates, so that they stay within MySQL's type TIMESTAMP:
// if the type's limit is in the way, the date moves by the same time in the other direction.
func withinTimestamps(mask engine.Mask) engine.Mask {
	isInside := func(v string) bool {
		return len(v) >= 10 && v >= "1970-01-01 00:00:01" && v < "2038-01-19 03:14:08"
	}
	return func(v string) (string, bool) {
		masked, null := mask(v)
		if null || !isInside(v) || isInside(masked) {
			return masked, null
		}
		original, err := time.Parse(time.DateOnly, v[:10])
		moved, err2 := time.Parse(time.DateOnly, masked[:10])
		if err != nil || err2 != nil {
			return masked, false
		}
		return original.Add(original.Sub(moved)).Format(time.DateOnly) + v[10:], false
	}
}

// scaled wraps a mask so that numbers do not have more digits than their type allows. It cuts
// decimals, because rounding can add a digit before the point.
func scaled(mask engine.Mask, t personal.Type) engine.Mask {
	whole := t.Digits - t.Scale
	return func(v string) (string, bool) {
		masked, null := mask(v)
		sign := ""
		bare, negative := strings.CutPrefix(masked, "-")
		if negative {
			sign = "-"
		}
		before, after, point := strings.Cut(bare, ".")
		if null || whole < 0 || strings.ContainsAny(masked, "eE") {
			return masked, null
		}
		if len(strings.TrimLeft(before, "0")) > whole {
			before = strings.Repeat("9", whole)
		}
		after = after[:max(0, min(len(after), t.Scale))]
		if point && after != "" {
			after = "." + after
		}
		return sign + cmp.Or(before, "0") + after, false
	}
}

// asUUID wraps the mask hash so that its results are UUIDs. MariaDB stores some UUIDs of unusual
// versions and variants as other values, so results have version 4, except in PostgreSQL.
func asUUID(mask engine.Mask, c *column) engine.Mask {
	return func(v string) (string, bool) {
		masked, null := mask(v)
		if null || len(masked) != 32 {
			return masked, null
		}
		if c.id[0] == "" {
			masked = masked[:12] + "4" + masked[13:16] + "8" + masked[17:]
		}
		return uuidText(masked), false
	}
}

// filled wraps a mask so that its result is a fixed value of the column's type instead of NULL. It
// returns the mask unchanged if there is no such value.
func filled(mask engine.Mask, t personal.Type) engine.Mask {
	instead, ok := map[personal.Class]string{
		personal.Text: "", personal.Integer: "0", personal.Decimal: "0", personal.Float: "0",
		personal.Date: "2000-01-01", personal.Timestamp: "2000-01-01", personal.Year: "2000",
	}[t.Class]
	if !ok {
		return mask
	}
	return func(v string) (string, bool) {
		masked, null := mask(v)
		if null {
			return instead, false
		}
		return masked, false
	}
}

// suited lists, for each class of types, the masks whose results a column of the class can hold. It
// omits the masks that suit every class, such as keep, constant and dictionary.
var suited = map[personal.Class][]string{
	personal.Integer:   {"noise", "format", "phone", "card", "key", "redact", "integer"},
	personal.Decimal:   {"noise", "format", "phone", "card", "key", "redact", "coordinates", "integer", "number"},
	personal.Float:     {"noise", "redact", "coordinates", "integer", "number"},
	personal.Money:     {"integer", "number"},
	personal.Date:      {"shift", "date"},
	personal.Timestamp: {"shift", "date"},
	personal.Year:      {"noise", "shift", "integer"},
	personal.Bool:      {"boolean"},
	personal.UUID:      {"hash", "key", "uuid"},
	personal.JSON:      {"redact", "json"},
	personal.Hstore:    {"redact"},
	personal.XML:       {"redact", "xml"},
	personal.Composite: {"redact", "composite"},
	personal.IP:        {"ip"},
	personal.MAC:       {"mac"},
	personal.Point:     {"coordinates"},
}

// uniqueMasks are the masks that give different results for different values.
var uniqueMasks = []string{"keep", "hash", "email", "user_name", "key", "uuid"}

// minUnique is the minimum length of a hash, in characters, that is practically unique.
const minUnique = 12

// misfit returns the reason why a rule cannot be used for a column, or "" if it can be used.
// Constraints that misfit cannot evaluate are left to the load.
func misfit(key []byte, rule ColumnRule, c *column) string {
	if rule.Mask == "keep" {
		return ""
	}
	if c.partitionKey {
		return "the table is partitioned by it"
	}
	if rule.needsRow() {
		return rowMisfit(key, rule, c)
	}
	if rule.Mask == "null" && (c.NotNull || c.key) {
		return "it cannot be null"
	}
	if rule.Mask == "null" {
		return ""
	}
	if c.unique {
		if why := uniqueMisfit(rule, c); why != "" {
			return why
		}
	}
	switch rule.Mask {
	case "constant":
		return c.holdsAll([]string{rule.Value})
	case "choice":
		return c.holdsAll(rule.Values)
	}
	if why := settingsMisfit(rule, c); why != "" {
		return why
	}
	if why := c.typeMisfit(rule.Mask); why != "" {
		return why
	}
	return c.holdsMasked(maskOf(key, rule, c))
}

// typeMisfit returns the reason why the column's type does not suit a mask, or "".
func (c *column) typeMisfit(mask string) string {
	if mask == "coordinates" && c.typ.Class == personal.Point && slices.ContainsFunc(c.samples, isBinaryPoint) {
		return fmt.Sprintf("the values of its type %s are binary", c.Type)
	}
	if mask == "key" && c.typ.Dims == 0 && slices.ContainsFunc(c.samples, isLong) {
		return "its values are too long"
	}
	anyType := mask == "dictionary" || mask == "replace"
	if c.typ.Class != personal.Text && !anyType && !slices.Contains(suited[c.typ.Class], mask) && !c.loose() {
		return fmt.Sprintf("its type %s cannot hold the values of %s", c.Type, mask)
	}
	return ""
}

// isLong reports whether the mask key is too slow for a value. Its time grows with the square of
// the length.
func isLong(sample string) bool { return len(sample) > 10_000 }

// isBinaryPoint reports whether a point has MySQL's binary form rather than PostgreSQL's form
// (1,2).
func isBinaryPoint(sample string) bool { return !strings.HasPrefix(sample, "(") }

// settingsMisfit returns the reason why the map, the pattern or the fields of a rule do not suit a
// column, or "".
func settingsMisfit(rule ColumnRule, c *column) string {
	switch rule.Mask {
	case "dictionary":
		return c.holdsAll(slices.Collect(maps.Values(rule.Map)))
	case "replace":
		pattern := regexp.MustCompile(rule.Pattern) // checked when the rules are read
		if len(c.samples) > 0 && !slices.ContainsFunc(c.samples, pattern.MatchString) {
			return "its pattern matches none of the sampled values"
		}
	case "composite":
		return fieldsMisfit(rule, c)
	}
	return ""
}

// holdsMasked returns the reason why a column cannot hold its masked samples, or "". It ignores
// samples that are too large for the column's integer type, because SQLite stores these too.
func (c *column) holdsMasked(mask engine.Mask) string {
	for _, v := range c.samples {
		if _, ok := new(big.Int).SetString(v, 10); ok && c.typ.Class == personal.Integer && !valid(v, c.typ) {
			continue
		}
		masked, null := mask(v)
		if null && c.NotNull {
			return "it cannot be null"
		}
		if null {
			continue
		}
		if why := c.holds(masked); why != "" {
			return why
		}
	}
	return ""
}

func (c *column) holdsAll(values []string) string {
	for _, v := range values {
		if why := c.holds(v); why != "" {
			return fmt.Sprintf("%q: %s", v, why)
		}
	}
	return ""
}

// loose reports whether the type of a column is unknown, in a database other than PostgreSQL. Every
// mask suits such a column: SQLite accepts any value in it, and in MySQL the load checks the
// values.
func (c *column) loose() bool { return c.id[0] == "" && c.typ.Class == personal.Other }

func uniqueMisfit(rule ColumnRule, c *column) string {
	if n := len(rule.Map) + len(rule.Values); n > 0 {
		return "its values must stay unique, and the rule has only " + snap.Plural(n, "value", "values")
	}
	if !slices.Contains(uniqueMasks, rule.Mask) {
		return "its values must stay unique"
	}
	limit := limitOf(c)
	if rule.Mask == "key" && limit > 0 && limit < minUnique && slices.ContainsFunc(c.samples, isNotASCII) {
		return fmt.Sprintf("its values must stay unique, and %d characters are too few for key if they are not ASCII",
			limit)
	}
	if limit > 0 && rule.Mask != "key" {
		need := map[string]int{"hash": minUnique, "email": 40, "user_name": 24, "uuid": 36}[rule.Mask]
		if limit < need {
			return fmt.Sprintf("its values must stay unique, and %d characters are too few for %s", limit, rule.Mask)
		}
	}
	return ""
}

func isNotASCII(v string) bool {
	return strings.ContainsFunc(v, func(r rune) bool { return r >= utf8.RuneSelf })
}

// holds returns the reason why a column cannot hold a value, or "" if it can.
func (c *column) holds(v string) string {
	if c.typ.Dims > 0 {
		if !strings.HasPrefix(v, "{") || !strings.HasSuffix(v, "}") {
			return "it holds arrays"
		}
		return ""
	}
	if limit := limitOf(c); limit > 0 && utf8.RuneCountInString(v) > limit {
		return fmt.Sprintf("it holds at most %d characters", limit)
	}
	if _, ok := parseRow(v); len(c.fields) > 0 && !ok {
		return "it holds values of a composite type"
	}
	if !valid(v, c.typ) {
		return fmt.Sprintf("its type %s cannot hold the masked values", c.Type)
	}
	for _, check := range c.checks {
		if evaluate(check.expr, check.value, v) == no {
			return "a check constraint rejects the masked values"
		}
	}
	return ""
}

// valid reports whether v is a value of type t. If that is uncertain, it reports true.
func valid(v string, t personal.Type) bool {
	switch t.Class {
	case personal.Integer:
		n, ok := new(big.Int).SetString(v, 10)
		return ok && new(big.Int).Abs(n).Cmp(new(big.Int).SetUint64(maxOf(t))) <= 0 && (n.Sign() >= 0 || !t.Unsigned)
	case personal.Decimal, personal.Float:
		_, err := strconv.ParseFloat(v, 64)
		return err == nil
	case personal.Bits: // digits, or in MySQL and MariaDB a number
		return strings.Trim(v, "0123456789") == ""
	case personal.Bool:
		return slices.Contains([]string{"t", "f", "true", "false", "0", "1"}, strings.ToLower(v))
	case personal.Date, personal.Timestamp:
		return len(v) >= 10 && v[4] == '-'
	case personal.UUID:
		return isUUID(v)
	case personal.JSON:
		return json.Valid([]byte(v))
	case personal.XML:
		return isXML(v)
	case personal.IP:
		_, err := netip.ParsePrefix(v)
		_, addrErr := netip.ParseAddr(v)
		return err == nil || addrErr == nil
	case personal.MAC:
		_, err := net.ParseMAC(v)
		return err == nil
	case personal.Enum:
		return len(t.Labels) == 0 || slices.Contains(t.Labels, v) || t.Name == "set" && isSetOf(v, t.Labels)
	}
	return true
}

// isSetOf reports whether v is a value of MySQL's type SET: members joined by commas, or none.
func isSetOf(v string, members []string) bool {
	for member := range strings.SplitSeq(v, ",") {
		if v != "" && !slices.Contains(members, member) {
			return false
		}
	}
	return true
}
