package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// snapshotPage is the data of snapshot.html: one snapshot with its card and shares.
type snapshotPage struct {
	layout
	Card   look.Card
	Link   string     // the whole address of the page, to send to a colleague
	Mine   []look.Way // why the caller sees it
	Access *api.Access
	Pulls  []api.PullCount
	Sizes  look.Plot
	Now    time.Time
	// The share box.
	Shares  []share // live shares
	Groups  []api.Group
	Known   []string // organizations shared with before
	Refusal string   // why the policy forbids sharing it org-wide and with other organizations
	Limit   string   // the longest lifetime of a share with another organization, in words
	latest  string   // the last day on which such a share may end
	outside []look.Choice
	Form    form // the typed values, if the form failed
	Members []api.Member
	Asked   string             // e-mail of a person whose access was asked about
	Verdict *api.AccessVerdict // the answer
	Unknown bool               // nobody has that e-mail
	Open    string             // key of the share whose people are listed
	Waiting []request          // requests for access to it
	Confirm []hidden           // the form that failed because the policy requires confirmation
}

// share is one live share, with what its forms need.
type share struct {
	Page      *snapshotPage
	To        string // everyone, group or organization
	ID        string // of the group or organization
	Name      string
	By        string // e-mail of who shared it
	Since     time.Time
	Until     *time.Time
	Declined  *time.Time
	ByChannel bool
	Schema    bool // the organization sees the card
}

// hidden is a field of a form that is sent again.
type hidden struct{ Name, Value string }

// Can says what the caller may do.
func (p *snapshotPage) Can() api.Can {
	if p.Card.Snapshot.Can == nil {
		return api.Can{}
	}
	return *p.Card.Snapshot.Can
}

// Sanitized reports whether the data is masked.
func (p *snapshotPage) Sanitized() bool { return p.Card.Snapshot.Type == snap.TypeSanitized }

// OrgWide reports whether the snapshot is shared with everyone in the organization.
func (p *snapshotPage) OrgWide() bool { return p.Card.Snapshot.Shared }

// Ways returns the grants on the snapshot.
func (p *snapshotPage) Ways() []look.Way {
	return look.Ways(p.Access.Ways, p.Card.Snapshot.Organization)
}

// Among returns the live shares with everyone, groups or organizations.
func (p *snapshotPage) Among(to string) (found []share) {
	for _, one := range p.Shares {
		if one.To == to {
			found = append(found, one)
		}
	}
	return found
}

// New returns a share that is yet to be made, for its form.
func (p *snapshotPage) New(to string) share {
	return share{Page: p, To: to, Schema: p.Form["schema"] != ""}
}

// Mine reports whether the caller may change the share.
func (s share) Mine() bool {
	if s.To == "organization" {
		return s.Page.Can().ShareOrg
	}
	return s.Page.Can().Share
}

// Key distinguishes the fields of one form from those of the others.
func (s share) Key() string { return s.To + "-" + s.ID }

// Ends returns when the share can end.
func (s share) Ends() []look.Choice {
	if s.To == "organization" {
		return s.Page.outside
	}
	return append(look.Ends(), look.Choice{Value: "date", Text: "until a date…"})
}

// People returns how many people the share lets see the snapshot; 0 if that is not known.
func (s share) People() int {
	if s.Page.Access == nil {
		return 0
	}
	for _, w := range s.Page.Access.Ways {
		if s.To == "everyone" && w.Kind == "org_wide" || s.To == "group" && w.Kind == "group" && w.GroupID == s.ID {
			return w.People
		}
	}
	return 0
}

// Persons returns the people behind the share if the page lists them.
func (s share) Persons() (all []api.Member) {
	if s.Page.Open != s.Key() {
		return nil
	}
	for _, m := range s.Page.Members {
		if s.To == "everyone" || slices.Contains(m.Groups, s.Name) || slices.Contains(m.Groups, s.ID) {
			all = append(all, m)
		}
	}
	return all
}

// personsShown is the maximum number of people that the page lists of one share.
const personsShown = 100

