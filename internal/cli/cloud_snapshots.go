package cli

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudSnapshotsCommand() *cobra.Command {
	cmd := a.cloudListCommand("snapshots")
	cmd.Short = "List cloud snapshots you can see; show, share and delete them"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.cloudListCommand("list"), a.cloudShowCommand(), a.cloudDeleteCommand(), a.declineCommand(),
		a.describeCommand(), a.cloudAccessCommand(), a.cloudReceiptCommand(),
		a.shareCommand(), a.unshareCommand(), a.sharesCommand())
	return cmd
}

// listFlags select the snapshots to list.
type listFlags struct {
	target, search, owner  string
	since, until           string
	typ                    snap.Type
	shared, mine, received bool
	expiresSoon            bool
	limit                  int
	all                    bool
}

// cloudListCommand returns the command behind both `cloud snapshots` and `cloud snapshots list`.
func (a *app) cloudListCommand(use string) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the cloud snapshots you can see",
		Long: `List shows the cloud snapshots that you can see, newest first: your own, those
shared with your organization or one of your groups, and those that other
organizations share with yours. Owners and admins see every snapshot of their
organization.

IDs are shortened, but stay unique in the list. Every command about a snapshot
that you can see accepts the start of its ID.

Filters combine: a snapshot is listed when it matches all of them.

A search matches the start of any word of the name, the target, the owner, the
description and the labels. The date and the time in a name count as words. A
search also matches the beginning of an ID, with or without snap_; without it,
at least 5 characters are needed. A snapshot must match every word of the
search.`,
		Example: examples(
			"the newest ones", "snapcli cloud snapshots",
			"masked ones of one target that are shared",
			"snapcli cloud snapshots --target shop --type sanitized --shared",
			"what you pushed and shared in the last week", "snapcli cloud snapshots --mine --shared --since 7d",
			"what alice pushed from that day on",
			"snapcli cloud snapshots --owner alice@example.com --since 2026-11-22",
			"those with a share that ends within three days", "snapcli cloud snapshots --expires-soon",
			"every ID, for a script", "snapcli cloud snapshots --all --json | jq -r '.[].id'"),
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listCloud(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.target, "target", "", "only those of this target")
	typeFlag(cmd, &f.typ, "only those of this type")
	cmd.Flags().StringVar(&f.search, "search", "",
		"only those that match these words, see above")
	cmd.Flags().BoolVar(&f.shared, "shared", false, "only those whose Shared column says Yes")
	cmd.Flags().BoolVar(&f.mine, "mine", false, "only those you pushed")
	cmd.Flags().BoolVar(&f.received, "received", false, "only those that other organizations share with yours")
	cmd.Flags().IntVar(&f.limit, "limit", api.DefaultLimit, "show at most `n` snapshots")
	cmd.Flags().BoolVar(&f.all, "all", false, "show all snapshots")
	cmd.Flags().StringVar(&f.since, "since", "",
		"only those pushed from this time on: 2026-11-21, or 7d for seven days ago")
	cmd.Flags().StringVar(&f.until, "until", "", "only those pushed before this time")
	cmd.Flags().StringVar(&f.owner, "owner", "",
		"only those whose owner's e-mail or organization is, or begins with, this text")
	cmd.Flags().BoolVar(&f.expiresSoon, "expires-soon", false,
		"only those with a share, visible to you, that ends within three days")
	cmd.MarkFlagsMutuallyExclusive("limit", "all")
	_ = cmd.RegisterFlagCompletionFunc("target", a.completeTargets)
	a.jsonFlag(cmd)
	return cmd
}

// options turns the flags into a query of the API.
func (f listFlags) options(now time.Time) (o api.ListOptions, err error) {
	if f.limit < 1 {
		return o, snap.Usage(fmt.Sprintf("--limit %d is less than one", f.limit), "use a number like 20, or --all")
	}
	if f.mine && f.received {
		return o, snap.Usage("--mine and --received cannot be combined",
			"a snapshot that you pushed belongs to your own organization; omit one of them")
	}
	o = api.ListOptions{Target: f.target, Type: f.typ, Q: f.search, Owner: f.owner, ExpiresSoon: f.expiresSoon,
		Limit: min(f.limit, api.MaxLimit)}
	if o.Since, err = parseTime(f.since, now); err != nil {
		return o, err
	}
	if o.Until, err = parseTime(f.until, now); err != nil {
		return o, err
	}
	switch { // a request has only one filter; f.keep then applies --shared
	case f.mine:
		o.Filter = snap.FilterMine
	case f.received:
		o.Filter = snap.FilterReceived
	case f.shared:
		o.Filter = snap.FilterShared
	}
	if f.all || f.filtersLocally() {
		o.Limit = api.MaxLimit
	}
	return o, nil
}

// filtersLocally reports whether keep may drop rows that the service returns.
func (f listFlags) filtersLocally() bool { return f.shared && (f.mine || f.received) }

