// Package foreign reads the configuration of other tools and says what of it
// has an equal here: targets, storage profiles and masking rules.
//
// Nothing is dropped silently: a setting without an equivalent is named with its line, and a
// column whose masking has none gets no rule, so that sanitizing stops there.
// It reads files alone; no database and no network.
package foreign

import (
	"fmt"
	"slices"
)

// Found is what a configuration comes to here.
type Found struct {
	Targets  []Target
	Profiles []Profile
	Left     []Left // settings without an equivalent, or with another meaning here, by line
}

// Target is a target to add.
type Target struct {
	Name, Source, Destination string
	Jobs                      int
	SQLFile                   string // path of a file that masks, "" is none
	SQL                       string // SQL that masks and is in no file yet
	Rules                     string // a rules file's text, "" is none
}

// Profile is a storage profile to add.
type Profile struct{ Name, URL string }

// Left is a setting that was not taken over unchanged.
type Left struct {
	Line int    `json:"line" doc:"in the other tool's file"`
	What string `json:"what" doc:"path of the setting"`
	Why  string `json:"why" doc:"what becomes of it here"`
}

// left notes something.
func (f *Found) left(t *tree, why string, args ...any) {
	t.use()
	f.Left = append(f.Left, Left{t.line, t.path, fmt.Sprintf(why, args...)})
}

// rest notes what nobody asked for, and orders the notes.
func (f *Found) rest(root *tree) {
	root.unused(func(t *tree) { f.left(t, "is unknown") })
	slices.SortStableFunc(f.Left, func(a, b Left) int { return a.Line - b.Line })
}
