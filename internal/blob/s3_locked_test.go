package blob_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"snap/internal/blob"
	"snap/internal/servertest"
)

// An object in a bucket with object lock cannot be removed before its time, and a bucket without
// object lock is recognized. The request asks for the mode COMPLIANCE.
func TestLockedObjects(t *testing.T) {
	t.Parallel()
	address, client, bucket := servertest.LockedS3(t)
	var mu sync.Mutex
	var sent http.Header
	proxied := throughProxy(t, address, func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPut {
			sent = r.Header.Clone()
		}
	})
	locked, err := blob.OpenS3(t.Context(), proxied, nil)
	must(t, err)
	must(t, locked.CheckLock(t.Context()))
	until := time.Now().Add(time.Hour)
	must(t, locked.WriteLocked(t.Context(), "checkpoints/acme/1", []byte("first"), until))
	mode, end := sent.Get("X-Amz-Object-Lock-Mode"), sent.Get("X-Amz-Object-Lock-Retain-Until-Date")
	if mode != "COMPLIANCE" || end != until.UTC().Format(time.RFC3339) {
		t.Errorf("sent mode %q until %q", mode, end)
	}
	versions := client.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Recursive: true, WithVersions: true})
	for o := range versions {
		must(t, o.Err)
		err := client.RemoveObject(t.Context(), bucket, o.Key, minio.RemoveObjectOptions{VersionID: o.VersionID,
			GovernanceBypass: true})
		if err == nil {
			t.Errorf("version %s of %s was removed", o.VersionID, o.Key)
		}
	}
	if content, err := locked.Read(t.Context(), "checkpoints/acme/1"); err != nil || string(content) != "first" {
		t.Errorf("read %q, %v", content, err)
	}
	plain, err := blob.OpenS3(t.Context(), servertest.S3(t), nil)
	must(t, err)
	if err := plain.CheckLock(t.Context()); !errors.Is(err, blob.ErrNotLocked) {
		t.Errorf("a bucket without object lock: %v", err)
	}
}

// throughProxy returns the URL of the bucket through a proxy that calls see with each request.
// The proxy keeps the host, because it is part of the signature.
func throughProxy(t *testing.T, address string, see func(*http.Request)) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	target, err := url.Parse(u.Query().Get("endpoint"))
	must(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		see(r.In)
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	return strings.Replace(address, target.String(), proxy.URL, 1)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
