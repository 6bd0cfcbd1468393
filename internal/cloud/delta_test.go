package cloud_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/delta"
	"snap/internal/servertest"
)

// deltaFor asks for a delta until the service has made it, or has none.
func deltaFor(c *api.Client, id string, have ...string) (offer api.DeltaOffer, err error) {
	for offer.Making = true; err == nil && offer.Making; {
		offer, err = c.PullDelta(context.Background(), id, api.DeltaRequest{Have: have})
	}
	return offer, err
}

// version returns a snapshot file of the n-th version of some rows. Versions share most rows.
func version(t testing.TB, n int) []byte {
	t.Helper()
	file, err := versionFile(n)
	must(t, err)
	return file
}

func versionFile(n int) ([]byte, error) {
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, 1)
	if err != nil {
		return nil, err
	}
	section, err := w.Section("dump")
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 8000 {
		if _, err := fmt.Fprintf(section, "%d\t%016x%016x\n", i, r.Uint64(), r.Uint64()); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(section, "version\t%d\n", n)
	if err := section.Close(); err != nil {
		return nil, err
	}
	_, err = w.Close(archive.Manifest{Engine: snap.SQLite, Target: "shop", Name: fmt.Sprintf("shop-%d", n),
		Type: snap.TypeSnapshot, Created: time.Unix(int64(n), 0)})
	return b.Bytes(), err
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// deltaBetween returns the delta between two files.
func deltaBetween(t *testing.T, base, result []byte) []byte {
	t.Helper()
	d, err := betweenFiles(base, result)
	must(t, err)
	return d
}

func betweenFiles(base, result []byte) ([]byte, error) {
	old, err := archive.NewReader(bytes.NewReader(base), int64(len(base)))
	if err != nil {
		return nil, err
	}
	now, err := archive.NewReader(bytes.NewReader(result), int64(len(result)))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = delta.Write(context.Background(), &b, old, now, fileOf(base), fileOf(result), 1<<40)
	return b.Bytes(), err
}

func fileOf(b []byte) delta.File { return delta.File{Size: int64(len(b)), SHA256: sumOf(b)} }

// applied returns the file that a delta results in.
func applied(t *testing.T, base, d []byte) []byte {
	t.Helper()
	file, err := appliedTo(base, d)
	must(t, err)
	return file
}

func appliedTo(base, d []byte) ([]byte, error) {
	r := bytes.NewReader(d)
	h, err := delta.ReadHeader(r)
	if err != nil {
		return nil, err
	}
	old, err := archive.NewReader(bytes.NewReader(base), int64(len(base)))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = delta.Apply(context.Background(), &b, h, old, r)
	return b.Bytes(), err
}

// put sends a delta.
func put(t *testing.T, url string, d []byte) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, url, bytes.NewReader(d))
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	res.Body.Close()
	return res.StatusCode
}

// beginDelta begins a push of a file and announces a delta of it.
func beginDelta(t *testing.T, client *api.Client, target string, file, d []byte, base string) (string, api.DeltaUpload,
	error) {
	t.Helper()
	plan, err := client.Push(t.Context(), api.PushRequest{Target: target, Name: "shop-next", Type: snap.TypeSnapshot,
		Engine: snap.SQLite, Size: int64(len(file)), SHA256: sumOf(file)})
	must(t, err)
	place, err := client.PushDelta(t.Context(), plan.ID, api.DeltaPush{Base: base, Size: int64(len(d))})
	return plan.ID, place, err
}

