package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

// auditFlags select entries of the audit log.
type auditFlags struct {
	snapshot, actor, action, since, until string
	limit                                 int
	all, verify                           bool
}

func (a *app) cloudAuditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read and verify the organization's audit log",
		Long: `Audit lists what happened in your organization, newest first: pushes, pulls,
shares, deletions, refused attempts to share or delete, and changes to keys,
sessions and roles. Each entry names the user, the credential and the network
address. Only owners and admins may read the log. On a narrow terminal, an entry
is printed on two lines.

Entries are only ever added, and the service signs checkpoints of the log.
--verify proves on this machine that the log matches its newest checkpoint, and
that it has only grown since the checkpoint that the last --verify saved here.
If the proof fails, --verify shows both checkpoints and keeps the old one.

To find out who could see a snapshot on a given day, use
` + "`snapcli cloud snapshots access`" + `.`,
		Example: examples(
			"the latest entries", "snapcli cloud audit",
			"everything about one snapshot", "snapcli cloud audit --snapshot snap_7h2k9m --all",
			"shares of the last week", "snapcli cloud audit --action snapshot.shared --since 7d",
			"check that nothing was changed or removed", "snapcli cloud audit --verify"),
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.verify {
				return a.verifyAudit(cmd.Context())
			}
			return a.audit(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.snapshot, "snapshot", "",
		"only entries about this snapshot; for a deleted snapshot, give its whole ID")
	cmd.Flags().StringVar(&f.actor, "actor", "", "only actions of the user with this e-mail address")
	cmd.Flags().StringVar(&f.action, "action", "", "only this action, such as snapshot.shared")
	cmd.Flags().StringVar(&f.since, "since", "",
		"only from this time on: 2026-11-21, 2026-11-21T08:00:00Z, or 7d for seven days ago")
	cmd.Flags().StringVar(&f.until, "until", "", "only before this time")
	cmd.Flags().IntVar(&f.limit, "limit", api.DefaultLimit, "show at most `n` entries")
	cmd.Flags().BoolVar(&f.all, "all", false, "show all entries")
	cmd.Flags().BoolVar(&f.verify, "verify", false, "prove that no entry was changed or removed")
	cmd.MarkFlagsMutuallyExclusive("limit", "all", "verify")
	for _, flag := range []string{"snapshot", "actor", "action", "since", "until"} {
		cmd.MarkFlagsMutuallyExclusive(flag, "verify")
	}
	_ = cmd.RegisterFlagCompletionFunc("snapshot", a.completeIDs)
	_ = cmd.RegisterFlagCompletionFunc("action",
		cobra.FixedCompletions(auditActions(), cobra.ShellCompDirectiveNoFileComp))
	a.jsonFlag(cmd)
	cmd.AddCommand(a.cloudAuditExportCommand())
	return cmd
}

func auditActions() []cobra.Completion {
	var out []cobra.Completion
	for _, action := range snap.AuditActions() {
		out = append(out, cobra.Completion(action))
	}
	return out
}

// options turns the flags into a query of the API.
func (f auditFlags) options(now time.Time) (o api.AuditOptions, err error) {
	if f.limit < 1 {
		return o, snap.Usage(fmt.Sprintf("--limit %d is less than one", f.limit), "use a number like 20, or --all")
	}
	o = api.AuditOptions{Actor: f.actor, Action: snap.AuditAction(f.action), Limit: min(f.limit, api.MaxLimit)}
	if o.Since, err = parseTime(f.since, now); err != nil {
		return o, err
	}
	o.Until, err = parseTime(f.until, now)
	return o, err
}

// parseTime reads a point in time: a date, a date and time, or a duration that counts back from
// now. "" is the zero time.
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02 15:04", time.DateTime,
		"2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	if d, err := snap.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	return time.Time{}, snap.Usage(fmt.Sprintf("%q is not a time", s),
		"use a date like 2026-11-21, a time like 2026-11-21T08:00:00Z, or a duration like 7d")
}

