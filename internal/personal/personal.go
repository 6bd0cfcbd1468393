// Package personal judges which columns of a database hold personal data or secrets. It uses the
// names of columns and tables in ten languages, their types, keys and comments, and sampled values.
// It reads nothing else, and its findings contain no values.
//
// It fails closed. A column is kept only on positive evidence: it is a generated key, a reference,
// a boolean, a measurement, a time or an enum, or its name is clearly technical. Everything else is
// personal or undecided. Having few values makes a judgment less certain, never more.
package personal

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the decision about a column.
type Verdict int

// The verdicts.
const (
	Undecided Verdict = iota // a person must decide
	Keep                     // there is evidence that it is not personal
	Mask                     // it is personal, see Kind
)

// Finding is the judgment of one column. Reason is a phrase for a comment in a rules file.
type Finding struct {
	Verdict Verdict
	Kind    Kind // set if the verdict is Mask
	Reason  string
}

// Column is the known information about one column.
type Column struct {
	Name      string
	Type      Type
	Comment   string   // the comment on the column
	Key       bool     // it alone is the primary key of its table
	Reference string   // the table that its foreign key references
	Samples   []string // distinct values, none of them NULL
}

// Table describes a table and its columns.
type Table struct {
	Name    string
	Columns []Column
}

// Lists are the words that values are compared with, in lower case.
type Lists struct{ Given, Family, Cities map[string]bool }

// Judge returns the findings of a table's columns, in their order.
func Judge(t Table, lists Lists) []Finding {
	j := judge{lists: lists, table: split(t.Name)}
	j.people = anyOf(j.table, peopleTables) && !anyOf(j.table[max(0, len(j.table)-1):], things)
	j.pay = anyOf(j.table, payTables)
	axes := map[string]bool{}
	for _, c := range t.Columns {
		axes[strings.ToLower(c.Name)] = true
		kind, _ := strongKind(split(c.Name))
		j.hasAddress = j.hasAddress || (kind == Street || kind == City) && c.Type.Class == Text
	}
	j.hasXY = axes["x"] && axes["y"]
	findings := make([]Finding, len(t.Columns))
	for i, c := range t.Columns {
		findings[i] = j.column(c)
	}
	return findings
}

// judge holds the facts that apply to all columns of a table.
type judge struct {
	lists      Lists
	table      []string // words of the table's name
	people     bool     // it is a table of people
	pay        bool     // it is a table about pay
	hasAddress bool     // it has address columns
	hasXY      bool     // it has the columns x and y
}

// column judges one column: first by its name, then by its values, then by its comment, then by its
// type.
func (j judge) column(c Column) Finding {
	words := split(c.Name)
	found, sure := j.byName(c, words)
	if sure {
		return found
	}
	if found.Verdict != Mask {
		if by, ok := j.byValues(c); ok {
			return by
		}
	}
	if found.Reason == "" {
		found = j.byComment(c, words)
	}
	if found.Reason != "" {
		return found
	}
	return j.byType(c, words)
}

// byName judges a column by its name. sure means that values cannot change the verdict.
func (j judge) byName(c Column, words []string) (found Finding, sure bool) {
	kind, at := j.kindOf(words)
	if kind == "" {
		return Finding{}, false
	}
	switch {
	case c.Reference != "":
		return Finding{}, false
	case isRow(c, words) && !identifies(kind):
		return byRow(c, words, kind, at)
	case onlyDescribes(words, c.Type, kind, at):
		return Finding{}, false // describes personal data but contains none: "email_count integer"
	}
	if kind == Person && at < len(words) && c.Type.Class == Text {
		return j.ofPerson(c, words, at)
	}
	reason := fmt.Sprintf("%s by its name", kind)
	if !identifies(kind) && kind != External && kind != Secret && len(words) > 1 &&
		slices.Contains(rowEnds, words[len(words)-1]) {
		return Finding{Reason: "an identifier of " + string(kind)}, false
	}
	if holds(kind, c.Type) {
		return Finding{Mask, kind, reason}, true
	}
	return Finding{Reason: fmt.Sprintf("%s, but its type is %s", reason, c.Type.Class)}, true
}

// byRow judges a column that has the name and type of a row's ID, and whose name also contains the
// words of a kind.
func byRow(c Column, words []string, kind Kind, at int) (found Finding, sure bool) {
	switch {
	case !c.Key && at == len(words) && len(words) > 1 && kind != Person && slices.Contains(rowEnds, words[at-1]):
		return Finding{Reason: fmt.Sprintf("it can be the identifier of %s", kind)}, true // "device_id uuid"
	case slices.Contains([]Kind{Belief, Gender, Health}, kind):
		return Finding{Reason: "the identifier of a row that reveals " + string(kind)}, true // "religion_id integer"
	}
	return Finding{}, false // the ID of a row: "address_id integer"
}

// ofPerson judges a column whose name has other words after a word for a person, as in
// "customer_ref". In a table of people, if the name begins with a word of the table's name, only
// the rest of it counts, as in "user_style" of the table users.
func (j judge) ofPerson(c Column, words []string, at int) (found Finding, sure bool) {
	rest := words[at:]
	own := slices.Contains(j.table, words[0]) || slices.Contains(j.table, words[0]+"s")
	if at == 1 && j.people && own {
		if kind, _ := j.kindOf(rest); kind != "" && kind != Person {
			c.Name = strings.Join(rest, "_")
			return j.byName(c, rest)
		}
		if technical(rest, j) {
			return Finding{}, false
		}
	}
	if slices.Contains(rowEnds, words[len(words)-1]) {
		return Finding{Reason: "an identifier of a person"}, false
	}
	return Finding{Reason: "it can describe a person"}, false
}

