package console

import (
	"slices"

	"snap"
	"snap/api"
)

// groupsPage is the data of groups.html: all groups or, if Group is set, one of them.
type groupsPage struct {
	layout
	Groups  []api.Group
	Group   *api.Group
	Members []api.Member // of Group
	// NextGroups and NextMembers are the addresses of the next pages of groups and members.
	NextGroups, NextMembers string
	shares
}

// shares is the data of the template "shares".
type shares struct {
	Shares []api.LiveShare
	Next   string // address of the next page
	None   string // the text when there are no shares
}

func (s *Server) groups(v *visit) error {
	ctx := v.r.Context()
	groups, err := v.api.Groups(ctx)
	if err != nil {
		return err
	}
	id := v.query("id")
	if id == "" {
		data := groupsPage{layout: s.layout(v)}
		data.Groups, data.NextGroups = pageOf(v, "from", groups)
		return s.write(v, "groups.html", data)
	}
	i := slices.IndexFunc(groups, func(g api.Group) bool { return g.GroupID == id })
	if i < 0 {
		return errNoPage
	}
	data := groupsPage{layout: s.layout(v), Group: &groups[i]}
	data.None = "Nothing is shared with this group."
	members, err := v.api.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.InGroup(id, groups[i].Name) {
			data.Members = append(data.Members, m)
		}
	}
	data.Members, data.NextMembers = pageOf(v, "members", data.Members)
	if data.shares, err = liveShares(v, id, data.None); err != nil {
		return err
	}
	return s.write(v, "groups.html", data)
}

// liveShares reads a page of live shares with a group or, without one, with other organizations.
func liveShares(v *visit, groupID, none string) (shares, error) {
	page, err := v.api.LiveShares(v.r.Context(), groupID, v.query("cursor"), rowsPerPage)
	out := shares{Shares: page.Items, None: none}
	if page.NextCursor != "" {
		out.Next = v.withParameter("cursor", page.NextCursor)
	}
	return out, err
}

// outsidePage is the data of outside.html.
type outsidePage struct {
	layout
	shares
}

func (s *Server) outside(v *visit) (err error) {
	data := outsidePage{layout: s.layout(v)}
	if data.shares, err = liveShares(v, "", "Nothing is shared with another organization."); err != nil {
		return err
	}
	return s.write(v, "outside.html", data)
}

// endShare ends the share that a form names.
func (s *Server) endShare(v *visit) (string, error) {
	id, slug, group := v.field("snapshot"), v.field("organization"), v.field("group")
	switch {
	case slug != "":
		return "ended", v.api.UnshareOrg(v.r.Context(), id, slug)
	case group != "":
		return "ended", v.api.UnshareGroup(v.r.Context(), id, group)
	}
	return "", snap.Invalid("the form does not say which share", "reload the page")
}
