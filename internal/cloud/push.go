package cloud

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
	"snap/internal/store"
)

// partLife is how long the upload URL of a part is valid.
const partLife = 15 * time.Minute

type pushInput struct {
	Body api.PushRequest
}

type partsInput struct {
	ByID
	Body api.PartsRequest
}

// beginPush begins an upload. If the caller has already begun or completed the same push, it
// returns the plan of that push, so that an unchanged snapshot is not sent again.
func (s *Service) beginPush(ctx context.Context, in *pushInput) (*body[api.UploadPlan], error) {
	c := callOf(ctx)
	want, err := s.uploadOf(in.Body)
	if err == nil {
		want.Certificate, err = s.certificateOf(ctx, in.Body)
	}
	if err != nil {
		return nil, err
	}
	done, begun, err := s.store.FindPush(ctx, c.caller, want)
	if err != nil {
		return nil, err
	}
	if err := s.addCertificate(ctx, c.caller, done, begun, want.Certificate); err != nil {
		return nil, err
	}
	if done != nil {
		return &body[api.UploadPlan]{api.UploadPlan{ID: done.ID, Exists: true, Present: []api.PartRef{}}}, nil
	}
	if begun != nil {
		plan, err := s.plan(ctx, *begun)
		if !errors.Is(err, snap.ErrNotFound) {
			return plan, err
		}
		if plan, err := s.finishLostUpload(ctx, c.caller, *begun); plan != nil || err != nil {
			return plan, err
		}
	}
	want.ID = snap.NewSnapshotID()
	want.Blob = want.ID
	want.PartSize = blob.PartSize(want.Size)
	if want.BlobUpload, err = s.transfers.blobs.Begin(ctx, want.Blob, want.Size, want.PartSize); err != nil {
		return nil, err
	}
	if err := s.store.BeginUpload(ctx, c.caller, want); err != nil {
		return nil, errors.Join(err, s.transfers.blobs.Abort(ctx, want.Blob, want.BlobUpload))
	}
	return s.plan(ctx, want)
}

// addCertificate stores the certificate of a push that was begun or completed without one.
func (s *Service) addCertificate(ctx context.Context, c snap.Caller, done *snap.Snapshot, begun *store.Upload,
	certificate string) error {
	switch {
	case certificate == "":
		return nil
	case done != nil:
		return s.store.Certify(ctx, c, *done, certificate)
	case begun != nil:
		return s.store.AddCertificate(ctx, c, begun.ID, certificate)
	}
	return nil
}

// finishLostUpload handles a push whose upload is no longer in the object store. The upload may
// have been completed there without being recorded, because the service was killed or the caller
// disconnected. Then finishLostUpload completes the push. If the upload was removed as abandoned,
// it returns nil, and the push starts over.
func (s *Service) finishLostUpload(ctx context.Context, caller snap.Caller, u store.Upload) (*body[api.UploadPlan],
	error) {
	err := s.transfers.blobs.Complete(ctx, u.Blob, u.BlobUpload, u.Size, u.SHA256)
	if errors.Is(err, snap.ErrNotFound) {
		return nil, s.store.DropUpload(ctx, u.ID)
	}
	if err != nil {
		return nil, err
	}
	sn, err := s.store.CompleteUpload(ctx, caller, u)
	if err != nil {
		return nil, err
	}
	s.countPush(sn)
	return &body[api.UploadPlan]{api.UploadPlan{ID: sn.ID, Exists: true, Present: []api.PartRef{}}}, nil
}

// uploadOf validates the announcement of a push.
func (s *Service) uploadOf(r api.PushRequest) (store.Upload, error) {
	target, err := snap.CleanTarget(r.Target)
	if err != nil {
		return store.Upload{}, err
	}
	name, err := snap.CleanSnapshotName(r.Name)
	if err != nil {
		return store.Upload{}, err
	}
	if sum, err := hex.DecodeString(r.SHA256); err != nil || len(sum) != 32 {
		return store.Upload{}, snap.Invalid("sha256 is not a SHA-256 in hexadecimal", "")
	}
	if most := cmp.Or(s.config.Limits.MaxSnapshotSize, defaultSnapshotSize); r.Size > most {
		return store.Upload{}, &snap.Error{
			Code:   snap.CodeTooLarge,
			Detail: fmt.Sprintf("the snapshot has %d bytes; this service accepts at most %d", r.Size, most),
			Hint:   "ask the service's operator to raise limits.max_snapshot_size",
		}
	}
	return store.Upload{
		Target: target, Name: name, Type: r.Type, Engine: r.Engine, Size: r.Size, SHA256: r.SHA256,
	}, nil
}

