package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) localShowCommand() *cobra.Command {
	var identity []string
	var view cardView
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show everything about one snapshot on this machine",
		Long: `Show prints a snapshot on this machine with its file, checksum and card: the
database it was taken from, how it was masked, its tables with their row counts
and sizes, and what changed since the snapshot before it on this machine. It
never prints a row of data. The card of an encrypted snapshot is shown only if
an identity on this machine opens it.`,
		Example: examples("show one", "snapcli snapshots show shop-20261121T011600Z",
			"show the columns, and how each was masked", "snapcli snapshots show shop-20261121T011600Z --columns",
			"find columns", "snapcli snapshots show shop-20261121T011600Z --search email"),
		Args:              command.ExactArgs("name"),
		ValidArgsFunction: a.completeLocal,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			s, err := agent.Snapshot(args[0])
			if err != nil {
				return err
			}
			if err := agent.Describe(&s, identity); err != nil {
				return err
			}
			changes, err := changesOf(agent, s)
			if err != nil {
				return err
			}
			return a.showLocal(s, view, agent.Certificate(s), changes)
		}),
	}
	view.flags(cmd)
	identityFlag(cmd, &identity)
	a.jsonFlag(cmd)
	return cmd
}

// encryptionText describes to whom a snapshot is encrypted and what information that hides.
func encryptionText(s local.Snapshot) string {
	if s.Encrypted > 0 && len(s.Tables) == 0 {
		return "to " + snap.Plural(s.Encrypted, "recipient", "recipients") + "; --identity FILE shows its tables"
	}
	return strings.TrimPrefix(encryptedTo("", s.Encrypted), "encrypted ")
}

// newText describes how much of a snapshot is new.
func newText(n *local.New) string {
	switch {
	case n == nil:
		return ""
	case n.Same:
		return "nothing since " + n.Since
	}
	return "about " + newPercent(n) + " of the data since " + n.Since
}

// subsetText describes how the rows of a subset were chosen.
func subsetText(s local.Snapshot) string {
	if s.Subset == nil {
		return ""
	}
	return card.Chosen(s.Subset.Where, s.Subset.Percent) + "; started from " + strings.Join(s.Subset.Start, ", ")
}

// limits describes the limit of a subset: a maximum number of rows, a maximum size, or the
// conditions and the percentage that choose its rows. It returns "" if no subset is configured.
func limits(s local.SubsetSpec) string {
	switch {
	case s.Rows > 0:
		return fmt.Sprintf("at most %d rows", s.Rows)
	case s.MaxSize != "":
		return "at most " + s.MaxSize
	}
	return card.Chosen(s.Where, s.Percent)
}

// originText describes where a snapshot came from and therefore how it is loaded.
func originText(p local.Provenance) string {
	switch p.Origin {
	case local.Mine:
		return "mine: built on this machine"
	case local.Ours:
		if p.Person != "" {
			return p.String() + ": pushed by " + p.Person
		}
		return p.String() + ": pulled from your organization or storage"
	case local.Theirs:
		return p.String() + ": loaded as data, without its programs"
	}
	return "unknown: loaded as data, without its programs"
}

// changesOf compares a described snapshot with the local one before it. It returns nil if there is
// none.
func changesOf(agent *local.Agent, s local.Snapshot) (*localChanges, error) {
	previous, changes, err := agent.Changes(s)
	if err != nil || previous == nil {
		return nil, err
	}
	return &localChanges{previous.Name, card.Counts(*s.Card, previous.SHA256), changes}, nil
}

// showLocal prints a snapshot. certificate describes its certificate.
func (a *app) showLocal(s local.Snapshot, view cardView, certificate string, changes *localChanges) error {
	if a.flags.json {
		shown := viewSnapshot(s)
		shown.Card, shown.Changes = shownCard(s.Card, view), changes
		return a.printJSON(shown)
	}
	pairs := []string{
		"Name", s.Name, "Target", s.Target, "Type", string(s.Type), "Engine", string(s.Engine),
		"Size", exactSize(s.Size), "SHA-256", s.SHA256,
		"From", originText(s.From), "Created", a.moment(s.Created), "File", s.Path, "Encrypted", encryptionText(s),
		"Subset", subsetText(s), "New", newText(s.New), "Certificate", certificate,
	}
	if s.Card != nil {
		pairs = append(pairs, cardFields(*s.Card, s.Engine)...)
	}
	for _, url := range slices.Sorted(maps.Keys(s.Cloud)) {
		pairs = append(pairs, "Cloud", s.Cloud[url]+" at "+url)
	}
	if len(s.Programs) > 0 {
		pairs = append(pairs, "Programs", local.CountPrograms(s.Programs))
	}
	for _, sentence := range s.Omitted {
		pairs = append(pairs, "Omitted", sentence)
	}
	a.fields(pairs...)
	if s.Card == nil {
		return nil
	}
	if err := a.printTables(card.Find(s.Card.Tables, view.search), view, s.Subset != nil); err != nil {
		return err
	}
	if changes != nil {
		a.printChanges(changes.Previous, changes.Counted, changes.Changes, 0)
	}
	return nil
}

// shownCard returns the card with only the tables and columns that a search finds.
func shownCard(c *api.Card, view cardView) *api.Card {
	if c == nil {
		return nil
	}
	found := *c
	found.Tables = card.Find(c.Tables, view.search)
	return &found
}