// TestDeltasFollowTheAccessRule asks, as every user, for deltas to the snapshots that the user may
// see. There is a delta if the user may also see its base. Otherwise the response is the one for a
// base that does not exist.
func TestDeltasFollowTheAccessRule(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	shares := []func(id string) error{
		func(string) error { return nil },
		func(id string) error { _, err := mia.Share(ctx, id); return err },
		func(id string) error { _, err := mia.ShareGroup(ctx, id, "dba"); return err },
		func(id string) error { _, err := alice.ShareOrg(ctx, id, "globex", nil); return err },
	}
	files := map[string][]byte{}
	var ids []string
	for n, share := range shares {
		file := version(t, n)
		id := c.Push(mia, "shop", file).ID
		must(t, share(id))
		files[id], ids = file, append(ids, id)
	}
	for _, caller := range callers {
		if email := emails[caller]; email == "" {
			continue
		}
		client := c.As(emails[caller])
		sees := func(id string) bool { _, err := client.Snapshot(ctx, id); return err == nil }
		for _, base := range ids {
			for _, result := range ids {
				if base == result || !sees(result) {
					continue
				}
				key := c.Key(emails[caller])
				path := c.URL + api.MountAgent + "/snapshots/" + result + "/pull-delta"
				_, text := send(t, http.MethodPost, path, `{"have":["`+base+`"]}`, key)
				if !sees(base) {
					_, absent := send(t, http.MethodPost, path, `{"have":["`+snap.NewSnapshotID()+`"]}`, key)
					if !bytes.Equal(text, absent) {
						t.Errorf("%s: a hidden base answers %s, an absent one %s", caller, text, absent)
					}
					continue
				}
				offer, err := deltaFor(client, result, base)
				if err != nil || offer.Base != base {
					t.Fatalf("%s: the offer is %+v, error %v", caller, offer, err)
				}
				res, d := get(t, offer.URL)
				if res.StatusCode != http.StatusOK || int64(len(d)) != offer.Size || len(d) > len(files[result])/50 ||
					!bytes.Equal(applied(t, files[base], d), files[result]) {
					t.Errorf("%s: status %d, a delta of %d bytes, announced %d", caller, res.StatusCode, len(d),
						offer.Size)
				}
			}
		}
	}
}

// TestRevocationReachesDeltas: a URL of a delta ends with the right to its base or its result.
func TestRevocationReachesDeltas(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, gus := c.As("mia@acme.test"), c.As("gus@acme.test")
	var ids []string
	for n := range 2 {
		id := c.Push(mia, "shop", version(t, n)).ID
		_, err := mia.ShareGroup(t.Context(), id, "dba")
		must(t, err)
		ids = append(ids, id)
	}
	for _, revoked := range ids {
		offer, err := deltaFor(gus, ids[1], ids[:1]...)
		must(t, err)
		if res, _ := get(t, offer.URL); res.StatusCode != http.StatusOK {
			t.Fatalf("before: %d", res.StatusCode)
		}
		must(t, mia.UnshareGroup(t.Context(), revoked, "dba"))
		if res, data := get(t, offer.URL); res.StatusCode != http.StatusNotFound {
			t.Errorf("after: %d %q", res.StatusCode, data)
		}
		if put(t, offer.URL, []byte("x")) != http.StatusForbidden {
			t.Error("the URL of a pull takes a push")
		}
		_, err = mia.ShareGroup(t.Context(), revoked, "dba")
		must(t, err)
	}
}

// TestDeltasEndWithTheirSnapshots: a delta contains rows of both snapshots. It is removed with
// either of them, and a day after it was made.
func TestDeltasEndWithTheirSnapshots(t *testing.T) {
	t.Parallel()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	alice := c.As("alice@acme.test")
	kept := func() int {
		t.Helper()
		entries, err := os.ReadDir(c.Service.Deltas())
		must(t, err)
		return len(entries)
	}
	push := func(n int) string { return c.Push(alice, "shop", version(t, n)).ID }
	offered := func(base, result string) {
		t.Helper()
		offer, err := deltaFor(alice, result, base)
		if err != nil || offer.URL == "" || kept() != 1 {
			t.Fatalf("%+v, error %v, %d deltas", offer, err, kept())
		}
	}
	first, second, third := push(0), push(1), push(2)
	offered(first, second)
	must(t, alice.Delete(t.Context(), first))
	if kept() > 0 {
		t.Error("the delta is still there after its base was deleted")
	}
	offered(second, third)
	must(t, alice.Delete(t.Context(), third))
	if kept() > 0 {
		t.Error("the delta is still there after its result was deleted")
	}
	file, d := version(t, 4), deltaBetween(t, version(t, 1), version(t, 4))
	ended, place, err := beginDelta(t, alice, "shop", file, d, second)
	must(t, err)
	if status := put(t, place.URL, d); status != http.StatusNoContent || kept() != 1 {
		t.Fatalf("status %d, %d deltas", status, kept())
	}
	must(t, alice.AbortUpload(t.Context(), ended))
	if kept() > 0 {
		t.Error("the delta is still there after its push was ended")
	}
	offered(second, push(3))
	c.Service.ExpireDeltas()
	if kept() != 1 {
		t.Error("a new delta was removed")
	}
	clock.Advance(25 * time.Hour)
	c.Service.ExpireDeltas()
	if kept() > 0 {
		t.Error("the delta is still there after a day")
	}
}

