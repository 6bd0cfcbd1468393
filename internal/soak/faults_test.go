//go:build linux

package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fault is one thing that goes wrong, and ends.
type fault struct {
	kind, target string
	after, lasts time.Duration
}

func (f fault) String() string {
	return fmt.Sprintf("%s of %s for %v after %v", f.kind, f.target, f.lasts.Round(time.Millisecond),
		f.after.Round(time.Millisecond))
}

// kinds are the faults by their target: a replica's process, one of the links around it, the
// database, the object store, or a link that all use.
func kinds() map[string][]string {
	links := []string{string(cut), string(reset), string(hole), string(lost), string(mute), string(slow)}
	around := []string{"kill", "stop", "freeze", "away db", "away s3"}
	for _, link := range []string{"front", "db", "s3"} {
		for _, l := range links {
			around = append(around, l+" "+link)
		}
	}
	return map[string][]string{
		"replica": around, "database": {"crash"}, "storage": {"kill", "freeze"},
		"client-s3": links, "idp": links,
	}
}

// bag holds the kinds of one target. Each comes once before any comes again,
// and one of each sort (the word before the link) before a second of it.
type bag struct {
	all, left []string
	chance    *rand.Rand
}

func (b *bag) draw() string {
	if len(b.left) == 0 {
		b.left = slices.Clone(b.all)
		b.chance.Shuffle(len(b.left), func(i, j int) { b.left[i], b.left[j] = b.left[j], b.left[i] })
		seen := map[string]int{}
		turn := map[string]int{}
		for _, kind := range b.left {
			sort, _, _ := strings.Cut(kind, " ")
			turn[kind] = seen[sort]
			seen[sort]++
		}
		slices.SortStableFunc(b.left, func(a, c string) int { return turn[a] - turn[c] })
	}
	kind := b.left[0]
	b.left = b.left[1:]
	return kind
}

// leaderEvery is the number of rounds after which the replica that does the background work is
// killed or frozen, alternately, in a separate round.
const leaderEvery = 8

// schedule makes rounds of faults from a seed.
func schedule(seed uint64, rounds int, longest time.Duration) (all [][]fault) {
	chance := rand.New(rand.NewPCG(seed, 3))
	bags := map[string]*bag{}
	for what, list := range kinds() {
		bags[what] = &bag{all: list, chance: rand.New(rand.NewPCG(seed, uint64(len(what))))}
	}
	short := rounds < leaderEvery
	for n := range rounds {
		if n%leaderEvery == 2 { // without other faults, so that only the leases decide which replica leads
			kind := []string{"kill", "freeze"}[(uint64(n/leaderEvery)+seed)%2]
			all = append(all, []fault{{kind, "leader", 0, longest}})
			continue
		}
		var round []fault
		add := func(what, target string) {
			round = append(round, fault{bags[what].draw(), target, time.Duration(chance.Int64N(int64(longest / 2))),
				longest/4 + time.Duration(chance.Int64N(int64(longest)))})
		}
		for i := range replicaCount {
			if short || chance.IntN(3) > 0 {
				add("replica", fmt.Sprint(i))
			}
		}
		for i, what := range []string{"database", "storage", "client-s3", "idp"} {
			if chance.IntN(4) == 0 || short && n == i {
				add(what, what)
			}
		}
		all = append(all, round)
	}
	return all
}

// strike carries out a round of faults, and returns when all have ended.
func (w *world) strike(round []fault) {
	var all sync.WaitGroup
	for _, f := range round {
		all.Go(func() {
			w.wait(f.after)
			w.count("fault: " + f.kind + " " + strings.TrimRight(f.target, "0123456789"))
			w.apply(f)
		})
	}
	all.Wait()
}

func (w *world) apply(f fault) {
	switch f.target {
	case "database":
		w.crash()
	case "storage":
		w.hit(f, w.storage, func() error { return w.startAgain(w.storage) })
	case "leader":
		w.loseLeader(f)
	case "client-s3":
		w.bend(w.clientS3, f)
	case "idp":
		w.bend(w.idp, f)
	default:
		w.applyTo(w.replicas[f.target[0]-'0'], f)
	}
}

func (w *world) applyTo(r *replica, f fault) {
	kind, where, _ := strings.Cut(f.kind, " ")
	l := map[string]*link{"front": r.front, "db": r.db, "s3": r.s3}[where]
	switch {
	case kind == "away":
		w.away(r, l, f)
	case l != nil:
		f.kind = kind
		w.bend(l, f)
	default:
		w.hit(f, r.process, func() error { return w.serves(r) })
	}
}

// bend changes a link for a while.
func (w *world) bend(l *link, f fault) {
	l.set(mode(f.kind))
	w.wait(f.lasts)
	l.set(pass)
}

