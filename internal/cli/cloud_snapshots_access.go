package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudAccessCommand() *cobra.Command {
	var at, user string
	cmd := &cobra.Command{
		Use:   "access SNAPSHOT-ID",
		Short: "Show who can see a snapshot, and why",
		Long: `Access shows which roles and shares let people see a snapshot, and how many
people in your organization can see it. --user explains why one person can or
cannot see it. Only the snapshot's owner, and owners and admins of the
organization, may ask. With --at, owners and admins see who could see it at a
time in the past, according to the audit log. This also works for a deleted
snapshot if you give its full ID.`,
		Example: examples(
			"who can see it now", "snapcli cloud snapshots access snap_7h2k9m",
			"why one colleague cannot", "snapcli cloud snapshots access snap_7h2k9m --user mia@acme.example",
			"who could see it on that day", "snapcli cloud snapshots access snap_7h2k9m --at 2026-11-21"),
		Args:              command.ExactArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			when, err := parseTime(at, a.now())
			if err != nil {
				return err
			}
			if when.After(a.now()) {
				return snap.Usage(fmt.Sprintf("--at %s is not in the past", at), "omit it to ask about now")
			}
			if when.IsZero() {
				return a.accessNow(cmd.Context(), args[0], user)
			}
			return a.accessAt(cmd.Context(), args[0], when)
		},
	}
	cmd.Flags().StringVar(&at, "at", "",
		"a time in the past: 2026-11-21, 2026-11-21T08:00:00Z, or 7d for seven days ago")
	cmd.Flags().StringVar(&user, "user", "", "explain why the user with this e-mail address can or cannot see it")
	cmd.MarkFlagsMutuallyExclusive("at", "user")
	a.jsonFlag(cmd)
	return cmd
}

// accessNow explains who can currently see a snapshot.
func (a *app) accessNow(ctx context.Context, typed, user string) error {
	conn, s, err := a.resolve(ctx, typed)
	if err != nil {
		return err
	}
	report, err := conn.Access(ctx, s.ID, user)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(report)
	}
	if report.User != nil {
		can := "cannot"
		if report.User.Visible {
			can = "can"
		}
		a.result("%s %s see %s: %s", report.User.Email, can, s.Name, report.User.Why)
		return nil
	}
	t := a.newTable(column{title: "Through", least: 20, weight: 2}, column{title: "People", right: true},
		momentColumn("Since", 0), column{title: "Granted by", least: 8, weight: 1})
	for _, way := range report.Ways {
		t.row(way.Through, people(way), a.moment(way.Since), way.GrantedBy)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, k := range report.Keys {
		why := "it sees what is shared org-wide and what organization-level keys pushed"
		if slices.Contains(k.Scopes, snap.ScopePrivate) {
			why = "it has the scope private"
		}
		a.note("the %s key %q can see it: %s", string(k.Kind), k.Name, why)
	}
	a.note("%s in %s can see it", snap.Plural(report.People, "person", "people"), s.Organization)
	return nil
}

// people returns the number of users that a grant reaches, or "?" for another organization, because
// its number of users is unknown.
func people(way api.AccessWay) string {
	if way.Kind == "organization" {
		return "?"
	}
	return strconv.Itoa(way.People)
}

func (a *app) accessAt(ctx context.Context, typed string, at time.Time) error {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	id, err := wholeID(ctx, conn, typed)
	if err != nil {
		return err
	}
	then, err := conn.AudienceAt(ctx, id, at)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(then)
	}
	return a.printAccess(then)
}

func (a *app) printAccess(then api.AudienceThen) error {
	if !then.Existed {
		a.note("%s did not exist at %s", then.Snapshot, a.moment(then.At))
		return nil
	}
	if then.Closed {
		a.note("at %s the organization was closed, so none of its people and keys could see %s",
			a.moment(then.At), then.Snapshot)
	}
	if len(then.Through) > 0 {
		a.heading("Visible through")
	}
	for _, t := range then.Through {
		a.result("  %s", t)
	}
	if then.Closed {
		return nil
	}
	a.result("")
	a.heading("Visible to these people in the organization")
	t := a.newTable(column{title: "User", least: 12, weight: 1}, column{title: "Why", least: 12})
	for _, u := range then.Users {
		t.row(u.Email, u.Why)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, k := range then.Keys {
		a.note("the %s key %q could see it too", string(k.Kind), k.Name)
	}
	return nil
}