// TestFolderOfDeltasIsRemoved: if another program removes the folder of deltas, the bytes of
// deleted snapshots are still removed, and deltas are made again.
func TestFolderOfDeltasIsRemoved(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	push := func(n int) string { return c.Push(alice, "shop", version(t, n)).ID }
	deleted, base, result := push(0), push(1), push(2)
	must(t, os.RemoveAll(c.Service.Deltas()))
	must(t, alice.Delete(t.Context(), deleted))
	if left, err := filepath.Glob(filepath.Join(c.Config.DataDir, "blobs", "objects", "*", deleted)); err != nil ||
		len(left) > 0 {
		t.Errorf("left of the deleted snapshot: %v, %v", left, err)
	}
	if offer, err := deltaFor(alice, result, base); err != nil || offer.URL == "" {
		t.Errorf("the offer is %+v, error %v", offer, err)
	}
}

// TestHugeFilesAreNotRebuilt: a small delta cannot make the service buffer the large parts in which
// a huge file would be written to S3.
func TestHugeFilesAreNotRebuilt(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{BlobURL: servertest.S3(t)})
	mia, base := c.As("mia@acme.test"), version(t, 0)
	id := c.Push(mia, "shop", base).ID
	huge := delta.File{Size: 5 << 40, SHA256: sumOf([]byte("huge"))}
	plan, err := mia.Push(t.Context(), api.PushRequest{Target: "shop", Name: "shop-huge", Type: snap.TypeSnapshot,
		Engine: snap.SQLite, Size: huge.Size, SHA256: huge.SHA256})
	must(t, err)
	d := deltaHeader(t, 4, delta.Header{Base: fileOf(base), Result: huge, Encoder: archive.Encoder})
	place, err := mia.PushDelta(t.Context(), plan.ID, api.DeltaPush{Base: id, Size: int64(len(d))})
	must(t, err)
	if status := put(t, place.URL, d); status != http.StatusServiceUnavailable {
		t.Errorf("the delta: status %d, want 503", status)
	}
}

// TestPushEndsWhileItsDeltaArrives: nothing remains of a push that its owner ends while the service
// rebuilds its file.
func TestPushEndsWhileItsDeltaArrives(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, base, result := c.As("mia@acme.test"), version(t, 0), version(t, 1)
	d := deltaBetween(t, base, result)
	push, place, err := beginDelta(t, mia, "shop", result, d, c.Push(mia, "shop", base).ID)
	must(t, err)
	body, rest := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, place.URL, body)
	must(t, err)
	req.ContentLength = int64(len(d))
	var sending sync.WaitGroup
	sending.Go(func() {
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
	})
	_, err = rest.Write(d[:len(d)-1])
	must(t, err)
	left := func() []string {
		all, err := filepath.Glob(filepath.Join(c.Config.DataDir, "blobs", "*", "*"+push+"*"))
		must(t, err)
		objects, err := filepath.Glob(filepath.Join(c.Config.DataDir, "blobs", "objects", "*", push))
		must(t, err)
		deltas, err := filepath.Glob(filepath.Join(c.Service.Deltas(), "*"))
		must(t, err)
		return slices.Concat(all, objects, deltas)
	}
	waitFor(t, func() bool { return len(left()) == 2 }) // the object and the delta are being written
	must(t, mia.AbortUpload(t.Context(), push))
	_, err = rest.Write(d[len(d)-1:])
	must(t, err)
	sending.Wait()
	if all := left(); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}

// TestStalledDeltas: a client that begins to send a delta and then sends nothing does not keep the
// service from working on deltas.
func TestStalledDeltas(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	c.Service.DeltaStalls(time.Millisecond)
	mia, base, result := c.As("mia@acme.test"), version(t, 0), version(t, 1)
	d := deltaBetween(t, base, result)
	_, place, err := beginDelta(t, mia, "shop", result, d, c.Push(mia, "shop", base).ID)
	must(t, err)
	u, err := url.Parse(place.URL)
	must(t, err)
	conn, err := net.Dial("tcp", u.Host)
	must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", u.Path, u.Host, len(d),
		d[:9])
	must(t, err)
	_, _ = io.Copy(io.Discard, conn) // until the service ends the connection, with or without a response
	c.Service.DeltaStalls(time.Hour)
	if status := put(t, place.URL, d); status != http.StatusNoContent {
		t.Errorf("the delta after a silent client: %d", status)
	}
}

