package webui

import (
	"cmp"
	"slices"

	"snap/internal/look"
)

const product = "snapcli"

// page returns the data common to all pages. It uses only cached data of the cloud. The page has a
// new revision. If the caller read data before this call, it must replace the revision with one
// that it obtained before it read the data.
func (s *Server) page(title, current string) look.Page {
	p := look.Page{
		Title: title, Product: product, Find: "/find", Revision: s.revisions.next(),
		Styles: []string{"snapshots.css", "share.css", "app.css"}, Scripts: []string{"app.js"},
		Nav: []look.Link{
			{URL: "/", Text: titleHome, Icon: "home"},
			{URL: "/snapshots", Text: titleSnapshots, Icon: "load"},
			{URL: "/targets", Text: titleTargets, Icon: "target"},
			{URL: "/clones", Text: titleClones, Icon: "camera"},
			{URL: "/jobs", Text: titleJobs, Icon: "tasks", Count: s.jobs.running()},
			{URL: "/activity", Text: titleActivity, Icon: "activity"},
			{URL: "/account", Text: titleAccount, Icon: "person"},
		},
	}
	me := s.cloud.cachedMe()
	if !me.Role.IsAdmin() {
		p.Nav = slices.DeleteFunc(p.Nav, func(l look.Link) bool { return l.URL == "/activity" && l.URL != current })
	}
	for i := range p.Nav {
		p.Nav[i].Current = p.Nav[i].URL == current
	}
	if me.Organization != "" {
		p.Who, p.WhoLink = cmp.Or(me.Email, me.Organization), "/account"
	}
	return p
}