// First returns the people that the page lists, and Others is the number of the rest.
func (s share) First() []api.Member { return s.Persons()[:min(len(s.Persons()), personsShown)] }

// Others returns the number of people that the page does not list.
func (s share) Others() int { return len(s.Persons()) - len(s.First()) }

// Reveal returns the address of the page that lists the people behind the share.
func (s share) Reveal() string {
	return s.Page.Card.Here + "?" + url.Values{"people": {s.Key()}}.Encode() + "#sharing"
}

// Suggested returns the members to suggest for a question about one person.
func (p *snapshotPage) Suggested() []api.Member { return p.Members[:min(len(p.Members), personsShown)] }

// Labels returns the labels as they are edited.
func (p *snapshotPage) Labels() string { return strings.Join(p.Card.Snapshot.Labels, ", ") }

// Today and Latest are the first and last day on which the share can end.
func (s share) Today() string { return s.Page.Now.UTC().Format(time.DateOnly) }

// Day returns the day on which the share ends, or "".
func (s share) Day() string {
	if s.Until == nil {
		return ""
	}
	return s.Until.UTC().Format(time.DateOnly)
}

// Latest returns "" if there is no last day.
func (s share) Latest() string {
	if s.To == "organization" {
		return s.Page.latest
	}
	return ""
}

// snapshot shows one snapshot. For a snapshot that the caller may not see, it shows the same page
// as for one that does not exist.
func (s *Server) snapshot(v *visit) error {
	id, ctx := v.r.PathValue("id"), v.r.Context()
	page, err := strconv.Atoi(v.query("page"))
	if err != nil || page < 1 {
		page = 1
	}
	q := strings.TrimSpace(v.query("q"))
	found, err := v.api.Card(ctx, id, q, page)
	if snap.CodeOf(err) == snap.CodeNotFound {
		return s.absent(v)
	}
	if err != nil {
		return err
	}
	p := &snapshotPage{layout: s.outer(v, found.Snapshot.Target+" · "+v.section.title, Snapshots), Now: s.o.Now(),
		Link:  strings.TrimRight(s.o.PublicURL, "/") + Snapshots + "/" + url.PathEscape(found.Snapshot.ID),
		Form:  v.form("group", "organization", "ends", "date", "schema", "description", "labels"),
		Asked: strings.TrimSpace(v.query("check")), Open: v.query("people")}
	p.Card = look.Card{SnapshotCard: found, Here: s.root + Snapshots + "/" + url.PathEscape(id), Q: q}
	p.Scripts = []string{"copy.js"}
	if v.problem != nil && v.problem.Code == snap.CodeConfirm {
		p.Problem, p.Confirm = "", fieldsOf(v)
	}
	if err := p.load(ctx, v.api); err != nil {
		return err
	}
	if p.Can().Share {
		waiting, err := v.api.AccessRequests(ctx, false)
		if err != nil {
			return err
		}
		waiting = slices.DeleteFunc(waiting, func(r api.AccessRequest) bool { return r.Snapshot != found.Snapshot.ID })
		p.Waiting = s.answerable(v, &p.layout, waiting)
	}
	return s.write(v, "snapshot.html", p)
}

// fieldsOf returns the form that the page sent, to send it again.
func fieldsOf(v *visit) (all []hidden) {
	for _, name := range []string{"do", "to", "group", "organization", "ends", "date", "schema"} {
		if value := v.field(name); value != "" {
			all = append(all, hidden{Name: name, Value: value})
		}
	}
	return all
}

// load asks the API for everything else on the page.
func (p *snapshotPage) load(ctx context.Context, c *api.Client) error {
	sn := p.Card.Snapshot
	ways, err := c.Why(ctx, sn.ID)
	if err != nil {
		return err
	}
	p.Mine = look.Ways(ways, sn.Organization)
	versions, err := c.Snapshots(ctx, api.ListOptions{Target: sn.Target, Type: sn.Type, Limit: versionsShown})
	if err != nil {
		return err
	}
	p.Sizes = look.Sizes(versions.Items)
	if p.Card.Card != nil {
		changes, err := c.CardChanges(ctx, sn.ID)
		if err != nil {
			return err
		}
		p.Card.Changes = &changes
	}
	if p.Can().Explain {
		if err := p.explain(ctx, c); err != nil {
			return err
		}
	}
	return p.loadShares(ctx, c)
}

