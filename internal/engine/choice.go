package engine

import (
	"fmt"
	"slices"
	"strings"

	"snap"
)

// Choice limits a dump to some objects of the database. The zero value includes all of them. The
// syntax of the patterns is that of [Pattern]. A pattern that matches nothing is an error.
type Choice struct {
	Tables      []string // include only these tables, and those in Schemas
	Schemas     []string // include only the objects in these schemas, and Tables
	Exclude     []string // leave out these tables and views
	ExcludeData []string // include these tables without their rows
	Extensions  []string // leave out these extensions
	Omit        []string // leave out objects of these kinds, see [OmitKinds]
}

// OmitKinds returns the kinds of objects that a choice can leave out.
func OmitKinds() []string {
	return []string{OmitEventTriggers, OmitExtensionComments, OmitPublications, OmitSubscriptions}
}

// The kinds of objects that [Choice.Omit] can name. Subscriptions are never part of a dump.
const (
	OmitEventTriggers     = "event_triggers"
	OmitExtensionComments = "extension_comments"
	OmitPublications      = "publications"
	OmitSubscriptions     = "subscriptions"
)

// Empty reports whether the choice includes everything.
func (c Choice) Empty() bool {
	return len(c.Tables)+len(c.Schemas)+len(c.Exclude)+len(c.ExcludeData)+len(c.Extensions)+len(c.Omit) == 0
}

// Omits reports whether the choice leaves out a kind of object.
func (c Choice) Omits(kind string) bool { return slices.Contains(c.Omit, kind) }

// Check returns a usage error for an invalid pattern, for a schema or extension pattern with a dot
// outside of quotes, and for an unknown kind.
func (c Choice) Check() error {
	for _, text := range slices.Concat(c.Tables, c.Schemas, c.Exclude, c.ExcludeData, c.Extensions) {
		if _, err := ParsePattern(text); err != nil {
			return err
		}
	}
	for _, text := range slices.Concat(c.Schemas, c.Extensions) {
		if p, err := ParsePattern(text); err != nil || p.schema != nil {
			return snap.Usage(fmt.Sprintf("%q has a dot outside of quotes", text), "give one name or pattern")
		}
	}
	for _, kind := range c.Omit {
		if !slices.Contains(OmitKinds(), kind) {
			return snap.Usage(fmt.Sprintf("%q cannot be omitted", kind),
				"the kinds are "+strings.Join(OmitKinds(), ", "))
		}
	}
	return nil
}

// RequireTablesOnly returns an error if the choice has parts that only PostgreSQL supports.
func (c Choice) RequireTablesOnly() error {
	for _, part := range []struct {
		given      []string
		what, hint string
	}{
		{c.Schemas, "schemas", "choose tables by their names"},
		{c.Extensions, "extensions", "remove the flag --exclude-extension, or the target's setting exclude_extensions"},
		{c.Omit, strings.Join(c.Omit, " and "), "remove the flag --omit, or the target's setting omit"},
	} {
		if len(part.given) > 0 {
			return snap.Usage("only PostgreSQL databases have "+part.what, part.hint)
		}
	}
	return nil
}

// Relation is a table or a view that a choice can name.
type Relation struct {
	Schema, Name string
	View         bool  // a view, or another relation without rows of its own
	Parents      []int // indexes of the tables that it is a partition of, or inherits from
	Partition    bool
}

// Fate says how much of a relation a dump includes.
type Fate int

// The fates.
const (
	Whole   Fate = iota // all of it
	NoRows              // only its definition
	LeftOut             // nothing
)

// Fates applies the choice to the tables and views of a database with these schemas. A table cannot
// be created without its parent. Leaving out a table therefore also leaves out its partitions and
// the tables that inherit from it, and choosing a partition includes the definition of its parent.
// A choice that leaves out every table is an error.
func (c Choice) Fates(all []Relation, schemas []string) ([]Fate, error) {
	m := matching{all: all, fates: make([]Fate, len(all))}
	if len(c.Tables)+len(c.Schemas) > 0 {
		if err := m.include(c, schemas); err != nil {
			return nil, err
		}
	}
	if err := m.exclude(c.Exclude); err != nil {
		return nil, err
	}
	if err := m.excludeData(c.ExcludeData); err != nil {
		return nil, err
	}
	for i, r := range all {
		if m.fates[i] != LeftOut && !r.View {
			return m.fates, nil
		}
	}
	if len(all) > 0 && len(c.Tables)+len(c.Schemas)+len(c.Exclude) > 0 {
		return nil, snap.Usage("the choice leaves out every table", "include more tables, or exclude fewer")
	}
	return m.fates, nil
}