// TestDeltasThatTakeLong: two snapshots whose comparison takes too long have no delta, and are not
// compared again.
func TestDeltasThatTakeLong(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	base, result := c.Push(alice, "shop", version(t, 0)).ID, c.Push(alice, "shop", version(t, 1)).ID
	ask := func() api.DeltaOffer {
		t.Helper()
		offer, err := deltaFor(alice, result, base)
		must(t, err)
		return offer
	}
	c.Service.DeltaTakes(1)
	if offer := ask(); offer.URL != "" || offer.Making {
		t.Errorf("offered: %+v", offer)
	}
	c.Service.DeltaTakes(time.Hour)
	if offer := ask(); offer.URL != "" {
		t.Errorf("made later: %+v", offer)
	}
}

// TestPushByDelta: the rebuilt snapshot is the announced file. Anything else that is sent is
// refused, and the right delta can still complete the push.
func TestPushByDelta(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	base, result := version(t, 0), version(t, 1)
	id, other := c.Push(mia, "shop", base).ID, c.Push(mia, "elsewhere", base).ID
	hidden := c.Push(c.As("adam@acme.test"), "shop", base).ID
	d := deltaBetween(t, base, result)
	for _, no := range []string{other, hidden, snap.NewSnapshotID(), "x"} {
		if _, _, err := beginDelta(t, mia, "shop", result, d, no); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("base %s: %v", no, err)
		}
	}
	wrong := bytes.Clone(d)
	wrong[len(wrong)/2] ^= 1
	for name, sent := range map[string][]byte{"damaged": wrong, "of another file": deltaBetween(t, base, version(t, 2)),
		"longer": append(bytes.Clone(d), 0), "no delta": bytes.Repeat([]byte("x"), len(d))} {
		push, place, err := beginDelta(t, mia, "shop", result, sent, id)
		must(t, err)
		if status := put(t, place.URL, sent); status < 400 {
			t.Errorf("%s: status %d", name, status)
		}
		if _, err := mia.Complete(t.Context(), push); err == nil {
			t.Errorf("%s: the push is complete", name)
		}
	}
	push, place, err := beginDelta(t, mia, "shop", result, d, id)
	must(t, err)
	if status := put(t, place.URL, append(bytes.Clone(d), 0)); status != http.StatusBadRequest {
		t.Errorf("more bytes than announced: %d", status)
	}
	if status := put(t, place.URL, d); status != http.StatusNoContent {
		t.Fatalf("the delta: %d", status)
	}
	done, err := mia.Complete(t.Context(), push)
	must(t, err)
	pull, err := mia.Pull(t.Context(), done.ID)
	must(t, err)
	if _, data := get(t, pull.URL); !bytes.Equal(data, result) || done.SHA256 != sumOf(result) {
		t.Error("the snapshot is not the announced file")
	}
	offer, err := deltaFor(mia, done.ID, id)
	must(t, err)
	if _, data := get(t, offer.URL); !bytes.Equal(data, d) {
		t.Error("the offered delta is not the pushed one")
	}
	down := fmt.Sprintf("snapcloud_transfer_bytes_total{direction=\"down\"} %g\n", float64(len(result)+len(d)))
	waitFor(t, func() bool { return strings.Contains(metrics(t, c), "snapcloud_http_requests_in_flight 0\n") })
	if !strings.Contains(metrics(t, c), down) {
		t.Errorf("the metrics lack %s", down)
	}
	if status := put(t, place.URL, d); status != http.StatusNotFound {
		t.Errorf("after the push: %d", status)
	}
	page, err := mia.Snapshots(t.Context(), api.ListOptions{Target: "shop"})
	must(t, err)
	if !slices.ContainsFunc(page.Items, func(s api.Snapshot) bool { return s.ID == done.ID }) {
		t.Error("the snapshot is not listed")
	}
	if _, err := c.As("vic@acme.test").PushDelta(t.Context(), push, api.DeltaPush{Base: id, Size: 1}); err == nil ||
		strings.Contains(err.Error(), push) {
		t.Errorf("somebody else's push: %v", err)
	}
}