func (s *Service) plan(ctx context.Context, u store.Upload) (*body[api.UploadPlan], error) {
	present, err := s.transfers.blobs.Parts(ctx, u.Blob, u.BlobUpload)
	if err != nil {
		return nil, err
	}
	return &body[api.UploadPlan]{api.UploadPlan{
		ID: u.ID, PartSize: u.PartSize, Parts: partCount(u), Present: each(present, wirePart),
	}}, nil
}

func partCount(u store.Upload) int { return int((u.Size + u.PartSize - 1) / u.PartSize) }

// partLength returns the size of a part in bytes. The last part holds the remainder.
func partLength(u store.Upload, number int) int64 {
	return min(u.PartSize, u.Size-int64(number-1)*u.PartSize)
}

func wirePart(p blob.Part) api.PartRef {
	return api.PartRef{Number: p.Number, Size: p.Size, CRC64: p.CRC64}
}

// signParts presigns uploads of parts. It may be called again for the same parts.
func (s *Service) signParts(ctx context.Context, in *partsInput) (*body[api.PartsResponse], error) {
	u := callOf(ctx).upload
	out := api.PartsResponse{URLs: []api.SignedURL{}, Present: []api.PartRef{}}
	for _, p := range in.Body.Parts {
		if p.Number > partCount(u) {
			return nil, snap.Invalid(fmt.Sprintf("part %d does not exist; the last part of this upload is %d",
				p.Number, partCount(u)), "")
		}
		signed, err := s.transfers.blobs.SignPart(ctx, u.Blob, u.BlobUpload,
			blob.Part{Number: p.Number, Size: partLength(u, p.Number), CRC64: p.CRC64}, partLife)
		if err != nil {
			return nil, err
		}
		out.URLs = append(out.URLs, api.SignedURL{
			Number: p.Number, Method: signed.Method, URL: signed.URL, Headers: signed.Headers,
			ExpiresAt: signed.Expires,
		})
	}
	if len(in.Body.Parts) == 0 { // only then: an object store may need a while to list thousands of parts
		present, err := s.transfers.blobs.Parts(ctx, u.Blob, u.BlobUpload)
		if err != nil {
			return nil, err
		}
		out.Present = each(present, wirePart)
	}
	return &body[api.PartsResponse]{out}, nil
}

// verifyWait is how long a request waits for the object store to verify an upload. It is less
// than the time limits of proxies and clients.
const verifyWait = 20 * time.Second

// verify lets the object store complete the upload. If that takes longer than a request may wait,
// it continues in the background, the request fails with still_verifying, and the next request
// waits for the same work.
func (s *Service) verify(ctx context.Context, u store.Upload) error {
	ended, err := s.transfers.verifying.Join(ctx, u.BlobUpload, verifyWait, func(ctx context.Context) error {
		err := s.transfers.blobs.Complete(ctx, u.Blob, u.BlobUpload, u.Size, u.SHA256)
		if err == nil {
			s.dropUnused(ctx, u.Blob)
		}
		return err
	})
	if ended || err != nil {
		return err
	}
	return &snap.Error{
		Code:   snap.CodeVerifying,
		Detail: "all bytes have arrived; the service is still verifying them",
		Hint:   "push again later: nothing is sent twice",
	}
}

// completePush verifies the bytes and lists the snapshot. A repeated call returns the same
// snapshot.
func (s *Service) completePush(ctx context.Context, _ *ByID) (*body[api.Snapshot], error) {
	c := callOf(ctx)
	if c.snapshot.ID != "" {
		return &body[api.Snapshot]{wireSnapshot(c.snapshot)}, nil
	}
	u := c.upload
	if err := s.verify(ctx, u); err != nil {
		return nil, err
	}
	sn, err := s.store.CompleteUpload(ctx, c.caller, u)
	if err != nil {
		return nil, err
	}
	s.countPush(sn)
	return &body[api.Snapshot]{wireSnapshot(sn)}, nil
}

func (s *Service) countPush(sn snap.Snapshot) {
	s.telemetry.metrics.pushes.Inc()
	s.telemetry.metrics.pushedBytes.Add(float64(sn.Size))
}
