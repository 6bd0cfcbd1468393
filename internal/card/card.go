// Package card reads, bounds, searches and compares the cards of snapshots. A card describes the
// content of a snapshot without a row of its data ([api.Card]). The client makes it from the
// snapshot's manifest and sends it with a push; the service stores it.
//
// A card from elsewhere is untrusted input. Nothing may use it before [Parse].
package card

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"snap"
	"snap/api"
)

// The bounds of a card. The card of a larger database is incomplete; see [Bound].
const (
	MaxBytes   = 8 << 20 // of its JSON
	MaxTables  = 10000
	MaxColumns = 100000
	MaxParts   = 100000  // parts of all tables and programs, together
	maxName    = 1024    // bytes of a name
	maxText    = 4096    // bytes of any other text
	maxList    = 1000    // starting tables and conditions of a subset
	maxCount   = 1 << 48 // rows or bytes of a table, so that no sum overflows
)

// Parse reads a card from untrusted text and checks it. It fails with code invalid if the card
// exceeds a bound or contains a character that could control a terminal or page.
func Parse(text []byte) (c api.Card, err error) {
	if len(text) > MaxBytes {
		return c, refused(fmt.Sprintf("it has %d bytes; at most %d are accepted", len(text), MaxBytes))
	}
	if !boundedElements(text) {
		return c, refused("it has too many elements")
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return api.Card{}, refused("it is not valid JSON of a card")
	}
	return c, check(c)
}

func refused(why string) error {
	return snap.Invalid("the snapshot's card is not accepted: "+why, "update snapcli and push again")
}

// boundedElements reports whether a text has few enough elements to decode it in bounded memory. A few
// bytes of JSON can describe many elements.
func boundedElements(text []byte) bool {
	const maxElements = MaxTables*4 + MaxColumns + MaxParts + 4*maxList
	quoted, escaped, elements, commas := false, false, 0, 0
	for _, b := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && b == '\\':
			escaped = true
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			elements++
		case b == ',':
			commas++
		}
	}
	return elements <= maxElements && commas <= 8*maxElements
}

// check returns an error unless the card is within the bounds and safe to show.
func check(c api.Card) error {
	if c.Unlisted < 0 {
		return refused("it has a negative count")
	}
	if len(c.Tables) > MaxTables || Totals(c.Tables).Columns > MaxColumns {
		return refused(fmt.Sprintf("it has more than %d tables or %d columns", MaxTables, MaxColumns))
	}
	texts := []string{c.ServerVersion, c.Encoding, c.Collation, c.From}
	if m := c.Masking; m != nil {
		texts = append(texts, m.Rules, m.SQL)
		if min(m.Masked, m.Kept, m.Dropped) < 0 {
			return refused("it has a negative count")
		}
	}
	if s := c.Subset; s != nil {
		if len(s.Start) > maxList || len(s.Conditions) > maxList {
			return refused(fmt.Sprintf("its subset has more than %d tables", maxList))
		}
		texts = append(texts, s.Start...)
		for _, condition := range s.Conditions {
			texts = append(texts, condition.Table, condition.Where)
		}
	}
	if c.Since != "" && (len(c.Since) != 2*sha256.Size || strings.Trim(c.Since, "0123456789abcdef") != "") {
		return refused("the checksum of the snapshot with which its rows are compared is not valid")
	}
	if i := slices.IndexFunc(texts, func(s string) bool { return !clean(s, maxText) }); i >= 0 {
		return refused(fmt.Sprintf("the text %.40q is too long or has control characters", texts[i]))
	}
	if parts(c) > MaxParts {
		return refused(fmt.Sprintf("it has more than %d keys, indexes, constraints and programs", MaxParts))
	}
	if err := checkParts(c.Programs); err != nil {
		return err
	}
	return checkTables(c.Tables)
}

// parts returns the number of parts and programs of a card.
func parts(c api.Card) int {
	n := len(c.Programs)
	for _, t := range c.Tables {
		n += len(t.Parts)
	}
	return n
}

func checkParts(parts []api.CardPart) error {
	for _, p := range parts {
		if p.Kind == "" || p.Name == "" || !clean(p.Kind, maxName) || !clean(p.Name, maxName) ||
			!clean(p.Definition, maxText) {
			return refused(fmt.Sprintf("the %.40q %.40q is not valid", p.Kind, p.Name))
		}
	}
	return nil
}

func checkTables(tables []api.CardTable) error {
	known := make(map[[2]string]bool, len(tables))
	for _, t := range tables {
		name := [2]string{t.Schema, t.Name}
		switch {
		case t.Name == "" || !clean(t.Schema, maxName) || !clean(t.Name, maxName):
			return refused(fmt.Sprintf("the table name %.40q is empty, too long or has control characters", t.Name))
		case known[name]:
			return refused(fmt.Sprintf("the table %.40q is listed twice", t.Name))
		case t.Rows < -1 || min(t.Of, t.Bytes) < 0 || max(t.Rows, t.Of, t.Bytes) > maxCount:
			return refused(fmt.Sprintf("a count of the table %.40q is out of range", t.Name))
		case t.Differ != nil && *t.Differ != boundRows(*t.Differ):
			return refused(fmt.Sprintf("a count of the table %.40q is out of range", t.Name))
		}
		known[name] = true
		if err := checkParts(t.Parts); err != nil {
			return err
		}
		if err := checkColumns(t); err != nil {
			return err
		}
	}
	return nil
}

