package look

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"snap/api"
	"snap/internal/card"
)

// Card is the data of the parts "card-facts", "card-tables" and "card-changes", which show a
// snapshot and a page of its card in both programs.
type Card struct {
	api.SnapshotCard
	Here    string           // path of the page
	List    string           // path of the list of snapshots
	Q       string           // words that were searched for
	Changes *api.CardChanges // since the previous snapshot; may be nil
	Before  string           // path of the page of the previous snapshot
	Sealed  bool             // the snapshot is encrypted, and no key on this machine opens it
	Signed  string           // describes the certificate of a copy that is only on this machine
}

// OfTarget returns the address of the list of the target's snapshots.
func (c Card) OfTarget() string {
	return c.List + "?" + url.Values{"target": {c.Snapshot.Target}}.Encode()
}

// Fields describes how the snapshot was made.
func (c Card) Fields() []card.Field {
	if c.Card == nil {
		return nil
	}
	all := card.Fields(*c.Card, c.Snapshot.Engine)
	if subset := card.Subset(c.Card.Subset); subset != "" {
		all = append(all, card.Field{Name: "Subset", Value: subset})
	}
	return all
}

// Certificate describes the snapshot's certificate. It is "" for an original, which has none.
func (c Card) Certificate() string { return cmp.Or(c.Signed, card.Certificate(c.Snapshot)) }

// Sums describes how much the snapshot holds or, after a search, how much was found.
func (c Card) Sums() string {
	if c.Found != nil {
		return Plural(c.Found.Tables, "table", "tables") + " with " + Plural(c.Found.Columns, "column", "columns") +
			" match."
	}
	t := *c.Totals
	text := Plural(t.Tables, "table", "tables") + ", " + Plural(t.Columns, "column", "columns") + ", " +
		Plural(int(t.Rows), "row", "rows")
	if t.Bytes > 0 {
		text += ", " + Bytes(t.Bytes) + " before compression"
	}
	if c.Card.Unlisted > 0 {
		text += "; " + Plural(c.Card.Unlisted, "more table is", "more tables are") + " not listed"
	}
	return text + "."
}

// Rows describes how many rows a table has.
func (c Card) Rows(t api.CardTable) string {
	switch {
	case t.Dropped:
		return "dropped"
	case t.Rows < 0:
		return "not counted"
	case c.Card.Subset != nil:
		return fmt.Sprintf("%s of %s", humanize.Comma(t.Rows), humanize.Comma(t.Of))
	}
	return humanize.Comma(t.Rows)
}

// Definition describes a column without its mask.
func (c Card) Definition(column api.CardColumn) string {
	column.Mask = ""
	return card.Definition(column)
}

// Mask describes how a column was masked.
func (c Card) Mask(t api.CardTable, column api.CardColumn) string { return card.Mask(t, column) }

// CardTable is the data of the part "card-columns": one table of a card.
type CardTable struct {
	Card
	Table api.CardTable
}

// Of returns one of the card's tables.
func (c Card) Of(t api.CardTable) CardTable { return CardTable{c, t} }

// Count describes how many columns the table has and how many of them were masked.
func (t CardTable) Count() string {
	masked := 0
	for _, column := range t.Table.Columns {
		if column.Mask != "" && column.Mask != card.Kept {
			masked++
		}
	}
	text := Plural(len(t.Table.Columns), "column", "columns")
	if masked > 0 && !t.Table.Dropped {
		text += fmt.Sprintf(", %d masked", masked)
	}
	return text
}

// columnsShown is the maximum number of columns on a page, so that the page stays small. If there
// are more, in several tables, the page shows only how many each table has.
const columnsShown = 250

// ListsColumns reports whether the page lists the columns of its tables.
func (c Card) ListsColumns() bool {
	n := 0
	for _, t := range c.Card.Tables {
		n += len(t.Columns)
	}
	return n <= columnsShown || len(c.Card.Tables) == 1
}

// Columns returns the address of a page with the columns of one table, or "" if its name is too
// long for a search.
func (c Card) Columns(t api.CardTable) string {
	if len(t.Label()) > 100 {
		return ""
	}
	return c.Here + "?" + url.Values{"q": {t.Label()}}.Encode() + "#tables"
}

// changesShown is the maximum number of differences on a page.
const changesShown = 20

// Changed describes the first differences from the previous snapshot.
func (c Card) Changed() (all []string) {
	for _, one := range c.Changes.Changes[:min(len(c.Changes.Changes), changesShown)] {
		all = append(all, card.Change(one))
	}
	return all
}