// TestDeltaOfAReceivedSnapshot: a received snapshot is no base for a push to the recipient's own
// organization, nor for a pull of a snapshot of that organization.
func TestDeltaOfAReceivedSnapshot(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	gary := c.As("gary@globex.test")
	base, result := version(t, 0), version(t, 1)
	id := c.Push(c.As("mia@acme.test"), "shop", base).ID
	_, err := c.As("alice@acme.test").ShareOrg(t.Context(), id, "globex", nil)
	must(t, err)
	d := deltaBetween(t, base, result)
	if _, _, err := beginDelta(t, gary, "shop", result, d, id); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("a received snapshot is a base: %v", err)
	}
	own := c.Push(gary, "shop", result).ID
	offer, err := deltaFor(gary, own, id)
	if err != nil || offer.URL != "" || offer.Base != "" {
		t.Errorf("a delta crosses organizations: %+v %v", offer, err)
	}
}

// deltaDoors are the doors through which deltas are pushed and pulled, and the model of what
// callers hold.
type deltaDoors struct {
	*building
	target map[*thing]string
	file   map[*thing][]byte
	pulls  []deltaPull
	pushes []deltaPush
	made   int
}

// deltaPull is a URL of a delta that a visitor got.
type deltaPull struct {
	who          *visitor
	base, result *thing
	offer        api.DeltaOffer
}

// deltaPush is a push that a visitor has begun, with the URL for its delta.
type deltaPush struct {
	who   *visitor
	base  *thing
	id    string
	place api.DeltaUpload
	file  []byte
	delta []byte
}

// TestDeltaDoorsAreTheAccessRule: whatever happened before, a caller gets or pushes a delta exactly
// if the access rule shows them its base and its result, or its base and their own push. All other
// responses are those for snapshots that do not exist, byte for byte. So nobody who sees only the
// result gets rows that were deleted since the base, and no delta crosses organizations.
func TestDeltaDoorsAreTheAccessRule(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock, Config: behindProxy})
	histories, all := 0, chosen("rapid.checks")
	pulls, pushes := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if histories++; histories > fewHistories && !all {
			return
		}
		d := &deltaDoors{building: newBuilding(rt, c, clock, histories), target: map[*thing]string{},
			file: map[*thing][]byte{}}
		d.addPushers(rt)
		for range 3 {
			d.push(rt)
		}
		steps := d.steps()
		steps["push"], steps["begin a push by delta"], steps["send a delta"] = d.push, d.begin, d.send
		steps[""] = d.tryDeltas
		rt.Repeat(steps)
		pulls, pushes = pulls+len(d.pulls), pushes+len(d.pushes)
	})
	if all && (pulls == 0 || pushes == 0) { // a few histories can be without one of them
		t.Errorf("%d deltas were pulled and %d pushed", pulls, pushes)
	}
}

// addPushers adds keys that can push and see snapshots, and cannot pull them.
func (d *deltaDoors) addPushers(rt *rapid.T) {
	scopes := slices.DeleteFunc(snap.Scopes(), func(s snap.Scope) bool { return s == snap.ScopePull })
	for _, org := range d.orgs {
		v := &visitor{caller: snap.Caller{Org: org, Credential: snap.Credential{Scopes: scopes}}}
		d.people = append(d.people, d.withKey(rt, v, auth.KeySpec{Kind: snap.PipelineKey, Scopes: scopes}))
	}
}

// push lets anybody push a snapshot of one of two targets.
func (d *deltaDoors) push(rt *rapid.T) {
	able := slices.DeleteFunc(slices.Clone(d.people), func(v *visitor) bool { return d.mayPush(v) != "" })
	if len(d.things) == 5 || len(able) == 0 {
		rt.Skip("enough, or nobody can push")
	}
	v := rapid.SampledFrom(able).Draw(rt, "who")
	target := rapid.SampledFrom([]string{"shop", "shop", "shop", "other"}).Draw(rt, "target")
	file := d.newFile(rt)
	d.add(v, target, file, d.Push(v.client, target, file))
}

func (d *deltaDoors) newFile(rt *rapid.T) []byte {
	d.made++
	file, err := versionFile(d.made)
	check(rt, err)
	return file
}

// add adds a pushed snapshot to the model.
func (d *deltaDoors) add(v *visitor, target string, file []byte, s api.Snapshot) {
	t := &thing{Snapshot: s, org: v.caller.Org, owner: v.caller.User, log: map[string]string{},
		grants: map[snap.Audience]time.Time{snap.AudienceOf(snap.KindAdmins, v.caller.Org.ID): {}}}
	if v.caller.User != nil {
		t.grants[snap.AudienceOf(snap.KindUser, v.caller.User.ID)] = time.Time{}
	} else {
		t.grants[snap.AudienceOf(snap.KindKeys, v.caller.Org.ID)] = time.Time{}
	}
	d.target[t], d.file[t], d.things = target, file, append(d.things, t)
}

