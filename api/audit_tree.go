package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"snap"
	"snap/internal/auditlog"
)

// AuditCheckpoint is a signed statement of the content of an organization's audit log: the number
// of lines and the root of their Merkle tree.
type AuditCheckpoint struct {
	Checkpoint string `json:"checkpoint" doc:"signed note: origin, number of lines, root" example:"snapcloud/acme\n2\n9f8dUEGiIwCl4yFrHPKzPBhjKXNaUdJjrNSGYEJJJ1k=\n\n— snapcloud/acme ...\n"`
	Key        string `json:"key" doc:"the signer's key, as in signed notes" example:"snapcloud/acme+1a2b3c4d+AQ..."`
}

// AuditRecords are lines of the audit log, oldest first.
type AuditRecords struct {
	Items []string `json:"items" doc:"each string is the exact JSON of one line; the hash of that JSON is in the tree"`
}

// AuditInclusion proves that a line is in an organization's audit log.
type AuditInclusion struct {
	Organization string   `json:"organization" doc:"slug of the organization whose log it is"`
	Line         int64    `json:"line" doc:"number of the line"`
	Record       string   `json:"record" doc:"the line's JSON, as a string"`
	Proof        []string `json:"proof" doc:"hashes from the line to the root (RFC 9162, section 2.1.3), base64"`
	AuditCheckpoint
}

// AuditGrowth proves that an audit log begins with the lines of an older checkpoint.
type AuditGrowth struct {
	From  int64    `json:"from" doc:"size of the older checkpoint"`
	Proof []string `json:"proof" doc:"hashes from the older root to the newer (RFC 9162, section 2.1.4), base64"`
	AuditCheckpoint
}

// MaxAuditRecords is the maximum number of lines in one page of records.
const MaxAuditRecords = 1000

// AuditCheckpoint returns a checkpoint of the current audit log of the organization. It fails with
// code not_found when the log is empty, and with code conflict when the service finds that the log
// was altered.
func (c *Client) AuditCheckpoint(ctx context.Context) (AuditCheckpoint, error) {
	return call[AuditCheckpoint](ctx, c, http.MethodGet, "/audit/checkpoint", nil)
}

// AuditRecords returns at most limit lines of the log. The first of them has the number from. limit
// is at most [MaxAuditRecords].
func (c *Client) AuditRecords(ctx context.Context, from int64, limit int) (AuditRecords, error) {
	q := url.Values{"from": {strconv.FormatInt(from, 10)}, "limit": {strconv.Itoa(limit)}}
	return call[AuditRecords](ctx, c, http.MethodGet, "/audit/records?"+q.Encode(), nil)
}

// AuditInclusion returns the proof that a line is in the log.
func (c *Client) AuditInclusion(ctx context.Context, line int64) (AuditInclusion, error) {
	return call[AuditInclusion](ctx, c, http.MethodGet, "/audit/inclusion?line="+strconv.FormatInt(line, 10), nil)
}

// AuditGrowth returns the proof that the log still begins with the lines of an older checkpoint.
// from is the number of those lines.
func (c *Client) AuditGrowth(ctx context.Context, from int64) (AuditGrowth, error) {
	return call[AuditGrowth](ctx, c, http.MethodGet, "/audit/growth?from="+strconv.FormatInt(from, 10), nil)
}

// Receipt returns the proof that a received snapshot was shared with the caller's organization: the
// line of the owning organization's audit log that records the share, and the proof that the log
// contains it.
func (c *Client) Receipt(ctx context.Context, id string) (AuditInclusion, error) {
	return call[AuditInclusion](ctx, c, http.MethodGet, snapshotPath(id, "/receipt"), nil)
}

// Verify checks the proof. It fails with code conflict when the proof does not show that the record
// is this line of the organization's log.
func (p AuditInclusion) Verify() error {
	signed, err := auditlog.Open(p.Checkpoint, p.Organization, p.Key)
	if err != nil {
		return errNotVerified(err.Error())
	}
	proof, err := auditlog.ParseProof(p.Proof)
	if err != nil || !signed.Includes(p.Line, p.Record, proof) {
		return errNotVerified("the proof does not show that the line is in the log")
	}
	return nil
}

// AuditVerdict is the result of [Client.VerifyAudit].
type AuditVerdict struct {
	Organization string           `json:"organization"`
	Lines        int64            `json:"lines" doc:"lines that were read and match the checkpoint"`
	Sound        bool             `json:"sound" doc:"the log passed the verification"`
	Problem      string           `json:"problem,omitempty" doc:"why the log failed the verification"`
	Now          *AuditCheckpoint `json:"now,omitempty" doc:"checkpoint that the service signed for this verification"`
	Seen         *AuditCheckpoint `json:"seen,omitempty" doc:"checkpoint that this machine kept from the last run"`
}

