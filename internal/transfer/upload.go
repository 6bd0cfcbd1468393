package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
)

// maxRounds is the maximum number of times that an upload is sent, in case the service loses parts
// or removes the upload in the meantime.
const maxRounds = 3

// Uploaded is the result of [Upload].
type Uploaded struct {
	ID     string
	Moved  int64 // bytes successfully sent
	Exists bool  // the service already had this snapshot
}

// Upload pushes file as described by req. It resumes an earlier attempt, including one by another
// process. If the file does not have the size and SHA-256 of req, the error is corrupt_snapshot and
// the snapshot is never listed.
func Upload(ctx context.Context, c Service, file string, req api.PushRequest, o Options) (Uploaded, error) {
	f, err := os.Open(file)
	if err != nil {
		return Uploaded{}, fmt.Errorf("open the snapshot: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != req.Size {
		return Uploaded{}, errors.Join(err, damaged(req.Name))
	}
	u := &uploader{service: c, file: f, req: req, Options: o.withDefaults(),
		meter: meter{total: req.Size, report: o.Progress}}
	defer u.meter.run()()
	plan, err := u.push(ctx)
	return Uploaded{ID: plan.ID, Moved: u.moved.Load(), Exists: plan.Exists}, forUser(ctx, "the push", err)
}

// damaged returns the error for a local file that has changed since it was created.
func damaged(name string) error {
	return &snap.Error{
		Code:   snap.CodeCorrupt,
		Detail: fmt.Sprintf("the local snapshot %s is damaged: its size or checksum is wrong", name),
		Hint:   "create or pull it again; check your other snapshots with `snapcli snapshots verify`",
	}
}

type uploader struct {
	Options
	service Service
	file    *os.File
	req     api.PushRequest
	meter   meter
	moved   atomic.Int64
}

// errGone means that the upload no longer exists.
var errGone = errors.New("the upload was removed")

// push plans, sends and completes an upload, and repeats this if the service has lost something. It
// returns the last plan.
func (u *uploader) push(ctx context.Context) (plan api.UploadPlan, err error) {
	plan, err = u.service.Push(ctx, u.req) // the first call is not retried, so that a wrong address is reported at once
	for round := 1; err == nil && !plan.Exists; round++ {
		failed := u.attempt(ctx, plan)
		switch {
		case failed == nil || !canSendAgain(failed):
			return plan, failed
		case round == maxRounds && snap.CodeOf(failed) == snap.CodeChecksumMismatch:
			return plan, failed // the service says why
		case round == maxRounds:
			return plan, &snap.Error{
				Code:   snap.CodeUploadIncomplete,
				Detail: "parts of the snapshot were lost repeatedly after they were sent",
				Hint:   "tell the operator of the object store; then " + runAgain,
				Cause:  failed,
			}
		}
		plan, err = retry(ctx, u.Options, func() (api.UploadPlan, error) { return u.service.Push(ctx, u.req) })
	}
	if err == nil {
		u.meter.done.Store(u.req.Size)
	}
	return plan, err
}

// attempt sends the missing parts and completes the upload.
func (u *uploader) attempt(ctx context.Context, plan api.UploadPlan) error {
	if err := u.send(ctx, plan); err != nil {
		return err
	}
	u.meter.done.Store(u.req.Size)
	for {
		_, err := retry(ctx, u.Options, func() (api.Snapshot, error) { return u.service.Complete(ctx, plan.ID) })
		if snap.CodeOf(err) != snap.CodeVerifying {
			return err
		}
		if err := u.Wait(ctx, verifyPause); err != nil {
			return err
		}
	}
}

// verifyPause is the pause before asking again whether the service has verified the upload. The
// request itself also takes a while.
const verifyPause = time.Second

// canSendAgain reports whether planning and sending again can help.
func canSendAgain(err error) bool {
	return errors.Is(err, errGone) || slices.Contains(
		[]snap.Code{snap.CodeUploadIncomplete, snap.CodeChecksumMismatch, snap.CodeNotFound}, snap.CodeOf(err))
}

// part is one part being transferred. It is hashed first. Its URL is signed just before the part is
// sent.
type part struct {
	api.PartSpec
	offset, size int64
	url          api.SignedURL
}

// send sends every part that the service does not have yet. It runs three stages concurrently:
// reading the file, signing in batches, and sending.
func (u *uploader) send(ctx context.Context, plan api.UploadPlan) error {
	if plan.PartSize < 1 || int64(plan.Parts) != (u.req.Size+plan.PartSize-1)/plan.PartSize {
		return &snap.Error{Code: snap.CodeInternal, Detail: "the service's plan for the upload is invalid",
			Hint: "update snapcli or the service"}
	}
	u.meter.done.Store(0)
	group, ctx := errgroup.WithContext(ctx)
	hashed := make(chan part, 2*u.Jobs)
	signed := make(chan part)
	group.Go(func() error {
		defer close(hashed)
		return u.scan(ctx, plan, hashed)
	})
	group.Go(func() error {
		defer close(signed)
		return u.sign(ctx, plan.ID, hashed, signed)
	})
	for range u.Jobs {
		group.Go(func() error {
			for p := range signed {
				if err := u.sendPart(ctx, plan.ID, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// maxBatch is the maximum number of parts for which the service signs URLs in one request.
const maxBatch = 100

// sign requests the URLs of all parts that are ready, one batch at a time.
func (u *uploader) sign(ctx context.Context, id string, hashed <-chan part, signed chan<- part) error {
	for first := range hashed {
		batch := []part{first}
		for len(batch) < min(2*u.Jobs, maxBatch) && len(hashed) > 0 {
			batch = append(batch, <-hashed)
		}
		if err := u.urls(ctx, id, batch); err != nil {
			return err
		}
		for _, p := range batch {
			select {
			case signed <- p:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// urls requests the signed URLs for the parts of a batch.
func (u *uploader) urls(ctx context.Context, id string, batch []part) error {
	var ask api.PartsRequest
	for _, p := range batch {
		ask.Parts = append(ask.Parts, p.PartSpec)
	}
	answer, err := retry(ctx, u.Options, func() (api.PartsResponse, error) { return u.service.Parts(ctx, id, ask) })
	if err != nil {
		return err
	}
	for i := range batch {
		for _, s := range answer.URLs {
			if s.Number == batch[i].Number {
				batch[i].url = s
			}
		}
		if batch[i].url.URL == "" {
			return &snap.Error{Code: snap.CodeInternal, Detail: "the service returned no upload URL for a part",
				Hint: "update snapcli or the service"}
		}
		if err := u.checkURL(batch[i].url.URL); err != nil {
			return err
		}
	}
	return nil
}

// sendPart sends one part. After a temporary failure, it tries again with a fresh URL, up to
// maxAttempts times in all.
func (u *uploader) sendPart(ctx context.Context, id string, p part) error {
	for n := 1; ; n++ {
		err := u.put(ctx, p)
		if err == nil {
			u.moved.Add(p.size)
			return nil
		}
		var r *refusal
		answered := errors.As(err, &r)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case answered && (r.status == http.StatusNotFound || r.status == http.StatusGone):
			return errGone
		case answered && n >= r.maxTries(), !answered && !isNetwork(err), n == maxAttempts:
			return err
		}
		if !answered || !r.rejectsURL() || n > 1 { // retry at once after the first expired URL
			if err := u.Wait(ctx, pause(n, err)); err != nil {
				return err
			}
		}
		one := []part{p}
		if err := u.urls(ctx, id, one); err != nil {
			return err
		}
		p = one[0]
	}
}
