//go:build linux

package soak

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"snap"
	"snap/api"
	"snap/internal/login"
	"snap/internal/transfer"
)

// answered reports whether a request succeeded. A failure is a violation unless it is of the
// documented kinds or one of the given others.
func (w *world) answered(what string, err error, also ...snap.Code) bool {
	code := snap.CodeOf(err)
	switch {
	case err == nil:
		w.count(what + ": answered")
		return true
	case slices.Contains(also, code):
		w.count(what + ": " + string(code))
		return false
	case code == snap.CodeUnreachable, code == snap.CodeUnavailable, code == snap.CodeInterrupted,
		code == snap.CodeRateLimited:
		w.count(what + ": " + string(code))
		return false
	}
	w.violated("%s failed in a way that is not documented: %s: %+v, by %v", what, code, err, errors.Unwrap(err))
	return false
}

// change carries out one change of a fact, or repeats the change that was not answered.
func (w *world) change(what string, t *thing, f *fact, to bool, until time.Time,
	do func(to bool, until time.Time) error) bool {
	if again, was, end := w.model.retry(f); again {
		to, until = was, end
	}
	w.model.begin(t, f, to, until)
	if !w.answered(what, do(to, until)) {
		return false
	}
	w.model.done(t, f)
	return true
}

func (w *world) startLoad() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	number := uint64(0)
	add := func(step func(*rand.Rand)) {
		number++
		w.work(number, step)
	}
	for _, p := range w.people {
		if p.owns {
			o := &owner{p: p}
			add(o.step)
		}
	}
	for range 4 {
		add(func(r *rand.Rand) { w.probeAny(r) })
	}
	add(w.signIns)
	add(w.refreshes)
	add(w.keys)
	add(w.sessions)
	return func() {
		cancel()
		w.running.Wait()
	}
}

// owner is a person who pushes, shares and unshares. An admin also shares with another organization
// and deletes.
type owner struct {
	p          *person
	unfinished *thing // a push that was not answered
	n          int
}

// most is how many snapshots an admin owns before deleting some. People stop pushing at six times
// that number.
const most = 8

func (o *owner) step(r *rand.Rand) {
	w := o.p.w
	mine := w.model.all(o.p)
	if o.unfinished != nil || len(mine) < 2 || len(mine) < most*6 && r.IntN(6) == 0 {
		o.push(r)
		return
	}
	t := mine[r.IntN(len(mine))]
	if o.p.admin && r.IntN(2) == 0 {
		if r.IntN(3) > 0 {
			all := w.model.all(nil)
			t = all[r.IntN(len(all))]
		} else if len(mine) > most && t != w.canary {
			o.delete(t, r)
			return
		}
		o.shareOrg(t, r)
		return
	}
	if w.model.is(&t.exists) == yes {
		o.share(t, r)
	}
}

func content(seed uint64, size int) []byte {
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24), byte(seed >> 32)})
	r.Read(data)
	return data
}

func (o *owner) push(r *rand.Rand) {
	w, t := o.p.w, o.unfinished
	if t == nil {
		o.n++
		size := 1 + r.IntN(200<<10)
		if r.IntN(12) == 0 {
			size += 17 << 20 // several parts
		}
		name, _, _ := cutAt(o.p.email)
		t = &thing{target: name, name: fmt.Sprintf("%s-%04d", name, o.n), seed: w.seed<<20 + uint64(r.IntN(1<<20)),
			size: size, owner: o.p}
		sum := sha256.Sum256(content(t.seed, t.size))
		t.sha = hex.EncodeToString(sum[:])
		o.unfinished = t
	}
	dir := w.scratch()
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, content(t.seed, t.size), 0o600); err != nil {
		w.violated("write a file: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	got, err := transfer.Upload(ctx, o.p.any, file, api.PushRequest{
		Target: t.target, Name: t.name, Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: int64(t.size),
		SHA256: t.sha,
	}, transfer.Options{HTTP: o.p.web, Jobs: 2})
	if !w.answered("push", err) {
		return
	}
	t.id, t.exists.is, o.unfinished = got.ID, yes, nil
	w.model.add(t)
	w.probe(o.p, t, w.pick(replicaCount), r) // its owner sees it at once
}

func cutAt(email string) (name, org string, ok bool) {
	for i, c := range email {
		if c == '@' {
			return email[:i], email[i+1:], true
		}
	}
	return email, "", false
}

