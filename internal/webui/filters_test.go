package webui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
)

// TestFilters checks which snapshots each filter keeps, alone and with the filter row.
func TestFilters(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice, gail := c.As("mia@acme.test"), c.As("alice@acme.test"), c.As("gail@globex.test")
	config, _, _ := shopConfig(t)
	u := openUI(t, mia, config)
	events := u.listen()
	u.post("/targets/shop/build", nil)
	events.ended()
	soon := time.Now().Add(40 * time.Hour)
	share := func(client *api.Client, item api.Snapshot, with api.SharesRequest) string {
		if _, err := client.ShareWith(t.Context(), item.ID, with, true); err != nil {
			t.Fatal(err)
		}
		return item.ID
	}
	mine := c.PushAs(mia, "mine", snap.TypeSanitized, []byte("1")).ID
	ending := share(alice, c.PushAs(alice, "ending", snap.TypeSanitized, []byte("2")),
		api.SharesRequest{OrgWide: true, ExpiresAt: &soon})
	received := share(gail, c.PushAs(gail, "received", snap.TypeSanitized, []byte("3")),
		api.SharesRequest{OrgSlugs: []string{"acme"}})
	here, err := u.Agent.Snapshots("")
	if err != nil || len(here) != 1 {
		t.Fatalf("%d snapshots, %v", len(here), err)
	}
	local := row{Local: &here[0]}.ID()
	later := time.Now().AddDate(0, 0, 2).Format(time.DateOnly)
	all := []string{mine, ending, received, local}
	for path, want := range map[string][]string{
		"only=mine":                         {mine, local},
		"only=received":                     {received},
		"only=ending":                       {ending},
		"only=nonsense":                     all,
		"owner=ALICE":                       {ending},
		"owner=globex":                      {received},
		"owner=mia":                         {mine, local},
		"from=2020-01-01&to=" + later:       all,
		"from=" + later:                     nil,
		"to=2020-01-01":                     nil,
		"from=never":                        all,
		"only=mine&show=cloud":              {mine},
		"only=mine&show=local":              {local},
		"only=mine&show=shared":             nil,
		"owner=a&show=shared":               {ending},
		"only=received&show=shared&q=recei": {received},
		"only=ending&target=mine":           nil,
		"only=mine&sort=target":             {mine, local},
	} {
		a := u.get("/snapshots?" + path)
		u.must(a, http.StatusOK)
		if got := shownRows(a.Body); !sameSet(got, want) {
			t.Errorf("%s shows %v, want %v", path, got, want)
		}
		if strings.HasPrefix(path, "only=") && strings.Count(path, "&") == 0 && len(want) > 0 &&
			countOf(a.Body, "All") != string(rune('0'+len(want))) {
			t.Errorf("%s counts %q", path, countOf(a.Body, "All"))
		}
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// TestGroupedByTarget checks the order in groups, in which the newest sanitized snapshot is first.
func TestGroupedByTarget(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var rows []row
	for i, text := range []string{"b snapshot", "a snapshot", "b sanitized", "a sanitized", "a sanitized",
		"c snapshot"} {
		target, kind, _ := strings.Cut(text, " ")
		rows = append(rows, row{Cloud: &api.Snapshot{ID: string(rune('0' + i)), Target: target, Type: snap.Type(kind),
			Created: at.Add(-time.Duration(i) * time.Hour)}})
	}
	groupRows(rows)
	var order string
	for _, r := range rows {
		order += r.Cloud.ID
	}
	if order != "314205" {
		t.Errorf("the order is %s", order)
	}
}

// TestBulk shares, unshares and deletes several snapshots at once. A refusal of one does not stop
// the others, and Undo restores the exact end of each share.
func TestBulk(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	config, _, _ := shopConfig(t)
	u := openUI(t, mia, config)
	one := c.PushAs(mia, "a", snap.TypeSanitized, []byte("1"))
	two := c.PushAs(mia, "b", snap.TypeSanitized, []byte("2"))
	foreign := c.PushAs(alice, "c", snap.TypeSanitized, []byte("3"))
	end := time.Now().Add(50 * time.Hour).UTC().Truncate(time.Millisecond)
	for item, with := range map[string]api.SharesRequest{two.ID: {OrgWide: true, ExpiresAt: &end},
		foreign.ID: {OrgWide: true}} {
		if _, err := alice.ShareWith(t.Context(), item, with, true); err != nil {
			t.Fatal(err)
		}
	}
	form := func(do string, ids ...string) url.Values {
		v := url.Values{"do": {do}, "back": {"/snapshots"}}
		for _, id := range ids {
			v.Add("pick", pick{ID: id}.encode())
		}
		return v
	}
	u.must(u.get("/snapshots"), http.StatusOK, `value="id=`+one.ID+`"`, `id="bulk"`)
	shared := u.post("/bulk", form("share", one.ID, two.ID), "Fragment", "1")
	u.must(shared, http.StatusOK, "Shared 1 snapshot with everyone", ">Undo<", "data-refresh")
	if now, err := mia.Snapshot(t.Context(), two.ID); err != nil || !now.ExpiresAt.Equal(end) {
		t.Errorf("the end of an earlier share is %v, %v", now.ExpiresAt, err)
	}
	private := u.post("/bulk", form("unshare", one.ID, two.ID, foreign.ID), "Fragment", "1")
	u.must(private, http.StatusOK, "Made 2 snapshots private", "1 snapshot was left unchanged", ">Undo<")
	undo := url.Values{"do": {"share"}, "confirmed": {"true"}}
	for _, piece := range strings.Split(private.Body, `name="pick" value="`)[1:] {
		undo.Add("pick", strings.ReplaceAll(piece[:strings.Index(piece, `"`)], "&amp;", "&"))
	}
	u.must(u.post("/bulk", undo, "Fragment", "1"), http.StatusOK,
		"Shared 2 snapshots with everyone in the organization, 6 people.")
	if now, err := mia.Snapshot(t.Context(), two.ID); err != nil || !now.ExpiresAt.Equal(end) {
		t.Errorf("the end after Undo is %v, %v", now.ExpiresAt, err)
	}
	raw := c.Push(mia, "d", []byte("4"))
	u.must(u.post("/bulk", form("share", raw.ID, "snap_0000000000000000"), "Fragment", "1"), http.StatusOK,
		"3 more people in your organization can now see the original, unmasked data; 1 snapshot was left unchanged",
		">Undo<")
	u.must(u.post("/bulk", form("delete", one.ID), "Fragment", "1"), http.StatusOK, "Delete 1 snapshot from the cloud?",
		`name="confirmed"`)
	yes := form("delete", one.ID, foreign.ID)
	yes.Set("confirmed", "true")
	u.must(u.post("/bulk", yes, "Fragment", "1"), http.StatusOK, "left unchanged")
	u.must(u.post("/bulk", form("delete-local", one.ID)), http.StatusBadRequest, "None of the chosen")
	u.must(u.post("/bulk", form("erase", one.ID)), http.StatusBadRequest)
	u.must(u.post("/bulk", url.Values{"do": {"share"}, "pick": {"%zz"}}), http.StatusBadRequest)
}

// TestBulkByPolicy checks that originals are shared only after a confirmation if the policy
// requires one.
func TestBulkByPolicy(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, unsanitizedShares(snap.UnsanitizedAsk))
	mia := c.As("mia@acme.test")
	item := c.Push(mia, "shop", []byte("one"))
	u := openUI(t, mia, "")
	form := url.Values{"do": {"share"}, "pick": {pick{ID: item.ID}.encode()}}
	u.must(u.post("/bulk", form, "Fragment", "1"), http.StatusOK, "Share 1 snapshot with everyone", "not sanitized")
	if now, err := mia.Snapshot(t.Context(), item.ID); err != nil || now.Shared {
		t.Errorf("before the confirmation: %v, %v", now.Shared, err)
	}
	form.Set("confirmed", "true")
	u.must(u.post("/bulk", form, "Fragment", "1"), http.StatusOK, "Shared 1 snapshot")
}
