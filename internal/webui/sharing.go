package webui

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// sharingPage is the data of sharing.html: the Sharing dialog (SPEC 4.6).
type sharingPage struct {
	look.Page
	Row    row
	Box    *look.ShareBox
	Link   string // address of the snapshot's page on the service
	Change look.Change
}

// rowPage is the data of the part "one-row".
type rowPage struct {
	look.Page
	Row    row
	Change look.Change
}

// confirmShare asks for confirmation before an original snapshot is shared org-wide.
func (s *Server) confirmShare(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := s.confirmation(r.Context(), one, api.SharesRequest{OrgWide: true})
	page.Action, page.Fields = one.Action("share"), look.Fields("shared", "true", "confirmed", "true")
	return s.ask(w, r, page)
}

// confirmation returns the page that asks whether to share original data, and that says how many
// people would gain access.
func (s *Server) confirmation(ctx context.Context, one row, with api.SharesRequest) confirmPage {
	audience := one.Cloud.Organization
	if len(with.GroupIDs) > 0 {
		audience = with.GroupIDs[0]
	}
	if len(with.OrgSlugs) > 0 {
		audience = with.OrgSlugs[0]
	}
	return confirmPage{
		Page: s.page(titleShare, "/snapshots"), Question: shareQuestion(one.Name(), audience),
		Detail: shareDetails(audience, s.newcomers(ctx, one.Cloud.ID, with)),
		Icon:   "people", Button: buttonShare, Back: "/snapshots",
	}
}

// shareWith creates one share, or changes its expiry. If the organization's policy requires
// confirmation, it responds with the question instead. undo holds the form that ends a new share.
// If the share already existed, shareWith replaces that form with one that restores the previous
// expiry.
func (s *Server) shareWith(w http.ResponseWriter, r *http.Request, with api.SharesRequest, audience string,
	undo look.Change) error {
	id, client := r.PathValue("id"), s.cloud.client()
	before, err := look.LiveShare(r.Context(), client, id, with)
	if err != nil {
		return err
	}
	people := s.newcomers(r.Context(), id, with)
	result, err := client.ShareWith(r.Context(), id, with, r.PostFormValue("confirmed") == "true")
	if snap.CodeOf(err) == snap.CodeConfirm {
		return s.askToConfirm(w, r, with)
	}
	if err != nil {
		return err
	}
	undo.Text, undo.Warning = look.Shared(audience, people), result.Warning
	switch {
	case len(result.Changes) == 1 && !result.Changes[0].Changed:
		undo.Text, undo.Fields = look.Unchanged, nil
	case before != nil:
		undo.Text, undo.Action, undo.Fields = look.EndChanged(audience), r.URL.Path, before.Fields()
	case result.Warning != "": // the warning has the number of people too
		undo.Text = look.Shared(audience, -1)
	}
	return s.sharingChanged(w, r, undo)
}

// endShare ends one share. The parameter action is the path to which the form that undoes this
// posts. The form creates the share again with the same expiry.
func (s *Server) endShare(w http.ResponseWriter, r *http.Request, with api.SharesRequest, audience,
	action string) error {
	id, client := r.PathValue("id"), s.cloud.client()
	before, err := look.LiveShare(r.Context(), client, id, with)
	if err != nil {
		return err
	}
	if _, err := client.UnshareFrom(r.Context(), id,
		api.UnshareRequest{OrgWide: with.OrgWide, GroupIDs: with.GroupIDs, OrgSlugs: with.OrgSlugs}); err != nil {
		return err
	}
	return s.sharingChanged(w, r, look.Change{Text: look.Unshared(audience, s.newcomers(r.Context(), id, with)),
		Action: action, Fields: before.Fields()})
}

// newcomers returns how many people would gain access through a share within the organization. It
// returns -1 if that is not known. After a share has ended, these are the people who lost access.
func (s *Server) newcomers(ctx context.Context, id string, with api.SharesRequest) int {
	if len(with.OrgSlugs) > 0 {
		return -1
	}
	adds, err := s.cloud.client().Newcomers(ctx, id, strings.Join(with.GroupIDs, ""))
	if err != nil {
		return -1
	}
	return adds.Count
}

// askToConfirm responds to a form with a question; confirming it sends the same form again.
func (s *Server) askToConfirm(w http.ResponseWriter, r *http.Request, with api.SharesRequest) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := s.confirmation(r.Context(), one, with)
	page.Action, page.Fields = r.URL.Path, look.Fields("confirmed", "true")
	for _, name := range []string{"shared", "grant", "slug", "expires", "date", "schema", "from"} {
		if value := r.PostFormValue(name); value != "" {
			page.Fields = append(page.Fields, look.Fields(name, value)...)
		}
	}
	page.Stays, page.Back = r.PostFormValue("from") == "dialog", back(r)
	return s.ask(w, r, page)
}

// share switches the org-wide share on or off (SPEC 3).
func (s *Server) share(w http.ResponseWriter, r *http.Request) error {
	me, err := s.cloud.whoami(r.Context())
	if err != nil {
		return err
	}
	everyone := everyoneIn(me.Organization)
	if r.PostFormValue("shared") != "true" {
		return s.endShare(w, r, api.SharesRequest{OrgWide: true}, everyone, r.URL.Path)
	}
	with, err := look.EndOf(r.PostFormValue("expires"), r.PostFormValue("date"))
	if err != nil {
		return err
	}
	with.OrgWide = true
	return s.shareWith(w, r, with, everyone,
		look.Change{Action: r.URL.Path, Fields: look.Fields("shared", "false")})
}

