package webui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// sharingPage is the data of sharing.html: the Sharing dialog (SPEC 4.6).
type sharingPage struct {
	look.Page
	Row    row
	Can    api.Can
	Search string
	Shared []groupChoice // groups it is shared with
	Others []groupChoice // matching groups, at most groupsShown
	More   int           // number of further matching groups
	Total  int           // number of groups in the organization
	Orgs   []api.OrgShare
	Expiry []look.Choice
	Today  string
	Latest string // the last day on which a share may expire; empty for no limit
	Limit  string // maximum lifetime of a share with another organization, in words
	// Refusal is why the policy forbids sharing org-wide and with other organizations; empty if it
	// allows that.
	Refusal  string
	Change   change
	Audience *look.Audience     // people and keys that can see it; nil unless the caller may list them
	Verdict  *api.AccessVerdict // about the user who was asked about; nil for none
	Asked    string             // e-mail of a user whose access was queried
	Members  []api.Member       // of the organization; nil unless the caller may list who can see it
	Known    []string           // organizations with which somebody shared before
	Link     string             // address of the snapshot's page on the service
	Typed    string             // slug of an organization, if the share with it failed
	Problem  *problem           // why that share failed
	Adds     *api.Newcomers     // users whom an org-wide share would add; nil if not queried
}

// Ends returns how long a new share with groups or the whole organization can last.
func (p sharingPage) Ends() []look.Choice { return look.Ends() }

// EndsInPlace returns how long a share can last from now on when its end is changed.
func (p sharingPage) EndsInPlace(outside bool) []look.Choice {
	if outside {
		return slices.DeleteFunc(slices.Clone(p.Expiry), func(c look.Choice) bool { return c.Value == "date" })
	}
	return look.Ends()
}

// Suggested returns the members who are suggested for a question about one of them.
func (p sharingPage) Suggested() []api.Member {
	return p.Members[:min(len(p.Members), membersSuggested)]
}

// membersSuggested is the maximum number of suggested members. Other members can be typed.
const membersSuggested = 200

// endForm is the data of the part "end": the end of a share, which can be changed in place.
type endForm struct {
	Page    sharingPage
	ID      string // of the form's fields
	Action  string
	Name    string // of the field that names the recipient
	Value   string
	With    string // whom the share is with
	Expires *time.Time
	Choices []look.Choice
	Group   groupChoice // only for a group
}

// WideEnd returns the form for the end of the org-wide share.
func (p sharingPage) WideEnd() endForm {
	return endForm{Page: p, ID: "wide", Action: p.Row.Action("share"), Name: "shared", Value: "true",
		With: everyoneIn(p.Row.Cloud.Organization), Expires: p.Row.Cloud.ExpiresAt, Choices: p.EndsInPlace(false)}
}

// GroupEnd returns the form for the end of a share with a group.
func (p sharingPage) GroupEnd(c groupChoice) endForm {
	return endForm{Page: p, ID: "g-" + c.GroupID, Action: p.Row.Action("groups"), Name: "grant", Value: c.GroupID,
		With: c.Name, Expires: c.Expires, Choices: p.EndsInPlace(false), Group: c}
}

// OrgEnd returns the form for the end of a share with an organization.
func (p sharingPage) OrgEnd(o api.OrgShare) endForm {
	return endForm{Page: p, ID: "o-" + o.OrgSlug, Action: p.Row.Action("organizations"), Name: "slug", Value: o.OrgSlug,
		With: o.OrgSlug, Expires: o.ExpiresAt, Choices: p.EndsInPlace(true)}
}

type groupChoice struct {
	api.Group
	On      bool
	Expires *time.Time // of the share; nil means never
	Refused bool       // the policy forbids an org-wide share
}

// groupsShown is the maximum number of groups shown at once; the search finds the rest.
const groupsShown = 40

// rowPage is the data of the part "row".
type rowPage struct {
	look.Page
	Row    row
	Change change
}

// change is the announcement of a change of shares, with the form that undoes it. The zero value
// means none.
type change struct {
	Text    string
	Warning string // why the change may have been a mistake, such as that the data is not masked
	Action  string // of the form that undoes the change
	Fields  []confirmField
	Dialog  bool // the change was made in the Sharing dialog
	Refresh bool // the list has changed
}

// confirmShare asks for confirmation before an original snapshot is shared org-wide.
func (s *Server) confirmShare(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := s.confirmation(r.Context(), one, api.SharesRequest{OrgWide: true})
	page.Action, page.Fields = one.Action("share"), []confirmField{{"shared", "true"}, {"confirmed", "true"}}
	return s.show(w, r, "confirm.html", "dialog", page)
}

