package local

import (
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// Kind is a group of programs of one kind, such as the triggers.
type Kind struct {
	One, Many string // such as "trigger", "triggers"
	Programs  []schema.Program
}

// shownPrograms is the maximum number of names shown per kind.
const shownPrograms = 10

// Names lists the names of up to ten programs: "audit on customer, spy on log and 3 more".
func (k Kind) Names() string {
	var names []string
	for _, p := range k.Programs[:min(len(k.Programs), shownPrograms)] {
		names = append(names, programName(p))
	}
	text := strings.Join(names, ", ")
	if n := len(k.Programs) - shownPrograms; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func programName(p schema.Program) string {
	name := snap.TableName(p.Schema, p.Name.Name)
	switch {
	case name == "":
		return "on " + p.On
	case p.On != "":
		name += " on " + p.On
	}
	return name
}

// String formats the number and the kind: "3 triggers".
func (k Kind) String() string { return snap.Plural(len(k.Programs), k.One, k.Many) }

// KindsOf groups programs by kind, sorted by kind.
func KindsOf(all []schema.Program) (kinds []Kind) {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b schema.Program) int { return strings.Compare(a.Kind, b.Kind) })
	for i, p := range sorted {
		if i == 0 || p.Kind != sorted[i-1].Kind {
			kinds = append(kinds, Kind{One: p.Kind, Many: pluralOf(p.Kind)})
		}
		last := &kinds[len(kinds)-1]
		last.Programs = append(last.Programs, p)
	}
	return kinds
}

// CountPrograms formats the number of programs of each kind: "12 functions, 3 triggers".
func CountPrograms(all []schema.Program) string {
	var parts []string
	for _, k := range KindsOf(all) {
		parts = append(parts, k.String())
	}
	return strings.Join(parts, ", ")
}

// pluralOf returns the plural of a kind of program.
func pluralOf(kind string) string {
	switch {
	case strings.HasSuffix(kind, "y"):
		return strings.TrimSuffix(kind, "y") + "ies"
	case strings.HasSuffix(kind, "x"):
		return kind + "es"
	}
	return kind + "s"
}