// share changes the org-wide share or a group share.
func (o *owner) share(t *thing, r *rand.Rand) {
	w, ctx := o.p.w, context.Background()
	f, what := &t.shared, "share"
	do := func(to bool, _ time.Time) error {
		if !to {
			return o.p.any.Unshare(ctx, t.id)
		}
		_, err := o.p.any.Share(ctx, t.id)
		return err
	}
	if r.IntN(2) == 0 && o.p.org == "acme" {
		group := []string{"eng", "dba"}[r.IntN(2)]
		f, what = w.model.groupFact(t, group), "group share"
		do = func(to bool, _ time.Time) error {
			if !to {
				return o.p.any.UnshareGroup(ctx, t.id, group)
			}
			_, err := o.p.any.ShareGroup(ctx, t.id, group)
			return err
		}
	}
	w.toggle(what, t, f, time.Time{}, do, r)
}

// shareOrg changes the share with the other organization, by its admin.
func (o *owner) shareOrg(t *thing, r *rand.Rand) {
	w, ctx, other := o.p.w, context.Background(), "globex"
	if o.p.org == other {
		other = "acme"
	}
	if t.owner.org != o.p.org || w.model.is(&t.exists) != yes {
		return
	}
	var until time.Time
	if r.IntN(2) == 0 {
		until = time.Now().Add(time.Duration(1500+r.IntN(4000)) * time.Millisecond).UTC().Truncate(time.Millisecond)
	}
	w.toggle("org share", t, w.model.orgFact(t, other), until, func(to bool, until time.Time) error {
		if !to {
			return o.p.any.UnshareOrg(ctx, t.id, other)
		}
		if until.IsZero() {
			_, err := o.p.any.ShareOrg(ctx, t.id, other, nil)
			return err
		}
		_, err := o.p.any.ShareOrg(ctx, t.id, other, &until)
		if snap.CodeOf(err) == snap.CodeInvalid && !time.Now().Before(until) {
			return &snap.Error{Code: snap.CodeInterrupted, Detail: "the end has come before the share"}
		}
		return err
	}, r)
}

func (o *owner) delete(t *thing, r *rand.Rand) {
	w := o.p.w
	held := w.hold(t, r)
	if w.change("delete", t, &t.exists, false, time.Time{}, func(bool, time.Time) error {
		err := o.p.any.Delete(context.Background(), t.id)
		if snap.CodeOf(err) == snap.CodeNotFound {
			return nil // by the previous request, which was not answered
		}
		return err
	}) {
		w.revoked(t, held, r)
	}
}

// toggle switches a fact. If that ended access, nobody who lost it gets in again, even with a URL
// that was issued before.
func (w *world) toggle(what string, t *thing, f *fact, until time.Time, do func(bool, time.Time) error, r *rand.Rand) {
	to := w.model.is(f) == no
	if !to {
		what, until = "un"+what, time.Time{}
	}
	held := w.hold(t, r)
	if w.change(what, t, f, to, until, do) {
		w.revoked(t, held, r)
	}
}

// heldURL is a URL of bytes that somebody holds.
type heldURL struct {
	p       *person
	url     string
	storage string // where it led
}

// hold gets a URL for somebody who sees the thing.
func (w *world) hold(t *thing, r *rand.Rand) *heldURL {
	p := w.people[r.IntN(len(w.people))]
	if p == t.owner || w.model.view(p, t, time.Now()).sees != yes || r.IntN(2) == 0 {
		return nil
	}
	got, err := p.any.Pull(context.Background(), t.id)
	if err != nil {
		return nil // the probes judge this
	}
	h := &heldURL{p: p, url: got.URL}
	res, err := noRedirect(p.web).Get(got.URL)
	if err == nil {
		res.Body.Close()
		h.storage = res.Header.Get("Location")
	}
	return h
}

