// Package profile pushes snapshots to a storage profile and pulls them from it. A storage profile
// is the user's own bucket or folder, without a cloud service. Package transfer uses a profile
// through the same interface as the service, so parts, resumption and verification work the same
// way.
//
// A profile has these keys:
//
//	bytes/<SHA-256>.snap                a snapshot file
//	deltas/<SHA-256>/<base>.snapdelta   the delta to this file from the file with the SHA-256 <base>
//	records/<target>/<name>.json        the record of a snapshot, written last
//
// A snapshot exists once its record does. Target and name are converted to lower case, characters
// other than a-z and 0-9 become "-", and at most 40 characters are kept. The beginning of the
// SHA-256 of the original text is appended, so that every name has a key of its own. If the profile
// is a folder, package blob determines the layout of its files.
//
// Only the object store itself checks permissions.
package profile

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
)

// urlLife is the lifetime of a part's URL. The URL is signed on this machine and used immediately.
const urlLife = time.Hour

// Profile is an open storage profile. It is safe for concurrent use.
type Profile struct {
	store blob.Store
	http  *http.Client
	now   func() time.Time

	mu      sync.Mutex
	uploads map[string]upload // by the ID that Push returned
}

type upload struct {
	api.PushRequest
	key, id string
}

// Open opens a profile by its URL: s3://bucket/prefix?endpoint=... as in blob.OpenS3, or
// file:///folder.
func Open(ctx context.Context, rawURL string, now func() time.Time) (*Profile, error) {
	p := &Profile{now: now, uploads: map[string]upload{}}
	if now == nil {
		p.now = time.Now
	}
	inside := http.NewServeMux()
	u, err := url.Parse(rawURL)
	switch {
	case err == nil && isBucket(u):
		p.store, err = blob.OpenS3(ctx, rawURL, now)
	case err == nil && isFolder(u):
		var folder *blob.Folder
		if folder, err = blob.OpenFolder(filepath.FromSlash(u.Path), inProcess, []byte(rand.Text()), now); err == nil {
			folder.OnUnexpected(fail)
			p.store = folder
			inside.Handle(blob.PartsPath, folder.Handler())
		}
	default:
		err = errURL
	}
	if err != nil {
		return nil, err
	}
	inside.HandleFunc("GET /bytes/{sum}", func(w http.ResponseWriter, r *http.Request) {
		p.store.Serve(w, r, bytesKey(r.PathValue("sum")), r.PathValue("sum"))
	})
	inside.HandleFunc("GET /deltas/{result}/{base}", p.serveDelta)
	p.http = newClient(inside)
	return p, nil
}

var errURL = snap.Usage("the storage profile's URL is invalid",
	"use s3://bucket/prefix?endpoint=https://host or file:///folder")

// CheckURL returns an error of code usage if a profile's URL is not valid. It makes no connection.
func CheckURL(rawURL string) error {
	u, err := url.Parse(rawURL)
	switch {
	case err == nil && isBucket(u):
		_, err = blob.OpenS3(context.Background(), rawURL, time.Now)
		return err
	case err == nil && isFolder(u):
		return nil
	}
	return errURL
}

func isBucket(u *url.URL) bool { return u.Scheme == "s3" }

func isFolder(u *url.URL) bool { return u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path) }

// HTTP returns the client for the profile's URLs.
func (p *Profile) HTTP() *http.Client { return p.http }

func bytesKey(sum string) string { return "bytes/" + sum + ".snap" }

// recordPrefix returns the prefix of a target's records.
func recordPrefix(target string) string { return "records/" + label(target) + "/" }

func recordKey(target, name string) string { return recordPrefix(target) + label(name) + ".json" }

// label converts a name to a part of a key that people can still recognize.
func label(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	sum := sha256.Sum256([]byte(name))
	return plain[:min(len(plain), 40)] + "-" + hex.EncodeToString(sum[:6])
}

// Snapshots lists a target's snapshots, newest first. Their IDs are their names.
func (p *Profile) Snapshots(ctx context.Context, target string) ([]api.Snapshot, error) {
	keys, err := p.store.List(ctx, recordPrefix(target))
	if err != nil {
		return nil, err
	}
	var all []api.Snapshot
	for _, key := range keys {
		s, err := p.record(ctx, key)
		if errors.Is(err, snap.ErrNotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b api.Snapshot) int { return b.Created.Compare(a.Created) })
	return all, nil
}

func (p *Profile) record(ctx context.Context, key string) (api.Snapshot, error) {
	text, err := p.store.Read(ctx, key)
	if err != nil {
		return api.Snapshot{}, err
	}
	var s api.Snapshot
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the record %s is damaged: %w", key, err)
	}
	return s, nil
}

// idOf returns the ID of a snapshot, which Push, Parts, Complete and Pull use.
func idOf(target, name string) string { return target + "\x00" + name }