// sharingChanged responds to a change of shares with the updated part of the page on which the
// change was made: the snapshot's page, or its row, with the dialog if that was used.
func (s *Server) sharingChanged(w http.ResponseWriter, r *http.Request, change look.Change) error {
	s.cloud.changed()
	if !fragment(r) {
		return redirect(w, r, back(r))
	}
	if r.PostFormValue("from") == "dialog" {
		page, err := s.sharingOf(r.Context(), r, r.PathValue("id"))
		if err != nil {
			return err
		}
		change.Dialog = true
		page.Change = change
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
		return s.views.Part(w, http.StatusOK, "snapshot.html", "changed", changedSnapshot{page, change})
	}
	one.Back = back(r)
	return s.views.Part(w, http.StatusOK, "snapshots.html", "one-row", rowPage{Row: one, Change: change})
}

// sharing shows the Sharing dialog or, without JavaScript, a page of its own.
func (s *Server) sharing(w http.ResponseWriter, r *http.Request) error {
	page, err := s.sharingOf(r.Context(), r, r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.show(w, r, "sharing.html", "dialog", page)
}

func (s *Server) shareGroup(w http.ResponseWriter, r *http.Request) error {
	if group := r.PostFormValue("revoke"); group != "" {
		return s.endShare(w, r, api.SharesRequest{GroupIDs: []string{group}}, groupNamed(group), r.URL.Path)
	}
	group := r.PostFormValue("grant")
	with, err := look.EndOf(r.PostFormValue("expires"), r.PostFormValue("date"))
	if err != nil {
		return err
	}
	with.GroupIDs = []string{group}
	return s.shareWith(w, r, with, groupNamed(group),
		look.Change{Action: r.URL.Path, Fields: look.Fields("revoke", group)})
}

// shareOrg shares a snapshot with another organization. The dialog shows an error next to the
// field.
func (s *Server) shareOrg(w http.ResponseWriter, r *http.Request) error {
	slug := strings.ToLower(strings.TrimSpace(r.PostFormValue("slug")))
	with, err := look.EndOf(r.PostFormValue("expires"), r.PostFormValue("date"))
	if err == nil && slug == "" {
		err = errNoSlug()
	}
	if err == nil {
		schema := r.PostFormValue("schema") != ""
		with.OrgSlugs, with.WithSchema = []string{slug}, &schema
		err = s.shareWith(w, r, with, slug,
			look.Change{Action: r.URL.Path + "/revoke", Fields: look.Fields("slug", slug)})
	}
	if err == nil || !fragment(r) || r.PostFormValue("from") != "dialog" {
		return err
	}
	page, failed := s.sharingOf(r.Context(), r, r.PathValue("id"))
	if failed != nil || !errors.As(s.cloud.client().SuggestOrg(r.Context(), slug, err), &page.Box.Problem) {
		return err // report the first error, not a failure to render the dialog
	}
	page.Box.Typed = slug
	return s.views.Part(w, statusOf(err), "sharing.html", "dialog", page)
}

// revokeOrg ends the share with an organization.
func (s *Server) revokeOrg(w http.ResponseWriter, r *http.Request) error {
	slug := r.PostFormValue("slug")
	return s.endShare(w, r, api.SharesRequest{OrgSlugs: []string{slug}}, slug,
		strings.TrimSuffix(r.URL.Path, "/revoke"))
}

// sharingOf collects the dialog's data.
func (s *Server) sharingOf(ctx context.Context, r *http.Request, id string) (sharingPage, error) {
	page := sharingPage{Page: s.page(titleSharing, "/snapshots")}
	page.Narrow = true
	one, err := s.cloudRow(ctx, id)
	if err != nil {
		return page, err
	}
	one.Back = one.Action("sharing")
	page.Row = one
	page.Link = s.cloud.base() + "/snapshots/" + url.PathEscape(id)
	page.Box = &look.ShareBox{Snapshot: *one.Cloud, Org: one.Cloud.Organization, Policy: one.Me.Policy, At: one.Action,
		Hidden: look.Fields("from", "dialog", "back", one.Back),
		Search: strings.TrimSpace(r.FormValue("group")), Asked: strings.TrimSpace(r.FormValue("user")), Now: s.o.Now()}
	if one.Cloud.Can != nil {
		page.Box.Can = *one.Cloud.Can
	}
	return page, page.Box.Load(ctx, shareSource{s.cloud.client(), s.cloud})
}

// shareSource is the client of the service, with caches for data that rarely changes.
type shareSource struct {
	*api.Client
	cache *cloud
}

func (f shareSource) Groups(ctx context.Context) ([]api.Group, error) { return f.cache.ssoGroups(ctx) }

func (f shareSource) SharedWith(ctx context.Context) ([]string, error) {
	return f.cache.sharedWith(ctx)
}

func (f shareSource) Members(ctx context.Context) ([]api.Member, error) { return f.cache.members(ctx) }

// cloudRow returns one cloud snapshot with its local copy, if any.
func (s *Server) cloudRow(ctx context.Context, id string) (row, error) {
	if err := s.requireCloud(); err != nil {
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

func (s *Server) requireCloud() error {
	if s.cloud.configured() {
		return nil
	}
	return errNoCloud()
}
