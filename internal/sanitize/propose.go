package sanitize

import (
	"fmt"
	"slices"
	"strings"

	"snap/internal/personal"
)

// proposal is the entry for one column in an initial rules file.
type proposal struct {
	rule     ColumnRule
	reason   string
	fallback string // a rule for an undecided column, if redact cannot be used for it
}

// text returns the rule as written in a rules file.
func (p proposal) text() string {
	switch r := p.rule; {
	case r.Mask == "null":
		return `"null"`
	case r.Mask == "constant":
		return fmt.Sprintf("{mask: constant, value: %q}", r.Value)
	case r.Mask == "noise" && r.Percent != 0:
		return fmt.Sprintf("{mask: noise, percent: %g}", r.Percent)
	case r.Mask == "composite":
		return "{mask: composite, paths: {" + fieldRules(r) + "}}"
	case r.Shared:
		return fmt.Sprintf("{mask: %s, shared: true}", r.Mask)
	}
	return p.rule.Mask
}

// proposalKey is the key used to try out proposals.
var proposalKey = []byte("a key to try proposals with")

// propose judges every column and finds a usable mask for each personal one.
func propose(f *facts) map[columnID]proposal {
	all := map[columnID]proposal{}
	known := lists()
	for _, t := range f.tables {
		table := personal.Table{Name: t.Name}
		for _, col := range t.Columns {
			c := f.columns[columnID{t.Schema, t.Name, col.Name}]
			table.Columns = append(table.Columns, personal.Column{Name: c.Name, Type: c.typ, Comment: c.comment,
				Key: c.key, Reference: c.referencedTable, Samples: c.samples})
		}
		for i, finding := range personal.Judge(table, known) {
			c := f.columns[columnID{t.Schema, t.Name, t.Columns[i].Name}]
			all[c.id] = proposalFor(finding, c)
			if len(c.fields) > 0 {
				all[c.id] = proposeFields(finding, c, known)
			}
		}
	}
	alignReferences(f, all)
	for id, p := range all {
		if c := f.columns[id]; p.rule.Mask == Undecided && p.fallback == "" &&
			misfit(proposalKey, ColumnRule{Mask: "redact"}, c) != "" {
			p.fallback = remedy(proposalKey, c)
		}
		if p.fallback != "" {
			p.reason += "; " + p.fallback + wouldWork
		}
		all[id] = p
	}
	return all
}

// lists returns the word lists with which sampled values are compared.
func lists() personal.Lists {
	set := func(words []string) map[string]bool {
		all := make(map[string]bool, len(words))
		for _, w := range words {
			all[strings.ToLower(w)] = true
		}
		return all
	}
	return personal.Lists{Given: set(firstNames[:]), Family: set(lastNames[:]), Cities: set(cities[:])}
}

// proposalFor converts a finding to a usable rule.
func proposalFor(found personal.Finding, c *column) proposal {
	switch found.Verdict {
	case personal.Keep:
		return proposal{rule: ColumnRule{Mask: "keep"}, reason: found.Reason}
	case personal.Undecided:
		return proposal{rule: ColumnRule{Mask: Undecided}, reason: found.Reason}
	}
	return firstFit(c, found.Reason, candidates(found.Kind, c)...)
}

// firstFit proposes the first rule that the column can certainly hold.
func firstFit(c *column, reason string, rules ...ColumnRule) proposal {
	why := ""
	for _, rule := range rules {
		if why = misfit(proposalKey, rule, c); why == "" && c.checksAreCertain(rule) {
			return proposal{rule: rule, reason: reason}
		}
	}
	if why == "" {
		why = "a check constraint may reject masked values"
	}
	return proposal{rule: ColumnRule{Mask: Undecided}, reason: reason + "; " + why}
}

// checksAreCertain reports whether all of the column's checks can be evaluated for the rule.
func (c *column) checksAreCertain(rule ColumnRule) bool {
	if rule.Mask == "null" {
		return true
	}
	if c.hasUnknownCheck() {
		return false
	}
	mask := maskOf(proposalKey, rule, c)
	for _, v := range c.samples {
		masked, null := mask(v)
		for _, check := range c.checks {
			if !null && evaluate(check.expr, check.value, masked) == unsure {
				return false
			}
		}
	}
	return true
}