func noRedirect(c *http.Client) *http.Client {
	copied := *c
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

// storageLife is how long a URL of the object store itself may work after the right has ended
// (decision 7), plus the clock's resolution.
const storageLife = time.Minute + 5*time.Second

// revoked asks every replica on behalf of random people. If the holder of a URL has lost access, it
// also tries that URL.
func (w *world) revoked(t *thing, held *heldURL, r *rand.Rand) {
	for i := range w.replicas {
		w.probe(w.people[r.IntN(len(w.people))], t, i, r)
	}
	if held == nil {
		return
	}
	before := w.model.view(held.p, t, time.Now())
	if before.sees != no {
		return
	}
	for i := range w.replicas {
		res, err := noRedirect(held.p.client(i)).Get(held.url)
		if err != nil {
			continue
		}
		res.Body.Close()
		if _, sure := settled(before, w.model.view(held.p, t, time.Now())); sure && res.StatusCode < 400 {
			w.violated("an earlier URL of a snapshot of %s, %s, works after %s lost access, at replica %d: status %d",
				t.owner.email,
				t.id, held.p.email, i, res.StatusCode)
		}
		w.count("held URL after a revocation: asked")
	}
	if held.storage != "" {
		w.mu.Lock()
		w.stale = append(w.stale, staleURL{held.storage, time.Now().Add(storageLife)})
		w.mu.Unlock()
	}
}

// staleURL is a URL of the object store that must not work after a time.
type staleURL struct {
	url  string
	from time.Time
}

// tryStale tries the URLs of the object store whose time is over.
func (w *world) tryStale() {
	w.mu.Lock()
	var due []staleURL
	w.stale = slices.DeleteFunc(w.stale, func(s staleURL) bool {
		if time.Now().Before(s.from) {
			return false
		}
		due = append(due, s)
		return true
	})
	w.mu.Unlock()
	for _, s := range due[max(0, len(due)-5):] {
		res, err := w.people[0].web.Get(s.url)
		if err != nil {
			continue
		}
		res.Body.Close()
		w.count("URL of the object store after its minute: asked")
		if res.StatusCode < 400 {
			w.violated("a URL of the object store serves more than a minute after the right has ended: status %d",
				res.StatusCode)
		}
	}
}

func (w *world) probeAny(r *rand.Rand) {
	all := w.model.all(nil)
	if len(all) == 0 {
		return
	}
	w.probe(w.people[r.IntN(len(w.people))], all[r.IntN(len(all))], r.IntN(replicaCount), r)
}

// probe checks whether a person sees a thing at a replica, and compares that with the model.
func (w *world) probe(p *person, t *thing, replica int, r *rand.Rand) {
	before := w.model.view(p, t, time.Now())
	door := []string{"get", "list", "pull"}[r.IntN(3)]
	var err error
	switch door {
	case "get":
		_, err = p.at[replica].Snapshot(context.Background(), t.id)
	case "list":
		err = listed(p.at[replica], t.id)
	case "pull":
		err = w.pull(p, t, replica)
	}
	sees, sure := settled(before, w.model.view(p, t, time.Now()))
	open := w.answered(door, err, snap.CodeNotFound)
	switch {
	case sure && sees == no && open:
		w.violated("%s opens %s to %s at replica %d, who has no access to it", door, t.id, p.email, replica)
	case sure && sees == yes && snap.CodeOf(err) == snap.CodeNotFound:
		w.violated("%s hides %s from %s at replica %d, who may see it: %v", door, t.id, p.email, replica, err)
	}
}

func listed(c *api.Client, id string) error {
	page, err := c.Snapshots(context.Background(), api.ListOptions{IDPrefix: id})
	if err == nil && len(page.Items) == 0 {
		return snap.ErrNotFound
	}
	return err
}

// pull pulls a thing and compares every byte.
func (w *world) pull(p *person, t *thing, replica int) error {
	dir := w.scratch()
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	_, _, err := transfer.Download(ctx, p.at[replica], t.id, file, transfer.Options{HTTP: p.client(replica), Jobs: 2})
	if err != nil {
		return err
	}
	got, err := os.ReadFile(file)
	if sum := sha256.Sum256(got); err != nil || hex.EncodeToString(sum[:]) != t.sha {
		w.violated("%s pulled other bytes of %s than were pushed: %v", p.email, t.id, err)
	}
	return nil
}

// signIns changes the groups of one person, who signs in again.
func (w *world) signIns(r *rand.Rand) {
	p := w.churns
	eng, dba := p.groups["eng"], p.groups["dba"]
	w.model.mu.Lock()
	if eng.is != unsure {
		eng.pending, dba.pending = r.IntN(2) == 0, r.IntN(2) == 0
	}
	eng.is, dba.is = unsure, unsure
	p.signIns++
	var groups []string
	for name, f := range p.groups {
		if f.pending {
			groups = append(groups, name)
		}
	}
	w.model.mu.Unlock()
	w.provider.put(p.email, groups)
	if _, err := p.signIn(); err != nil {
		w.count("sign-in: not answered")
		return
	}
	w.count("sign-in: answered")
	w.model.mu.Lock()
	eng.is, dba.is = truthOf(eng.pending), truthOf(dba.pending)
	p.signIns++
	w.model.mu.Unlock()
	for i := range w.replicas {
		all := w.model.all(nil)
		if len(all) > 0 {
			w.probe(p, all[r.IntN(len(all))], i, r)
		}
	}
	w.wait(time.Duration(r.IntN(300)) * time.Millisecond)
}

// refreshes refreshes a session. However often the response is lost, the
// session stays.
func (w *world) refreshes(r *rand.Rand) {
	for _, p := range w.people {
		if w.ctx.Err() != nil {
			return
		}
		web := p.web
		if r.IntN(4) == 0 { // the program is killed just before the response comes
			web = &http.Client{Transport: forgetful{p.web.Transport}, Timeout: patience}
		}
		_, err := p.file.Refresh(context.Background(), publicURL, web)
		if snap.CodeOf(err) == snap.CodeNotSignedIn {
			w.violated("the session of %s is lost: %+v", p.email, errors.Unwrap(err))
			continue
		}
		w.answered("refresh", err)
	}
	w.wait(time.Duration(r.IntN(500)) * time.Millisecond)
}

// forgetful loses every response.
type forgetful struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (f forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body.Close()
		err = errors.New("the answer was lost")
	}
	return nil, err
}

