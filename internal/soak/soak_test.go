//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
	"snap/internal/cloud"
)

// shortRounds are those of a run in `make test`.
const shortRounds = 5

// TestSoak runs everything: for a short time in `make test`, and for a long time in `make soak`.
func TestSoak(t *testing.T) {
	t.Parallel()
	long, seed := duration("SNAP_SOAK"), uint64(time.Now().UnixNano()%1_000_000)
	if n, err := strconv.ParseUint(os.Getenv("SNAP_SOAK_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("SNAP_SOAK_SEED=%d", seed)
	rounds, longest := shortRounds, time.Second
	if long > 0 {
		rounds, longest = 1000, 5*time.Second
	}
	w := newWorld(t, seed)
	w.populate()
	stop := w.startLoad()
	began := time.Now()
	for n, round := range schedule(seed, rounds, longest) {
		t.Logf("%s round %d: %v", time.Now().Format("15:04:05.000"), n, round)
		w.strike(round)
		w.recovers()
		w.barrier()
		if long > 0 && time.Since(began) > long || t.Failed() && long == 0 {
			break
		}
	}
	stop()
	w.checkEnd()
	t.Logf("seed %d, %v:\n%s\nlongest: %v", seed, time.Since(began).Round(time.Second), w.summary(), w.longest)
}

func duration(name string) time.Duration {
	d, _ := time.ParseDuration(os.Getenv(name))
	return d
}

// populate signs everybody in and makes a webhook and a first snapshot.
func (w *world) populate() {
	w.t.Helper()
	ada := w.newPerson("ada", "acme", true, "leads")
	uma, bob, cy := w.newPerson("uma", "acme", false, "eng"), w.newPerson("bob", "acme", false, "dba"),
		w.newPerson("cy", "acme", false)
	w.churns = w.newPerson("pia", "acme", false, "eng", "dba")
	gail, gary := w.newPerson("gail", "globex", true, "leads"), w.newPerson("gary", "globex", false, "eng")
	for _, p := range []*person{ada, uma, bob, cy, gail} {
		p.owns = true
	}
	w.ctx = context.Background()
	_ = gary
	for _, p := range w.people {
		w.must("first login", func() error { return p.login(p.dir) })
	}
	w.must("webhook", func() error {
		_, err := ada.any.AddWebhook(w.ctx, api.WebhookRequest{URL: w.hooks.URL,
			Events: []snap.AuditAction{snap.AuditPushed}})
		return err
	})
	o := &owner{p: ada}
	w.must("first push", func() error {
		if o.push(w.chance); o.unfinished != nil {
			return errors.New("not answered")
		}
		return nil
	})
	w.canary = w.model.all(ada)[0]
}

// recovers waits until every replica serves reads and changes again.
func (w *world) recovers() {
	for _, p := range w.people[:1] { // an admin
		for i := range w.replicas {
			good := 0
			w.mustSoon("requests succeed again", func() error {
				_, err := p.at[i].Snapshots(w.ctx, api.ListOptions{Limit: 5})
				if err == nil {
					err = p.at[i].Pulled(w.ctx, w.canary.id, 1) // writes an audit line
				}
				if good++; err != nil {
					good = 0
				}
				if good < 5 && err == nil {
					err = errors.New("not five in a row")
				}
				return err
			})
		}
	}
}

// barrier pauses the load, finds out the outcome of unanswered changes, and compares everyone's
// view at every replica with the model.
func (w *world) barrier() {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.refreshSessions()
	w.quiet()
	for _, t := range w.model.all(nil) {
		if w.model.is(&t.exists) != no {
			w.must("decide", func() error { return w.decide(t) })
		}
	}
	w.must("decide", w.decideGroups)
	w.model.mu.Lock()
	w.model.things = slices.DeleteFunc(w.model.things, func(t *thing) bool { return t.exists.is == no })
	w.model.mu.Unlock()
	for _, p := range w.people {
		for i := range w.replicas {
			w.must("everything matches the answers", func() error { return w.compare(p, i) })
		}
	}
	w.tryStale()
}

// refreshSessions refreshes every session whose last response may have been lost. The service
// tolerates that for a minute, but the next steps may take longer. An older program may keep a
// session locked for longer than that, through a connection that it lost.
func (w *world) refreshSessions() {
	if w.old != "" {
		return
	}
	for _, p := range w.people {
		w.must("refresh", func() error {
			_, err := p.file.Refresh(context.Background(), publicURL, p.web)
			return err
		})
	}
}

// quiet waits until every replica has finished its requests. With an older program, which may have
// no metrics, each replica is replaced by one of the other release, as in an upgrade or a rollback:
// a replica that is stopped ends when it has answered everything.
func (w *world) quiet() {
	if w.old != "" {
		w.replaceAll()
		return
	}
	for _, r := range w.replicas {
		calm := 0
		_, err := w.until(func() error {
			n, err := r.metric("snapcloud_http_requests_in_flight")
			if err == nil && n > 0 {
				err = fmt.Errorf("%v requests are being answered", n)
			}
			if calm++; err != nil {
				calm = 0
			}
			if calm < 3 && err == nil {
				err = errors.New("only just")
			}
			return err
		})
		if err != nil {
			w.violated("%s has requests after %v: %v; they wait at:\n%s", r.name, bound, err, r.handlers())
		}
	}
}

func (w *world) replaceAll() {
	for _, r := range w.replicas {
		if err := r.stop(bound); err != nil {
			w.violated("stop: %v", err)
			r.kill()
		}
		if err := w.serves(r); err != nil {
			w.violated("%s does not start again: %v", r.name, err)
		}
		w.count(map[bool]string{true: "replaced by the older program", false: "replaced by this program"}[r.old])
	}
}

// handlers returns the places where the replica's requests wait.
func (r *replica) handlers() string {
	res, err := http.Get("http://" + r.private + "/debug/pprof/goroutine?debug=2")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	var out []string
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(stack, ").wrap.") {
			out = append(out, stack)
		}
	}
	return strings.Join(out, "\n\n")
}

// metric reads one figure of a replica.
func (r *replica) metric(name string) (float64, error) {
	res, err := http.Get("http://" + r.private + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// adminOf returns the admin who sees everything about the thing.
func (w *world) adminOf(t *thing) *person {
	for _, p := range w.people {
		if p.admin && p.org == t.owner.org {
			return p
		}
	}
	return nil
}

// decide asks for the outcome of unanswered changes of a thing. The answer counts from then on.
func (w *world) decide(t *thing) error {
	ctx, m := context.Background(), &w.model
	a := w.adminOf(t).at[0]
	unknown := func(f *fact) bool { again, _, _ := m.retry(f); return again }
	set := func(f *fact, is bool, until time.Time) {
		m.mu.Lock()
		defer m.mu.Unlock()
		f.is, f.until = truthOf(is), until
	}
	s, err := a.Snapshot(ctx, t.id)
	switch {
	case unknown(&t.exists) && snap.CodeOf(err) == snap.CodeNotFound:
		set(&t.exists, false, time.Time{})
		return nil
	case err != nil:
		return err
	case unknown(&t.exists):
		set(&t.exists, true, time.Time{})
	}
	if unknown(&t.shared) {
		set(&t.shared, s.Shared, time.Time{})
	}
	groups, err := a.GroupShares(ctx, t.id)
	if err != nil {
		return err
	}
	for name, f := range t.groups {
		if unknown(f) {
			set(f, slices.ContainsFunc(groups, func(g api.GroupShare) bool { return g.GroupID == name }), time.Time{})
		}
	}
	orgs, err := a.OrgShares(ctx, t.id)
	if err != nil {
		return err
	}
	for slug, f := range t.orgs {
		if !unknown(f) {
			continue
		}
		set(f, false, time.Time{})
		for _, o := range orgs {
			if o.OrgSlug == slug {
				until := time.Time{}
				if o.ExpiresAt != nil {
					until = *o.ExpiresAt
				}
				set(f, true, until)
			}
		}
	}
	return nil
}

func (w *world) decideGroups() error {
	me, err := w.churns.at[0].Me(context.Background())
	if err != nil {
		return err
	}
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	for name, f := range w.churns.groups {
		in := slices.ContainsFunc(me.Groups, func(g api.MyGroup) bool { return g.GroupID == name })
		if f.is != unsure && f.is != truthOf(in) {
			w.violated("%s is in %s: %v by an answered sign-in, and %v now", w.churns.email, name, f.is == yes, in)
		}
		f.is = truthOf(in)
	}
	return nil
}

// compare compares everything a person sees at a replica with the model.
func (w *world) compare(p *person, replica int) error {
	got, begun := map[string]bool{}, time.Now()
	for s, err := range p.at[replica].AllSnapshots(context.Background(), api.ListOptions{Limit: api.MaxLimit}) {
		if err != nil {
			return err
		}
		got[s.ID] = true
	}
	for _, t := range w.model.all(nil) {
		before, after := w.model.view(p, t, begun), w.model.view(p, t, time.Now())
		if sees, sure := settled(before, after); sure && got[t.id] != (sees == yes) {
			w.violated("at rest, replica %d lists %s of %s to %s: %v, must be %v (shared %v, groups %v, orgs %v)",
				replica,
				t.id, t.owner.email, p.email, got[t.id], sees == yes,
				t.shared.is, slices.Collect(maps.Keys(t.groups)), slices.Collect(maps.Keys(t.orgs)))
		}
	}
	return nil
}

// checkEnd checks everything that must hold at the end.
func (w *world) checkEnd() {
	w.barrier()
	w.noLeak()
	w.audit()
	for _, r := range w.replicas {
		if err := r.stop(bound); err != nil {
			w.violated("stop: %v", err)
		}
	}
	w.logs()
	w.workMoves()
	w.collect()
}

// noLeak checks that the number of goroutines and of open files of each replica falls to a limit.
// The limit allows for the connections that a pool keeps open.
func (w *world) noLeak() {
	const slack = 60
	for _, p := range w.people {
		p.closeIdle()
	}
	for _, r := range w.replicas {
		if r.old {
			continue // it may have no metrics
		}
		var routines float64
		var files int
		w.must(r.name+" comes down again", func() (err error) {
			if routines, err = r.metric("go_goroutines"); err != nil {
				return err
			}
			if files = r.files(); routines > slack || files > slack {
				err = fmt.Errorf("%v goroutines, %d files", routines, files)
			}
			return err
		})
		w.t.Logf("%s, up for %v: %v goroutines, %d files", r.name, time.Since(r.started).Round(time.Second), routines,
			files)
	}
}

// audit verifies the audit logs, and that each acknowledged push is in them once.
func (w *world) audit() {
	pushed := map[string]int{}
	for _, p := range w.people {
		if !p.admin {
			continue
		}
		v, err := p.any.VerifyAudit(context.Background(), nil)
		if err != nil {
			w.violated("the audit log of %s: %v", p.org, err)
		}
		w.t.Logf("the audit log of %s has %d lines", p.org, v.Lines)
		for e, err := range p.any.AllAudit(context.Background(),
			api.AuditOptions{Action: snap.AuditPushed, Limit: api.MaxLimit}) {
			if err != nil {
				w.violated("read the audit log of %s: %v", p.org, err)
				break
			}
			pushed[e.Snapshot]++
		}
	}
	for id, n := range pushed {
		if n != 1 {
			w.violated("the push of %s is in the audit log %d times", id, n)
		}
	}
	for _, t := range w.model.all(nil) {
		if pushed[t.id] != 1 {
			w.violated("the answered push of %s is in the audit log %d times", t.id, pushed[t.id])
		}
	}
	w.pushed = pushed
}

// logs reads the logs of the processes. An older program may write more than ours into the same
// files.
func (w *world) logs() {
	words := []string{"DATA RACE", "panic", "goroutine "}
	if w.old == "" {
		words = append(words, `"level":"ERROR"`)
	}
	for _, r := range w.replicas {
		for _, line := range r.wrote(words...) {
			w.violated("the log of a replica: %s: %s", r.name, line)
		}
	}
}

// collect delivers all messages that are due, collects garbage as if three days had passed, and
// compares the object store with the database.
func (w *world) collect() {
	ctx := context.Background()
	config, err := cloud.LoadConfig(w.replicas[0].config, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	later := time.Now()
	s, err := cloud.New(ctx, config, cloud.Options{Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return later }})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	for range 12 { // enough for several attempts of one delivery
		later = later.Add(time.Hour)
		if _, err := s.Deliver(ctx); err != nil {
			w.violated("deliver webhooks: %v", err)
		}
	}
	w.hooks.mu.Lock()
	for id := range w.pushed {
		if strings.HasPrefix(id, snap.IDPrefix) && w.ofAcme(id) && w.hooks.seen[id] == 0 {
			w.violated("the webhook did not receive the push of %s", id)
		}
	}
	w.t.Logf("webhooks: %d events, %d requests", len(w.hooks.seen), w.hooks.n)
	w.hooks.mu.Unlock()
	later = later.Add(72 * time.Hour)
	if _, err := s.Collect(ctx); err != nil {
		w.violated("collect: %v", err)
	}
	w.compareStorage(ctx, config)
}

func (w *world) ofAcme(id string) bool {
	for _, t := range w.model.all(nil) {
		if t.id == id {
			return t.owner.org == "acme"
		}
	}
	return false
}

// compareStorage looks for objects without a snapshot, snapshots without an
// object, and abandoned uploads.
func (w *world) compareStorage(ctx context.Context, config cloud.Config) {
	have := map[string]bool{}
	err := filepath.WalkDir(w.bucket, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), ".sgwtmp") {
			return filepath.SkipDir
		}
		if err == nil && !e.IsDir() && strings.HasPrefix(e.Name(), snap.IDPrefix) {
			have[filepath.Base(path)] = true
		}
		return err
	})
	if err != nil {
		w.violated("read the bucket: %v", err)
	}
	rows, err := w.db.QueryContext(ctx, `SELECT blob FROM snapshots`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			w.t.Fatal(err)
		}
		if n++; !have[filepath.Base(key)] {
			w.violated("the bytes of %s are gone", key)
		}
		delete(have, filepath.Base(key))
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	for key := range have {
		w.violated("after the collection the object store has %s, which no snapshot needs", key)
	}
	objects, err := blob.OpenS3(ctx, config.Blob.URL, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	uploads, err := objects.ListUploads(ctx)
	if err != nil || len(uploads) > 0 {
		w.violated("after the collection there are uploads: %v, %v", uploads, err)
	}
	w.t.Logf("the object store has %d objects", n)
}
