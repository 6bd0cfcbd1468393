package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// Refiller is an engine that can replace the rows of some tables of an existing database.
type Refiller interface {
	// Refill replaces the rows of the chosen tables of the database at url with those of the dump,
	// in one transaction. No definition changes, no trigger fires, and nothing from the dump runs
	// as SQL. If the database lacks one of the tables, or if a foreign key no longer holds, Refill
	// fails and changes nothing. Refill returns the refilled tables with their numbers of rows.
	Refill(ctx context.Context, url string, d Dump, only []string, o Options) ([]Table, error)
}

// ChosenTables returns the tables of a dump that match the patterns, and the other tables that the
// description calls partitions of these tables. A description can be wrong, so partitions must not be
// filled unless they are partitions in the destination. ChosenTables fails if one of the tables has
// no rows and the dump leaves out the rows of some tables, because a refill would then only delete.
func ChosenTables(info Info, only []string) (chosen, partitions map[schema.Name]bool, err error) {
	s := info.Schema
	if s == nil {
		return nil, nil, &snap.Error{Code: snap.CodeInvalid,
			Detail: "the snapshot has no description of its tables: an old version built it",
			Hint:   "build it again with the current version, or load all of it"}
	}
	at, all := map[schema.Name]int{}, make([]Relation, len(s.Tables))
	for i, t := range s.Tables {
		at[t.Name] = i
	}
	for i, t := range s.Tables {
		all[i] = Relation{Schema: t.Schema, Name: t.Name.Name}
		if t.PartitionOf != nil {
			all[i].Partition = true
			if parent, ok := at[t.PartitionOf.Table]; ok {
				all[i].Parents = []int{parent}
			}
		}
	}
	m := matching{all: all}
	matched, err := m.matches(only, false)
	if err != nil {
		return nil, nil, err
	}
	marked := slices.Clone(matched)
	m.spread(marked, true)
	chosen, partitions = map[schema.Name]bool{}, map[schema.Name]bool{}
	for i, t := range s.Tables {
		switch {
		case matched[i]:
			chosen[t.Name] = true
		case marked[i] && t.Partitions == nil: // otherwise it has no rows of its own
			partitions[t.Name] = true
		}
	}
	if slices.ContainsFunc(s.Omitted, func(o schema.Omission) bool { return o.Kind == schema.OmittedRows }) {
		for _, t := range info.Tables {
			name := schema.Name{Schema: t.Schema, Name: t.Name}
			if t.Rows == 0 && (chosen[name] || partitions[name]) {
				return nil, nil, noRows(strings.TrimPrefix(t.Schema+"."+t.Name, "."))
			}
		}
	}
	return chosen, partitions, nil
}

// noRows returns the error for a table whose rows the snapshot may lack.
func noRows(label string) error {
	return &snap.Error{Code: snap.CodeInvalid,
		Detail: fmt.Sprintf("the snapshot has no rows of %s, and was built without the rows of some tables", label),
		Hint:   "choose tables that have rows in the snapshot; nothing was changed"}
}

// NoTable returns the error for a table that the destination of a refill lacks.
func NoTable(label string) error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("the destination has no table %s", label),
		Hint: "load the whole snapshot, or create the table first; nothing was changed"}
}

// KeysBroken returns the error for a foreign key that does not hold after a refill.
func KeysBroken(key string, cause error) error {
	return &snap.Error{Code: snap.CodeConflict,
		Detail: fmt.Sprintf("the foreign key %s would not hold between the new rows and the others", key),
		Hint:   "name the tables on both sides of the key; nothing was changed", Cause: cause}
}