// mayPush is the code for a visitor who wants to push; empty if they may.
func (d *deltaDoors) mayPush(v *visitor) snap.Code {
	if v.disabled || v.caller.Principal() == 0 {
		return snap.CodeUnauthenticated
	}
	return refused(v, snap.ActPush, snap.Snapshot{})
}

// usable is the rule for a base: the visitor may pull it, and it is of the same target and
// organization.
func (d *deltaDoors) usable(v *visitor, base *thing, target string, org snap.OrgRef) bool {
	return d.may(v, base, snap.ActPull) == "" && d.target[base] == target && base.org.ID == org.ID
}

// tryDeltas tries, for everybody, to pull one delta and all deltas whose URLs they got before.
func (d *deltaDoors) tryDeltas(rt *rapid.T) {
	if len(d.things) == 0 {
		return
	}
	for _, v := range d.people {
		d.tryPull(rt, v, rapid.SampledFrom(d.things).Draw(rt, "base"), rapid.SampledFrom(d.things).Draw(rt, "result"))
	}
	for _, p := range d.pulls {
		d.tryBytes(rt, p)
	}
}

// tryPull asks for a delta. If the visitor gets none, it compares the response with that for a
// snapshot that does not exist.
func (d *deltaDoors) tryPull(rt *rapid.T, v *visitor, base, result *thing) {
	path := "/snapshots/" + result.ID + "/pull-delta"
	got := d.ask(rt, v, path, `{"have":["`+base.ID+`"]}`)
	for strings.Contains(got, `"making":true`) { // on a busy machine, the delta may not be ready yet
		got = d.ask(rt, v, path, `{"have":["`+base.ID+`"]}`)
	}
	want := d.may(v, result, snap.ActPull)
	if want != "" {
		never := d.ask(rt, v, "/snapshots/"+snap.NewSnapshotID()+"/pull-delta", `{"have":["`+base.ID+`"]}`)
		if want == snap.CodeNotFound {
			same(rt, "a delta to a hidden snapshot", v, got, never)
		}
		if !strings.Contains(got, `"`+string(want)+`"`) {
			rt.Fatalf("a delta to %s for %s answers %s, want %s", result.ID, v.name(), got, want)
		}
		return
	}
	if base == result || !d.usable(v, base, d.target[result], result.org) {
		never := d.ask(rt, v, path, `{"have":["`+snap.NewSnapshotID()+`"]}`)
		same(rt, "a delta from a base of no use", v, got, never)
		return
	}
	var offer api.DeltaOffer
	_, text, _ := strings.Cut(got, "\n\n")
	check(rt, json.Unmarshal([]byte(text), &offer))
	if offer.Base != base.ID || offer.URL == "" {
		rt.Fatalf("a delta to %s for %s is not offered: %s", result.ID, v.name(), got)
	}
	p := deltaPull{v, base, result, offer}
	d.pulls = append(d.pulls, p)
	status, bytesOf := d.fetch(rt, p)
	made, err := appliedTo(d.file[base], bytesOf)
	if status != http.StatusOK || err != nil || !bytes.Equal(made, d.file[result]) {
		rt.Fatalf("the delta to %s for %s: status %d, %v", result.ID, v.name(), status, err)
	}
}

// ask sends a request and returns the whole response except its date.
func (d *deltaDoors) ask(rt *rapid.T, v *visitor, path, body string) string {
	req, err := http.NewRequest(http.MethodPost, d.URL+api.MountAgent+path, strings.NewReader(body))
	check(rt, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "test")
	if v.secret != "" {
		req.Header.Set("Authorization", "Bearer "+v.secret)
	}
	res, text := d.do(rt, req)
	res.Header.Del("Date")
	var head bytes.Buffer
	check(rt, res.Header.Write(&head))
	return fmt.Sprintf("%d\n%s\n\n%s", res.StatusCode, head.String(), text)
}

func (d *deltaDoors) do(rt *rapid.T, req *http.Request) (*http.Response, []byte) {
	res, err := inside{d.Service.Handler()}.RoundTrip(req)
	check(rt, err)
	text, err := io.ReadAll(res.Body)
	check(rt, err)
	return res, text
}