// explain asks who can see the snapshot and who pulled it.
func (p *snapshotPage) explain(ctx context.Context, c *api.Client) error {
	access, err := c.Access(ctx, p.Card.Snapshot.ID, p.Asked)
	if p.Asked != "" && snap.CodeOf(err) == snap.CodeNotFound {
		p.Unknown = true
		access, err = c.Access(ctx, p.Card.Snapshot.ID, "")
	}
	if err != nil {
		return err
	}
	p.Access, p.Verdict = &access, access.User
	if p.Members, err = c.Members(ctx); err != nil {
		return err
	}
	p.Pulls, err = c.Pulls(ctx, p.Card.Snapshot.ID)
	return err
}

// loadShares asks for the contents of the share box.
func (p *snapshotPage) loadShares(ctx context.Context, c *api.Client) (err error) {
	sn, can := p.Card.Snapshot, p.Can()
	var groups []api.GroupShare
	var orgs []api.OrgShare
	var me api.Me
	if !sn.Received {
		if groups, err = c.GroupShares(ctx, sn.ID); err != nil {
			return err
		}
	}
	if can.Share {
		if p.Groups, err = c.Groups(ctx); err != nil {
			return err
		}
		if me, err = c.Me(ctx); err != nil {
			return err
		}
	}
	if can.ShareOrg {
		if orgs, err = c.OrgShares(ctx, sn.ID); err != nil {
			return err
		}
		if p.Known, err = c.SharedWith(ctx); err != nil {
			return err
		}
	}
	p.addShares(groups, orgs)
	p.limit(me.Policy)
	return nil
}

// versionsShown is the maximum number of a target's snapshots in the plot of their sizes.
const versionsShown = 30

// addShares puts the live shares in the order of the box, and keeps the groups with which the
// snapshot is not shared as suggestions.
func (p *snapshotPage) addShares(groups []api.GroupShare, orgs []api.OrgShare) {
	with := map[string]bool{}
	if p.OrgWide() && !p.Card.Snapshot.Received {
		one := share{Page: p, To: "everyone", Until: p.Card.Snapshot.ExpiresAt}
		if p.Access != nil {
			for _, w := range p.Access.Ways {
				if w.Kind == "org_wide" {
					one.By, one.Since = w.GrantedBy, w.Since
				}
			}
		}
		p.Shares = append(p.Shares, one)
	}
	for _, g := range groups {
		with[g.GroupID] = true
		p.Shares = append(p.Shares, share{Page: p, To: "group", ID: g.GroupID, Name: g.Name, Until: g.ExpiresAt,
			By: g.SharedBy, Since: g.SharedAt, ByChannel: g.Channel != ""})
	}
	for _, o := range orgs {
		p.Shares = append(p.Shares, share{Page: p, To: "organization", ID: o.OrgSlug, Name: o.Name, Until: o.ExpiresAt,
			By: o.SharedBy, Since: o.SharedAt, Declined: o.DeclinedAt, Schema: o.WithSchema})
	}
	others := p.Groups[:0]
	for _, g := range p.Groups {
		if !with[g.GroupID] && len(others) < groupsSuggested {
			others = append(others, g)
		}
	}
	p.Groups = others
}

// groupsSuggested is the maximum number of groups that the share box suggests. Other groups can be
// typed.
const groupsSuggested = 100

// limit restricts the choices to those that the organization's policy allows.
func (p *snapshotPage) limit(policy api.Policy) {
	sn := p.Card.Snapshot
	p.Refusal = look.ShareRefusal(policy, sn.Type)
	longest := time.Duration(policy.MaxCrossOrgExpiry) * time.Second
	p.outside = look.EndsOutside(longest)
	if longest > 0 {
		p.Limit = snap.Span(longest)
		p.latest = p.Now.Add(longest - 24*time.Hour + time.Second).UTC().Format(time.DateOnly)
	}
}