// Push begins a push. If the same push was begun or completed earlier, even by another process, it
// resumes that push. If the profile already has the file, Push only writes the record.
func (p *Profile) Push(ctx context.Context, r api.PushRequest) (api.UploadPlan, error) {
	id := idOf(r.Target, r.Name)
	have, err := p.record(ctx, recordKey(r.Target, r.Name))
	switch {
	case err == nil && have.SHA256 == r.SHA256:
		return api.UploadPlan{ID: id, Exists: true}, nil
	case err == nil:
		return api.UploadPlan{}, &snap.Error{Code: snap.CodeConflict,
			Detail: fmt.Sprintf("the storage profile has a different snapshot named %s", r.Name),
			Hint:   "build a new snapshot, which gets a new name"}
	case !errors.Is(err, snap.ErrNotFound):
		return api.UploadPlan{}, err
	}
	u := upload{PushRequest: r, key: bytesKey(r.SHA256)}
	if size, err := p.store.Stat(ctx, u.key); err == nil && size == r.Size {
		return api.UploadPlan{ID: id, Exists: true}, p.write(ctx, r)
	}
	plan := api.UploadPlan{ID: id, PartSize: blob.PartSize(r.Size)}
	plan.Parts = int((r.Size + plan.PartSize - 1) / plan.PartSize)
	if u.id, plan.Present, err = p.findUpload(ctx, u.key); err == nil && u.id == "" {
		u.id, err = p.store.Begin(ctx, u.key, r.Size, plan.PartSize)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uploads[id] = u
	return plan, err
}

// abandonedAfter is the age at which an unfinished upload counts as abandoned.
const abandonedAfter = 7 * 24 * time.Hour

// findUpload returns the unfinished upload of the object with this key and its parts, or "" if
// there is none. It also aborts abandoned uploads of other objects.
func (p *Profile) findUpload(ctx context.Context, key string) (id string, present []api.PartRef, err error) {
	pending, err := p.store.ListUploads(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, u := range pending {
		if u.Key != key {
			ours := strings.HasPrefix(u.Key, "bytes/") || strings.HasPrefix(u.Key, "deltas/")
			if ours && p.now().Sub(u.Created) > abandonedAfter {
				_ = p.store.Abort(ctx, u.Key, u.Upload) // if this fails, a later push tries again
			}
			continue
		}
		if id != "" {
			continue // if two uploads began at once, one is continued and the other is aborted later
		}
		parts, err := p.store.Parts(ctx, key, u.Upload)
		if err != nil {
			return "", nil, err
		}
		for _, part := range parts {
			present = append(present, api.PartRef(part))
		}
		id = u.Upload
	}
	return id, present, err
}

func (p *Profile) upload(id string) (upload, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u, ok := p.uploads[id]
	if !ok {
		return u, snap.ErrNotFound
	}
	return u, nil
}

// Parts returns signed upload URLs for parts.
func (p *Profile) Parts(ctx context.Context, id string, r api.PartsRequest) (out api.PartsResponse, err error) {
	u, err := p.upload(id)
	if err != nil {
		return out, err
	}
	for _, spec := range r.Parts {
		s, err := p.store.SignPart(ctx, u.key, u.id, blob.Part{Number: spec.Number, CRC64: spec.CRC64}, urlLife)
		if err != nil {
			return out, err
		}
		out.URLs = append(out.URLs, api.SignedURL{Number: spec.Number, Method: s.Method, URL: s.URL, Headers: s.Headers,
			ExpiresAt: s.Expires})
	}
	return out, nil
}

// Complete completes a push: first the upload of the bytes, and then the record.
func (p *Profile) Complete(ctx context.Context, id string) (api.Snapshot, error) {
	u, err := p.upload(id)
	if err != nil {
		return api.Snapshot{}, err
	}
	if err := p.store.Complete(ctx, u.key, u.id, u.Size, u.SHA256); err != nil {
		return api.Snapshot{}, err
	}
	if err := p.write(ctx, u.PushRequest); err != nil {
		return api.Snapshot{}, err
	}
	return p.record(ctx, recordKey(u.Target, u.Name))
}

// write writes the record, after which the snapshot exists.
func (p *Profile) write(ctx context.Context, r api.PushRequest) error {
	text, err := json.MarshalIndent(api.Snapshot{
		ID: r.Name, Target: r.Target, Name: r.Name, Type: r.Type, Engine: r.Engine,
		Size: r.Size, SHA256: r.SHA256, Created: p.now().UTC(),
	}, "", "  ")
	if err != nil {
		return err
	}
	return p.store.Write(ctx, recordKey(r.Target, r.Name), text)
}

// Pull returns the location of a snapshot's bytes. id comes from [Profile.ID].
func (p *Profile) Pull(ctx context.Context, id string) (api.PullResponse, error) {
	target, name, _ := strings.Cut(id, "\x00")
	s, err := p.record(ctx, recordKey(target, name))
	if err != nil {
		return api.PullResponse{}, err
	}
	return api.PullResponse{Snapshot: s, URL: inProcess + "/bytes/" + s.SHA256}, nil
}

// ID returns the ID to pass to [Profile.Pull] for a snapshot of a listing.
func (p *Profile) ID(s api.Snapshot) string { return idOf(s.Target, s.Name) }
