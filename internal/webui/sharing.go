package webui

import (
	"context"
	"net/http"
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
	Others []groupChoice // those that match the search, at most groupsShown
	More   int           // further ones that match
	Total  int           // groups of the organization
	Orgs   []api.OrgShare
	Expiry []expiryChoice
	Today  string
	Access *api.Access    // who can see it; nil when the caller may not ask
	Asked  string         // the e-mail of a user asked about
	Adds   *api.Newcomers // whom sharing org-wide would add; nil when not asked
}

type groupChoice struct {
	api.Group
	On bool
}

type expiryChoice struct{ Value, Text string }

// groupsShown bounds the groups that are shown at once; the search finds the rest.
const groupsShown = 40

// rowPage is the data of the part "row".
type rowPage struct {
	look.Page
	Row     row
	Widened bool // it was just shared org-wide, and is not sanitized
}

// confirmShare asks before a snapshot that is not sanitized is shared org-wide,
// and says whom that adds.
func (s *Server) confirmShare(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	adds := 0
	if n, err := s.cloud.client().Newcomers(r.Context(), one.Cloud.ID, ""); err == nil {
		adds = n.Count
	}
	page := confirmPage{
		Page: s.page(titleShare, "/snapshots"), Question: askShare(one.Name(), one.Cloud.Organization),
		Detail: tellShare(one.Cloud.Organization, adds),
		Icon:   "people", Button: buttonShare, Action: one.Action("share"), Shared: true, Back: "/snapshots",
	}
	page.Narrow = true
	return s.show(w, r, "confirm.html", "dialog", page)
}

// share switches the org-wide share at once (SPEC 3).
func (s *Server) share(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	id, on := r.PathValue("id"), r.PostFormValue("shared") == "true"
	var err error
	if on {
		_, err = s.cloud.client().Share(r.Context(), id)
	} else {
		err = s.cloud.client().Unshare(r.Context(), id)
	}
	if err != nil {
		return err
	}
	return s.sharingChanged(w, r)
}

// sharingChanged answers a change of shares with what shows them: the row, and
// the dialog when it was made there.
func (s *Server) sharingChanged(w http.ResponseWriter, r *http.Request) error {
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
		return s.views.Part(w, http.StatusOK, "sharing.html", "changed", page)
	}
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	one.Back = back(r)
	return s.views.Part(w, http.StatusOK, "snapshots.html", "one-row", rowPage{Row: one, Widened: r.PostFormValue("shared") == "true" && !one.Sanitized()})
}

// sharing is the dialog, or without script a page of its own.
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
	id := r.PathValue("id")
	if group := r.PostFormValue("revoke"); group != "" {
		if err := s.cloud.client().UnshareGroup(r.Context(), id, group); err != nil {
			return err
		}
	} else if _, err := s.cloud.client().ShareGroup(r.Context(), id, r.PostFormValue("grant")); err != nil {
		return err
	}
	return s.sharingChanged(w, r)
}

func (s *Server) shareOrg(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	expires, err := expiryOf(r.PostFormValue("expires"), r.PostFormValue("date"), s.o.Now())
	if err != nil {
		return err
	}
	slug := strings.ToLower(strings.TrimSpace(r.PostFormValue("slug")))
	if slug == "" {
		return errNoSlug()
	}
	if _, err := s.cloud.client().ShareOrg(r.Context(), r.PathValue("id"), slug, expires); err != nil {
		return err
	}
	return s.sharingChanged(w, r)
}

func (s *Server) revokeOrg(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	if err := s.cloud.client().UnshareOrg(r.Context(), r.PathValue("id"), r.PostFormValue("slug")); err != nil {
		return err
	}
	return s.sharingChanged(w, r)
}

// expiryOf reads the expiry choice: nothing is never, "date" is the end of the
// given day in UTC, the rest is a duration from now.
func expiryOf(choice, date string, now time.Time) (*time.Time, error) {
	switch choice {
	case "":
		return nil, nil
	case "date":
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			return nil, errNoDate()
		}
		end := day.Add(24*time.Hour - time.Second)
		return &end, nil
	}
	d, err := snap.ParseDuration(choice)
	if err != nil {
		return nil, err
	}
	at := now.Add(d).UTC().Truncate(time.Second)
	return &at, nil
}

// sharingOf gathers the dialog's data, asking the service for all of it at once.
func (s *Server) sharingOf(ctx context.Context, r *http.Request, id string) (sharingPage, error) {
	page := sharingPage{Page: s.page(titleSharing, "/snapshots"), Search: strings.TrimSpace(r.FormValue("group")), Asked: strings.TrimSpace(r.FormValue("user")), Expiry: expiryChoices(), Today: s.o.Now().UTC().Format(time.DateOnly)}
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
	}
	s.askAccess(ctx, g, &page)
	err = g.Wait()
	page.choose(groups, shares)
	return page, err
}

// askAccess asks who can see the snapshot, and whom sharing org-wide would add.
func (s *Server) askAccess(ctx context.Context, g *errgroup.Group, page *sharingPage) {
	id := page.Row.Cloud.ID
	if page.Can.Explain {
		g.Go(func() error {
			access, err := s.cloud.client().Access(ctx, id, page.Asked)
			if err == nil {
				page.Access = &access
			}
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

// choose splits the groups into those shared with and the others that match.
func (p *sharingPage) choose(groups []api.Group, shares []api.GroupShare) {
	p.Total = len(groups)
	on := map[string]bool{}
	for _, share := range shares {
		on[share.GroupID] = true
		p.Shared = append(p.Shared, groupChoice{Group: api.Group{GroupID: share.GroupID, Name: share.Name}, On: true})
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
		p.Others = append(p.Others, groupChoice{Group: g})
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
