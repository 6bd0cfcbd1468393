package webui

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"snap"
	"snap/api"
	service "snap/internal/cloud"
	"snap/internal/cloudtest"
)

// SPEC 4.6: the Sharing dialog of an admin.
func TestSharingDialogOfAnAdmin(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	item := c.Push(c.As("mia@acme.test"), "shop", []byte("one"))
	u := openUI(t, c.As("adam@acme.test"), "")
	path := "/cloud/" + item.ID
	u.must(u.get(path+"/sharing"), http.StatusOK,
		`role="switch"`, "eng", "dba", "Other organizations", "not sanitized", `name="slug"`)

	on := u.post(path+"/groups", url.Values{"grant": {"eng"}, "from": {"dialog"}}, "Fragment", "1")
	u.must(on, http.StatusOK, `name="revoke" value="eng"`, `id="dialog-body"`, `<tr id="`+item.ID+`"`, "<bdi>eng</bdi>")
	if _, err := c.As("gus@acme.test").Snapshot(t.Context(), item.ID); err != nil {
		t.Errorf("a member of the group: %v", err)
	}
	off := u.post(path+"/groups", url.Values{"revoke": {"eng"}, "back": {path + "/sharing"}})
	u.must(off, http.StatusOK, `name="grant" value="eng"`)
	if _, err := c.As("gus@acme.test").Snapshot(t.Context(), item.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("after the revoke: %v", err)
	}

	add := url.Values{"slug": {" Globex "}, "expires": {"7d"}, "from": {"dialog"}}
	u.must(u.post(path+"/organizations", add, "Fragment", "1"), http.StatusOK, "globex", "Globex Corporation",
		"ends in 7 days", "1 organization")
	got, err := c.As("gary@globex.test").Snapshot(t.Context(), item.ID)
	if err != nil || !got.Received {
		t.Errorf("the recipient: %v", err)
	}
	u.must(u.post(path+"/organizations", url.Values{"slug": {"nobody"}}, "Fragment", "1"), http.StatusNotFound,
		"Not found")
	u.must(u.post(path+"/organizations", url.Values{"slug": {"acme"}}, "Fragment", "1"), http.StatusBadRequest)
	u.must(u.post(path+"/organizations", url.Values{"slug": {"globex"}, "expires": {"date"}, "date": {"x"}}, "Fragment",
		"1"), http.StatusBadRequest, "Choose the date")
	revoked := u.post(path+"/organizations/revoke", url.Values{"slug": {"globex"}, "back": {path + "/sharing"}})
	u.must(revoked, http.StatusOK, "Other organizations")
	u.mustNot(revoked, "Globex Corporation")
}

// SPEC 4.6: non-admins see a short note about other organizations, and the rest
// of the dialog works.
func TestSharingDialogOfAnOwner(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	u := openUI(t, mia, "")
	path := "/cloud/" + item.ID
	page := u.get(path + "/sharing")
	u.must(page, http.StatusOK, "needs the owner or admin role", "eng")
	u.mustNot(page, `name="slug"`, "not sanitized")
	u.must(u.post(path+"/groups", url.Values{"grant": {"dba"}, "from": {"dialog"}}, "Fragment", "1"), http.StatusOK,
		`name="revoke" value="dba"`)
	u.must(u.post(path+"/share", url.Values{"shared": {"true"}, "from": {"dialog"}}, "Fragment", "1"), http.StatusOK,
		`aria-checked="true"`, "Every member")
	u.must(u.post(path+"/organizations", url.Values{"slug": {"globex"}}, "Fragment", "1"), http.StatusForbidden,
		"Not allowed")
	u.must(u.get(path+"/sharing?group=zzz"), http.StatusOK)
}

// A colleague who does not own the snapshot sees the groups and cannot change them.
func TestSharingDialogOfAColleague(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	item := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("one"))
	if _, err := alice.ShareGroup(t.Context(), item.ID, "eng"); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, c.As("mia@acme.test"), "")
	page := u.get("/cloud/" + item.ID + "/sharing")
	u.must(page, http.StatusOK, `id="group-list"`, ">eng<", "can change this list")
	u.mustNot(page, `role="switch"`, `name="revoke"`, `name="slug"`)
}

