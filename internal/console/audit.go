package console

import (
	"context"
	"errors"
	"net/url"
	"time"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// auditPage is the data of audit.html.
type auditPage struct {
	layout
	Actions      []snap.AuditAction
	Filter       api.AuditOptions
	Since, Until string // as typed
	Filtered     bool
	Lines        []auditLine
	Next         string // address of the page with older lines
	Export       string // address of the export, to which the format is added
	Verdict      *api.AuditVerdict
}

// auditLine is a line of the table. It has fields instead of methods, because templates call
// methods slowly.
type auditLine struct {
	At                    time.Time
	Action                snap.AuditAction
	By, Address, Snapshot string
	Concerns              string // the subject in a few words
}

func auditLines(entries []api.AuditEntry) (lines []auditLine) {
	exact := func(t time.Time) string { return look.Exact(t.UTC()) }
	for _, e := range entries {
		lines = append(lines, auditLine{e.At, e.Action, e.By(), e.Address, e.Snapshot, e.About(exact, look.Bytes)})
	}
	return lines
}

func (s *Server) audit(v *visit) error { return s.showAudit(v, nil) }

func (s *Server) showAudit(v *visit, verdict *api.AuditVerdict) error {
	data := auditPage{layout: s.layout(v), Actions: snap.AuditActions(), Since: v.query("since"),
		Until: v.query("until"), Verdict: verdict}
	var err error
	if data.Filter, err = auditFilter(v); err == nil {
		var page api.AuditPage
		options := data.Filter
		options.Limit, options.Cursor = rowsPerPage, v.query("cursor")
		page, err = v.api.Audit(v.r.Context(), options)
		data.Lines = auditLines(page.Items)
		if page.NextCursor != "" {
			data.Next = v.withParameter("cursor", page.NextCursor)
		}
	}
	if err != nil && !data.showError(v, err) {
		return err
	}
	data.Filtered = data.Filter != (api.AuditOptions{})
	q := url.Values{}
	for _, name := range []string{"action", "actor", "snapshot", "since", "until"} {
		if value := v.query(name); value != "" {
			q.Set(name, value)
		}
	}
	data.Export = s.root + AuditExport + "?" + q.Encode()
	return s.write(v, "audit.html", data)
}

// auditFilter reads the filter in the page's address. Days are in UTC.
func auditFilter(v *visit) (o api.AuditOptions, err error) {
	o = api.AuditOptions{Snapshot: v.query("snapshot"), Actor: v.query("actor"),
		Action: snap.AuditAction(v.query("action"))}
	for name, to := range map[string]*time.Time{"since": &o.Since, "until": &o.Until} {
		if text := v.query(name); text != "" {
			if *to, err = time.Parse(time.DateOnly, text); err != nil {
				return o, snap.Invalid("a date of the filter is not valid", "write it as 2026-03-01")
			}
		}
	}
	return o, nil
}

// verifyAudit reads the whole log and compares it with the service's signed checkpoint.
func (s *Server) verifyAudit(v *visit) (string, error) {
	verdict, err := v.api.VerifyAudit(v.r.Context(), nil)
	if errors.Is(v.r.Context().Err(), context.DeadlineExceeded) {
		return "", &snap.Error{Code: snap.CodeUnavailable, Cause: err,
			Detail: "the audit log is too long to be verified by this page",
			Hint:   "verify it with `snapcli cloud audit --verify`"}
	}
	if err != nil && verdict.Problem == "" {
		return "", err
	}
	return "", s.showAudit(v, &verdict)
}
