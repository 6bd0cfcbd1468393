package cloud_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// Two processes write and number lines while each of them is killed in turn, and then the database.
// Afterwards the log has every acknowledged line once and no line twice. Lines that one reader saw
// keep their positions. A line that was acknowledged before another one was requested comes first,
// and the lines of one snapshot are in the order of its states.
func TestKillsNeitherLoseNorReorderLines(t *testing.T) {
	t.Parallel()
	database, crash := servertest.CrashingPostgres(t)
	dir := t.TempDir()
	setup := cloudtest.Start(t, cloudtest.Options{DatabaseURL: database, DataDir: dir})
	m := &lineModel{t: t, key: setup.Key("alice@acme.test"), read: map[int64]bool{}}
	for range 2 {
		m.replicas = append(m.replicas, startReplica(t, database, dir, setup.URL))
	}
	m.snapshot = setup.Push(setup.As("alice@acme.test"), "killed", []byte("x")).ID
	var running sync.WaitGroup
	for writer := range 4 {
		running.Go(func() { m.write(writer) })
	}
	running.Go(m.follow)
	for _, fault := range []func(){m.restart(0), m.restart(1), crash, m.restart(0)} {
		m.waitForAnswers(40)
		fault()
	}
	m.waitForAnswers(40)
	m.stop.Store(true)
	running.Wait()
	m.judge()
	verdict, err := m.at(1).VerifyAudit(t.Context(), nil)
	must(t, err)
	if !verdict.Sound || verdict.Lines < int64(len(m.seen)) {
		t.Errorf("%+v after %d lines were read", verdict, len(m.seen))
	}
}

// lineModel is the expected content of the log.
type lineModel struct {
	t        *testing.T
	key      string
	snapshot string
	replicas []*replica
	stop     atomic.Bool
	clock    atomic.Int64 // counts starts and responses of requests

	mu       sync.Mutex
	requests []lineRequest // by the number in their line, less one
	answers  int
	seen     []string       // the log as one reader follows it
	read     map[int64]bool // numbers in seen
}

// lineRequest is a request that writes a line. answered is 0 if no response came.
type lineRequest struct{ begun, answered int64 }

func (m *lineModel) at(i int) *api.Client {
	return m.replicas[i%len(m.replicas)].client(api.MountAgent, m.key)
}

func (m *lineModel) restart(i int) func() {
	return func() {
		m.replicas[i].kill()
		m.replicas[i].start()
	}
}

func (m *lineModel) waitForAnswers(more int) {
	m.mu.Lock()
	until := m.answers + more
	m.mu.Unlock()
	waitFor(m.t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.answers >= until
	})
}

// write reports pulls, each with a number of its own, and shares and unshares the one snapshot.
func (m *lineModel) write(writer int) {
	ctx := context.Background()
	for i := writer; !m.stop.Load(); i++ {
		c := m.at(i)
		m.mu.Lock()
		m.requests = append(m.requests, lineRequest{begun: m.clock.Add(1)})
		number := len(m.requests)
		m.mu.Unlock()
		err := c.Pulled(ctx, m.snapshot, int64(number))
		answered := m.clock.Add(1)
		m.mu.Lock()
		if err == nil {
			m.requests[number-1].answered = answered
			m.answers++
		}
		m.mu.Unlock()
		if i%2 == 0 {
			_, _ = c.Share(ctx, m.snapshot) // may be interrupted
		} else {
			_ = c.Unshare(ctx, m.snapshot)
		}
	}
}

// follow reads the log as `audit export --follow` does. A reading to
// the end contains every line that was acknowledged before the reading began.
func (m *lineModel) follow() {
	for i := 0; ; i++ {
		last := m.stop.Load()
		m.mu.Lock()
		var due []int64
		for n, r := range m.requests {
			if r.answered != 0 {
				due = append(due, int64(n+1))
			}
		}
		m.mu.Unlock()
		if m.readOn(m.at(i)) {
			m.missing(due)
			if last {
				return
			}
		}
	}
}

// readOn reads to the end of the log, and reports whether it got there.
func (m *lineModel) readOn(c *api.Client) bool {
	for {
		page, err := c.AuditRecords(context.Background(), int64(len(m.seen))+1, api.MaxAuditRecords)
		if err != nil {
			return false
		}
		if len(page.Items) == 0 {
			return true
		}
		for _, text := range page.Items {
			m.seen = append(m.seen, text)
			m.read[m.entry(len(m.seen)).Detail.Bytes] = true
		}
	}
}

func (m *lineModel) missing(due []int64) {
	for _, n := range due {
		if !m.read[n] {
			m.t.Errorf("pull %d was answered, and a reader who came later did not see it", n)
		}
	}
}

// entry returns the line with this number from those that were read.
func (m *lineModel) entry(line int) (e snap.AuditEntry) {
	if err := json.Unmarshal([]byte(m.seen[line-1]), &e); err != nil || e.Seq != int64(line) {
		m.t.Errorf("line %d is %q, %v", line, m.seen[line-1], err)
	}
	return e
}

func (m *lineModel) judge() {
	followed := slices.Clone(m.seen)
	m.seen = nil
	if !m.readOn(m.at(0)) || len(m.seen) < len(followed) || !slices.Equal(m.seen[:len(followed)], followed) {
		m.t.Error("the log is not the one that its reader followed")
	}
	times, newest, shared := map[int64]int{}, int64(0), false
	for i := range m.seen {
		switch e := m.entry(i + 1); e.Action {
		case snap.AuditPulled:
			times[e.Detail.Bytes]++
			r := m.requests[e.Detail.Bytes-1]
			if r.answered != 0 && r.answered < newest {
				m.t.Errorf("line %d was answered before an earlier line was asked for", e.Seq)
			}
			newest = max(newest, r.begun)
		case snap.AuditShared, snap.AuditUnshared:
			if now := e.Action == snap.AuditShared; now == shared {
				m.t.Errorf("line %d is %s again", e.Seq, e.Action)
			}
			shared = !shared
		}
	}
	for i, r := range m.requests {
		if n := times[int64(i+1)]; n > 1 || n == 0 && r.answered != 0 {
			m.t.Errorf("the log has pull %d %d times; answered: %v", i+1, n, r.answered != 0)
		}
	}
}