func (d *deltaDoors) fetch(rt *rapid.T, p deltaPull) (int, []byte) {
	req, err := http.NewRequest(http.MethodGet, p.offer.URL, nil)
	check(rt, err)
	res, text := d.do(rt, req)
	return res.StatusCode, text
}

// tryBytes fetches a delta by a URL that was issued earlier.
func (d *deltaDoors) tryBytes(rt *rapid.T, p deltaPull) {
	want := http.StatusOK
	switch {
	case !d.clock.Now().Before(*p.offer.Expires):
		want = http.StatusForbidden
	case !d.sees(p.who, p.base) || !d.sees(p.who, p.result):
		want = http.StatusNotFound
	}
	if status, _ := d.fetch(rt, p); status != want {
		rt.Fatalf("the delta from %s to %s for %s: status %d, want %d", p.base.ID, p.result.ID, p.who.name(), status,
			want)
	}
}

// begin lets somebody begin a push and announce a delta from any snapshot.
func (d *deltaDoors) begin(rt *rapid.T) {
	if len(d.things) == 0 || len(d.things) == 5 {
		rt.Skip("no base, or enough")
	}
	v := rapid.SampledFrom(d.people).Draw(rt, "who")
	base := rapid.SampledFrom(d.things).Draw(rt, "base")
	p := deltaPush{who: v, base: base, file: d.newFile(rt)}
	plan, err := v.client.Push(context.Background(), pushOf("shop", p.file))
	if want := d.mayPush(v); want != "" {
		if snap.CodeOf(err) != want {
			rt.Fatalf("%s pushes: %v, want %s", v.name(), err, want)
		}
		return
	}
	check(rt, err)
	if p.delta, err = betweenFiles(d.file[base], p.file); err != nil {
		rt.Fatal(err)
	}
	p.id = plan.ID
	path := "/snapshots/" + plan.ID + "/delta"
	body := func(base string) string { return fmt.Sprintf(`{"base":%q,"size":%d}`, base, len(p.delta)) }
	other := rapid.SampledFrom(d.people).Draw(rt, "somebody else")
	if other != v && d.mayPush(other) == "" && (other.caller.User != nil || v.caller.User != nil) {
		same(rt, "a delta for a push of somebody else", other, d.ask(rt, other, path, body(base.ID)),
			d.ask(rt, other, "/snapshots/"+snap.NewSnapshotID()+"/delta", body(base.ID)))
	}
	got := d.ask(rt, v, path, body(base.ID))
	if !d.usable(v, base, "shop", v.caller.Org) {
		same(rt, "a push from a base of no use", v, got, d.ask(rt, v, path, body(snap.NewSnapshotID())))
		check(rt, v.client.AbortUpload(context.Background(), plan.ID))
		return
	}
	_, text, _ := strings.Cut(got, "\n\n")
	check(rt, json.Unmarshal([]byte(text), &p.place))
	if p.place.URL == "" {
		rt.Fatalf("%s may push a delta from %s: %s", v.name(), base.ID, got)
	}
	d.pushes = append(d.pushes, p)
}

// send sends a delta that was announced earlier, and completes its push.
func (d *deltaDoors) send(rt *rapid.T) {
	if len(d.pushes) == 0 || d.pushes[len(d.pushes)-1].id == "" || len(d.things) == 5 {
		rt.Skip("nothing begun, or enough")
	}
	p := &d.pushes[len(d.pushes)-1]
	v, id := p.who, p.id
	want := http.StatusNoContent
	switch {
	case !d.clock.Now().Before(p.place.Expires):
		want = http.StatusForbidden
	case v.disabled:
		want = http.StatusNotFound
	case d.mayPush(v) != "":
		want = http.StatusForbidden
	case !d.usable(v, p.base, "shop", v.caller.Org):
		want = http.StatusNotFound
	}
	req, err := http.NewRequest(http.MethodPut, p.place.URL, bytes.NewReader(p.delta))
	check(rt, err)
	if res, text := d.do(rt, req); res.StatusCode != want {
		rt.Fatalf("the delta of %s from %s: status %d %s, want %d", v.name(), p.base.ID, res.StatusCode, text, want)
	}
	if p.id = ""; want != http.StatusNoContent {
		return
	}
	done, err := v.client.Complete(context.Background(), id)
	check(rt, err)
	if done.SHA256 != sumOf(p.file) {
		rt.Fatalf("the push has the checksum %s", done.SHA256)
	}
	d.add(v, "shop", p.file, done)
}

