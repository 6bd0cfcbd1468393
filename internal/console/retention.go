package console

import (
	"fmt"
	"strconv"

	"snap"
	"snap/api"
)

// retentionPage is the data of retention.html.
type retentionPage struct {
	layout
	Rules         []api.RetentionRule
	ToDelete      []api.Snapshot // that the rules would delete now
	MoreToDelete  bool
	BytesToDelete int64
	Form          form
}

// First returns the snapshots of the preview that the page lists.
func (p retentionPage) First() []api.Snapshot { return p.ToDelete[:min(len(p.ToDelete), rowsPerPage)] }

// Others returns the number of snapshots of the preview that the page does not list.
func (p retentionPage) Others() int { return len(p.ToDelete) - len(p.First()) }

func (s *Server) retention(v *visit) (err error) {
	data := retentionPage{layout: s.layout(v), Form: v.form("target", "last", "days")}
	if data.Rules, err = v.api.Retention(v.r.Context()); err != nil {
		return err
	}
	preview, err := v.api.RunRetention(v.r.Context(), api.RetentionRun{DryRun: true})
	if err != nil {
		return err
	}
	data.ToDelete, data.MoreToDelete = preview.Snapshots, preview.More
	for _, sn := range data.ToDelete {
		data.BytesToDelete += sn.Size
	}
	return s.write(v, "retention.html", data)
}

// changeRetention applies the rules, or deletes or saves one.
func (s *Server) changeRetention(v *visit) (string, error) {
	if v.field("apply") != "" {
		_, err := v.api.RunRetention(v.r.Context(), api.RetentionRun{})
		return "applied", err
	}
	if target := v.field("delete"); target != "" {
		return "no-rule", v.api.DeleteRetention(v.r.Context(), target)
	}
	last, err := v.number("last", "Keep the last")
	if err != nil {
		return "", err
	}
	days, err := v.number("days", "Keep for (days)")
	if err != nil {
		return "", err
	}
	rule := api.RetentionRule{Target: v.field("target"), KeepLast: last, KeepDays: days}
	_, err = v.api.SetRetention(v.r.Context(), rule)
	return "rule", err
}

// number returns the number in a field of the form; an empty field is 0.
func (v *visit) number(name, label string) (int, error) {
	text := v.field(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, snap.Invalid(fmt.Sprintf("%q is not a whole number of 0 or more", text),
			fmt.Sprintf("enter a whole number in the field %q, or leave it empty", label))
	}
	return n, nil
}