func (a *app) audit(ctx context.Context, f auditFlags) error {
	o, err := f.options(a.now())
	if err != nil {
		return err
	}
	conn, err := a.connect()
	if err != nil {
		return err
	}
	if f.snapshot != "" {
		if o.Snapshot, err = wholeID(ctx, conn, f.snapshot); err != nil {
			return err
		}
	}
	list := &auditList{app: a, json: jsonArray{to: a.io.Out}}
	for e, err := range conn.AllAudit(ctx, o) {
		if err != nil {
			return err
		}
		if !f.all && list.count == f.limit {
			list.more = true
			break
		}
		if err := list.add(e); err != nil {
			return err
		}
	}
	return list.end()
}

// wholeID completes an abbreviated snapshot ID. It does not look up a complete ID, because the
// snapshot may have been deleted.
func wholeID(ctx context.Context, conn *connection, typed string) (string, error) {
	if id, ok := snap.CleanIDPrefix(typed); ok && len(id) == len(snap.IDPrefix)+16 {
		return id, nil
	}
	s, err := conn.Resolve(ctx, typed)
	return s.ID, err
}

// auditList writes audit entries: as a table if it fits the terminal, otherwise on two lines each,
// or as a JSON array. The actor, action, snapshot, time and address are never truncated.
type auditList struct {
	*app
	page   []api.AuditEntry // not written yet
	table  *table           // nil before the first page
	narrow bool             // the table does not fit
	json   jsonArray
	count  int
	more   bool
}

func (l *auditList) add(e api.AuditEntry) error {
	l.count++
	if l.flags.json {
		return l.json.add(e)
	}
	l.page = append(l.page, e)
	if len(l.page) == api.DefaultLimit {
		return l.flush()
	}
	return nil
}

// flush writes the page. The first page decides between a table and two lines for each entry.
func (l *auditList) flush() error {
	first := l.table == nil
	if first {
		l.table = l.newTable(column{title: "Line", right: true}, column{title: "When"}, column{title: "Who"},
			column{title: "Action"}, column{title: "Snapshot"}, column{title: "From"},
			column{title: "Details", least: 12, weight: 1}, column{title: "By", least: 7, optional: true})
	}
	for _, e := range l.page {
		l.table.row(strconv.FormatInt(e.Seq, 10), l.moment(e.At), e.By(), string(e.Action), e.Snapshot, e.Address,
			l.detailsOf(e), e.Credential)
	}
	if first {
		l.narrow = !l.table.fits()
	}
	page := l.page
	l.page = nil
	if !l.narrow {
		return l.table.flush()
	}
	l.table.rows = nil
	for _, e := range page {
		l.lines(e)
	}
	return nil
}

// lines writes one entry on two lines: the time, action and snapshot, then the actor, address and
// details.
func (l *auditList) lines(e api.AuditEntry) {
	at := l.moment(e.At)
	if l.color(l.io.OutTerminal) {
		at = faint.Render(at)
	}
	l.result("%s  %s", raw(at), strings.TrimRight(string(e.Action)+"  "+e.Snapshot, " "))
	second := "  " + e.By() + withPrefix(" from ", e.Address) + withPrefix(": ", l.detailsOf(e))
	l.result("%s", runewidth.Truncate(snap.CleanText(second),
		max(l.tableWidth(), runewidth.StringWidth("  "+e.By()+" from "+e.Address)), "…"))
}

func (l *auditList) end() error {
	switch {
	case l.flags.json:
		return l.json.end()
	case l.count == 0:
		l.note("no lines of the audit log match")
		return nil
	}
	if err := l.flush(); err != nil {
		return err
	}
	if l.more {
		l.noteMore(l.count)
	}
	return nil
}

// detailsOf summarizes an audit entry in a few words.
func (a *app) detailsOf(e api.AuditEntry) string { return e.About(a.moment, size) }