// TestPushedDeltasAreKept: a delta that was pushed serves the pulls of those who see both
// snapshots, even if the client first names another base, for which the service has no delta yet.
func TestPushedDeltasAreKept(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, gus := c.As("mia@acme.test"), c.As("gus@acme.test")
	base, other, result := version(t, 0), version(t, 2), version(t, 1)
	id, second := c.Push(mia, "shop", base).ID, c.Push(mia, "shop", other).ID
	d := deltaBetween(t, base, result)
	push, place, err := beginDelta(t, mia, "shop", result, d, id)
	must(t, err)
	if status := put(t, place.URL, d); status != http.StatusNoContent {
		t.Fatalf("the delta: %d", status)
	}
	done, err := mia.Complete(t.Context(), push)
	must(t, err)
	offer, err := deltaFor(mia, done.ID, second, id)
	must(t, err)
	if _, got := get(t, offer.URL); offer.Base != id || !bytes.Equal(got, d) {
		t.Errorf("the delta from %s is offered, not the pushed one from %s", offer.Base, id)
	}
	for _, shared := range []string{done.ID, id} {
		if _, err = deltaFor(gus, done.ID, id); snap.CodeOf(err) !=
			snap.CodeNotFound && shared == done.ID {
			t.Errorf("before the share of the result: %v", err)
		}
		_, err = mia.ShareGroup(t.Context(), shared, "dba")
		must(t, err)
		offer, err := deltaFor(gus, done.ID, id)
		if must(t, err); (offer.URL != "") != (shared == id) {
			t.Errorf("after the share of %s, the offer is %+v", shared, offer)
		}
	}
}

// sealedDelta has the parts of an encrypted delta that the service can read.
func sealedDelta(t *testing.T, base, result []byte) []byte {
	t.Helper()
	header := deltaHeader(t, 2, delta.Header{Base: fileOf(base), Result: fileOf(result), Encoder: archive.Encoder,
		Sealed: &archive.Sealing{Engine: snap.SQLite, Type: snap.TypeSnapshot, Nonce: strings.Repeat("0", 32),
			Header: 9}})
	return append(header, bytes.Repeat([]byte("encrypted"), 99)...)
}

// deltaHeader returns the beginning of a delta: a header of this version of the format.
func deltaHeader(t *testing.T, version byte, h delta.Header) []byte {
	t.Helper()
	text, err := json.Marshal(h)
	must(t, err)
	b := append([]byte("\x89SNAD\r\n\x1a\x00"), version, 0, 0, 0, 0, byte(len(text)>>8), byte(len(text)))
	return append(b, text...)
}

// TestEncryptedDeltasServePulls: an encrypted delta does not complete a push. It is kept, and
// offered unchanged to those who see its base and its result.
func TestEncryptedDeltasServePulls(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	base, result := version(t, 0), version(t, 1)
	id := c.Push(mia, "shop", base).ID
	d := sealedDelta(t, base, result)
	for name, wrong := range map[string][]byte{"of another base": sealedDelta(t, result, result),
		"of another file": sealedDelta(t, base, base),
		"large":           append(bytes.Clone(d), make([]byte, len(result)/10*9)...)} {
		_, place, err := beginDelta(t, mia, "shop", result, wrong, id)
		must(t, err)
		if status := put(t, place.URL, wrong); status < 400 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	push, place, err := beginDelta(t, mia, "shop", result, d, id)
	must(t, err)
	if status := put(t, place.URL, d); status != http.StatusNoContent {
		t.Fatalf("the delta: %d", status)
	}
	if _, err := mia.Complete(t.Context(), push); err == nil {
		t.Fatal("the push is complete without the file")
	}
	c.PutPart(mia, push, 1, result)
	done, err := mia.Complete(t.Context(), push)
	must(t, err)
	offer, err := deltaFor(mia, done.ID, id)
	must(t, err)
	if res, got := get(t, offer.URL); res.StatusCode != http.StatusOK || !bytes.Equal(got, d) {
		t.Errorf("status %d, %d bytes of %d", res.StatusCode, len(got), len(d))
	}
	again := c.Push(mia, "shop", version(t, 3)).ID
	offer, err = deltaFor(mia, again, id)
	if must(t, err); offer.URL == "" {
		t.Error("no other delta is made")
	}
}