// Recipients see who shared the snapshot and when the share ends, and can change nothing.
func TestReceivedRow(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	item := c.Push(c.As("alice@acme.test"), "shop", []byte("one"))
	end := time.Now().Add(50 * time.Hour)
	if _, err := c.As("alice@acme.test").ShareOrg(t.Context(), item.ID, "globex", &end); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, c.As("gail@globex.test"), "")
	page := u.get("/snapshots?show=shared")
	u.must(page, http.StatusOK, item.Name, "ends in 2 days 2 hours", ">acme<", "/pull")
	u.must(page, http.StatusOK, "/cloud/"+item.ID+"/sharing")
	u.mustNot(page, "/cloud/"+item.ID+"/share\"", "/delete")
	dialog := u.get("/cloud/" + item.ID + "/sharing")
	u.must(dialog, http.StatusOK, "Shared with your organization", "acme shares it", "ends in 2 days 2 hours")
	u.mustNot(dialog, "Everyone in acme", "Groups", "alice", "<form method=\"post\"")
	u.must(u.post("/cloud/"+item.ID+"/share", url.Values{"shared": {"true"}}), http.StatusForbidden)
	u.must(u.post("/cloud/"+item.ID+"/delete", url.Values{}), http.StatusForbidden)
}

// By default the click shares original data at once. The page says how many people that adds, and
// offers Undo.
func TestUnsanitizedShareOffersUndo(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.Push(mia, "shop", []byte("one"))
	u := openUI(t, mia, "")
	path := "/cloud/" + item.ID
	page := u.get("/snapshots")
	u.must(page, http.StatusOK, `action="`+path+`/share"`)
	u.mustNot(page, `href="`+path+`/share"`)
	on := u.post(path+"/share", url.Values{"shared": {"true"}}, "Fragment", "1")
	u.must(on, http.StatusOK, "3 more people in your organization can now see the original, unmasked data.", ">Undo<",
		`value="false"`)
	u.must(u.post(path+"/share", url.Values{"shared": {"false"}}, "Fragment", "1"), http.StatusOK, "Private")
	group := u.post(path+"/groups", url.Values{"grant": {"eng"}, "from": {"dialog"}}, "Fragment", "1")
	u.must(group, http.StatusOK, "1 more person in your organization", `name="revoke" value="eng"`, ">Undo<")
}

// TestUndoRestoresTheEnd checks that Undo after a revoke shares until the same moment as before,
// and that the messages count the people.
func TestUndoRestoresTheEnd(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	adam := c.As("adam@acme.test")
	item := c.PushAs(c.As("mia@acme.test"), "shop", snap.TypeSanitized, []byte("one"))
	u := openUI(t, adam, "")
	path := "/cloud/" + item.ID
	u.must(u.post(path+"/share", url.Values{"shared": {"true"}}, "Fragment", "1"), http.StatusOK,
		"Shared with everyone in acme. 3 more people can see it.", ">Undo<")
	u.must(u.post(path+"/share", url.Values{"shared": {"false"}}, "Fragment", "1"), http.StatusOK,
		"No longer shared with everyone in acme. 3 people can no longer see it.")

	end := time.Now().Add(36*time.Hour + 7*time.Second)
	if _, err := adam.ShareWith(t.Context(), item.ID, api.SharesRequest{OrgSlugs: []string{"globex"}, ExpiresAt: &end},
		false); err != nil {
		t.Fatal(err)
	}
	before, err := adam.OrgShares(t.Context(), item.ID)
	if err != nil {
		t.Fatal(err)
	}
	date := before[0].ExpiresAt.UTC().Format(time.RFC3339Nano)
	longer := url.Values{"slug": {"globex"}, "expires": {"30d"}, "schema": {"yes"}, "from": {"dialog"}}
	u.must(u.post(path+"/organizations", longer, "Fragment", "1"), http.StatusOK,
		"The end of the share with globex was changed.", `name="expires" value="`+date+`"`)
	u.must(u.post(path+"/organizations", url.Values{"slug": {"globex"}, "expires": {date}}, "Fragment", "1"),
		http.StatusOK, "The end of the share with globex was changed.", `name="schema" value="yes"`)
	gone := u.post(path+"/organizations/revoke", url.Values{"slug": {"globex"}, "from": {"dialog"}}, "Fragment", "1")
	u.must(gone, http.StatusOK, "No longer shared with globex.", `name="expires" value="`+date+`"`)
	u.must(u.post(path+"/organizations", url.Values{"slug": {"globex"}, "expires": {date}},
		"Fragment", "1"), http.StatusOK, "Shared with globex.")
	after, err := adam.OrgShares(t.Context(), item.ID)
	if err != nil || !after[0].ExpiresAt.Equal(*before[0].ExpiresAt) {
		t.Errorf("the share ends at %v, want %v; %v", after[0].ExpiresAt, before[0].ExpiresAt, err)
	}
}

