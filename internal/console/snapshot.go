package console

import (
	"cmp"
	"context"
	"net/http"
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
	Card    look.Card
	Link    string     // the whole address of the page, to send to a colleague
	Mine    []look.Way // why the caller sees it
	Pulls   []api.PullCount
	Sizes   look.Plot
	Box     *look.ShareBox
	Form    form          // the typed values, if the form failed
	Waiting []request     // requests for access to it
	Confirm []look.Hidden // the form that failed because the policy requires confirmation
	Change  look.Change   // the change to announce, if our script made the request
}

// Can says what the caller may do.
func (p *snapshotPage) Can() api.Can {
	if p.Card.Snapshot.Can == nil {
		return api.Can{}
	}
	return *p.Card.Snapshot.Can
}

// Labels returns the labels as they are edited.
func (p *snapshotPage) Labels() string { return strings.Join(p.Card.Snapshot.Labels, ", ") }

// snapshot shows one snapshot. For a snapshot that the caller is not allowed to see, it shows the
// same page as for one that does not exist.
func (s *Server) snapshot(v *visit) error {
	id, ctx := v.r.PathValue("id"), v.r.Context()
	page, err := strconv.Atoi(v.query("page"))
	if err != nil || page < 1 {
		page = 1
	}
	q := strings.TrimSpace(v.query("q"))
	found, err := v.api.Card(ctx, id, q, page)
	if snap.CodeOf(err) == snap.CodeNotFound {
		return s.showAbsent(v)
	}
	if err != nil {
		return err
	}
	p := &snapshotPage{layout: s.baseLayout(v, found.Snapshot.Target+" · "+v.section.title, Snapshots),
		Link: strings.TrimRight(s.o.PublicURL, "/") + Snapshots + "/" + url.PathEscape(found.Snapshot.ID),
		Form: v.form("description", "labels")}
	p.Card = look.Card{SnapshotCard: found, Here: s.root + Snapshots + "/" + url.PathEscape(id),
		List: s.root + Snapshots, Q: q}
	p.Scripts, p.Styles = []string{"copy.js", "share.js"}, append(p.Styles, "share.css")
	if err := s.loadBox(v, p); err != nil {
		return err
	}
	if v.fragment() {
		return s.views.Part(v.w, cmp.Or(v.status, http.StatusOK), "snapshot.html", "changed", p)
	}
	if err := p.load(ctx, v.api); err != nil {
		return err
	}
	return s.write(v, "snapshot.html", p)
}

// loadBox loads the data of the section about shares from the API.
func (s *Server) loadBox(v *visit, p *snapshotPage) error {
	ctx, sn := v.r.Context(), p.Card.Snapshot
	p.Box = &look.ShareBox{Snapshot: sn, Can: p.Can(), Org: p.Org.Name, Now: s.o.Now(),
		Sequential: true, // concurrent requests would write to the same log line, that of the page
		At: func(form string) string {
			if form == "sharing" {
				return p.Card.Here
			}
			return p.Self
		},
		Hidden: look.Fields("csrf_token", p.CSRF),
		Search: strings.TrimSpace(v.query("group")), Asked: strings.TrimSpace(v.query("user"))}
	if v.problem != nil && v.field("slug") != "" {
		p.Problem, p.Box.Typed, p.Box.Problem = "", v.field("slug"), v.problem
	}
	if v.problem != nil && v.problem.Code == snap.CodeConfirm {
		p.Problem, p.Box.Problem, p.Confirm = "", nil, fieldsOf(v)
	}
	if v.announcement != nil {
		p.Change = look.Change{Text: v.announcement.Text, Warning: v.announcement.Warning, Action: p.Self,
			Fields: v.announcement.Undo}
		if len(v.announcement.Undo) > 0 {
			p.Change.Fields = slices.Concat(v.announcement.Undo, p.Box.Hidden)
		}
	}
	ways, err := v.api.Why(ctx, sn.ID)
	if err != nil {
		return err
	}
	p.Mine = look.Ways(ways, sn.Organization)
	if p.Can().Share {
		me, err := v.api.Me(ctx)
		if err != nil {
			return err
		}
		p.Box.Policy = me.Policy
		waiting, err := v.api.AccessRequests(ctx)
		if err != nil {
			return err
		}
		waiting = slices.DeleteFunc(waiting, func(r api.AccessRequest) bool { return r.Snapshot != sn.ID })
		p.Waiting = s.addChoices(v, &p.layout, me.Policy, waiting)
	}
	return p.Box.Load(ctx, v.api)
}

// fieldsOf returns the fields with which the page's form described a share, to send them again.
func fieldsOf(v *visit) (all []look.Hidden) {
	for _, name := range []string{"shared", "grant", "slug", "expires", "date", "schema"} {
		if value := v.field(name); value != "" {
			all = append(all, look.Fields(name, value)...)
		}
	}
	return all
}

// load loads the data of the rest of the page from the API.
func (p *snapshotPage) load(ctx context.Context, c *api.Client) error {
	sn := p.Card.Snapshot
	versions, err := c.Versions(ctx, sn, versionsShown)
	if err != nil {
		return err
	}
	p.Sizes = look.Sizes(versions, time.UTC)
	if p.Card.Card != nil {
		changes, err := c.CardChanges(ctx, sn.ID)
		if err != nil {
			return err
		}
		p.Card.Changes = &changes
	}
	if p.Can().Explain {
		p.Pulls, err = c.Pulls(ctx, sn.ID)
	}
	return err
}

// versionsShown is the maximum number of a target's snapshots in the plot of their sizes.
const versionsShown = 30