// confirmation asks whether to share original data, and shows who would gain access.
func (s *Server) confirmation(ctx context.Context, one row, with api.SharesRequest) confirmPage {
	audience, group := one.Cloud.Organization, ""
	if len(with.GroupIDs) > 0 {
		group = with.GroupIDs[0]
		audience = group
	}
	if len(with.OrgSlugs) > 0 {
		audience = with.OrgSlugs[0]
	}
	adds := 0
	if len(with.OrgSlugs) == 0 {
		if n, err := s.cloud.client().Newcomers(ctx, one.Cloud.ID, group); err == nil {
			adds = n.Count
		}
	}
	page := confirmPage{
		Page: s.page(titleShare, "/snapshots"), Question: shareQuestion(one.Name(), audience),
		Detail: shareDetails(audience, adds), Icon: "people", Button: buttonShare, Back: "/snapshots",
	}
	page.Narrow = true
	return page
}

// shareWith creates one share. If the organization's policy requires confirmation, it responds with
// the question instead.
func (s *Server) shareWith(w http.ResponseWriter, r *http.Request, with api.SharesRequest, audience string,
	undo change) error {
	id, people := r.PathValue("id"), -1
	if len(with.OrgSlugs) == 0 {
		people = s.newcomers(r.Context(), id, strings.Join(with.GroupIDs, ""))
	}
	made, err := s.cloud.client().ShareWith(r.Context(), id, with, r.PostFormValue("confirmed") == "true")
	if snap.CodeOf(err) == snap.CodeConfirm {
		return s.askToConfirm(w, r, with)
	}
	if err != nil {
		return err
	}
	if made.Warning != "" { // it contains the number too
		people = -1
	}
	undo.Text, undo.Warning = look.Shared(audience, people), made.Warning
	return s.sharingChanged(w, r, undo)
}

// newcomers returns how many people a share org-wide, or with a group, would add, or -1 if that is
// not known. After a share has ended, these are the people who lost access.
func (s *Server) newcomers(ctx context.Context, id, group string) int {
	adds, err := s.cloud.client().Newcomers(ctx, id, group)
	if err != nil {
		return -1
	}
	return adds.Count
}

// askToConfirm responds to a form with a question; the answer yes sends the same form again.
func (s *Server) askToConfirm(w http.ResponseWriter, r *http.Request, with api.SharesRequest) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := s.confirmation(r.Context(), one, with)
	page.Action, page.Fields = r.URL.Path, []confirmField{{"confirmed", "true"}}
	for _, name := range []string{"shared", "grant", "slug", "expires", "date", "from"} {
		if value := r.PostFormValue(name); value != "" {
			page.Fields = append(page.Fields, confirmField{name, value})
		}
	}
	page.Stays, page.Back = r.PostFormValue("from") == "dialog", back(r)
	return s.show(w, r, "confirm.html", "dialog", page)
}

// share switches the org-wide share on or off (SPEC 3).
func (s *Server) share(w http.ResponseWriter, r *http.Request) error {
	me, err := s.cloud.whoami(r.Context())
	if err != nil {
		return err
	}
	undo := func(shared string) change {
		return change{Action: r.URL.Path, Fields: []confirmField{{"shared", shared}}}
	}
	everyone := everyoneIn(me.Organization)
	if r.PostFormValue("shared") == "true" {
		with, err := look.EndOf(r.PostFormValue("expires"), r.PostFormValue("date"))
		if err != nil {
			return err
		}
		with.OrgWide = true
		return s.shareWith(w, r, with, everyone, undo("false"))
	}
	id := r.PathValue("id")
	before, err := s.cloud.client().Snapshot(r.Context(), id)
	if err != nil {
		return err
	}
	if err := s.cloud.client().Unshare(r.Context(), id); err != nil {
		return err
	}
	made := undo("true")
	made.Fields = append(made.Fields, sameEnd(before.ExpiresAt)...)
	made.Text = look.Unshared(everyone, s.newcomers(r.Context(), id, ""))
	return s.sharingChanged(w, r, made)
}

// sharingChanged responds to a change of shares with the updated row, and the dialog if the change
// was made there.
func (s *Server) sharingChanged(w http.ResponseWriter, r *http.Request, made change) error {
	s.cloud.changed()
	if !fragment(r) {
		http.Redirect(w, r, back(r), http.StatusSeeOther)
		return nil
	}
	if r.PostFormValue("from") == "dialog" {
		page, err := s.sharingOf(r.Context(), r, r.PathValue("id"))
		if err != nil {
			return err
		}
		made.Dialog = true
		page.Change = made
		return s.views.Part(w, http.StatusOK, "sharing.html", "changed", page)
	}
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if back(r) == one.Page() {
		page, err := s.snapshotOf(r.Context(), url.Values{}, one)
		if err != nil {
			return err
		}
		return s.views.Part(w, http.StatusOK, "snapshot.html", "changed", changedSnapshot{page, made})
	}
	one.Back = back(r)
	return s.views.Part(w, http.StatusOK, "snapshots.html", "one-row", rowPage{Row: one, Change: made})
}