// keep returns the first rows of a page, at most as many as room says, or all if room is 0. With
// --shared it drops the rows that are not shared, because the service may not have applied that
// filter. ended reports whether no further page is needed.
func (f listFlags) keep(page api.SnapshotPage, room int) (kept api.SnapshotPage, ended bool) {
	kept.NextCursor = page.NextCursor
	for i, s := range page.Items {
		if f.shared && !s.Shared {
			continue
		}
		if kept.Items = append(kept.Items, s); room > 0 && len(kept.Items) == room {
			if i+1 < len(page.Items) && kept.NextCursor == "" {
				kept.NextCursor = "more"
			}
			return kept, true
		}
	}
	return kept, kept.NextCursor == ""
}

func (a *app) listCloud(ctx context.Context, f listFlags) error {
	o, err := f.options(a.now())
	if err != nil {
		return err
	}
	conn, err := a.connect()
	if err != nil {
		return err
	}
	limit := f.limit
	if f.all {
		limit = 0
	}
	requested := limit
	if f.filtersLocally() {
		requested = 0 // read pages until enough rows are kept
	}
	list := &cloudList{app: a, json: jsonArray{to: a.io.Out}}
	for page, err := range pages(ctx, conn.Client, o, requested) {
		if err != nil {
			return err
		}
		kept, ended := f.keep(page, max(0, limit-list.count))
		if err := list.page(kept); err != nil {
			return err
		}
		if ended {
			break
		}
	}
	return list.end(f)
}

// pages yields the pages of a listing until it has returned limit rows; 0 means all. NextCursor of
// the last page is set if there are more rows.
func pages(ctx context.Context, c *api.Client, o api.ListOptions, limit int) iter.Seq2[api.SnapshotPage, error] {
	seen := 0
	return api.Pages(o.Cursor, func(cursor string) (api.SnapshotPage, string, error) {
		o.Cursor = cursor
		if limit > 0 {
			o.Limit = min(api.MaxLimit, limit-seen)
		}
		page, err := c.Snapshots(ctx, o)
		if seen += len(page.Items); limit > 0 && seen >= limit {
			return page, "", err
		}
		return page, page.NextCursor, err
	})
}

// cloudList writes a listing page by page: as the table of SPEC 2.1, as a JSON array, or as bare
// IDs with --quiet.
type cloudList struct {
	*app
	table *table
	json  jsonArray
	short shortener
	count int
	more  bool
}

func (l *cloudList) page(p api.SnapshotPage) error {
	first := l.count == 0
	l.count += len(p.Items)
	l.more = p.NextCursor != ""
	switch {
	case l.flags.json:
		for _, s := range p.Items {
			if err := l.json.add(s); err != nil {
				return err
			}
		}
		return nil
	case l.flags.quiet:
		for _, s := range p.Items {
			l.result("%s", s.ID)
		}
		return nil
	case first && len(p.Items) == 0:
		return nil
	}
	if l.table == nil {
		l.table = l.newTable(cloudColumns()...)
	}
	var ids []string
	for _, s := range p.Items {
		ids = append(ids, s.ID)
	}
	l.short.setLength(ids, l.more)
	for _, s := range p.Items {
		l.table.row(l.short.id(s.ID), s.Target, s.Name, string(s.Type), size(s.Size), yesNo(s.Shared),
			l.moment(s.Created))
	}
	return l.table.flush()
}

// cloudColumns returns the columns of SPEC 2.1. On a narrow terminal, the name is dropped first,
// because the target and the time contain the same information. The size is dropped next, then the
// type.
func cloudColumns() []column {
	return []column{
		{title: "ID"},
		{title: "Target", least: 8, weight: 3},
		{title: "Name", least: 17, optional: true, cut: keepEnd},
		{title: "Type", least: 4, weight: 4, optional: true, paint: paintType},
		{title: "Size", right: true, weight: 1, optional: true},
		{title: "Shared", paint: paintShared},
		momentColumn("Created", 2),
	}
}

// paintType marks originals, whose data is not masked.
func paintType(cell string) lipgloss.Style {
	if strings.HasPrefix(cell, string(snap.TypeSanitized)) {
		return green
	}
	return yellow
}

func paintShared(cell string) lipgloss.Style {
	if cell == "Yes" {
		return green
	}
	return faint
}

// end closes the listing. It adds a note if the listing is empty or incomplete.
func (l *cloudList) end(f listFlags) error {
	switch {
	case l.flags.json:
		return l.json.end()
	case l.count == 0 && f.filtered():
		l.note("no cloud snapshots match")
	case l.count == 0:
		l.note("there are no cloud snapshots that you can see; push one with `snapcli push TARGET --cloud`, or ask a " +
			"colleague to share one")
	case l.more:
		l.noteMore(l.count)
	}
	return nil
}

func (f listFlags) filtered() bool { return f != listFlags{limit: f.limit, all: f.all} }