// matching applies a choice to relations.
type matching struct {
	all   []Relation
	fates []Fate
}

// matches marks the relations that match one of the patterns. It marks views only if the parameter
// views is set. Each pattern must match at least one relation.
func (m *matching) matches(patterns []string, views bool) ([]bool, error) {
	found := make([]bool, len(m.all))
	return found, eachPattern(patterns, "table", func(p Pattern) (matched bool) {
		for i, r := range m.all {
			if (views || !r.View) && p.Matches(r.Schema, r.Name) {
				found[i], matched = true, true
			}
		}
		return matched
	})
}

// eachPattern parses the patterns and calls match for each. It returns an error if match returns
// false, which means that the pattern matches nothing. In the error, the argument what is the noun
// for the names.
func eachPattern(patterns []string, what string, match func(Pattern) bool) error {
	for _, text := range patterns {
		p, err := ParsePattern(text)
		if err != nil {
			return err
		}
		if !match(p) {
			return snap.Usage(fmt.Sprintf("the pattern %q matches no %s of the source", text, what),
				"correct it; * matches any characters and ? matches one; "+
					"inside double quotes, they match only themselves")
		}
	}
	return nil
}

// Names returns the names that match one of the patterns. Each pattern must match at least one
// name. In error messages, the argument what is the noun for the names.
func Names(patterns, names []string, what string) (map[string]bool, error) {
	found := map[string]bool{}
	return found, eachPattern(patterns, what, func(p Pattern) (matched bool) {
		for _, name := range names {
			if p.Matches("", name) {
				found[name], matched = true, true
			}
		}
		return matched
	})
}

func (m *matching) include(c Choice, schemas []string) error {
	chosen, err := m.matches(c.Tables, false)
	if err != nil {
		return err
	}
	chosenSchemas, err := Names(c.Schemas, schemas, "schema")
	if err != nil {
		return err
	}
	for i, r := range m.all {
		chosen[i] = chosen[i] || chosenSchemas[r.Schema]
	}
	m.spread(chosen, true)
	for i, r := range m.all {
		switch {
		case r.View && len(c.Schemas) == 0: // a view is included unless it needs a table that is left out
		case !chosen[i]:
			m.fates[i] = LeftOut
		}
	}
	for i := range m.all {
		if chosen[i] {
			m.includeParents(i)
		}
	}
	return nil
}

// includeParents includes the definitions of the parents of a table, and of their parents.
func (m *matching) includeParents(i int) {
	for _, parent := range m.all[i].Parents {
		if m.fates[parent] == LeftOut {
			m.fates[parent] = NoRows
			m.includeParents(parent)
		}
	}
}

// spread extends the marks to the partitions of marked tables and to the tables that inherit from
// them. If partitionsOnly is set, it marks only the partitions.
func (m *matching) spread(marked []bool, partitionsOnly bool) {
	for changed := true; changed; {
		changed = false
		for i, r := range m.all {
			if marked[i] || partitionsOnly && !r.Partition {
				continue
			}
			if slices.ContainsFunc(r.Parents, func(parent int) bool { return marked[parent] }) {
				marked[i], changed = true, true
			}
		}
	}
}

func (m *matching) exclude(patterns []string) error {
	excluded, err := m.matches(patterns, true)
	if err != nil {
		return err
	}
	m.spread(excluded, false)
	for i, marked := range excluded {
		if marked {
			m.fates[i] = LeftOut
		}
	}
	return nil
}

func (m *matching) excludeData(patterns []string) error {
	excluded, err := m.matches(patterns, false)
	if err != nil {
		return err
	}
	m.spread(excluded, true)
	for i, marked := range excluded {
		if marked && m.fates[i] == Whole {
			m.fates[i] = NoRows
		}
	}
	return nil
}
