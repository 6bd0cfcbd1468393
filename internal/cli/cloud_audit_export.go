package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

// followEvery is how often --follow asks for new lines.
const followEvery = 2 * time.Second

// clockMargin is how far the times of neighboring lines may be out of order, because replicas have
// different clocks.
const clockMargin = time.Hour

// exportFlags select the lines to export.
type exportFlags struct {
	from, to     int64
	since, until string
	follow       bool
}

func (a *app) cloudAuditExportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the audit log as JSON, one entry on each line",
		Long: `Export writes the lines of your organization's audit log, oldest first. Each is
exactly the text whose hash the log's hash tree contains. With --follow, export
waits for new lines and, while the service is unavailable or cannot be reached,
tries again.

To continue an export, add 1 to the last "seq" in the file and pass the result
as --from. The lines can be verified without the service: see docs/audit.md.`,
		Example: examples(
			"the whole log", "snapcli cloud audit export > audit.jsonl",
			"one month", "snapcli cloud audit export --since 2026-10-01 --until 2026-11-01",
			"send new lines to another program", "snapcli cloud audit export --from 1025 --follow | collector"),
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.exportAudit(cmd.Context(), f) },
	}
	cmd.Flags().Int64Var(&f.from, "from", 1, "number of the first line")
	cmd.Flags().Int64Var(&f.to, "to", 0, "number of the last line; 0 is the newest")
	cmd.Flags().StringVar(&f.since, "since", "", "only from this time on: 2026-11-21, 2026-11-21T08:00:00Z, or 7d")
	cmd.Flags().StringVar(&f.until, "until", "", "only before this time")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "wait for new lines until interrupted")
	cmd.MarkFlagsMutuallyExclusive("follow", "to")
	cmd.MarkFlagsMutuallyExclusive("follow", "until")
	return cmd
}

func (a *app) exportAudit(ctx context.Context, f exportFlags) error {
	if f.from < 1 || f.to < 0 || f.to > 0 && f.to < f.from {
		return snap.Usage(fmt.Sprintf("there are no lines from %d to %d", f.from, f.to), "line numbers start at 1")
	}
	since, err := parseTime(f.since, a.now())
	if err != nil {
		return err
	}
	until, err := parseTime(f.until, a.now())
	if err != nil {
		return err
	}
	conn, err := a.connect()
	if err != nil {
		return err
	}
	e := &auditExport{conn: conn, out: a.io.Out, next: f.from, last: f.to, since: since, until: until}
	for reported := ""; ; {
		err := e.run(ctx)
		if !f.follow || err != nil && !temporary(err) {
			return err
		}
		if err == nil {
			reported = ""
		} else if problem := err.Error(); problem != reported { // report an outage once
			a.note("trying again until the service responds: %s", problem)
			reported = problem
		}
		select {
		case <-ctx.Done():
			return &snap.Error{Code: snap.CodeInterrupted, Detail: fmt.Sprintf("interrupted before line %d", e.next),
				Cause: context.Cause(ctx)}
		case <-time.After(followEvery):
		}
	}
}

// temporary reports whether a later attempt may succeed.
func temporary(err error) bool {
	return slices.Contains([]snap.Code{snap.CodeUnavailable, snap.CodeUnreachable, snap.CodeRateLimited},
		snap.CodeOf(err))
}

// auditExport writes lines of the log.
type auditExport struct {
	conn         *connection
	out          io.Writer
	next, last   int64 // numbers of the next line and of the last one; last is 0 for no limit
	since, until time.Time
	sought       bool // next is the first line that may be in the requested period
}

// seek sets next to the first line that may be in the requested period, unless it did so before. It
// finds that line by bisection.
func (e *auditExport) seek(ctx context.Context) error {
	if e.sought || e.since.IsZero() {
		return nil
	}
	size, err := e.size(ctx)
	if err != nil || size < e.next {
		return err
	}
	early := e.since.Add(-clockMargin)
	skip := sort.Search(int(size-e.next+1), func(i int) bool {
		var page api.AuditRecords
		var line api.AuditEntry
		if err == nil { // after an error, send no more requests
			page, err = e.conn.AuditRecords(ctx, e.next+int64(i), 1)
		}
		if err == nil && len(page.Items) > 0 {
			line, err = entryOf(page.Items[0])
		}
		return err != nil || len(page.Items) == 0 || !line.At.Before(early)
	})
	if err == nil {
		e.next, e.sought = e.next+int64(skip), true
	}
	return err
}

// size returns how many lines the log has.
func (e *auditExport) size(ctx context.Context) (int64, error) {
	page, err := e.conn.Audit(ctx, api.AuditOptions{Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return 0, err
	}
	return page.Items[0].Seq, nil
}

// run writes the lines that exist now.
func (e *auditExport) run(ctx context.Context) error {
	if err := e.seek(ctx); err != nil {
		return err
	}
	for e.last == 0 || e.next <= e.last {
		page, err := e.conn.AuditRecords(ctx, e.next, api.MaxAuditRecords)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		for _, record := range page.Items {
			ended, err := e.line(record)
			if err != nil || ended {
				return err
			}
		}
	}
	return nil
}

// line writes a record of the log if it is in the requested range. ended reports whether it comes
// after that range.
func (e *auditExport) line(record string) (ended bool, err error) {
	entry, err := entryOf(record)
	if err != nil {
		return true, err
	}
	if entry.Seq != e.next {
		return true, &snap.Error{Code: snap.CodeConflict,
			Detail: fmt.Sprintf("the service sent line %d of the audit log instead of line %d", entry.Seq, e.next),
			Hint:   "run `snapcli cloud audit --verify`"}
	}
	if e.last > 0 && entry.Seq > e.last || !e.until.IsZero() && entry.At.After(e.until.Add(clockMargin)) {
		return true, nil
	}
	e.next++
	if entry.At.Before(e.since) || !e.until.IsZero() && !entry.At.Before(e.until) {
		return false, nil
	}
	_, err = io.WriteString(e.out, record+"\n")
	return false, err
}

func entryOf(record string) (e api.AuditEntry, err error) {
	if err := json.Unmarshal([]byte(record), &e); err != nil {
		return e, &snap.Error{Code: snap.CodeConflict,
			Detail: "the service sent a line of the audit log that is not JSON",
			Hint:   "run `snapcli cloud audit --verify`"}
	}
	return e, nil
}
