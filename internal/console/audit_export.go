package console

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// exportAudit writes the lines of the audit log that the filter selects, the oldest first. If it
// fails after the first page of lines, it breaks the connection, so that no browser keeps half a
// file.
func (s *Server) exportAudit(v *visit) error {
	options, err := auditFilter(v)
	if err != nil {
		return err
	}
	options.OldestFirst, options.Limit = true, api.MaxLimit
	write, format, contentType := writeCSV, "csv", "text/csv; charset=utf-8"
	if v.query("format") == "jsonl" {
		write, format, contentType = writeJSONLines, "jsonl", "application/jsonl"
	}
	first, err := v.api.Audit(v.r.Context(), options) // an invalid filter still gets an error page
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Disposition", `attachment; filename="audit-`+v.caller.Org.Slug+"-"+
		s.o.Now().UTC().Format("20060102T150405Z")+"."+format+`"`)
	all := func(yield func(api.AuditEntry, error) bool) {
		for _, e := range first.Items {
			if !yield(e, nil) {
				return
			}
		}
		if options.Cursor = first.NextCursor; options.Cursor != "" {
			v.api.AllAudit(v.r.Context(), options)(yield)
		}
	}
	if err := write(v.w, all); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func writeJSONLines(w io.Writer, all iter.Seq2[api.AuditEntry, error]) error {
	out := json.NewEncoder(w)
	for e, err := range all {
		if err != nil {
			return err
		}
		if err := out.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(w io.Writer, all iter.Seq2[api.AuditEntry, error]) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"line", "at", "action", "by", "organization", "credential", "address", "request_id",
		"snapshot", "concerns", "detail", "hash"}); err != nil {
		return err
	}
	for e, err := range all {
		if err != nil {
			return err
		}
		detail, err := json.Marshal(e.Detail)
		if err != nil {
			return err
		}
		concerns := e.About(func(t time.Time) string { return t.UTC().Format(time.RFC3339) }, look.Bytes)
		row := []string{strconv.FormatInt(e.Seq, 10), e.At.UTC().Format(time.RFC3339Nano),
			string(e.Action), e.By(), e.ActorOrg, e.Credential, e.Address, e.RequestID, e.Snapshot, concerns,
			string(detail), e.Hash}
		for i := range row {
			row[i] = plainCell(row[i])
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// plainCell changes a text so that no spreadsheet reads it as a formula. Names of snapshots and
// keys are chosen by the people whom the log is about.
func plainCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + snap.CleanText(text)
	}
	return text
}
