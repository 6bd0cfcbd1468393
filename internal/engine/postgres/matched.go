package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// The rows of a foreign dump are matched to the described tables by name. The dump's table of
// contents has the table and the columns of each block. None of the dump's SQL is executed.

var encodingName = regexp.MustCompile(`^[A-Za-z0-9_]{1,30}$`)

// matchedLayout returns the layout for loading the rows of the described tables. It skips the rows
// of other tables. Rows that the dump loads through a partition root go to the root according to
// parents, which has the parent of each partition.
func matchedLayout(entries []dumpEntry, s *schema.Schema, parents map[schema.Name]schema.Name) (*layout, error) {
	l := &layout{tables: map[int]*block{}}
	tables, encoding := map[[2]string]*schema.Table{}, ""
	for i := range s.Tables {
		tables[[2]string{s.Tables[i].Schema, s.Tables[i].Name.Name}] = &s.Tables[i]
	}
	seen := map[*schema.Table]bool{}
	for _, e := range entries {
		if e.desc == "ENCODING" {
			_, encoding, _ = strings.Cut(e.definition, "'")
			encoding, _, _ = strings.Cut(encoding, "'")
			if !encodingName.MatchString(encoding) {
				return nil, wrongDump("their encoding is missing")
			}
			continue
		}
		t := tables[[2]string{e.namespace, e.tag}]
		if e.desc != "TABLE DATA" || t == nil || t.Partitions != nil { // a partitioned table has no rows of its own
			continue
		}
		if seen[t] || l.tables[e.id] != nil {
			return nil, wrongDump(fmt.Sprintf("the rows of the table %s occur twice", e.tag))
		}
		seen[t] = true
		b, err := matchedBlock(e, t, parents)
		if err != nil {
			return nil, err
		}
		b.encoding = encoding
		l.tables[e.id] = b
	}
	return l, nil
}

func wrongDump(why string) error {
	return &snap.Error{Code: snap.CodeCorrupt, Detail: "the snapshot's rows do not match its description: " + why,
		Hint: "ask the snapshot's author to rebuild it; nothing was replaced"}
}

// matchedBlock returns the block for loading a table's rows. Its columns are in the dump's order.
func matchedBlock(e dumpEntry, t *schema.Table, parents map[schema.Name]schema.Name) (*block, error) {
	into := t.Name
	if strings.Contains(e.definition, "load via partition root") {
		for range parents { // which can be a cycle
			parent, ok := parents[into]
			if !ok {
				break
			}
			into = parent
		}
	}
	var stored []string
	for _, c := range t.Columns {
		if !c.Computed {
			stored = append(stored, c.Name)
		}
	}
	have := slices.Sorted(slices.Values(e.columns))
	if !slices.Equal(have, slices.Sorted(slices.Values(stored))) {
		return nil, wrongDump(fmt.Sprintf("the rows of the table %s have different columns", e.tag))
	}
	text := "COPY " + quoteName(into)
	if len(e.columns) > 0 {
		text += " " + columnList(e.columns)
	}
	b := &block{schema: e.namespace, name: e.tag, copy: text + " FROM STDIN", fresh: into == t.Name}
	b.analyzable = b.fresh && t.PartitionOf == nil
	return b, nil
}

// parentsOf returns the parent of each partition in a description.
func parentsOf(s *schema.Schema) map[schema.Name]schema.Name {
	parents := map[schema.Name]schema.Name{}
	for _, t := range s.Tables {
		if t.PartitionOf != nil {
			parents[t.Name] = t.PartitionOf.Table
		}
	}
	return parents
}