// TestUndoRestoresTheEndWithin is the same for the org-wide share and shares with groups.
func TestUndoRestoresTheEndWithin(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	u := openUI(t, mia, "")
	end := time.Now().Add(36*time.Hour + 7*time.Second).UTC().Truncate(time.Millisecond)
	with := api.SharesRequest{OrgWide: true, GroupIDs: []string{"eng"}, ExpiresAt: &end}
	if _, err := mia.ShareWith(t.Context(), item.ID, with, false); err != nil {
		t.Fatal(err)
	}
	path := "/cloud/" + item.ID
	u.must(u.get(path+"/sharing"), http.StatusOK, "ends in")
	date := end.Format(time.RFC3339Nano)
	for action, on := range map[string]url.Values{"/share": {"shared": {"true"}}, "/groups": {"grant": {"eng"}}} {
		on.Set("expires", "7d")
		changed := u.post(path+action, on, "Fragment", "1")
		u.must(changed, http.StatusOK, "The end of the share with ", " was changed.", ">Undo<",
			`name="expires" value="`+date+`"`)
		on.Set("expires", date)
		u.must(u.post(path+action, on, "Fragment", "1"), http.StatusOK, " was changed.")
		again := u.post(path+action, on, "Fragment", "1")
		u.must(again, http.StatusOK, "Nothing changed")
		u.mustNot(again, ">Undo<")
	}
	for action, off := range map[string]url.Values{"/share": {"shared": {"false"}}, "/groups": {"revoke": {"eng"}}} {
		u.must(u.post(path+action, off, "Fragment", "1"), http.StatusOK, `name="expires" value="`+date+`"`)
	}
	for action, on := range map[string]url.Values{"/share": {"shared": {"true"}}, "/groups": {"grant": {"eng"}}} {
		on.Set("expires", date)
		u.must(u.post(path+action, on, "Fragment", "1"), http.StatusOK, ">Undo<")
	}
	now, err := mia.Snapshot(t.Context(), item.ID)
	if err != nil || now.ExpiresAt == nil || !now.ExpiresAt.Equal(end) {
		t.Errorf("the org-wide share ends at %v, want %v; %v", now.ExpiresAt, end, err)
	}
	groups, err := mia.GroupShares(t.Context(), item.ID)
	if err != nil || len(groups) != 1 || groups[0].ExpiresAt == nil || !groups[0].ExpiresAt.Equal(end) {
		t.Errorf("the group shares: %+v, %v", groups, err)
	}
}

// TestEndWithin: the dialog offers how long the organization and a group can see the snapshot.
func TestEndWithin(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	u := openUI(t, mia, "")
	path := "/cloud/" + item.ID
	u.must(u.get(path+"/sharing"), http.StatusOK, `<select id="wide-expires" name="expires" form="wide-form">`,
		`id="group-expires" name="expires"`, `<option value="">indefinitely</option>`, "for 1 day<", "for 30 days<")
	for action, on := range map[string]url.Values{"/share": {"shared": {"true"}}, "/groups": {"grant": {"eng"}}} {
		on.Set("expires", "7d")
		on.Set("from", "dialog")
		u.must(u.post(path+action, on, "Fragment", "1"), http.StatusOK, "ends in")
	}
	page := u.get(path + "/sharing")
	u.must(page, http.StatusOK, "ends in")
	u.mustNot(page, "wide-expires")
}

