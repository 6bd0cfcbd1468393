package api_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
)

// Requests that are safe to repeat are sent again after 503 with a short
// Retry-After and after a broken connection. Other requests, and failures that
// a retry cannot fix, are not.
func TestRepeats(t *testing.T) {
	t.Parallel()
	get := func(ctx context.Context, c *api.Client) error { _, err := c.Snapshot(ctx, "snap_1"); return err }
	share := func(ctx context.Context, c *api.Client) error { _, err := c.Share(ctx, "snap_1"); return err }
	unshare := func(ctx context.Context, c *api.Client) error { return c.UnshareGroup(ctx, "snap_1", "eng") }
	unshareAll := func(ctx context.Context, c *api.Client) error {
		_, err := c.UnshareFrom(ctx, "snap_1", api.UnshareRequest{All: true})
		return err
	}
	makeKey := func(ctx context.Context, c *api.Client) error {
		_, err := c.NewKey(ctx, api.KeyRequest{Kind: snap.UserKey, Name: "x"})
		return err
	}
	remove := func(ctx context.Context, c *api.Client) error { return c.Delete(ctx, "snap_1") }
	busy := func(after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"code":"unavailable","detail":"not now"}`))
		}
	}
	dies := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, row := range map[string]struct {
		call     func(context.Context, *api.Client) error
		fails    http.HandlerFunc
		requests int
		waits    []time.Duration
		end      snap.Code // "" when the third request is answered
	}{
		"get, Retry-After":   {get, busy("1"), 3, []time.Duration{time.Second, 2 * time.Second}, ""},
		"share, Retry-After": {share, busy("1"), 3, []time.Duration{time.Second, 2 * time.Second}, ""},
		"unshare, broken": {unshare, dies, 3,
			[]time.Duration{200 * time.Millisecond, 400 * time.Millisecond}, ""},
		"unshare all, Retry-After": {unshareAll, busy("1"), 3, []time.Duration{time.Second, 2 * time.Second}, ""},
		"a new key is made once":   {makeKey, busy("1"), 1, nil, snap.CodeUnavailable},
		"a new key, broken":        {makeKey, dies, 1, nil, snap.CodeUnreachable},
		"a deletion is sent once":  {remove, busy("1"), 1, nil, snap.CodeUnavailable},
		"no Retry-After":           {get, busy(""), 1, nil, snap.CodeUnavailable},
		"a long Retry-After":       {get, busy("60"), 1, nil, snap.CodeUnavailable},
		"a date as Retry-After":    {get, busy("Wed, 21 Oct 2026 07:28:00 GMT"), 1, nil, snap.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) < 3 {
					row.fails(w, r)
					return
				}
				w.Write([]byte(`{}`))
			})
			var waits []time.Duration
			c, err := api.New(api.Options{
				BaseURL: url, Mount: api.MountUser, Token: api.StaticToken("t"),
				HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
				Wait: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			err = row.call(t.Context(), c)
			if err != nil && snap.CodeOf(err) != row.end || err == nil && row.end != "" {
				t.Errorf("ended with %v, want %q", err, row.end)
			}
			if int(requests.Load()) != row.requests || len(waits) != len(row.waits) {
				t.Fatalf("%d requests, waits %v; want %d, %v", requests.Load(), waits, row.requests, row.waits)
			}
			for i := range waits {
				if waits[i] != row.waits[i] {
					t.Errorf("waits %v, want %v", waits, row.waits)
				}
			}
		})
	}
}

// Ctrl-C ends the wait.
func TestRepeatsEndWithTheContext(t *testing.T) {
	t.Parallel()
	requests := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	ctx, cancel := context.WithCancel(t.Context())
	c, err := api.New(api.Options{BaseURL: url, Mount: api.MountUser, Token: api.StaticToken("t"),
		Wait: func(context.Context, time.Duration) error {
			cancel()
			return ctx.Err()
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Me(ctx); snap.CodeOf(err) != snap.CodeInterrupted || requests != 1 {
		t.Errorf("%d requests, %v", requests, err)
	}
}

// A request that only reads and gets no response in time is sent once more, over another
// connection: one replica hangs, and the next one responds. A change is not sent again.
func TestReadsAreSentAgainWhenAReplicaStandsStill(t *testing.T) {
	t.Parallel()
	read := func(ctx context.Context, c *api.Client) error { _, err := c.Me(ctx); return err }
	change := func(ctx context.Context, c *api.Client) error { return c.Unshare(ctx, "snap_1") }
	for name, row := range map[string]struct {
		call     func(context.Context, *api.Client) error
		still    int64 // number of requests without a response
		requests int64
		end      snap.Code
	}{
		"read":             {read, 1, 2, ""},
		"read, both still": {read, 2, 2, snap.CodeUnreachable},
		"change":           {change, 1, 1, snap.CodeUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			release := make(chan struct{})
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1) <= row.still {
					<-release
				}
				w.Write([]byte(`{}`))
			})
			t.Cleanup(func() { close(release) })
			// On a busy machine, a response may take longer than the limit, so the limit is raised.
			for limit := 500 * time.Millisecond; ; limit *= 2 {
				requests.Store(0)
				c, err := api.New(api.Options{BaseURL: url, Mount: api.MountUser, Token: api.StaticToken("t"),
					HTTP: &http.Client{Timeout: limit, Transport: &http.Transport{}}})
				if err != nil {
					t.Fatal(err)
				}
				err = row.call(t.Context(), c)
				if snap.CodeOf(err) == row.end && requests.Load() == row.requests {
					return
				}
				if limit > time.Minute {
					t.Fatalf("%d requests, %v; want %d, %q", requests.Load(), err, row.requests, row.end)
				}
			}
		})
	}
}
