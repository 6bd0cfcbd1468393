// Package foreign reads the configuration of other tools and converts it to targets, storage
// profiles and masking rules.
//
// Nothing is dropped silently: a setting without an equivalent is reported with its line, and a
// column whose masking has no equivalent gets no rule, so that sanitizing fails until somebody adds
// one. The package uses neither a database nor the network.
package foreign

import (
	"fmt"
	"slices"
)

// Found is the result of converting a configuration.
type Found struct {
	Targets  []Target
	Profiles []Profile
	Left     []Left // settings without an equivalent, or with a different meaning here, by line
}

// Target is a target to add.
type Target struct {
	Name, Source, Destination string
	Jobs                      int
	SQLFile                   string // path of a SQL file that masks; "" if none
	SQL                       string // SQL that masks and is not in a file yet
	Rules                     string // content of a rules file; "" if none
}

// Profile is a storage profile to add.
type Profile struct{ Name, URL string }

// Left is a setting that was not converted, or whose meaning changed.
type Left struct {
	Line int    `json:"line" doc:"line in the other tool's file"`
	What string `json:"what" doc:"path of the setting"`
	Why  string `json:"why" doc:"how snapcli treats it"`
}

// left records a setting and how snapcli treats it, and marks the setting as read.
func (f *Found) left(t *tree, why string, args ...any) {
	t.markRead()
	f.Left = append(f.Left, Left{t.line, t.path, fmt.Sprintf(why, args...)})
}

// leftUnread records all unread settings, and sorts the records.
func (f *Found) leftUnread(root *tree) {
	root.unread(func(t *tree) { f.left(t, "is unknown") })
	slices.SortStableFunc(f.Left, func(a, b Left) int { return a.Line - b.Line })
}
