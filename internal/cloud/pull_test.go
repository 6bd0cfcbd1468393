package cloud_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

func copyAll(w io.Writer, r io.Reader) (int64, error) { return io.Copy(w, r) }

func get(t *testing.T, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	must(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	must(t, err)
	return res, data
}

// SPEC 1: pulling downloads through a presigned URL, without a credential, in
// ranges.
func TestPresignedDownload(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	content := make([]byte, 1<<20)
	rand.Read(content)
	mia := c.As("mia@acme.test")
	sn := c.Push(mia, "shop", content)
	pull, err := mia.Pull(ctx, sn.ID)
	must(t, err)
	if pull.Snapshot.SHA256 != sn.SHA256 || pull.Snapshot.Size != int64(len(content)) {
		t.Errorf("the pull announces %+v", pull.Snapshot)
	}
	res, data := get(t, pull.URL)
	if res.StatusCode != 200 || !bytes.Equal(data, content) || res.Header.Get("ETag") != `"`+sn.SHA256+`"` {
		t.Errorf("whole file: %d, %d bytes, ETag %s", res.StatusCode, len(data), res.Header.Get("ETag"))
	}
	res, data = get(t, pull.URL, "Range", "bytes=1000-1999", "If-Match", res.Header.Get("ETag"))
	if res.StatusCode != http.StatusPartialContent || !bytes.Equal(data, content[1000:2000]) {
		t.Errorf("range: %d, %d bytes", res.StatusCode, len(data))
	}
	if strings.Contains(pull.URL, c.Key("mia@acme.test")) {
		t.Error("the URL holds the key")
	}
}

// SPEC 3: the end of access is effective immediately, even for a URL that was issued before.
func TestRevocationReachesTheBytes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, revoke := range map[string]func(*cloudtest.Cloud, scene) error{
		"unshared": func(c *cloudtest.Cloud, s scene) error {
			return c.As("mia@acme.test").UnshareGroup(ctx, s.id,
				"dba")
		},
		"deleted":       func(c *cloudtest.Cloud, s scene) error { return c.As("alice@acme.test").Delete(ctx, s.id) },
		"user disabled": func(c *cloudtest.Cloud, s scene) error { return disable(c, "gus@acme.test") },
		"key revoked":   func(c *cloudtest.Cloud, s scene) error { return revokeKeys(c, "gus@acme.test") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cloudtest.Start(t, cloudtest.Options{})
			s := newScene(t, c)
			pull, err := c.As("gus@acme.test").Pull(ctx, s.id)
			must(t, err)
			if res, _ := get(t, pull.URL); res.StatusCode != 200 {
				t.Fatalf("before: %d", res.StatusCode)
			}
			must(t, revoke(c, s))
			res, data := get(t, pull.URL, "Range", "bytes=0-3")
			if res.StatusCode != http.StatusNotFound || problemIn(t, res, data).Code != snap.CodeNotFound {
				t.Errorf("after: %d %s", res.StatusCode, data)
			}
		})
	}
}

func disable(c *cloudtest.Cloud, email string) error {
	ctx := context.Background()
	org, err := c.Store.OrgBySlug(ctx, "acme")
	if err != nil {
		return err
	}
	m, err := c.Store.UserByEmail(ctx, org.ID, email)
	if err != nil {
		return err
	}
	return c.Store.SetDisabled(ctx, m.ID, true)
}

func revokeKeys(c *cloudtest.Cloud, email string) error {
	ctx := context.Background()
	org, err := c.Store.OrgBySlug(ctx, "acme")
	if err != nil {
		return err
	}
	keys, err := c.Store.OrgKeys(ctx, org.ID, 0)
	for _, k := range keys {
		if k.User == email && err == nil {
			err = c.Store.RevokeOrgKey(ctx, org.ID, k.ID)
		}
	}
	return err
}

// A presigned URL serves one object until it expires, and only exactly as
// signed.
func TestDownloadURLsCannotBeAltered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	s := newScene(t, c)
	pull, err := c.As("mia@acme.test").Pull(ctx, s.id)
	must(t, err)
	for name, url := range map[string]string{
		"altered signature": pull.URL[:len(pull.URL)-2] + "xx",
		"altered payload":   strings.Replace(pull.URL, "/blobs/", "/blobs/x", 1),
		"no signature":      pull.URL[:strings.LastIndex(pull.URL, ".")],
		"nonsense":          c.URL + "/blobs/nonsense",
	} {
		if res, data := get(t, url); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %.80s", name, res.StatusCode, data)
		}
	}
	if res, _ := send(t, http.MethodPut, pull.URL, "x", ""); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("another method: %d", res.StatusCode)
	}
	clock.Advance(pull.Expires.Sub(clock.Now()))
	if res, _ := get(t, pull.URL); res.StatusCode != http.StatusForbidden {
		t.Errorf("expired: %d", res.StatusCode)
	}
}

// An unshare stops a download that is already running in one request.
func TestUnshareStopsARunningDownload(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{Recheck: time.Nanosecond})
	content := make([]byte, 96<<20) // more than the sockets buffer
	sn := c.Push(c.As("mia@acme.test"), "shop", content)
	_, err := c.As("mia@acme.test").ShareGroup(ctx, sn.ID, "dba")
	must(t, err)
	pull, err := c.As("gus@acme.test").Pull(ctx, sn.ID)
	must(t, err)
	res, err := http.Get(pull.URL)
	must(t, err)
	defer res.Body.Close()
	_, err = io.CopyN(io.Discard, res.Body, 1<<20)
	must(t, err)
	must(t, c.As("mia@acme.test").UnshareGroup(ctx, sn.ID, "dba"))
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil || n > 64<<20 {
		t.Errorf("the download went on for %d bytes and ended with %v", n, err)
	}
	for strings.Contains(metrics(t, c), "snapcloud_transfer_bytes_total{direction=\"down\"} 0\n") {
		runtime.Gosched() // until the request has ended
	}
}

// SPEC 3: nobody else can complete a push, and it is not listed before it is complete.
func TestUploadsOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	plan, err := c.As("mia@acme.test").Push(ctx, pushOf("shop", []byte("abc")))
	must(t, err)
	for _, email := range []string{"alice@acme.test", "gus@acme.test", "gail@globex.test"} {
		if _, err := c.As(email).Complete(ctx, plan.ID); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("%s completes another's push: %v", email, err)
		}
	}
	if sees(t, c.As("mia@acme.test"), plan.ID) {
		t.Error("a push that is not complete is listed")
	}
	if _, err := c.As("mia@acme.test").Complete(ctx, plan.ID); snap.CodeOf(err) != snap.CodeUploadIncomplete {
		t.Errorf("completed without its bytes: %v", err)
	}
}