// keys makes a key, uses it and revokes it. The key then opens nothing at any replica.
func (w *world) keys(r *rand.Rand) {
	p, ctx := w.people[r.IntN(len(w.people))], context.Background()
	key, err := p.any.NewKey(ctx, api.KeyRequest{Kind: snap.UserKey, Name: "soak"})
	if !w.answered("key create", err) {
		return
	}
	me, err := p.byKey(key.Secret, r.IntN(replicaCount)).Me(ctx)
	if w.answered("key use", err) && me.Email != p.email {
		w.violated("the key of %s is taken for %s", p.email, me.Email)
	}
	for w.ctx.Err() == nil {
		err := p.any.RevokeKey(ctx, key.ID)
		if snap.CodeOf(err) == snap.CodeNotFound {
			err = nil // by the previous request
		}
		if w.answered("key revoke", err) {
			break
		}
	}
	if w.ctx.Err() != nil {
		return
	}
	for i := range w.replicas {
		if _, err := p.byKey(key.Secret, i).Me(ctx); w.answered("revoked key", err, snap.CodeUnauthenticated) {
			w.violated("a key that was revoked opens replica %d", i)
		}
	}
	w.wait(time.Duration(r.IntN(300)) * time.Millisecond)
}

// sessions signs a device in and out. Its token then opens nothing at any replica.
func (w *world) sessions(r *rand.Rand) {
	p, dir := w.people[r.IntN(len(w.people))], w.scratch()
	defer os.RemoveAll(dir)
	if p == w.churns {
		return // their sign-ins are counted elsewhere
	}
	if !w.answered("login", p.login(dir), snap.CodeNotSignedIn) {
		return
	}
	file := login.OpenFile(dir)
	s, ok, err := file.Session(publicURL)
	if err != nil || !ok {
		w.violated("a login kept no session: %v", err)
		return
	}
	me, err := p.by(s.AccessToken, r.IntN(replicaCount)).Me(context.Background())
	if w.answered("login use", err) && me.Email != p.email {
		w.violated("the session of %s is taken for %s", p.email, me.Email)
	}
	_, warning := login.Logout(context.Background(), file, publicURL, p.web)
	if !w.answered("logout", warning) {
		return
	}
	for i := range w.replicas {
		if _, err := p.by(s.AccessToken, i).Me(context.Background()); w.answered("ended session", err,
			snap.CodeUnauthenticated) {
			w.violated("a session that has ended opens replica %d", i)
		}
	}
	w.wait(time.Duration(r.IntN(500)) * time.Millisecond)
}
