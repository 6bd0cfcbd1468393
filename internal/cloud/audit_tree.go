package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"snap"
	"snap/api"
	"snap/internal/auditlog"
)

// sequenceEvery is how often the service looks for audit lines that are not numbered yet. Requests
// that read a log do not wait for that: they call [Service.sequence].
const sequenceEvery = 250 * time.Millisecond

// Sequence numbers the waiting lines of every organization's audit log and signs their checkpoints.
// If a log fails, for example because it was altered, Sequence continues with the other logs and
// returns all errors as one.
func (s *Service) Sequence(ctx context.Context) error {
	orgs, err := s.store.Unsequenced(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, org := range orgs {
		if _, err := s.store.Sequence(ctx, org, s.auditKey); err != nil {
			failed = append(failed, fmt.Errorf("organization %d: %w", org, err))
		}
	}
	return errors.Join(failed...)
}

// sequence numbers the waiting lines of an organization, so that its members can read the lines of
// their own latest actions. A log that was altered can still be read: its checkpoint is refused,
// and verifying it fails.
func (s *Service) sequence(ctx context.Context, orgID int64) error {
	_, err := s.store.Sequence(ctx, orgID, s.auditKey)
	if snap.CodeOf(err) == snap.CodeConflict {
		s.log.ErrorContext(ctx, "cannot continue the audit log", "organization", orgID, "error", err)
		return nil
	}
	return err
}

// checkpoint numbers the waiting lines of an organization's log and returns the signed checkpoint.
func (s *Service) checkpoint(ctx context.Context, org snap.OrgRef) (out api.AuditCheckpoint, size int64, err error) {
	if _, err := s.store.Sequence(ctx, org.ID, s.auditKey); err != nil {
		return out, 0, err
	}
	return s.lastCheckpoint(ctx, org)
}

// lastCheckpoint returns the newest signed checkpoint and its number of lines. For a log without
// lines, out.Checkpoint is empty and size is 0.
func (s *Service) lastCheckpoint(ctx context.Context, org snap.OrgRef) (out api.AuditCheckpoint, size int64,
	err error) {
	out.Key = s.auditKey.Verifier(org.Slug)
	if out.Checkpoint, err = s.store.AuditCheckpoint(ctx, org.ID); err != nil || out.Checkpoint == "" {
		return out, 0, err
	}
	c, err := auditlog.Open(out.Checkpoint, org.Slug, out.Key)
	if err != nil {
		return out, 0, &snap.Error{Code: snap.CodeConflict,
			Detail: "the audit log was altered in the database: " + err.Error(),
			Hint:   "compare the database with a backup, and ask who can write to it"}
	}
	return out, c.Size, nil
}

func (s *Service) auditCheckpoint(ctx context.Context, _ *noInput) (*body[api.AuditCheckpoint], error) {
	c, size, err := s.checkpoint(ctx, callOf(ctx).caller.Org)
	if err == nil && size == 0 {
		err = snap.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &body[api.AuditCheckpoint]{c}, nil
}

type recordsInput struct {
	From  int64 `query:"from" minimum:"1" default:"1" doc:"number of the first line"`
	Limit int   `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
}

func (s *Service) auditRecords(ctx context.Context, in *recordsInput) (*body[api.AuditRecords], error) {
	org := callOf(ctx).caller.Org.ID
	if err := s.sequence(ctx, org); err != nil {
		return nil, err
	}
	records, err := s.store.AuditRecords(ctx, org, in.From, in.Limit)
	if err != nil {
		return nil, err
	}
	return &body[api.AuditRecords]{api.AuditRecords{Items: append([]string{}, records...)}}, nil
}

type lineInput struct {
	Line int64 `query:"line" required:"true" minimum:"1" example:"1" doc:"number of the line"`
}

// auditInclusion proves that a line of the caller's organization is in its log.
func (s *Service) auditInclusion(ctx context.Context, in *lineInput) (*body[api.AuditInclusion], error) {
	org := callOf(ctx).caller.Org
	if err := s.sequence(ctx, org.ID); err != nil {
		return nil, err
	}
	records, err := s.store.AuditRecords(ctx, org.ID, in.Line, 1)
	if err != nil {
		return nil, err
	}
	out := api.AuditInclusion{Organization: org.Slug, Line: in.Line}
	if len(records) == 1 {
		out.Record = records[0]
	}
	return s.prove(ctx, org, out)
}

// prove completes an inclusion with its proof and with the checkpoint that the proof leads to.
func (s *Service) prove(ctx context.Context, org snap.OrgRef, out api.AuditInclusion) (*body[api.AuditInclusion],
	error) {
	c, size, err := s.checkpoint(ctx, org)
	if err != nil {
		return nil, err
	}
	if out.Line > size || out.Record == "" {
		return nil, snap.ErrNotFound
	}
	proof, err := s.store.AuditTree(ctx, org.ID).Inclusion(size, out.Line)
	if err != nil {
		return nil, err
	}
	out.Proof, out.AuditCheckpoint = hashes(proof), c
	return &body[api.AuditInclusion]{out}, nil
}

type growthInput struct {
	From int64 `query:"from" required:"true" minimum:"1" example:"1" doc:"size of the older checkpoint"`
}

// auditGrowth proves that the log begins with the lines of an older checkpoint.
func (s *Service) auditGrowth(ctx context.Context, in *growthInput) (*body[api.AuditGrowth], error) {
	org := callOf(ctx).caller.Org
	c, size, err := s.checkpoint(ctx, org)
	if err != nil {
		return nil, err
	}
	if in.From > size {
		return nil, &snap.Error{Code: snap.CodeConflict,
			Detail: fmt.Sprintf("the audit log has %d lines, fewer than the %d of the checkpoint", size, in.From),
			Hint:   "if that checkpoint is signed, lines were removed; compare with a backup"}
	}
	proof, err := s.store.AuditTree(ctx, org.ID).Growth(size, in.From)
	if err != nil {
		return nil, err
	}
	return &body[api.AuditGrowth]{api.AuditGrowth{From: in.From, Proof: hashes(proof), AuditCheckpoint: c}}, nil
}

// receipt gives a recipient organization the line of the owner's log that records the share, with
// its proof. The line names no person.
func (s *Service) receipt(ctx context.Context, _ *ByID) (*body[api.AuditInclusion], error) {
	c := callOf(ctx)
	if c.snapshot.Org.ID == c.caller.Org.ID {
		return nil, snap.Invalid("the snapshot is your organization's own and was not received",
			"its shares are in the audit log")
	}
	if _, err := s.store.Sequence(ctx, c.snapshot.Org.ID, s.auditKey); err != nil {
		return nil, err
	}
	r, err := s.store.Receipt(ctx, c.caller, c.snapshot)
	if errors.Is(err, snap.ErrNotFound) {
		err = &snap.Error{Code: snap.CodeNotFound, Detail: "there is no receipt for this share",
			Hint: "the snapshot was shared before the service wrote receipts; ask the owner to share it again"}
	}
	if err != nil {
		return nil, err
	}
	return s.prove(ctx, r.Org, api.AuditInclusion{Organization: r.Org.Slug, Line: r.Line, Record: r.Record})
}

func hashes(proof []tlog.Hash) []string { return each(proof, tlog.Hash.String) }
