package cloud_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// PostgreSQL is stopped under load, stays down for a while, and starts again. Every acknowledged
// change is in the audit log, once. Requests in the meantime get 503, the replica is alive and not
// ready, and the service's log has one line for the beginning, one for each minute and one for the
// end.
func TestDatabaseGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	database, stop, start := servertest.StoppingPostgres(t)
	clock := clocktest.New(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC))
	var log lockedBuffer
	c := cloudtest.Start(t, cloudtest.Options{DatabaseURL: database, Clock: clock, Log: &log})
	ready := func(status int, state string) {
		t.Helper()
		res, data := send(t, http.MethodGet, c.URL+"/readyz", "", "")
		var said map[string]string
		must(t, json.Unmarshal(data, &said))
		if res.StatusCode != status || said["database"] != state {
			t.Errorf("/readyz: %d %s, want %d, database %s", res.StatusCode, data, status, state)
		}
	}
	alice := c.As("alice@acme.test")
	w := &outageWriters{client: alice, snapshot: c.Push(alice, "shop", []byte("x")).ID}
	ready(http.StatusOK, "ok")
	clock.Advance(time.Second)
	var running sync.WaitGroup
	const writers = 4
	for range writers {
		running.Go(w.write)
	}
	waitFor(t, func() bool { return w.answered() >= 40 })
	stop()
	waitFor(t, func() bool { return w.refused.Load() >= 2*writers })
	for range 4 { // two minutes
		for range 20 {
			ready(http.StatusServiceUnavailable, "unavailable")
		}
		clock.Advance(30 * time.Second)
	}
	if res, data := send(t, http.MethodGet, c.URL+"/healthz", "", ""); res.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %d %s", res.StatusCode, data)
	}
	before, refused := w.answered(), w.refused.Load()
	waitFor(t, func() bool { return w.refused.Load() >= refused+2*writers })
	start()
	waitFor(t, func() bool { return w.answered() >= before+40 })
	w.stop.Store(true)
	running.Wait()
	ready(http.StatusOK, "ok")
	must(t, c.Service.Sequence(t.Context()))
	w.judge(t)

	lines := map[string]int{}
	for _, m := range regexp.MustCompile(`level=(WARN|ERROR) msg=("[^"]*"|\S+)(?: what=(\S+))?`).
		FindAllStringSubmatch(log.String(), -1) {
		lines[m[1]+" "+m[2]+" "+m[3]]++
	}
	delete(lines, `WARN "the keys that sign tokens are unencrypted in the database; set auth.key_encryption_key" `)
	begins, still := lines[`WARN "a part of the service fails and is tried again" database`],
		lines[`WARN "a part of the service still fails" database`]
	if begins != 1 || still != 2 || len(lines) != 2 {
		t.Errorf("the warnings of the outage are %v", lines)
	}
	recovered := regexp.MustCompile(`msg="a part of the service works again" what=database`)
	if n := len(recovered.FindAllString(log.String(), -1)); n != 1 {
		t.Errorf("%d lines say that the database works again", n)
	}
}

// outageWriters report pulls, each with a number of its own.
type outageWriters struct {
	client   *api.Client
	snapshot string
	stop     atomic.Bool
	refused  atomic.Int64
	wrong    atomic.Pointer[error]

	mu    sync.Mutex
	sent  int64
	known map[int64]bool // the acknowledged ones
}

func (w *outageWriters) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.known)
}

func (w *outageWriters) write() {
	for !w.stop.Load() {
		w.mu.Lock()
		w.sent++
		number := w.sent
		w.mu.Unlock()
		err := w.client.Pulled(context.Background(), w.snapshot, number)
		switch {
		case err == nil:
			w.mu.Lock()
			if w.known == nil {
				w.known = map[int64]bool{}
			}
			w.known[number] = true
			w.mu.Unlock()
		case snap.CodeOf(err) == snap.CodeUnavailable:
			w.refused.Add(1)
		default:
			w.wrong.Store(&err)
		}
	}
}

// judge compares the audit log with the responses.
func (w *outageWriters) judge(t *testing.T) {
	t.Helper()
	if err := w.wrong.Load(); err != nil {
		t.Errorf("a request failed with %v, want 503", *err)
	}
	times := map[int64]int{}
	for e, err := range w.client.AllAudit(t.Context(), api.AuditOptions{Action: snap.AuditPulled}) {
		must(t, err)
		times[e.Detail.Bytes]++
	}
	for number := range w.sent {
		if n := times[number+1]; n > 1 || n == 0 && w.known[number+1] {
			t.Errorf("pull %d is in the log %d times; answered: %v", number+1, n, w.known[number+1])
		}
	}
	if v, err := w.client.VerifyAudit(t.Context(), nil); err != nil || !v.Sound {
		t.Errorf("%+v, %v", v, err)
	}
}
