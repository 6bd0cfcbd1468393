package cloud

import (
	"context"

	"snap"
	"snap/api"
	"snap/internal/store"
)

// The default limits of unfinished uploads. A person pushes a few targets at a time, and an
// organization's pipelines a few dozen.
const (
	defaultUploadsPerUser = 20
	defaultUploadsPerOrg  = 500
)

// quotas returns the configured quotas in the store's form: 0 means no limit.
func (l Limits) quotas() store.Quotas {
	return store.Quotas{
		UserUploads: bound(l.UploadsPerUser, defaultUploadsPerUser),
		OrgUploads:  bound(l.UploadsPerOrganization, defaultUploadsPerOrg),
		UserBytes:   max(0, l.BytesPerUser),
		OrgBytes:    max(0, l.BytesPerOrganization),
	}
}

func (s *Service) listUploads(ctx context.Context, _ *noInput) (*body[api.UploadList], error) {
	all, err := s.store.Uploads(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.UploadList]{api.UploadList{Items: each(all, func(u store.Upload) api.Upload {
		return api.Upload{
			ID: u.ID, Target: u.Target, Name: u.Name, Type: u.Type, Engine: u.Engine, Size: u.Size,
			CreatedAt: u.Created, TouchedAt: u.Touched,
		}
	})}}, nil
}

// abortUpload immediately removes the bytes that have arrived. If the object store does not answer,
// garbage collection removes them later.
func (s *Service) abortUpload(ctx context.Context, _ *ByID) (*empty, error) {
	c := callOf(ctx)
	if err := s.store.AbortUpload(ctx, c.caller, c.upload); err != nil {
		return nil, err
	}
	s.dropBytes(ctx, store.Garbage{Blob: c.upload.Blob, BlobUpload: c.upload.BlobUpload})
	return &empty{}, nil
}

// addUsage adds the caller's usage and, for owners and admins, the organization's.
func (s *Service) addUsage(ctx context.Context, c snap.Caller, me *api.Me) error {
	q := s.config.Limits.quotas()
	mine, err := s.store.Usage(ctx, c)
	if err != nil {
		return err
	}
	me.Usage = wireUsage(mine, q.UserBytes, q.UserUploads)
	if !c.IsAdmin() {
		return nil
	}
	org, err := s.store.OrgUsage(ctx, c.Org.ID)
	if err != nil {
		return err
	}
	me.OrgUsage = wireUsage(org, q.OrgBytes, q.OrgUploads)
	return nil
}

func wireUsage(u store.Usage, bytesMax int64, uploadsMax int) *api.Usage {
	return &api.Usage{Snapshots: u.Snapshots, Bytes: u.Bytes, BytesMax: bytesMax, Uploads: u.Uploads,
		UploadsMax: uploadsMax}
}