// TestSharingErrorIsAtItsField checks that the dialog shows an error next to the field and suggests
// an organization that was shared with before, even if that share has ended.
func TestSharingErrorIsAtItsField(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	item := c.Push(c.As("mia@acme.test"), "shop", []byte("one"))
	u := openUI(t, c.As("adam@acme.test"), "")
	path := "/cloud/" + item.ID + "/organizations"
	dialog := func(slug string) url.Values { return url.Values{"slug": {slug}, "from": {"dialog"}} }
	none := u.post(path, dialog("globx"), "Fragment", "1")
	u.must(none, http.StatusNotFound, `id="dialog-body"`, `value="globx"`, `aria-invalid="true"`, `id="slug-problem"`)
	u.mustNot(none, "Did you mean")
	u.must(u.post(path, dialog("globex"), "Fragment", "1"), http.StatusOK, "Shared with globex.")
	u.must(u.post(path+"/revoke", dialog("globex"), "Fragment", "1"), http.StatusOK)
	u.must(u.post(path, dialog("globx"), "Fragment", "1"), http.StatusNotFound, "Did you mean globex?")
}

// unsanitizedShares returns the options of a service where acme has this policy.
func unsanitizedShares(choice snap.UnsanitizedShares) cloudtest.Options {
	return cloudtest.Options{Config: func(config *service.Config) {
		config.Organizations[0].Policy.UnsanitizedShares = choice
	}}
}

// Under the policy ask, a click that shares original data asks first. Under refuse, the controls
// are disabled and say why.
func TestUnsanitizedShareByPolicy(t *testing.T) {
	t.Parallel()
	start := func(choice snap.UnsanitizedShares) (*ui, api.Snapshot, *api.Client) {
		c := cloudtest.Start(t, unsanitizedShares(choice))
		alice := c.As("alice@acme.test")
		item := c.Push(alice, "shop", []byte("one"))
		return openUI(t, alice, ""), item, alice
	}
	u, item, alice := start(snap.UnsanitizedAsk)
	path := "/cloud/" + item.ID
	u.must(u.get("/snapshots"), http.StatusOK, `href="`+path+`/share"`)
	u.must(u.get(path+"/share", "Fragment", "1"), http.StatusOK, "Sharing it adds 4 people",
		`name="confirmed" value="true"`)
	asked := u.post(path+"/groups", url.Values{"grant": {"eng"}, "from": {"dialog"}}, "Fragment", "1")
	u.must(asked, http.StatusOK, "Share anyway", `name="grant" value="eng"`, `name="from" value="dialog"`)
	if shares, err := alice.GroupShares(t.Context(), item.ID); err != nil || len(shares) != 0 {
		t.Errorf("before the confirmation: %v, %v", shares, err)
	}
	yes := url.Values{"grant": {"eng"}, "from": {"dialog"}, "confirmed": {"true"}}
	u.must(u.post(path+"/groups", yes, "Fragment", "1"), http.StatusOK, `name="revoke" value="eng"`)

	u, item, _ = start(snap.UnsanitizedRefuse)
	path = "/cloud/" + item.ID
	page := u.get("/snapshots")
	u.must(page, http.StatusOK, "policy refuses to share snapshots that are not sanitized")
	u.mustNot(page, path+`/share"`)
	dialog := u.get(path + "/sharing")
	u.must(dialog, http.StatusOK, `id="refusal"`, " disabled")
	u.mustNot(dialog, `name="slug"`)
	u.must(u.post(path+"/share", url.Values{"shared": {"true"}}, "Fragment", "1"), http.StatusForbidden, "Not allowed")
}

