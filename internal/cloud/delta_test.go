package cloud_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/cloudtest"
	"snap/internal/delta"
)

// version returns a snapshot file of the n-th version of some rows. Versions share most rows.
func version(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, 1)
	must(t, err)
	section, err := w.Section("dump")
	must(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 8000 {
		_, err := fmt.Fprintf(section, "%d\t%016x%016x\n", i, r.Uint64(), r.Uint64())
		must(t, err)
	}
	fmt.Fprintf(section, "version\t%d\n", n)
	must(t, section.Close())
	_, err = w.Close(archive.Manifest{Engine: snap.SQLite, Target: "shop", Name: fmt.Sprintf("shop-%d", n),
		Type: snap.TypeSnapshot, Created: time.Unix(int64(n), 0)})
	must(t, err)
	return b.Bytes()
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// deltaBetween returns the delta between two files.
func deltaBetween(t *testing.T, base, result []byte) []byte {
	t.Helper()
	open := func(b []byte) (*archive.Reader, delta.File) {
		r, err := archive.NewReader(bytes.NewReader(b), int64(len(b)))
		must(t, err)
		return r, delta.File{Size: int64(len(b)), SHA256: sumOf(b)}
	}
	old, from := open(base)
	now, to := open(result)
	var b bytes.Buffer
	_, err := delta.Write(t.Context(), &b, old, now, from, to, 1<<40)
	must(t, err)
	return b.Bytes()
}

// applied returns the file that a delta gives.
func applied(t *testing.T, base, d []byte) []byte {
	t.Helper()
	r := bytes.NewReader(d)
	h, err := delta.ReadHeader(r)
	must(t, err)
	old, err := archive.NewReader(bytes.NewReader(base), int64(len(base)))
	must(t, err)
	var b bytes.Buffer
	must(t, delta.Apply(t.Context(), &b, h, old, r))
	return b.Bytes()
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

// TestDeltasFollowTheAccessRule asks for a delta between any two of some snapshots, as every caller.
// There is one if the caller may see both, and otherwise the answer is the one for a base that does
// not exist.
func TestDeltasFollowTheAccessRule(t *testing.T) {
	t.Parallel()
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
				offer, err := client.PullDelta(ctx, result, api.DeltaRequest{Have: []string{base}})
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
		offer, err := gus.PullDelta(t.Context(), ids[1], api.DeltaRequest{Have: ids[:1]})
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

// TestPushByDelta: the rebuilt snapshot is the announced file. Whatever else is sent is refused, and
// the push continues with the whole file.
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

// TestDeltaOfAReceivedSnapshot: a recipient pulls by delta between two shared snapshots, and cannot
// push to its own organization from one of them.
func TestDeltaOfAReceivedSnapshot(t *testing.T) {
	t.Parallel()
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
	offer, err := gary.PullDelta(t.Context(), own, api.DeltaRequest{Have: []string{id}})
	if err != nil || offer.URL != "" || offer.Base != "" {
		t.Errorf("a delta crosses organizations: %+v %v", offer, err)
	}
}