// textMasks are the masks for text columns, by kind. Other kinds are redacted.
var textMasks = map[personal.Kind]string{
	personal.Password: "hash", personal.Secret: "hash", personal.Session: "hash", personal.OneTimeCode: "hash",
	personal.Hardware: "hash", personal.External: "hash", personal.Wallet: "hash", personal.Biometric: "hash",
	personal.Email: "email", personal.Phone: "phone", personal.FirstName: "first_name", personal.LastName: "last_name",
	personal.Name: "name", personal.Person: "name", personal.UserName: "user_name", personal.Street: "address",
	personal.City: "city", personal.Company: "company", personal.Birth: "shift", personal.IPAddress: "ip",
	personal.Card: "card", personal.Account: "iban", personal.NationalNumber: "format",
	personal.TaxNumber: "format", personal.Passport: "format", personal.License: "format", personal.Vehicle: "format",
	personal.Postcode: "format", personal.MemberNumber: "format", personal.Income: "format", personal.Age: "format",
	personal.Coordinates: "coordinates",
}

// candidates returns the rules to try for a column with data of a kind, best first. The last rules
// can be used in nearly every column.
func candidates(k personal.Kind, c *column) []ColumnRule {
	var masks []string
	switch c.typ.Class {
	case personal.Text:
		mask := textMasks[k]
		if mask == "" {
			mask = "redact"
		}
		masks = []string{mask, "key", "hash", "redact"}
		if !c.unique {
			masks = []string{mask, "redact", "hash"}
		}
	case personal.Integer, personal.Decimal, personal.Float:
		masks = []string{"key", "format", "noise"}
		switch k {
		case personal.Income, personal.Age, personal.Birth:
			masks = []string{"noise", "key"}
		case personal.Coordinates:
			masks = []string{"coordinates", "noise"}
		}
	case personal.Year:
		masks = []string{"noise"}
	case personal.Search, personal.Binary:
		masks = nil
	default: // all suited masks except those that need settings
		masks = slices.DeleteFunc(slices.Clone(suited[c.typ.Class]), func(m string) bool {
			return checkSettings(ColumnRule{Mask: m}) != ""
		})
	}
	var rules []ColumnRule
	for _, m := range masks {
		rule := ColumnRule{Mask: m}
		if m == "noise" && (c.typ.Class == personal.Year || k == personal.Birth) {
			rule.Percent = 1
		}
		rules = append(rules, rule)
	}
	rules = append(rules, ColumnRule{Mask: "null"})
	if c.typ.Class == personal.Binary || c.typ.Class == personal.Search {
		rules = append(rules, ColumnRule{Mask: "constant"})
	}
	return rules
}

// alignReferences gives columns connected by foreign keys the same rule, so that references still
// match.
func alignReferences(f *facts, all map[columnID]proposal) {
	for _, group := range groups(f) {
		var masks []string
		reason := ""
		for _, c := range group {
			p := all[c.id]
			masks = append(masks, p.rule.Mask)
			if p.rule.Mask != "keep" && reason == "" {
				reason = p.reason
			}
		}
		if !slices.ContainsFunc(masks, func(m string) bool { return m != "keep" }) {
			continue
		}
		mask, hold := sharedMask(proposalKey, group...), ""
		if slices.Contains(masks, Undecided) || mask == "keep" {
			mask, hold = Undecided, mask
		}
		for _, c := range group {
			all[c.id] = proposal{ColumnRule{Mask: mask},
				reason + "; values must stay equal in tables that refer to one another", hold}
		}
	}
}

// groups returns the columns connected by foreign keys, in a fixed order.
func groups(f *facts) [][]*column {
	leader := map[columnID]columnID{}
	var find func(columnID) columnID
	find = func(id columnID) columnID {
		if up, ok := leader[id]; ok && up != id {
			top := find(up)
			leader[id] = top
			return top
		}
		return id
	}
	var order []*column
	for _, t := range f.tables {
		for _, col := range t.Columns {
			c := f.columns[columnID{t.Schema, t.Name, col.Name}]
			order = append(order, c)
			for _, to := range c.references {
				leader[find(c.id)] = find(to)
			}
		}
	}
	members := map[columnID][]*column{}
	var tops []columnID
	for _, c := range order {
		top := find(c.id)
		if members[top] == nil {
			tops = append(tops, top)
		}
		members[top] = append(members[top], c)
	}
	var all [][]*column
	for _, top := range tops {
		if len(members[top]) > 1 {
			all = append(all, members[top])
		}
	}
	return all
}