// Under a policy that requires a certificate, the web UI does not offer to share an original or a
// copy without a certificate, and says why. The list knows no certificates of copies.
func TestSharesThatNeedACertificate(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(config *service.Config) {
		config.Organizations[0].Policy.UnsanitizedShares = snap.UnsanitizedAsk
		config.Organizations[0].Policy.ShareRequires = snap.RequireCertificate
	}})
	alice := c.As("alice@acme.test")
	u := openUI(t, alice, "")
	raw := c.Push(alice, "shop", []byte("one"))
	masked := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("two"))
	list := u.get("/snapshots")
	u.must(list, http.StatusOK, "valid certificate", `action="/cloud/`+masked.ID+`/share"`)
	u.mustNot(list, "/cloud/"+raw.ID+`/share"`)
	why := "The policy share_requires of your organization"
	u.must(u.post("/cloud/"+masked.ID+"/share", url.Values{"shared": {"true"}}, "Fragment", "1"),
		http.StatusForbidden, why)
	// The end of an existing share is changed with the same form, although new shares are not offered.
	u.must(u.post("/cloud/"+masked.ID+"/organizations", url.Values{"slug": {"globex"}, "from": {"dialog"}},
		"Fragment", "1"), http.StatusForbidden, why, `role="alert"`)
	for _, id := range []string{raw.ID, masked.ID} {
		page := u.get("/cloud/" + id)
		u.must(page, http.StatusOK, "valid certificate")
		u.mustNot(page, "/cloud/"+id+`/share"`)
		dialog := u.get("/cloud/" + id + "/sharing")
		u.must(dialog, http.StatusOK, `id="refusal"`, `id="gs-eng" role="switch" aria-checked="false" aria-label="eng"`)
		u.mustNot(dialog, `name="slug"`)
	}
}

// The dialog offers what the policy allows, and says the limit.
func TestTheDialogOffersWhatThePolicyAllows(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(config *service.Config) {
		config.Organizations[0].Policy.MaxCrossOrgExpiry = "30d"
	}})
	alice := c.As("alice@acme.test")
	item := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("one"))
	u := openUI(t, alice, "")
	page := u.get("/cloud/" + item.ID + "/sharing")
	u.must(page, http.StatusOK, "> in 30 days<", "to 30 days", ` max="`)
	u.mustNot(page, "> in 90 days<", "> never<", "720h")
	refused := u.post("/cloud/"+item.ID+"/organizations", url.Values{"slug": {"globex"}, "expires": {"90d"}},
		"Fragment",
		"1")
	u.must(refused, http.StatusForbidden, "to 30 days")
}

// The owner sees that an admin shared the snapshot outside the organization, but not with whom.
func TestTheOwnerSeesSharedOutside(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("one"))
	if _, err := c.As("alice@acme.test").ShareOrg(t.Context(), item.ID, "globex", nil); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, mia, "")
	u.must(u.get("/snapshots"), http.StatusOK, "shared outside")
	dialog := u.get("/cloud/" + item.ID + "/sharing")
	u.must(dialog, http.StatusOK, "shared this snapshot outside the organization",
		"another organization (shared by an owner or admin)")
	u.mustNot(dialog, "globex")
	u.must(u.get("/activity"), http.StatusOK, "shared your snapshot of shop outside the organization")
	u.mustNot(u.get("/activity"), "globex")
}

// The dialog says who can see the snapshot and why, and explains the access of one colleague.
func TestSharingDialogExplains(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	item := c.Push(mia, "shop", []byte("one"))
	if _, err := mia.ShareGroup(t.Context(), item.ID, "dba"); err != nil {
		t.Fatal(err)
	}
	u := openUI(t, mia, "")
	path := "/cloud/" + item.ID + "/sharing"
	page := u.get(path)
	u.must(page, http.StatusOK, "Who can see it", "dba", "Sharing it adds 2 people")
	u.mustNot(page, `id="verdict"`)
	u.must(u.get(path+"?user=max@acme.test"), http.StatusOK, `id="verdict"`, "max@acme.test")
	u.must(u.get(path+"?user=max@acme.test", "Fragment", "1"), http.StatusOK, `class="notice warn" id="verdict"`)
	u.must(u.get(path+"?user=gus@acme.test", "Fragment", "1"), http.StatusOK, `class="notice" id="verdict"`)
	if _, err := mia.Share(t.Context(), item.ID); err != nil {
		t.Fatal(err)
	}
	max := openUI(t, c.As("max@acme.test"), "")
	theirs := max.get(path)
	max.must(theirs, http.StatusOK, "Sharing")
	max.mustNot(theirs, "Who can see it")
}
