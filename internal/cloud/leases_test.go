package cloud_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// twoReplicas runs a test with two replicas over one database, of each kind.
func twoReplicas(t *testing.T, test func(t *testing.T, clock *clocktest.Clock, a, b *cloudtest.Cloud)) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" },
		"postgres": cloudtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktest.New(time.Now())
			o := cloudtest.Options{Clock: clock, DatabaseURL: database(t), DataDir: t.TempDir(), Config: allowPrivate}
			a := cloudtest.Start(t, o)
			b := cloudtest.Start(t, o)
			test(t, clock, a, b)
		})
	}
}

// stuck is a webhook's receiver whose first response comes late and is a failure.
type stuck struct {
	*httptest.Server
	begun, release chan struct{}

	mu   sync.Mutex
	seen map[string]int // requests by Webhook-Id
	n    int
}

func newStuck(t *testing.T) *stuck {
	r := &stuck{begun: make(chan struct{}), release: make(chan struct{}), seen: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements [http.Handler].
func (r *stuck) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	r.n++
	first := r.n == 1
	r.seen[req.Header.Get("Webhook-Id")]++
	r.mu.Unlock()
	if first {
		close(r.begun)
		<-r.release
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// A replica is paused while it sends, for longer than its lease, and resumes when another replica
// has sent everything. It sends nothing more, and its failure does not undo the other's success.
func TestPausedSenderUndoesNothing(t *testing.T) {
	twoReplicas(t, func(t *testing.T, clock *clocktest.Clock, a, b *cloudtest.Cloud) {
		ctx, r := context.Background(), newStuck(t)
		alice := a.As("alice@acme.test")
		hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: []snap.AuditAction{snap.AuditPushed}})
		must(t, err)
		const events = 3
		for i := range events {
			a.Push(alice, "shop", fmt.Append(nil, "event ", i))
		}
		paused := make(chan error, 1)
		go func() {
			n, err := a.Service.Deliver(ctx)
			if err == nil && n != 1 {
				err = fmt.Errorf("tried %d, want the one that was begun", n)
			}
			paused <- err
		}()
		<-r.begun
		clock.Advance(cloud.DeliverLease + time.Second)
		if n, err := b.Service.Deliver(ctx); err != nil || n != events {
			t.Errorf("the other replica delivered %d, %v; want %d", n, err, events)
		}
		close(r.release)
		must(t, <-paused)
		clock.Advance(25 * time.Hour)
		for _, c := range []*cloudtest.Cloud{a, b} {
			if n, err := c.Service.Deliver(ctx); err != nil || n != 0 {
				t.Errorf("delivered again: %d, %v", n, err)
			}
		}
		list, err := alice.Deliveries(ctx, hook.ID)
		must(t, err)
		for _, d := range list {
			if d.Attempts != 1 || d.Status != "answered 200" || d.NextAt != nil {
				t.Errorf("noted: %+v", d)
			}
		}
		if len(r.seen) != events || r.n != events+1 {
			t.Errorf("%d events by %d requests, want each once and the first a second time: %v", len(r.seen), r.n,
				r.seen)
		}
	})
}

// Two replicas that both believe that they hold the lease collect and apply retention at once: each
// upload is given up once, each snapshot is deleted once, and nothing fails.
func TestTwoLeadersCollectOnce(t *testing.T) {
	twoReplicas(t, func(t *testing.T, clock *clocktest.Clock, a, b *cloudtest.Cloud) {
		ctx := context.Background()
		alice := a.As("alice@acme.test")
		const each = 12
		for i := range each {
			a.Push(alice, "shop", fmt.Append(nil, "old ", i))
			_, err := alice.Push(ctx, api.PushRequest{Target: "shop", Name: fmt.Sprint("begun-", i),
				Type:   snap.TypeSnapshot,
				Engine: snap.SQLite, Size: 10, SHA256: fmt.Sprintf("%064x", i+1)})
			must(t, err)
		}
		_, err := alice.SetRetention(ctx, api.RetentionRule{Target: "shop", KeepLast: 2})
		must(t, err)
		clock.Advance(49 * time.Hour)
		var all sync.WaitGroup
		var mu sync.Mutex
		collected, expired := 0, map[string]int{}
		for _, c := range []*cloudtest.Cloud{a, b} {
			all.Go(func() {
				n, err := c.Service.Collect(ctx)
				if err != nil {
					t.Errorf("collect: %v", err)
				}
				result, err := c.As("alice@acme.test").RunRetention(ctx, api.RetentionRun{})
				if err != nil {
					t.Errorf("retention: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				collected += n
				for _, sn := range result.Snapshots {
					expired[sn.ID]++
				}
			})
		}
		all.Wait()
		if collected != each || len(expired) != each-2 {
			t.Errorf("collected %d uploads and %d snapshots, want %d and %d", collected, len(expired), each, each-2)
		}
		gone := map[string]int{}
		for e, err := range alice.AllAudit(ctx, api.AuditOptions{Action: snap.AuditDeleted}) {
			must(t, err)
			gone[e.Snapshot]++
		}
		for id, n := range expired {
			if n != 1 || gone[id] != 1 {
				t.Errorf("%s was deleted by %d replicas, and is in the audit log %d times", id, n, gone[id])
			}
		}
		if _, err := alice.VerifyAudit(ctx, nil); err != nil {
			t.Error(err)
		}
	})
}
