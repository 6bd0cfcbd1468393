package cloud

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/store"
)

type requestAccessInput struct {
	Body api.AccessRequestRequest
}

type accessRequestsInput struct {
	Mine bool `query:"mine" doc:"the caller's own requests instead of those that they may answer"`
}

// requestAccess stores a request for access. It does the same work, applies the same limit and
// sends the same response, whether the snapshot is hidden or does not exist.
func (s *Service) requestAccess(ctx context.Context, in *requestAccessInput) (*empty, error) {
	c := callOf(ctx).caller
	if c.User == nil {
		return nil, &snap.Error{Code: snap.CodeUserAttributionRequired,
			Detail: "a request for access needs a user; an organization-level key (clt_, sak_) does not act as one",
			Hint:   "sign in with `snapcli login`, or use a user-scoped key (cak_)"}
	}
	id, ok := snap.CleanIDPrefix(in.Body.Snapshot)
	if !ok || len(id) != len(snap.IDPrefix)+16 {
		return nil, snap.Invalid("the snapshot's ID is not complete", "copy the whole ID from the link")
	}
	_, err := s.store.Snapshot(ctx, c, id)
	if err == nil {
		return nil, &snap.Error{Code: snap.CodeConflict, Detail: "you can already see this snapshot",
			Hint: "`snapcli cloud snapshots show " + id + "` shows it"}
	}
	if !errors.Is(err, snap.ErrNotFound) {
		return nil, err
	}
	reason := strings.TrimSpace(snap.CleanText(strings.ReplaceAll(in.Body.Reason, "\n", " ")))
	return &empty{}, s.store.RequestAccess(ctx, c, id, reason)
}

func (s *Service) listAccessRequests(ctx context.Context, in *accessRequestsInput) (*body[api.AccessRequestList],
	error) {
	list := s.store.AccessRequests
	if in.Mine {
		list = s.store.OwnAccessRequests
	}
	found, err := list(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.AccessRequestList]{api.AccessRequestList{Items: each(found, wireAccessRequest)}}, nil
}

func wireAccessRequest(r store.AccessRequest) api.AccessRequest {
	out := api.AccessRequest{ID: strconv.FormatInt(r.ID, 10), Snapshot: r.SnapshotID, Reason: r.Reason,
		CreatedAt: r.Created, Target: r.Snapshot.Target, Name: r.Snapshot.Name, Type: r.Snapshot.Type,
		Email: r.Person.Email, Person: r.Person.Name, Organization: r.Org.Slug}
	for _, g := range r.Groups {
		out.Groups = append(out.Groups, api.MyGroup{GroupID: g.GroupID, Name: g.Name})
	}
	return out
}

func (s *Service) withdrawAccessRequest(ctx context.Context, in *ByNumber) (*empty, error) {
	return in.apply(ctx, s.store.WithdrawAccessRequest)
}

func (s *Service) refuseAccess(ctx context.Context, in *ByNumber) (*empty, error) {
	return in.apply(ctx, s.store.RefuseAccess)
}