// sharing shows the Sharing dialog, or without script its own page.
func (s *Server) sharing(w http.ResponseWriter, r *http.Request) error {
	page, err := s.sharingOf(r.Context(), r, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.show(w, r, "sharing.html", "dialog", page)
}

func (s *Server) shareGroup(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	id, group := r.PathValue("id"), r.PostFormValue("revoke")
	if group == "" {
		group = r.PostFormValue("grant")
		with, err := look.EndOf(r.PostFormValue("expires"), r.PostFormValue("date"))
		if err != nil {
			return err
		}
		with.GroupIDs = []string{group}
		return s.shareWith(w, r, with, groupNamed(group),
			change{Action: r.URL.Path, Fields: []confirmField{{"revoke", group}}})
	}
	before, err := s.cloud.client().GroupShares(r.Context(), id)
	if err != nil {
		return err
	}
	if err := s.cloud.client().UnshareGroup(r.Context(), id, group); err != nil {
		return err
	}
	undo := []confirmField{{"grant", group}}
	for _, share := range before {
		if share.GroupID == group {
			undo = append(undo, sameEnd(share.ExpiresAt)...)
		}
	}
	return s.sharingChanged(w, r, change{Text: look.Unshared(groupNamed(group), s.newcomers(r.Context(), id, group)),
		Action: r.URL.Path, Fields: undo})
}

// sameEnd returns the fields by which Undo restores the former end of a share exactly.
func sameEnd(expires *time.Time) []confirmField {
	if expires == nil {
		return nil
	}
	return []confirmField{{"expires", "until"}, {"date", expires.UTC().Format(time.RFC3339Nano)}}
}

// shareOrg shares with another organization. In the dialog, an error is shown at its field.
func (s *Server) shareOrg(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	slug := strings.ToLower(strings.TrimSpace(r.PostFormValue("slug")))
	with, err := look.EndOf(r.PostFormValue("expires"), r.PostFormValue("date"))
	if err == nil && slug == "" {
		err = errNoSlug()
	}
	if err == nil {
		with.OrgSlugs = []string{slug}
		err = s.shareWith(w, r, with, slug,
			change{Action: r.URL.Path + "/revoke", Fields: []confirmField{{"slug", slug}}})
	}
	if err == nil || !fragment(r) || r.PostFormValue("from") != "dialog" {
		return err
	}
	page, failed := s.sharingOf(r.Context(), r, r.PathValue("id"))
	if failed != nil {
		return err // the service has already given the reason
	}
	page.Typed, page.Problem = slug, problemOf(s.cloud.client().SuggestOrg(r.Context(), slug, err))
	return s.views.Part(w, statusOf(err), "sharing.html", "dialog", page)
}

// revokeOrg ends the share with an organization. Undo restores its former end exactly.
func (s *Server) revokeOrg(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	id, slug := r.PathValue("id"), r.PostFormValue("slug")
	before, err := s.cloud.client().OrgShares(r.Context(), id)
	if err != nil {
		return err
	}
	if err := s.cloud.client().UnshareOrg(r.Context(), id, slug); err != nil {
		return err
	}
	undo := []confirmField{{"slug", slug}}
	for _, share := range before {
		if share.OrgSlug == slug {
			undo = append(undo, sameEnd(share.ExpiresAt)...)
		}
	}
	return s.sharingChanged(w, r, change{Text: look.Unshared(slug, -1),
		Action: strings.TrimSuffix(r.URL.Path, "/revoke"), Fields: undo})
}

// sharingOf collects the dialog's data with concurrent requests to the service.
func (s *Server) sharingOf(ctx context.Context, r *http.Request, id string) (sharingPage, error) {
	page := sharingPage{Page: s.page(titleSharing, "/snapshots"), Search: strings.TrimSpace(r.FormValue("group")),
		Asked: strings.TrimSpace(r.FormValue("user")), Today: s.o.Now().UTC().Format(time.DateOnly)}
	one, err := s.cloudRow(ctx, id)
	if err != nil {
		return page, err
	}
	one.Back = "/cloud/" + id + "/sharing"
	page.Row = one
	if one.Cloud.Can != nil {
		page.Can = *one.Cloud.Can
	}
	page.Narrow = true
	page.limit(s.o.Now())
	var groups []api.Group
	var shares []api.GroupShare
	g, ctx := errgroup.WithContext(ctx)
	if page.Can.Share {
		g.Go(func() (err error) {
			groups, err = s.cloud.ssoGroups(ctx)
			return err
		})
	}
	if !one.Cloud.Received {
		g.Go(func() (err error) {
			shares, err = s.cloud.client().GroupShares(ctx, id)
			return err
		})
	}
	if page.Can.ShareOrg {
		g.Go(func() (err error) {
			page.Orgs, err = s.cloud.client().OrgShares(ctx, id)
			return err
		})
		g.Go(func() (err error) {
			page.Known, err = s.cloud.sharedWith(ctx)
			return err
		})
	}
	s.loadAccess(ctx, g, &page)
	err = g.Wait()
	page.choose(groups, shares)
	page.namePeople(shares)
	page.Link = s.cloud.base() + "/snapshots/" + url.PathEscape(id)
	return page, err
}

// namePeople names the people behind each grant.
func (p *sharingPage) namePeople(shares []api.GroupShare) {
	if p.Audience == nil {
		return
	}
	names := map[string]string{}
	for _, share := range shares {
		names[share.GroupID] = share.Name
	}
	for i := range p.Audience.Ways {
		w := &p.Audience.Ways[i]
		var people []string
		for _, m := range p.Members {
			in := w.Kind == "org_wide" || w.Kind == "admins" && m.Role.IsAdmin() ||
				w.Kind == "group" && slices.Contains(m.Groups, names[w.GroupID])
			if in {
				people = append(people, m.Email)
			}
		}
		w.Name(people)
	}
}

// loadAccess requests who can see the snapshot, and whom an org-wide share would add.
func (s *Server) loadAccess(ctx context.Context, g *errgroup.Group, page *sharingPage) {
	id := page.Row.Cloud.ID
	if page.Can.Explain {
		g.Go(func() error {
			access, err := s.cloud.client().Access(ctx, id, page.Asked)
			if err == nil {
				org := page.Row.Cloud.Organization
				page.Audience, page.Verdict = look.AudienceOf(access, org, org), access.User
			}
			return err
		})
		g.Go(func() (err error) {
			page.Members, err = s.cloud.members(ctx)
			return err
		})
	}
	if page.Can.Share && !page.Row.Cloud.Shared {
		g.Go(func() error {
			adds, err := s.cloud.client().Newcomers(ctx, id, "")
			if err == nil {
				page.Adds = &adds
			}
			return err
		})
	}
}

// limit restricts the choices to those that the organization's policy allows.
func (p *sharingPage) limit(now time.Time) {
	p.Refusal = p.Row.Refusal()
	policy := p.Row.Me.Policy
	longest := time.Duration(policy.MaxCrossOrgExpiry) * time.Second
	p.Expiry = look.EndsOutside(longest)
	if longest > 0 {
		p.Limit = snap.Span(longest)
		p.Latest = now.Add(longest - 24*time.Hour + time.Second).UTC().Format(time.DateOnly)
	}
}

// choose splits the groups into those that the snapshot is shared with and the others that match.
func (p *sharingPage) choose(groups []api.Group, shares []api.GroupShare) {
	p.Total = len(groups)
	on := map[string]bool{}
	for _, share := range shares {
		on[share.GroupID] = true
		p.Shared = append(p.Shared, groupChoice{Group: api.Group{GroupID: share.GroupID, Name: share.Name}, On: true,
			Expires: share.ExpiresAt})
	}
	for _, g := range groups {
		if i := slices.IndexFunc(p.Shared, func(c groupChoice) bool { return c.GroupID == g.GroupID }); i >= 0 {
			p.Shared[i].Group = g
		}
		if on[g.GroupID] || !strings.Contains(strings.ToLower(g.Name+" "+g.GroupID), strings.ToLower(p.Search)) {
			continue
		}
		if len(p.Others) == groupsShown {
			p.More++
			continue
		}
		p.Others = append(p.Others, groupChoice{Group: g, Refused: p.Row.refusedUnmasked()})
	}
}

// cloudRow returns one cloud snapshot with its local copy, if any.
func (s *Server) cloudRow(ctx context.Context, id string) (row, error) {
	if err := s.needCloud(); err != nil {
		return row{}, err
	}
	revision := s.revisions.next()
	item, err := s.cloud.client().Snapshot(ctx, id)
	if err != nil {
		return row{}, err
	}
	me, err := s.cloud.whoami(ctx)
	if err != nil {
		return row{}, err
	}
	here, err := s.o.Agent.Snapshots("")
	if err != nil {
		return row{}, err
	}
	return row{Cloud: &item, Local: copiesOf(here, s.cloud.base()).of(item), Me: me, Revision: revision}, nil
}

func (s *Server) needCloud() error {
	if s.cloud.configured() {
		return nil
	}
	return errNoCloud()
}