// fail records the problem and returns it as an error of code conflict.
func (v *AuditVerdict) fail(format string, args ...any) error {
	v.Problem = fmt.Sprintf(format, args...)
	return errNotVerified(v.Problem)
}

// errNotVerified returns the error for an audit log or a proof that failed the verification.
func errNotVerified(problem string) error {
	return &snap.Error{Code: snap.CodeConflict, Detail: "the audit log failed the verification: " + problem,
		Hint: "keep the checkpoints, and compare the service's database with a backup"}
}

// detailOf returns the text of an error without its hint.
func detailOf(err error) string {
	if known, ok := errors.AsType[*snap.Error](err); ok {
		return known.Detail
	}
	return err.Error()
}

// VerifyAudit reads the whole audit log of the caller's organization and verifies it on this
// machine against the service's signed checkpoint. seen returns an earlier checkpoint of an
// organization, or the zero value if there is none. The log must begin with the lines of that
// checkpoint. seen may be nil. VerifyAudit fails with code conflict when a check fails.
func (c *Client) VerifyAudit(ctx context.Context, seen func(organization string) (AuditCheckpoint, error)) (
	v AuditVerdict, err error) {
	me, err := c.Me(ctx)
	if err != nil {
		return v, err
	}
	v.Organization = me.Organization
	if seen != nil {
		known, err := seen(v.Organization)
		if err != nil {
			return v, err
		}
		if known != (AuditCheckpoint{}) {
			v.Seen = &known
		}
	}
	err = c.verifyAudit(ctx, &v)
	return v, err
}

// verifyAudit completes the verdict. Its Organization and Seen must already be set.
func (c *Client) verifyAudit(ctx context.Context, v *AuditVerdict) (err error) {
	var before auditlog.Checkpoint
	if v.Seen != nil {
		if before, err = auditlog.Open(v.Seen.Checkpoint, v.Organization, v.Seen.Key); err != nil {
			return v.fail("the saved checkpoint is damaged: %s", err)
		}
	}
	now, err := c.AuditCheckpoint(ctx)
	switch {
	case snap.CodeOf(err) == snap.CodeConflict:
		return v.fail("%s", detailOf(err))
	case snap.CodeOf(err) == snap.CodeNotFound && v.Seen == nil:
		v.Sound = true // an empty log is intact
		return nil
	case snap.CodeOf(err) == snap.CodeNotFound:
		return v.fail("the service has no checkpoint of it, but had one of %d lines before", before.Size)
	case err != nil:
		return err
	}
	v.Now = &now
	signed, err := auditlog.Open(now.Checkpoint, v.Organization, now.Key)
	switch {
	case err != nil:
		return v.fail("%s", err)
	case v.Seen != nil && now.Key != v.Seen.Key:
		return v.fail("the service signs it with a different key than before")
	case signed.Size < before.Size:
		return v.fail("it has %d lines, but had %d before", signed.Size, before.Size)
	}
	return c.verifyLines(ctx, v, signed, before)
}

// verifyLines reads the lines of the log and compares them with the signed checkpoint and with the
// earlier one.
func (c *Client) verifyLines(ctx context.Context, v *AuditVerdict, signed, before auditlog.Checkpoint) error {
	var sum auditlog.Sum
	for sum.Size() < signed.Size {
		page, err := c.AuditRecords(ctx, sum.Size()+1, int(min(signed.Size-sum.Size(), MaxAuditRecords)))
		if snap.CodeOf(err) == snap.CodeConflict {
			return v.fail("%s", detailOf(err))
		}
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			return v.fail("line %d is missing", sum.Size()+1)
		}
		for _, record := range page.Items {
			var e AuditEntry
			if err := json.Unmarshal([]byte(record), &e); err != nil || e.Seq != sum.Size()+1 {
				return v.fail("line %d is missing or was replaced", sum.Size()+1)
			}
			sum.Add(record)
			if sum.Size() == before.Size && sum.Root() != before.Root {
				return v.fail("its first %d lines have changed", before.Size)
			}
		}
	}
	if sum.Root() != signed.Root {
		return v.fail("its %d lines do not match the signed checkpoint", signed.Size)
	}
	v.Lines, v.Sound = sum.Size(), true
	return nil
}
