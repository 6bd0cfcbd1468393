package cloudtest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// BenchmarkListHTTP measures listing over HTTP on loopback, with the API key
// checked at every request, against a handler that answers a constant of the
// same size, turn by turn. Clients and service share the machine.
func BenchmarkListHTTP(b *testing.B) {
	for _, db := range []string{"sqlite", "postgres"} {
		b.Run(db, func(b *testing.B) {
			o := cloudtest.Options{}
			if db == "postgres" {
				o.DatabaseURL = servertest.Postgres(b)
			}
			c := cloudtest.Start(b, o)
			fillListing(b, c, 500)
			key := c.Key("mia@acme.test")
			list := get(b, c.URL+"/api/v1/agents/snapshots?limit=50", key)
			constant := serveConstant(b, list())
			rate := func(ask func() []byte) float64 {
				var done atomic.Int64
				var wg sync.WaitGroup
				start := time.Now()
				for range 2 * runtime.NumCPU() {
					wg.Go(func() {
						for time.Since(start) < 400*time.Millisecond {
							ask()
							done.Add(1)
						}
					})
				}
				wg.Wait()
				return float64(done.Load()) / time.Since(start).Seconds()
			}
			bare := get(b, constant, key)
			var lists, bares float64
			rounds := 0
			for b.Loop() {
				bares += rate(bare)
				lists += rate(list)
				rounds++
			}
			lists, bares = lists/float64(rounds), bares/float64(rounds)
			fmt.Printf("%s: list over HTTP %.0f/s, %.0f/s a core, %.2f of a constant of equal size (%.0f/s)\n",
				db, lists, lists/float64(runtime.NumCPU()), lists/bares, bares)
		})
	}
}

// fillListing pushes n snapshots as mia, without bytes.
func fillListing(b *testing.B, c *cloudtest.Cloud, n int) {
	b.Helper()
	ctx := context.Background()
	org, err := c.Store.OrgBySlug(ctx, "acme")
	if err != nil {
		b.Fatal(err)
	}
	mia, err := c.Store.UserByEmail(ctx, org.ID, "mia@acme.test")
	if err != nil {
		b.Fatal(err)
	}
	caller, err := c.Store.CallerOfUser(ctx, mia.ID)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		u := store.Upload{ID: snap.NewSnapshotID(), Target: "shop", Name: snap.SnapshotName("shop", time.Now()), Type: snap.TypeSanitized, Engine: snap.SQLite,
			Size: 1 << 20, SHA256: fmt.Sprintf("%064x", i), Blob: fmt.Sprintf("blob-%d", i), BlobUpload: "u", PartSize: 1 << 24}
		if err := c.Store.BeginUpload(ctx, caller, u); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Store.CompleteUpload(ctx, caller, u); err != nil {
			b.Fatal(err)
		}
	}
}

// serveConstant serves a body on loopback as the service does.
func serveConstant(b *testing.B, body []byte) (url string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	})}
	go server.Serve(listener)
	b.Cleanup(func() { server.Close() })
	return "http://" + listener.Addr().String() + "/"
}

// get returns a function that asks for a URL with a key and returns the body.
func get(b *testing.B, url, key string) func() []byte {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	return func() []byte {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			b.Error(err)
			return nil
		}
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := client.Do(req)
		if err != nil {
			b.Error(err)
			return nil
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "{") {
			b.Errorf("%s: %s, %v", url, res.Status, err)
		}
		return body
	}
}
