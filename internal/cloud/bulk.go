package cloud

import (
	"context"
	"net/http"

	"snap"
	"snap/api"
	"snap/internal/store"
)

type bulkInput struct {
	Confirmation
	Body api.BulkRequest
}

// bulk changes several snapshots, one after the other. For each of them, it checks the caller as
// the guard does for the route that changes one snapshot, and calls that route's handler.
func (s *Service) bulk(ctx context.Context, in *bulkInput) (*body[api.BulkResults], error) {
	change, do, err := s.bulkChange(in)
	if err != nil {
		return nil, err
	}
	if in.Body.Share == nil { // the change takes access away, as in reducesAccess
		ctx = store.AllowReserve(ctx)
	}
	out := api.BulkResults{Items: []api.BulkResult{}}
	for _, id := range in.Body.IDs {
		result, err := s.bulkOne(ctx, id, do, change)
		if err != nil {
			problem := problemOf(ctx, s.telemetry.outages, err)
			if problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusTooManyRequests {
				return nil, err
			}
			result.Error = &api.BulkError{Code: problem.Code, Detail: problem.Detail, Hint: problem.Hint}
		}
		result.ID = id
		out.Items = append(out.Items, result)
	}
	return &body[api.BulkResults]{out}, nil
}

// bulkChange returns the change that a bulk request asks for, and its action.
func (s *Service) bulkChange(in *bulkInput) (change func(context.Context) (api.BulkResult, error), do snap.Action,
	err error) {
	asked := 0
	if in.Body.Share != nil {
		asked++
		change, do = func(ctx context.Context) (api.BulkResult, error) {
			return bulkShares(s.shares(ctx, &sharesInput{Confirmation: in.Confirmation, Body: *in.Body.Share}))
		}, snap.ActShare
	}
	if in.Body.Unshare != nil {
		asked++
		change, do = func(ctx context.Context) (api.BulkResult, error) {
			return bulkShares(s.endShares(ctx, &unshareInput{Body: *in.Body.Unshare}))
		}, snap.ActShare
	}
	if in.Body.Delete {
		asked++
		change, do = func(ctx context.Context) (api.BulkResult, error) {
			_, err := s.deleteSnapshot(ctx, &ByID{})
			return api.BulkResult{Deleted: err == nil}, err
		}, snap.ActDelete
	}
	if asked != 1 {
		return nil, "", snap.Invalid("a bulk request must ask for exactly one change",
			"set one of share, unshare and delete")
	}
	return change, do, nil
}

func bulkShares(made *body[api.ShareChanges], err error) (api.BulkResult, error) {
	if err != nil {
		return api.BulkResult{}, err
	}
	return api.BulkResult{Changes: made.Body.Changes, Warning: made.Body.Warning}, nil
}

// bulkOne checks the caller's access to one snapshot and changes it.
func (s *Service) bulkOne(ctx context.Context, id string, do snap.Action,
	change func(context.Context) (api.BulkResult, error)) (api.BulkResult, error) {
	c := &call{caller: callOf(ctx).caller}
	if err := s.checkOrgKeyShare(ctx, c.caller, do, id); err != nil {
		return api.BulkResult{}, err
	}
	if err := s.admitTo(ctx, c, id, do); err != nil {
		return api.BulkResult{}, err
	}
	return change(context.WithValue(ctx, callKey{}, c))
}
