package transfer_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/transfer"
)

// storages returns the kinds of object store that the whole service is tested with.
func storages() map[string]func(t *testing.T) cloudtest.Options {
	return map[string]func(t *testing.T) cloudtest.Options{
		"folder": func(*testing.T) cloudtest.Options { return cloudtest.Options{} },
		"s3":     func(t *testing.T) cloudtest.Options { return cloudtest.Options{BlobURL: servertest.S3(t)} },
	}
}

// overStorages runs a test against the whole service over each object store.
func overStorages(t *testing.T, test func(t *testing.T, c *cloudtest.Cloud)) {
	for name, options := range storages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cloudtest.Start(t, options(t)))
		})
	}
}

func TestServiceTakesAndGivesWhatWasPushed(t *testing.T) {
	t.Parallel()
	overStorages(t, func(t *testing.T, c *cloudtest.Cloud) {
		alice := c.As("alice@acme.test")
		data := random(40<<20+1, 30)
		file, req := writeFile(t, data)
		up, err := transfer.Upload(t.Context(), alice, file, req, quick())
		if err != nil || up.Moved != req.Size {
			t.Fatalf("%+v, %v", up, err)
		}
		again, err := transfer.Upload(t.Context(), alice, file, req, quick())
		if err != nil || again.Moved != 0 || !again.Exists || again.ID != up.ID {
			t.Fatalf("again: %+v, %v; want nothing moved", again, err)
		}
		pulled := target(t)
		got, moved, err := transfer.Download(t.Context(), c.As("adam@acme.test"), up.ID, pulled, quick())
		if err != nil || moved != req.Size || got.Snapshot.SHA256 != req.SHA256 {
			t.Fatalf("%+v, moved %d, %v", got.Snapshot, moved, err)
		}
		wantFile(t, pulled, data)
		_, _, err = transfer.Download(t.Context(), c.As("mia@acme.test"), up.ID, target(t), quick())
		if !errors.Is(err, snap.ErrNotFound) {
			t.Errorf("a colleague pulls a private snapshot: %v", err)
		}
	})
}

// SPEC 3: a snapshot is listed only after every byte has arrived and is verified.
func TestServiceDoesNotListAnUploadOnItsWay(t *testing.T) {
	t.Parallel()
	overStorages(t, func(t *testing.T, c *cloudtest.Cloud) {
		alice := c.As("alice@acme.test")
		file, req := writeFile(t, random(40<<20, 31))
		ctx, kill := context.WithCancel(t.Context())
		o := quick()
		o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			page, err := alice.Snapshots(t.Context(), api.ListOptions{})
			if err != nil || len(page.Items) != 0 {
				t.Errorf("listed during the upload: %v, %v", page.Items, err)
			}
			res, err := http.DefaultTransport.RoundTrip(r)
			kill()
			return res, err
		})}
		_, err := transfer.Upload(ctx, alice, file, req, o)
		wantCode(t, err, snap.CodeInterrupted)
		up, err := transfer.Upload(t.Context(), alice, file, req, quick())
		if err != nil || up.Moved >= req.Size {
			t.Fatalf("%+v, %v; want less than the whole moved", up, err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// SPEC 3: an unshare is effective immediately, so it also stops a download that is
// running. On S3 the URL of the current range stays valid for about a minute, and
// no other URL is issued.
func TestUnshareStopsARunningDownload(t *testing.T) {
	t.Parallel()
	overStorages(t, func(t *testing.T, c *cloudtest.Cloud) {
		alice, mia := c.As("alice@acme.test"), c.As("mia@acme.test")
		sn := c.Push(alice, "shop", random(20*testPiece, 32))
		if _, err := alice.Share(t.Context(), sn.ID); err != nil {
			t.Fatal(err)
		}
		file := target(t)
		o := quick()
		o.Jobs = 1
		var requests atomic.Int32
		o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if requests.Add(1) == 7 {
				if err := alice.Unshare(t.Context(), sn.ID); err != nil {
					t.Error(err)
				}
			}
			return http.DefaultTransport.RoundTrip(r)
		})}
		_, moved, err := transfer.Download(t.Context(), mia, sn.ID, file, o)
		if !errors.Is(err, snap.ErrNotFound) || moved == 0 || moved == sn.Size {
			t.Fatalf("moved %d of %d, %v; want it to stop in the middle as not found", moved, sn.Size, err)
		}
		left, err := os.ReadDir(filepath.Dir(file))
		if err != nil || len(left) != 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	})
}

// URLs are signed and checked with the service's clock only, so it does no harm if
// the client's clock is an hour off.
func TestClocksMayDiffer(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		c := cloudtest.Start(t, cloudtest.Options{Clock: clocktest.New(time.Now().Add(off))})
		alice := c.As("alice@acme.test")
		data := random(1<<20, 33)
		file, req := writeFile(t, data)
		up, err := transfer.Upload(t.Context(), alice, file, req, quick())
		if err != nil {
			t.Fatalf("%v off: %v", off, err)
		}
		pulled := target(t)
		if _, _, err := transfer.Download(t.Context(), alice, up.ID, pulled, quick()); err != nil {
			t.Fatalf("%v off: %v", off, err)
		}
		wantFile(t, pulled, data)
	}
}

// If the URL of a part expires during the transfer, it is signed again. If the URL
// of a pull expires, a new one is requested.
func TestURLsExpireOnTheWay(t *testing.T) {
	t.Parallel()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	alice := c.As("alice@acme.test")
	data := random(40<<20, 34)
	file, req := writeFile(t, data)
	o := quick()
	var requests atomic.Int32
	o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if n := requests.Add(1); n == 2 || n == 40 {
			clock.Advance(20 * time.Minute)
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	up, err := transfer.Upload(t.Context(), alice, file, req, o)
	if err != nil {
		t.Fatal(err)
	}
	pulled := target(t)
	if _, _, err := transfer.Download(t.Context(), alice, up.ID, pulled, o); err != nil {
		t.Fatal(err)
	}
	wantFile(t, pulled, data)
}
