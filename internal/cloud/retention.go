package cloud

import (
	"context"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

// expireBatch is how many snapshots retention deletes in one step.
const expireBatch = 200

type retentionInput struct {
	Body api.RetentionRule
}

type targetInput struct {
	Target string `path:"target" maxLength:"100"`
}

type runInput struct {
	Body api.RetentionRun
}

func (s *Service) listRetention(ctx context.Context, _ *noInput) (*body[api.RetentionList], error) {
	rules, err := s.store.Retentions(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.RetentionList]{api.RetentionList{Items: each(rules, func(r store.Retention) api.RetentionRule {
		return api.RetentionRule{Target: r.Target, KeepLast: r.KeepLast, KeepDays: r.KeepDays}
	})}}, nil
}

func (s *Service) setRetention(ctx context.Context, in *retentionInput) (*body[api.RetentionRule], error) {
	target, err := snap.CleanTarget(in.Body.Target)
	if err != nil {
		return nil, err
	}
	if in.Body.KeepLast == 0 && in.Body.KeepDays == 0 {
		return nil, snap.Invalid("a retention rule needs keep_last or keep_days", "delete the rule to keep everything")
	}
	rule := store.Retention{Target: target, KeepLast: in.Body.KeepLast, KeepDays: in.Body.KeepDays}
	if err := s.store.SetRetention(ctx, callOf(ctx).caller, rule); err != nil {
		return nil, err
	}
	return &body[api.RetentionRule]{api.RetentionRule(rule)}, nil
}

func (s *Service) deleteRetention(ctx context.Context, in *targetInput) (*empty, error) {
	target, err := snap.CleanTarget(in.Target)
	if err != nil {
		return nil, err
	}
	return &empty{}, s.store.DeleteRetention(ctx, callOf(ctx).caller, target)
}

// runRetention applies the organization's rules now or, in a dry run, lists the snapshots that they
// would delete: in both cases at most expireBatch snapshots, which the same query selects.
func (s *Service) runRetention(ctx context.Context, in *runInput) (*body[api.RetentionResult], error) {
	c := callOf(ctx).caller
	old, err := s.store.Expirable(ctx, c.Org.ID, expireBatch+1)
	if err != nil {
		return nil, err
	}
	more := len(old) > expireBatch
	old = old[:min(len(old), expireBatch)]
	if !in.Body.DryRun {
		if old, err = s.expire(ctx, old); err != nil {
			return nil, err
		}
	}
	return &body[api.RetentionResult]{api.RetentionResult{DryRun: in.Body.DryRun, Snapshots: each(old, wireSnapshot),
		More: more}}, nil
}

// expire deletes snapshots that no rule keeps and returns those it deleted.
func (s *Service) expire(ctx context.Context, old []snap.Snapshot) (deleted []snap.Snapshot, err error) {
	ctx = store.AllowReserve(ctx) // it frees space
	for _, sn := range old {
		key, ok, err := s.store.Expire(ctx, sn)
		if err != nil {
			return deleted, err
		}
		if ok {
			deleted = append(deleted, sn)
			s.dropBytes(ctx, store.Garbage{Blob: key})
		}
	}
	return deleted, nil
}

// expireAll applies the rules of every open organization. It is background work.
func (s *Service) expireAll(ctx context.Context) error {
	orgs, err := s.store.Orgs(ctx)
	if err != nil {
		return err
	}
	for _, org := range orgs {
		if org.Closed {
			continue
		}
		for {
			old, err := s.store.Expirable(ctx, org.ID, expireBatch)
			if err != nil {
				return err
			}
			deleted, err := s.expire(ctx, old)
			if err != nil {
				return err
			}
			if len(deleted) > 0 {
				s.log.Info("retention deleted snapshots", "org", org.Slug, "count", len(deleted))
			}
			if len(deleted) < expireBatch {
				break
			}
		}
	}
	return nil
}

// retentionEvery is how often retention is applied.
const retentionEvery = time.Hour
