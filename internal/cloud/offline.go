package cloud

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/signin"
	"snap/internal/store"
)

// This file is for the operator's commands, which use parts of the service without running it.

// ApplyDirectory applies the configuration's organizations and local users to the store, as every
// start does. Unlike a start, it neither closes nor opens organizations.
func ApplyDirectory(ctx context.Context, st *store.Store, c Config) error {
	if err := applyOrganizations(ctx, st, c); err != nil {
		return err
	}
	sealer, err := auth.NewSealer(c.Auth.KeyEncryptionKey)
	if err != nil {
		return err
	}
	_, err = signin.New(ctx, st, signin.Options{PublicURL: c.PublicURL, ClientID: c.Auth.ClientID,
		Audience: c.Auth.Audience, Organizations: c.signInOrganizations(), Sealer: sealer})
	return err
}

// Document returns the OpenAPI document without a running service.
func Document(ctx context.Context, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "snapcloud-openapi-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := Config{DataDir: dir}
	c.fill()
	s, err := New(ctx, c, Options{Version: version})
	if err != nil {
		return nil, err
	}
	doc, err := s.OpenAPI()
	return doc, errors.Join(err, s.Close())
}

// OpenBlobs opens the configuration's object store to read and write whole objects. The service
// does not accept the URLs that this object store signs.
func OpenBlobs(ctx context.Context, c Config) (blob.Store, error) {
	if c.Blob.URL != "" {
		return blob.OpenS3(ctx, c.Blob.URL, nil)
	}
	return blob.OpenFolder(filepath.Join(c.DataDir, "blobs"), c.PublicURL, make([]byte, 32), nil)
}