func checkColumns(t api.CardTable) error {
	for _, c := range t.Columns {
		if c.Name == "" || !clean(c.Name, maxName) || !clean(c.Type, maxText) || !clean(c.Mask, maxName) ||
			!clean(c.Refers, maxText) || c.Key != "" && c.Key != Primary && c.Key != Unique {
			return refused(fmt.Sprintf("the column %.40q of the table %.40q is not valid", c.Name, t.Name))
		}
	}
	return nil
}

// The keys that a column can be part of.
const (
	Primary = "primary"
	Unique  = "unique"
)

func clean(text string, limit int) bool {
	return len(text) <= limit && utf8.ValidString(text) && snap.CleanText(text) == text
}

// Bound makes a card that [Parse] accepts, unless its JSON has more than [MaxBytes]: it removes
// control characters, shortens long texts, and leaves out tables beyond the limits. If there are too
// many columns, no table lists its columns. If there are too many parts and programs, none are
// listed.
func Bound(c api.Card) api.Card {
	if parts(c) > MaxParts {
		c.Programs, c.Tables = nil, slices.Clone(c.Tables)
		for i := range c.Tables {
			c.Tables[i].Parts = nil
		}
	}
	c.Programs = boundParts(c.Programs)
	for _, text := range []*string{&c.ServerVersion, &c.Encoding, &c.Collation, &c.From} {
		*text = bounded(*text, maxText)
	}
	if c.Subset != nil {
		s := *c.Subset
		s.Start, s.Conditions = slices.Clone(s.Start), slices.Clone(s.Conditions)
		s.Start, s.Conditions = s.Start[:min(len(s.Start), maxList)], s.Conditions[:min(len(s.Conditions), maxList)]
		for i, name := range s.Start {
			s.Start[i] = bounded(name, maxText)
		}
		for i, old := range s.Conditions {
			s.Conditions[i] = api.CardCondition{Table: bounded(old.Table, maxText), Where: bounded(old.Where, maxText)}
		}
		c.Subset = &s
	}
	wide := Totals(c.Tables).Columns > MaxColumns
	known := map[[2]string]bool{}
	tables := make([]api.CardTable, 0, len(c.Tables))
	for _, t := range c.Tables {
		t.Schema, t.Name = bounded(t.Schema, maxName), bounded(t.Name, maxName)
		name := [2]string{t.Schema, t.Name}
		if t.Name == "" || known[name] || len(tables) == MaxTables {
			c.Unlisted++
			continue
		}
		known[name] = true
		t.Rows, t.Of, t.Bytes = within(t.Rows, -1), within(t.Of, 0), within(t.Bytes, 0)
		if t.Differ != nil {
			differ := boundRows(*t.Differ)
			t.Differ = &differ
		}
		t.Columns = slices.Clone(t.Columns)
		if wide {
			t.Columns = nil
		}
		for i, col := range t.Columns {
			col.Name, col.Type = bounded(col.Name, maxName), bounded(col.Type, maxText)
			col.Refers, col.Mask = bounded(col.Refers, maxText), bounded(col.Mask, maxName)
			t.Columns[i] = col
		}
		t.Columns = slices.DeleteFunc(t.Columns, func(col api.CardColumn) bool { return col.Name == "" })
		t.Parts = boundParts(t.Parts)
		tables = append(tables, t)
	}
	c.Tables = tables
	return c
}

// bounded removes control characters from a text and shortens it to limit bytes.
func bounded(text string, limit int) string {
	text = snap.CleanText(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

func boundParts(parts []api.CardPart) []api.CardPart {
	parts = slices.Clone(parts)
	for i, p := range parts {
		parts[i] = api.CardPart{Kind: bounded(p.Kind, maxName), Name: bounded(p.Name, maxName),
			Definition: bounded(p.Definition, maxText)}
	}
	return slices.DeleteFunc(parts, func(p api.CardPart) bool { return p.Kind == "" || p.Name == "" })
}

func boundRows(r api.CardRows) api.CardRows {
	return api.CardRows{Added: within(r.Added, 0), Removed: within(r.Removed, 0), Changed: within(r.Changed, 0)}
}

func within(n, least int64) int64 { return min(max(n, least), maxCount) }

// Totals counts tables and their columns, and adds up their rows and bytes.
func Totals(tables []api.CardTable) (n api.CardTotals) {
	n.Tables = len(tables)
	for _, t := range tables {
		n.Columns += len(t.Columns)
		n.Rows += max(0, t.Rows)
		n.Bytes += t.Bytes
	}
	return n
}
