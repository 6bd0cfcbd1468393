package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// Requests is the path of the page of access requests, below the public URL.
const Requests = "/requests"

// request is a request for access that the caller may answer, with the form that answers it.
type request struct {
	api.AccessRequest
	Page    *layout
	Link    string        // address of the snapshot's page
	Choices []look.Choice // shares that would let the person who asks see the snapshot
}

// requestsPage is the data of requests.html.
type requestsPage struct {
	layout
	Requests []request
	Own      []api.AccessRequest
}

func (s *Server) requests(v *visit) error {
	data := requestsPage{layout: s.baseLayout(v, v.section.title, Requests)}
	found, err := v.api.AccessRequests(v.r.Context())
	if err != nil {
		return err
	}
	me, err := v.api.Me(v.r.Context())
	if err != nil {
		return err
	}
	data.Requests = s.addChoices(v, &data.layout, me.Policy, found)
	if data.Own, err = v.api.OwnAccessRequests(v.r.Context()); err != nil {
		return err
	}
	return s.write(v, "requests.html", &data)
}

// addChoices adds to each request the shares with which the caller can grant it. A share with
// another organization ends as it does by default in the share box.
func (s *Server) addChoices(v *visit, l *layout, p api.Policy, found []api.AccessRequest) (all []request) {
	end := look.EndsOutside(time.Duration(p.MaxCrossOrgExpiry) * time.Second)[0]
	for _, r := range found {
		one := request{AccessRequest: r, Page: l, Link: s.root + Snapshots + "/" + url.PathEscape(r.Snapshot)}
		switch {
		case r.Organization == v.caller.Org.Slug:
			for _, g := range r.Groups {
				one.Choices = append(one.Choices,
					look.Choice{Value: "group:" + g.GroupID, Text: "with the group " + g.Name})
			}
			one.Choices = append(one.Choices, look.Choice{Value: "everyone", Text: "with everyone in " + l.Org.Name})
		case admins(v.caller):
			one.Choices = []look.Choice{{Value: "organization:" + r.Organization + ":" + end.Value,
				Text: "with everyone in " + r.Organization + " for " + strings.TrimPrefix(end.Text, "in ")}}
		}
		all = append(all, one)
	}
	return all
}

// answerRequest grants a request for access by sharing the snapshot, refuses the request, or
// withdraws a request of the caller.
func (v *visit) answerRequest(ctx context.Context, snapshot string) (string, error) {
	switch v.field("do") {
	case "withdraw":
		return "withdrawn", v.api.WithdrawAccessRequest(ctx, v.field("request"))
	case "refuse":
		return "refused", v.api.RefuseAccess(ctx, v.field("request"))
	case "grant":
		return v.grantAccess(ctx, snapshot)
	}
	return "", snap.Invalid("the form does not say what to do", "reload the page")
}

// grantAccess makes the share that answers a request.
func (v *visit) grantAccess(ctx context.Context, id string) (string, error) {
	var with api.SharesRequest
	switch kind, name, _ := strings.Cut(v.field("with"), ":"); kind {
	case "everyone":
		with.OrgWide = true
	case "group":
		group, err := v.groupID(ctx, name)
		if err != nil {
			return "", err
		}
		with.GroupIDs = []string{group}
	case "organization":
		slug, expires, _ := strings.Cut(name, ":")
		end, err := look.EndOf(expires, "")
		if err != nil {
			return "", err
		}
		with.OrgSlugs, with.ExpiresIn = []string{slug}, end.ExpiresIn
	default:
		return "", snap.Invalid("choose with whom to share the snapshot", "")
	}
	done, err := v.share(ctx, id, with)
	if snap.CodeOf(err) == snap.CodeConfirm {
		return "", snap.Invalid("this snapshot is not sanitized, and your organization asks you to confirm such "+
			"a share", "open the snapshot's page and share it there")
	}
	return done, err
}

// absentPage is the data of absent.html.
type absentPage struct {
	layout
	ID    string             // of the requested snapshot; empty if the address has no complete ID
	Asked *api.AccessRequest // the caller's request for it
	Form  form
}

// showAbsent writes the page for a snapshot that does not exist or that the caller is not allowed
// to see. The page depends only on the address and on the caller's own requests.
func (s *Server) showAbsent(v *visit) error {
	v.status = http.StatusNotFound
	data := absentPage{layout: s.baseLayout(v, "Not found", Snapshots), Form: v.form("reason")}
	data.Narrow = true
	if id, ok := snap.CleanIDPrefix(v.r.PathValue("id")); ok && len(id) == len(snap.IDPrefix)+16 {
		own, err := v.api.OwnAccessRequests(v.r.Context())
		if err != nil {
			return err
		}
		data.ID = id
		if i := slices.IndexFunc(own, func(r api.AccessRequest) bool { return r.Snapshot == id }); i >= 0 {
			data.Asked = &own[i]
		}
	}
	return s.write(v, "absent.html", data)
}