// byComment judges a column by the words of its comment.
func (j judge) byComment(c Column, words []string) Finding {
	if c.Comment == "" || c.Reference != "" || isRow(c, words) || c.Type.Class == Bool {
		return Finding{}
	}
	kind, _ := j.kindOf(split(c.Comment))
	if kind == "" || c.Type.Class.isTime() && kind != Birth || kind.isFreeText() {
		return Finding{}
	}
	return Finding{Reason: fmt.Sprintf("its comment suggests %s", kind)}
}

// byType judges a column that neither its name nor its values identified as personal.
func (j judge) byType(c Column, words []string) Finding {
	keep := func(reason string) Finding { return Finding{Verdict: Keep, Reason: reason} }
	class := c.Type.Class
	switch {
	case c.Reference != "":
		return keep("refers to " + c.Reference)
	case c.Key && j.generated(c, words):
		return keep("a generated key")
	case class == UUID && len(words) == 1 && slices.Contains(publicIDs, words[0]):
		return Finding{Reason: "an identifier that is not the table's key, so others may know it"}
	case isRow(c, words):
		return j.row(c, words)
	case class == Bool, class == Integer && c.Type.Length == 1:
		return keep("a yes-or-no value")
	case class.isTime() || class == Interval:
		return keep("a time")
	case class == Enum:
		return keep("an enum of the schema")
	case class == IP:
		return Finding{Mask, IPAddress, "an IP address by its type"}
	case class == MAC:
		return Finding{Mask, Hardware, "a hardware address by its type"}
	case class.isNumber():
		return j.number(words)
	}
	return j.byContent(c, words)
}

// row judges a column for which [isRow] returns true.
func (j judge) row(c Column, words []string) Finding {
	if j.people && len(words) > 1 && share(c.Samples, isLarge) > 0.5 {
		return Finding{Reason: "it can be the number of a person"} // "emirates_id bigint"
	}
	return Finding{Verdict: Keep, Reason: "the ID of a row"}
}

// byContent judges columns whose type does not show their content, such as documents.
func (j judge) byContent(c Column, words []string) Finding {
	class := c.Type.Class
	plain := class == Text && c.Type.Dims == 0
	switch {
	case plain && j.isOpaqueKey(c, words):
		return j.opaque(c, words)
	case plain && j.lookup(words):
		return Finding{Verdict: Keep, Reason: "the entry of a list, by the name of its table"}
	case plain && technical(words, j):
		return Finding{Verdict: Keep, Reason: "a technical word by its name"}
	case class == Search:
		return Finding{Mask, FreeText, "a full-text index"}
	case class == Binary:
		return Finding{Mask, Document, "content that cannot be read"}
	case class == JSON || class == Hstore:
		if j.people {
			return Finding{Mask, Document, "a document about a person"}
		}
		return j.document(c)
	case len(c.Samples) == 0:
		return Finding{Reason: "no values to judge by"}
	case class == Other:
		return Finding{Reason: "its type does not show its content"}
	}
	return Finding{Reason: "text of unknown meaning"}
}

// opaque judges a text column for which [judge.isOpaqueKey] returns true.
func (j judge) opaque(c Column, words []string) Finding {
	if j.people && len(words) > 1 && share(c.Samples, isNumber) > 0 {
		return Finding{Reason: "it can be the number of a person"} // "emirates_id varchar"
	}
	return Finding{Verdict: Keep, Reason: "the key of a row, by its name and its values"}
}

// number judges a number whose name is not personal.
func (j judge) number(words []string) Finding {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch {
	case j.hasXY && len(words) == 1 && (last == "x" || last == "y"):
		return Finding{Reason: "it can be a coordinate"}
	case len(words) == 1 && last == "long":
		return Finding{Mask, Coordinates, "coordinates by its name"}
	case slices.Contains(numberEnds, last) && (anyOf(words, peopleTables) || j.people):
		return Finding{Reason: "it can be the number of a person"}
	case j.pay && !slices.Contains(payEnds, last):
		return Finding{Mask, Income, "a number in a table about pay"}
	}
	return Finding{Verdict: Keep, Reason: "a measurement"}
}

// identifies reports whether a number of this kind identifies a person even if its name ends like
// that of a row's ID.
func identifies(k Kind) bool {
	return k == NationalNumber || k == TaxNumber || k == Passport || k == License || k == Vehicle
}

// isRow reports whether a column has the name and type of a row's ID.
func isRow(c Column, words []string) bool {
	if c.Type.Class != Integer && c.Type.Class != UUID || len(words) == 0 || c.Type.Dims > 0 {
		return false
	}
	last := words[len(words)-1]
	return slices.Contains(rowEnds, last) || slices.Contains(rowEnds, words[0]) ||
		len(words) > 1 && (slices.Contains(byEnds, last) || strings.HasSuffix(strings.ToLower(c.Name), "id"))
}

// isOpaqueKey reports whether a column has the name and the values of a row's key. In a table of
// sessions or tokens, it returns false, because such a key grants access.
func (j judge) isOpaqueKey(c Column, words []string) bool {
	kind, _ := strongKind(j.table)
	return len(words) > 0 && slices.Contains(rowEnds, words[len(words)-1]) && kind != Session && kind != Secret &&
		len(c.Samples) >= 10 && share(c.Samples, isOpaque) == 1
}

// generated reports whether a key's values are generated by the database or a program rather than
// chosen by people.
func (j judge) generated(c Column, words []string) bool {
	return c.Type.Class == Integer || c.Type.Class == UUID || j.isOpaqueKey(c, words)
}
