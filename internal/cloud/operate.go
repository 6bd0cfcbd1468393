package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/signin"
	"snap/internal/store"
)

// This page is what the operator's commands need of the service without
// running it.

// ApplyDirectory applies the configuration's organizations and local users to
// the store, as every start does.
func ApplyDirectory(ctx context.Context, st *store.Store, c Config) error {
	if err := applyOrganizations(ctx, st, c); err != nil {
		return err
	}
	_, err := signin.New(ctx, st, signin.Options{
		PublicURL: c.PublicURL, ClientID: c.Auth.ClientID, Audience: c.Auth.Audience, Organizations: c.signIn(),
	})
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

// Verdict is what a check found out about one thing the service needs.
type Verdict struct {
	What   string
	Detail string
	Err    error
}

// Verdicts checks configuration, database, storage and identity providers.
func Verdicts(ctx context.Context, c Config) []Verdict {
	out := []Verdict{{What: "configuration", Detail: fmt.Sprintf("%d organizations, %s", len(c.Organizations), c.PublicURL)}}
	add := func(what, good string, err error) {
		v := Verdict{What: what, Detail: good, Err: err}
		if err != nil {
			v.Detail = err.Error()
		}
		out = append(out, v)
	}
	st, err := store.Open(ctx, store.Options{URL: c.Database.URL, DataDir: c.DataDir})
	if err == nil {
		err = errors.Join(st.Ping(ctx), st.Close())
	}
	add("database", "reachable, schema up to date", err)
	add("storage", "reachable", pingStorage(ctx, c))
	for _, o := range c.signIn() {
		if o.OIDC != nil {
			add("sign-in "+o.Slug, "discovered "+o.OIDC.Issuer, discover(ctx, *o.OIDC))
		}
	}
	return out
}

func discover(ctx context.Context, o signin.OIDC) error {
	provider, err := auth.NewProvider(o.Issuer, o.AllowPrivate, time.Now)
	if err != nil {
		return err
	}
	_, err = provider.Discover(ctx)
	return err
}

func pingStorage(ctx context.Context, c Config) error {
	if c.Blob.URL != "" {
		s, err := blob.OpenS3(ctx, c.Blob.URL, nil)
		if err != nil {
			return err
		}
		return s.Ping(ctx)
	}
	f, err := blob.OpenFolder(filepath.Join(c.DataDir, "blobs"), c.PublicURL, make([]byte, 32), nil) // signs nothing here
	if err != nil {
		return err
	}
	return f.Ping(ctx)
}