// More returns the number of differences that Changed leaves out.
func (c Card) More() int { return max(0, len(c.Changes.Changes)-changesShown) + c.Changes.More }

// PreviousPage returns the address of the page with the tables before these, or "".
func (c Card) PreviousPage() string { return c.pageAddress(c.Page - 1) }

// NextPage returns the address of the page with the tables after these, or "".
func (c Card) NextPage() string { return c.pageAddress(c.Page + 1) }

// pageAddress returns the address of a page of tables, or "" if there is no such page.
func (c Card) pageAddress(page int) string {
	if page < 1 || page > c.Pages {
		return ""
	}
	q := url.Values{"page": {strconv.Itoa(page)}}
	if c.Q != "" {
		q.Set("q", c.Q)
	}
	return c.Here + "?" + q.Encode() + "#tables"
}

// PullCommand returns the command line that pulls the snapshot.
func (c Card) PullCommand() string { return card.PullCommand(c.Snapshot) }

// LoadCommand returns the command line that loads the snapshot right after it was pulled.
func (c Card) LoadCommand() string { return card.LoadCommand(c.Snapshot) }

// Sizes returns a plot of the sizes of a target's snapshots, with times in the zone. versions must
// be sorted newest first.
func Sizes(versions []api.Snapshot, zone *time.Location) Plot {
	p := Plot{Title: "Size over time", Of: "Size", When: "Pushed"}
	for _, s := range slices.Backward(versions) {
		p.Points = append(p.Points, Point{When: Exact(s.Created.In(zone)), Value: s.Size, Text: Bytes(s.Size)})
	}
	p.Total = Plural(len(versions), "snapshot", "snapshots") + " of " + versionsOf(versions)
	return p
}

func versionsOf(versions []api.Snapshot) string {
	if len(versions) == 0 {
		return ""
	}
	return versions[0].Target + ", " + string(versions[0].Type)
}

// Audience is the data of the part "card-audience": who can see a snapshot.
type Audience struct {
	People int    // users of the organization
	Org    string // name of the organization that owns it
	Ways   []Way
	Keys   []api.AccessKey
}

// AudienceOf returns who can see a snapshot of the organization with this slug and name.
func AudienceOf(a api.Access, slug, name string) *Audience {
	return &Audience{People: a.People, Org: name, Ways: Ways(a.Ways, slug), Keys: a.Keys}
}

// Way is the data of the part "way": a grant that lets people see a snapshot.
type Way struct {
	api.AccessWay
	Org   string   // slug of the organization that owns the snapshot
	Group string   // name of the group; empty if it was not requested
	Who   []string // people whom the page names; empty if they were not requested
	Rest  int      // number of further people
}

// whoShown is the maximum number of people that are named for one grant.
const whoShown = 30

// Name sets the people whom the page names for a grant.
func (w *Way) Name(people []string) {
	w.Who = people[:min(len(people), whoShown)]
	w.Rest = len(people) - len(w.Who)
}

// Ways returns the grants with the slug of the organization that owns the snapshot.
func Ways(ways []api.AccessWay, org string) (all []Way) {
	for _, w := range ways {
		all = append(all, Way{AccessWay: w, Org: org})
	}
	return all
}

// Icon returns the name of the icon for the people who see the snapshot.
func (w Way) Icon() string {
	icons := map[string]string{"organization": "building", "owner": "person", "admins": "key", "keys": "key"}
	return cmp.Or(icons[w.Kind], "people")
}

// Text names the people who see the snapshot.
func (w Way) Text() string {
	switch w.Kind {
	case "owner":
		return "its owner, " + w.Owner
	case "admins":
		return "owners and admins of " + w.Org
	case "org_wide":
		return "everyone in " + w.Org
	case "group":
		return "the group " + cmp.Or(w.Group, w.GroupID)
	case "organization":
		if w.Organization == "" {
			return "another organization (shared by an owner or admin)"
		}
		return "everyone in " + w.Organization
	}
	return w.Through
}

// Mine explains why the caller sees the snapshot. The page shows it after "You can see it".
func (w Way) Mine() string {
	switch w.Kind {
	case "owner":
		return "because you pushed it"
	case "admins":
		return "as an owner or admin of " + w.Org
	case "org_wide":
		return "because it is shared with everyone in " + w.Org
	case "group":
		return "through the group " + w.GroupID
	case "organization":
		return "because " + w.Org + " shared it with your organization"
	}
	return "as " + w.Through
}