// hit disturbs a process for a while.
func (w *world) hit(f fault, p *process, again func() error) {
	switch f.kind {
	case "freeze":
		p.signal(syscall.SIGSTOP)
		w.wait(f.lasts)
		p.signal(syscall.SIGCONT)
		return
	case "kill":
		p.kill()
	case "stop":
		if err := p.stop(bound); err != nil {
			w.violated("stop: %v", err)
			p.kill()
		}
	}
	w.wait(f.lasts)
	if err := again(); err != nil {
		w.violated("%s does not start again: %v", p.name, err)
	}
}

// loseLeader kills or freezes the replica that does the background work, waits until another one
// does it, and brings the first one back. A frozen one resumes in the middle of work that now
// belongs to the other.
func (w *world) loseLeader(f fault) {
	if w.old != "" {
		return // an older program cannot be made to do its background work more often
	}
	var leader *replica
	w.must("somebody leads", func() error {
		leader = w.leaderBut(nil)
		if leader == nil {
			return errors.New("nobody does")
		}
		return nil
	})
	if leader == nil {
		return
	}
	if f.kind == "freeze" {
		leader.signal(syscall.SIGSTOP)
	} else {
		leader.kill()
	}
	w.mustSoon("a lost leader is replaced", func() error {
		if w.leaderBut(leader) == nil {
			return errors.New("nobody leads")
		}
		return nil
	})
	w.wait(f.lasts)
	if f.kind == "freeze" {
		leader.signal(syscall.SIGCONT)
	} else if err := w.serves(leader); err != nil {
		w.violated("%s does not start again: %v", leader.name, err)
	}
}

// leaderBut returns a replica other than this one that does the background
// work, or nil.
func (w *world) leaderBut(lost *replica) *replica {
	for _, r := range w.replicas {
		if r == lost {
			continue
		}
		if held, err := r.metric(`snapcloud_lease_held{work="collect"}`); err == nil && held == 1 {
			return r
		}
	}
	return nil
}

func (w *world) startAgain(p *process) error {
	_, err := w.until(func() error {
		if !p.alive() {
			if err := p.start(); err != nil {
				return err
			}
		}
		return dials(w.clientS3.to)
	})
	return err
}

// away cuts off a replica from the database or object store, waits until the replica reports that,
// and then until it reports that the connection is back. Only without the database is a replica not
// ready.
func (w *world) away(r *replica, l *link, f fault) {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	part, without := "storage", http.StatusOK
	if l == r.db {
		part, without = "database", http.StatusServiceUnavailable
	}
	ready := func(want int, state string) func() error {
		return func() error {
			res, err := client.Get("http://" + r.listen + "/readyz")
			if err != nil {
				return err
			}
			defer res.Body.Close()
			var parts map[string]string
			err = json.NewDecoder(res.Body).Decode(&parts)
			if err != nil || res.StatusCode != want || parts[part] != state {
				return fmt.Errorf("/readyz answers %d, %v, %v", res.StatusCode, parts, err)
			}
			return nil
		}
	}
	l.set(cut)
	if _, err := w.until(ready(without, "unavailable")); err != nil {
		w.violated("%s does not say that %s is away: %v", r.name, l.name, err)
	}
	w.wait(f.lasts)
	l.set(pass)
	if r.alive() {
		w.mustSoon("ready again", ready(http.StatusOK, "ok"))
	}
}

// mustSoon is must, and records the longest time that it took.
func (w *world) mustSoon(what string, check func() error) {
	took, err := w.until(check)
	if err != nil {
		w.violated("%s: not within %v: %v", what, bound, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if took > w.longest[what] {
		w.longest[what] = took
	}
}

// run is one run of background work, as a replica logged it.
type run struct {
	replica    int
	began, end time.Time
}

// workMoves reads from the replicas' logs when each did the leased work. A lost leader must have been
// replaced.
func (w *world) workMoves() {
	var all []run
	for i, r := range w.replicas {
		for _, line := range r.wrote(`"msg":"background work"`) {
			var e struct {
				Time time.Time     `json:"time"`
				Job  string        `json:"job"`
				Took time.Duration `json:"took"`
			}
			if json.Unmarshal([]byte(line), &e) == nil && e.Job == "collect" {
				all = append(all, run{i, e.Time.Add(-e.Took), e.Time})
			}
		}
	}
	slices.SortFunc(all, func(a, b run) int { return a.began.Compare(b.began) })
	leaders := 0
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if a.replica == b.replica {
			continue
		}
		leaders++
		if b.began.Before(a.end) { // allowed: the lease counts from a question that a slow database answers late
			w.count("background work on two replicas at once")
		}
	}
	w.t.Logf("background work ran %d times, and went to another replica %d times", len(all), leaders)
	if w.old == "" && len(all) == 0 { // the older program may hold the lease for long
		w.violated("no background work was done%s", "")
	}
	if w.old == "" && leaders == 0 {
		w.violated("a lost leader was not replaced%s", "")
	}
}
