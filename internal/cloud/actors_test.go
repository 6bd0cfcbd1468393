package cloud_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/certificate"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/operator"
	"snap/internal/store"
)

// A door is a route, page, endpoint, background job or command that can change data. Doors are
// found in the sources, so that a new one fails the test until it has a row.
var doorsIn = []struct{ file, kind, pattern string }{
	{"routes.go", "api ", `route\{"([a-z-]+)", "(?:POST|PUT|PATCH|DELETE) `},
	{"../signin/routes.go", "page ", `page\("POST ([^"]+)"`},
	{"../signin/routes.go", "program ", `"(/[a-z_/]+)":`},
	{"../scim/handler.go", "scim ", `"((?:POST|PUT|PATCH|DELETE) [^"]+)":`},
	{"background.go", "work ", `leased\("([a-z]+)"`},
	{"../operator/backup.go", "snapcloud ", `Use: +"([a-z]+)`},
	{"../operator/claim.go", "snapcloud ", `Use: +"([a-z]+)`},
	{"../operator/transfer.go", "snapcloud ", `Use: +"([a-z]+)`},
	{"../operator/operator.go", "snapcloud ", `Use: +"([a-z]+)`},
	{"../operator/directory.go", "snapcloud user ", `Use: +"([a-z]+)`},
	{"../operator/keys.go", "snapcloud key ", `Use: +"([a-z]+)`},
}

func allDoors(t *testing.T) (all []string) {
	t.Helper()
	for _, in := range doorsIn {
		text, err := os.ReadFile(in.file)
		must(t, err)
		found := regexp.MustCompile(in.pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s has no doors that match %s", in.file, in.pattern)
		}
		for _, m := range found {
			all = append(all, in.kind+m[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// silentDoors write no audit line.
var silentDoors = []string{
	"api sign-parts", "api push-delta", "api abort-upload", // recorded when the push is complete
	"api test-webhook", "api replay-webhook",
	"page /device", "page /device/confirm", "program /device_authorization", // /token begins the session
	"work collect", "work index", "work audit", "work archive",
	"work checkpoints",
	"snapcloud backup", "snapcloud list", "snapcloud verify", "snapcloud restore", "snapcloud claim",
	"snapcloud transfer", "snapcloud snapcloud", "snapcloud migrate", "snapcloud openapi", "snapcloud version",
	"snapcloud check", "snapcloud user list", "snapcloud key list",
}

// providerDoors are walked by TestActorsOfProvidersAndJobs of the package signin, which has an
// identity provider and a CI system.
var providerDoors = []string{"program /upstream/logout", "work recheck"}

// walk is a service whose doors are tried one after the other.
type walk struct {
	*cloudtest.Cloud
	t                *testing.T
	alice, mia, gail *api.Client
	token            *api.Client // alice's device login
	browser          *cloudtest.Browser
	scim             *provisioner
	config           string
	seen             map[string]int64 // the last line, by organization
	sn, other        string           // snapshots
	clock            *clocktest.Clock
	id               string // of the last thing that a door created
	user, group      string // that SCIM reported
}

func newWalk(t *testing.T) *walk {
	// retention and webhooks work only when the test calls them
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := &walk{t: t, seen: map[string]int64{}}
	w.clock = clock
	w.Cloud = cloudtest.Start(t, cloudtest.Options{Clock: clock, Config: func(c *cloud.Config) {
		c.Webhooks.AllowPrivate = true
	}})
	w.alice, w.mia, w.gail = w.As("alice@acme.test"), w.As("mia@acme.test"), w.As("gail@globex.test")
	w.token, w.browser, w.scim = w.SignedIn("alice@acme.test"), w.Browser(), provision(t, w.Cloud, "acme")
	w.browser.SignIn("mia@acme.test")
	w.config = filepath.Join(t.TempDir(), "snapcloud.yaml")
	must(t, os.WriteFile(w.config, asYAML(w.Config), 0o600))
	w.news("acme")
	w.news("globex")
	return w
}

// asYAML returns the configuration of the organizations and their users.
func asYAML(c cloud.Config) []byte {
	text := fmt.Appendf(nil, "data_dir: %s\norganizations:\n", c.DataDir)
	for _, o := range c.Organizations {
		text = fmt.Appendf(text, "  - slug: %s\n    name: %s\n    sign_in: {type: local}\n    users:\n", o.Slug, o.Name)
		for _, u := range o.Users {
			text = fmt.Appendf(text, "      - {email: %s, name: %s, password: %s, role: %s, groups: [%s]}\n", u.Email,
				u.Name, u.Password, u.Role, strings.Join(u.Groups, ", "))
		}
	}
	return text
}

// news returns the lines of an organization's log since the last call, as "action by".
func (w *walk) news(org string) (lines []string) {
	w.t.Helper()
	reader := w.alice
	if org == "globex" {
		reader = w.gail
	}
	for e, err := range reader.AllAudit(w.t.Context(), api.AuditOptions{OldestFirst: true}) {
		must(w.t, err)
		if e.Seq <= w.seen[org] || e.Action == snap.AuditReceipt {
			continue
		}
		w.seen[org] = e.Seq
		lines = append(lines, fmt.Sprintf("%s by %s", e.Action, e.By()))
	}
	slices.Sort(lines)
	return lines
}

func (w *walk) acme() store.Org {
	w.t.Helper()
	org, err := w.Store.OrgBySlug(w.t.Context(), "acme")
	must(w.t, err)
	return org
}

func (w *walk) operate(args ...string) {
	w.t.Helper()
	var stderr strings.Builder
	args = append(args, "--config", w.config)
	if code := operator.Main(w.t.Context(), args, io.Discard, &stderr, nil, "test"); code != 0 {
		w.t.Fatalf("snapcloud %s: %d %s", args, code, stderr.String())
	}
}

func (w *walk) submit(page, action string, form url.Values) { w.browser.Submit(page, action, form) }

// step is one or more doors and the lines that they write, the recipient organization's after
// "globex:".
type step struct {
	doors string
	do    func(*walk) error
	lines []string
}

func steps() []step {
	ctx := context.Background()
	const alice, mia = "alice@acme.test", "mia@acme.test"
	var hook api.NewWebhook
	return []step{
		{"api complete-push", func(w *walk) error {
			w.sn = w.Push(w.mia, "shop", []byte("first")).ID
			return nil
		}, []string{"snapshot.pushed by " + mia}},
		{"api share", func(w *walk) error { _, err := w.mia.Share(ctx, w.sn); return err },
			[]string{"snapshot.shared by " + mia}},
		{"api describe-snapshot", func(w *walk) error {
			_, err := w.mia.Describe(ctx, w.sn, api.DescribeRequest{Labels: []string{"release"}})
			return err
		}, []string{"snapshot.described by " + mia}},
		{"api put-card", func(w *walk) error { // the first one is a part of the push
			return w.mia.PutCard(ctx, w.sn, request(w.t, described(3)))
		}, nil},
		{"api put-card", func(w *walk) error { return w.mia.PutCard(ctx, w.sn, request(w.t, described(3))) },
			[]string{"snapshot.card_changed by " + mia}},
		{"api remove-card", func(w *walk) error { return w.alice.RemoveCard(ctx, w.sn) },
			[]string{"snapshot.card_changed by " + alice}},
		{"api remove-card", func(w *walk) error { return w.mia.RemoveCard(ctx, w.sn) }, nil}, // there is none
		{"api put-card", func(w *walk) error { return w.alice.PutCard(ctx, w.sn, request(w.t, described(3))) },
			[]string{"snapshot.card_changed by " + alice}},
		{"api begin-push", func(w *walk) error { // again, with the certificate
			done := w.PushAs(w.mia, "shop", snap.TypeSanitized, []byte("masked"))
			w.news("acme")
			plan, err := w.mia.Push(ctx, api.PushRequest{Target: done.Target, Name: done.Name, Type: done.Type,
				Engine: done.Engine, Size: done.Size, SHA256: done.SHA256,
				Certificate: certify(w.t, certificate.New(), "masked")})
			if err == nil && plan.ID != done.ID {
				w.t.Errorf("the push is %s, not %s", plan.ID, done.ID)
			}
			return err
		}, []string{"snapshot.certified by " + mia}},
		{"api unshare", func(w *walk) error { return w.alice.Unshare(ctx, w.sn) },
			[]string{"snapshot.unshared by " + alice}},
		{"api bulk-change", func(w *walk) error {
			ids := []string{w.sn}
			_, err := w.alice.Bulk(ctx, api.BulkRequest{IDs: ids, Share: &api.SharesRequest{OrgWide: true}}, true)
			must(w.t, err)
			_, err = w.alice.Bulk(ctx, api.BulkRequest{IDs: ids, Unshare: &api.UnshareRequest{All: true}}, true)
			return err
		}, []string{"snapshot.shared by " + alice, "snapshot.unshared by " + alice}},
		{"api request-access, work requests", func(w *walk) error {
			gus := w.As("gus@acme.test")
			w.news("acme") // the key
			must(w.t, gus.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: w.sn}))
			_, err := w.Store.ReportRequests(ctx)
			return err
		}, []string{"snapshot.access_requested by gus@acme.test"}},
		{"api refuse-access", func(w *walk) error {
			all, err := w.alice.AccessRequests(ctx)
			must(w.t, err)
			return w.alice.RefuseAccess(ctx, all[0].ID)
		}, []string{"snapshot.access_refused by " + alice}},
		{"api withdraw-access-request", func(w *walk) error { // the refusal is not disclosed
			gus := w.As("gus@acme.test")
			all, err := gus.OwnAccessRequests(ctx)
			must(w.t, err)
			return gus.WithdrawAccessRequest(ctx, all[0].ID)
		}, nil},
		{"api share-group", func(w *walk) error { _, err := w.mia.ShareGroup(ctx, w.sn, "eng"); return err },
			[]string{"snapshot.shared by " + mia}},
		{"api unshare-group", func(w *walk) error { return w.mia.UnshareGroup(ctx, w.sn, "eng") },
			[]string{"snapshot.unshared by " + mia}},
		{"api share-org", func(w *walk) error { _, err := w.alice.ShareOrg(ctx, w.sn, "globex", nil); return err },
			[]string{"snapshot.shared by " + alice}},
		{"api pull-snapshot", func(w *walk) error { _, err := w.gail.Pull(ctx, w.sn); return err },
			[]string{"globex: snapshot.pull_started by gail@globex.test", "snapshot.pull_started by gail@globex.test"}},
		{"api pull-delta", func(w *walk) error {
			ids := []string{w.Push(w.mia, "deltas", version(w.t, 0)).ID, w.Push(w.mia, "deltas", version(w.t, 1)).ID}
			for _, id := range ids {
				_, err := w.alice.ShareOrg(ctx, id, "globex", nil)
				must(w.t, err)
			}
			w.news("acme")
			w.news("globex")
			_, err := deltaFor(w.gail, ids[1], ids[0])
			return err
		}, []string{"globex: snapshot.pull_started by gail@globex.test", "snapshot.pull_started by gail@globex.test"}},
		{"api pulled-snapshot", func(w *walk) error { return w.gail.Pulled(ctx, w.sn, 5) },
			[]string{"globex: snapshot.pulled by gail@globex.test", "snapshot.pulled by gail@globex.test"}},
		{"api decline", func(w *walk) error { return w.gail.Decline(ctx, w.sn) },
			[]string{"globex: snapshot.declined by gail@globex.test", "snapshot.declined by gail@globex.test"}},
		{"api share-with", func(w *walk) error {
			_, err := w.alice.ShareWith(ctx, w.sn, api.SharesRequest{OrgWide: true, OrgSlugs: []string{"globex"}}, true)
			return err
		}, []string{"snapshot.shared by " + alice, "snapshot.shared by " + alice}},
		{"api unshare-org", func(w *walk) error { return w.alice.UnshareOrg(ctx, w.sn, "globex") },
			[]string{"snapshot.unshared by " + alice}},
		{"api unshare-with", func(w *walk) error {
			_, err := w.mia.UnshareFrom(ctx, w.sn, api.UnshareRequest{All: true})
			return err
		}, []string{"snapshot.unshared by " + mia}},
		{"api create-channel", func(w *walk) error {
			h, err := w.alice.AddChannel(ctx,
				api.ChannelRequest{Target: "shop", Type: snap.TypeSnapshot, Now: true}, true)
			w.id = h.ID
			return err
		}, []string{"channel.created by " + alice, "snapshot.shared by channel 1 of acme"}},
		{"api complete-push", func(w *walk) error {
			key := w.OrgKey("acme", snap.PipelineKey, snap.Scopes()...)
			w.news("acme") // the key
			w.other = w.Push(w.Client(key), "shop", []byte("second")).ID
			return nil
		}, []string{"snapshot.pushed by the key test of acme", "snapshot.shared by channel 1 of acme",
			"snapshot.unshared by channel 1 of acme"}},
		{"work expect", func(w *walk) error {
			acme, err := w.Store.OrgBySlug(ctx, "acme")
			must(w.t, err)
			by, err := w.Store.CallerOfOrg(ctx, acme.ID)
			must(w.t, err)
			_, err = w.Store.AddChannel(ctx, by, store.NewChannel{Target: "shop", Type: snap.TypeSnapshot,
				ExpectEvery: new(time.Second)})
			must(w.t, err)
			w.clock.Advance(2 * time.Second)
			_, err = w.Store.ReportOverdue(ctx)
			return err
		}, []string{"channel.overdue by channel 1 of acme"}},
		{"api delete-channel", func(w *walk) error { return w.alice.DeleteChannel(ctx, w.id) },
			[]string{"channel.deleted by " + alice, "snapshot.unshared by " + alice}},
		{"api set-retention", func(w *walk) error {
			_, err := w.alice.SetRetention(ctx, api.RetentionRule{Target: "shop", KeepLast: 1})
			return err
		}, []string{"retention.changed by " + alice}},
		{"work retention", func(w *walk) error { return w.Service.ExpireAll(ctx) },
			[]string{"snapshot.deleted by retention of acme"}},
		{"api run-retention", func(w *walk) error {
			w.Push(w.mia, "shop", []byte("third"))
			w.news("acme")
			_, err := w.alice.RunRetention(ctx, api.RetentionRun{})
			return err
		}, []string{"snapshot.deleted by " + alice}},
		{"api delete-retention", func(w *walk) error { return w.alice.DeleteRetention(ctx, "shop") },
			[]string{"retention.changed by " + alice}},
		{"api delete-snapshot", func(w *walk) error {
			w.sn = w.Push(w.mia, "shop", []byte("fourth")).ID
			w.news("acme")
			return w.alice.Delete(ctx, w.sn)
		}, []string{"snapshot.deleted by " + alice}},
		{"api create-webhook", func(w *walk) (err error) {
			hook, err = w.alice.AddWebhook(ctx, api.WebhookRequest{URL: gone(w.t)})
			return err
		}, []string{"webhook.created by " + alice}},
		{"api rotate-webhook-secret", func(w *walk) error {
			_, err := w.alice.RotateWebhook(ctx, hook.ID, api.RotateRequest{})
			return err
		}, []string{"webhook.secret_rotated by " + alice}},
		{"work webhooks", func(w *walk) error {
			w.Push(w.mia, "shop", []byte("fifth"))
			must(w.t, w.Service.Sequence(ctx))
			w.news("acme")
			_, err := w.Service.Deliver(ctx)
			return err
		}, []string{"webhook.disabled by webhooks of acme"}},
		{"api enable-webhook", func(w *walk) error { _, err := w.alice.EnableWebhook(ctx, hook.ID); return err },
			[]string{"webhook.enabled by " + alice}},
		{"api delete-webhook", func(w *walk) error { return w.alice.DeleteWebhook(ctx, hook.ID) },
			[]string{"webhook.deleted by " + alice}},
		{"api add-certificate-key", func(w *walk) error {
			k, err := w.alice.AddCertificateKey(ctx,
				api.CertificateKeyRequest{Public: certificate.New().PublicKey().String()})
			w.id = k.ID
			return err
		}, []string{"certificate_key.added by " + alice}},
		{"api revoke-certificate-key", func(w *walk) error { return w.alice.RevokeCertificateKey(ctx, w.id) },
			[]string{"certificate_key.revoked by " + alice}},
		{"api create-key", func(w *walk) error {
			k, err := w.token.NewKey(ctx, api.KeyRequest{Kind: snap.PipelineKey, Name: "ci", Scopes: snap.Scopes()})
			w.id = k.ID
			return err
		}, []string{"key.created by " + alice}},
		{"api revoke-key", func(w *walk) error { return w.token.RevokeKey(ctx, w.id) },
			[]string{"key.revoked by " + alice}},
		{"program /token", func(w *walk) error { w.Token("gus@acme.test"); return nil },
			[]string{"session.started by gus@acme.test", "session.started by gus@acme.test"}}, // browser and device
		{"api end-session", func(w *walk) error {
			gus := w.SignedIn("gus@acme.test")
			all, err := gus.Sessions(ctx)
			must(w.t, err)
			i := slices.IndexFunc(all, func(n api.Session) bool { return !n.Current })
			return gus.EndSession(ctx, all[i].ID)
		}, []string{"session.ended by gus@acme.test"}},
		{"api sign-out-person", func(w *walk) error {
			w.Token("max@acme.test")
			people, err := w.token.People(ctx)
			must(w.t, err)
			i := slices.IndexFunc(people, func(p api.Person) bool { return p.Email == "max@acme.test" })
			_, err = w.token.SignOutPerson(ctx, people[i].ID)
			return err
		}, []string{"session.started by max@acme.test", "session.started by max@acme.test", "session.ended by " + alice,
			"session.ended by " + alice}},
		{"page /account/keys", func(w *walk) error {
			w.submit("/auth/account", "/auth/account/keys", url.Values{"name": {"laptop"}})
			w.id = w.newestKey(mia)
			return nil
		}, []string{"key.created by " + mia}},
		{"page /account/keys/revoke", func(w *walk) error {
			w.submit("/auth/account", "/auth/account/keys/revoke", url.Values{"id": {w.id}})
			return nil
		}, []string{"key.revoked by " + mia}},
		{"page /account/sessions/end", func(w *walk) error {
			w.submit("/auth/account", "/auth/account/sessions/end", url.Values{"id": {w.otherSession(mia)}})
			return nil
		}, []string{"session.ended by " + mia, "session.started by " + mia}},
		{"page /signin", func(w *walk) error { // in mia's browser
			w.browser.SignIn("max@acme.test")
			return nil
		}, []string{"session.ended by " + mia, "session.started by max@acme.test"}},
		{"page /signout", func(w *walk) error {
			w.submit("/auth/account", "/auth/signout", url.Values{})
			return nil
		}, []string{"session.ended by max@acme.test"}},
		{"program /revoke", func(w *walk) error {
			res, err := http.PostForm(w.URL+"/auth/revoke",
				url.Values{"client_id": {"snapcli"}, "token": {w.Token("gus@acme.test")}})
			must(w.t, err)
			return res.Body.Close()
		}, []string{"session.ended by gus@acme.test"}},
		{"scim POST Users, scim POST Groups", func(w *walk) error {
			w.user = w.scim.user("mia@acme.test")
			w.group = w.scim.group("eng", w.user)
			return nil
		}, nil},
		{"scim PATCH Groups/{id}", func(w *walk) error {
			w.scim.do("PATCH", "/Groups/"+w.group, patched(`{"op": "remove", "path": "members"}`), 204)
			return nil
		}, []string{"user.changed by the SCIM key scim of acme"}},
		{"scim PUT Groups/{id}", func(w *walk) error {
			w.scim.do("PUT", "/Groups/"+w.group,
				fmt.Sprintf(`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],
				"displayName":"eng","members":[{"value":%q}]}`, w.user), 200)
			return nil
		}, []string{"user.changed by the SCIM key scim of acme"}},
		{"scim DELETE Groups/{id}", func(w *walk) error {
			w.scim.do("DELETE", "/Groups/"+w.group, "", 204)
			return nil
		}, []string{"user.changed by the SCIM key scim of acme"}},
		{"scim PATCH Users/{id}", func(w *walk) error {
			w.Token("mia@acme.test")
			w.news("acme")
			w.scim.do("PATCH", "/Users/"+w.user, patched(`{"op": "replace", "path": "active", "value": false}`), 200)
			return nil
		}, []string{"key.revoked by the SCIM key scim of acme", "session.ended by the SCIM key scim of acme",
			"session.ended by the SCIM key scim of acme", "user.left by the SCIM key scim of acme"}},
		{"scim PUT Users/{id}", func(w *walk) error {
			w.scim.do("PUT", "/Users/"+w.user, `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],
				"userName":"mia@acme.test","externalId":"mia@acme.test","active":true}`, 200)
			return nil
		}, nil},
		{"scim DELETE Users/{id}", func(w *walk) error { // mia signs in again first
			w.Browser().SignIn("mia@acme.test")
			if lines := w.news("acme"); !slices.Contains(lines, "user.changed by the identity provider of acme") ||
				!slices.Contains(lines, "session.started by "+mia) {
				w.t.Errorf("the sign-in of a person who had left: %q", lines)
			}
			w.scim.do("DELETE", "/Users/"+w.user, "", 204)
			return nil
		}, []string{"session.ended by the SCIM key scim of acme", "user.left by the SCIM key scim of acme"}},
		{"snapcloud key create", func(w *walk) error {
			w.operate("key", "create", "--org", "acme", "--kind", "user", "--user", "gus@acme.test", "--name", "ops")
			w.id = w.newestKey("gus@acme.test")
			return nil
		}, []string{"key.created by the operator"}},
		{"snapcloud key revoke", func(w *walk) error {
			w.operate("key", "revoke", "--org", "acme", w.id)
			return nil
		}, []string{"key.revoked by the operator"}},
		{"snapcloud user disable", func(w *walk) error {
			w.operate("user", "disable", "--org", "acme", "gus@acme.test")
			return nil
		}, []string{"user.changed by the operator"}},
		{"snapcloud user enable", func(w *walk) error {
			w.operate("user", "enable", "--org", "acme", "gus@acme.test")
			return nil
		}, []string{"user.changed by the operator"}},
		{"snapcloud user role", func(w *walk) error {
			_, err := w.Store.ApplySignIn(ctx, store.SignIn{OrgID: w.acme().ID, Issuer: "https://idp.test",
				Subject: "7", Email: "otto@acme.test", Role: snap.RoleMember})
			must(w.t, err)
			w.news("acme")
			w.operate("user", "role", "--org", "acme", "otto@acme.test", "viewer")
			return nil
		}, []string{"user.changed by the operator"}},
		{"work prune", func(w *walk) error {
			otto, err := w.Store.UserByEmail(ctx, w.acme().ID, "otto@acme.test")
			must(w.t, err)
			_, err = w.Store.SetListed(ctx, otto.ID, false)
			must(w.t, err)
			w.news("acme")
			_, err = w.Store.Prune(ctx, w.acme().ID, w.clock.Now().Add(time.Second), 1)
			return err
		}, []string{"user.pruned by retention of acme"}},
		{"work expiry", func(w *walk) error {
			sn := w.Push(w.alice, "expiring", []byte("sixth"))
			_, err := w.alice.ShareWith(ctx, sn.ID, api.SharesRequest{OrgWide: true, ExpiresIn: 10 * 24 * 3600}, true)
			must(w.t, err)
			w.news("acme")
			w.clock.Advance(8 * 24 * time.Hour)
			_, err = w.Store.ReportExpiring(ctx)
			return err
		}, []string{"snapshot.share_expires_soon by expiry of acme"}},
		{"snapcloud serve", func(w *walk) error { // with a changed configuration
			c := w.Config
			c.Organizations = slices.Clone(c.Organizations)
			c.Organizations[0].Policy.UnsanitizedShares = snap.UnsanitizedRefuse
			s, err := cloud.New(ctx, c, cloud.Options{Version: "test", Now: w.Store.Now})
			must(w.t, err)
			s.Close()
			return nil
		}, []string{"organization.policy_changed by the operator"}},
	}
}

// gone returns the URL of a receiver that answers 410.
func gone(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (w *walk) newestKey(email string) string {
	w.t.Helper()
	all, err := w.token.Keys(w.t.Context(), api.KeyFilter{All: true})
	must(w.t, err)
	i := slices.IndexFunc(all, func(k api.Key) bool { return k.User == email })
	return all[i].ID
}

// otherSession signs a person in elsewhere and returns the ID of that session.
func (w *walk) otherSession(email string) string {
	w.t.Helper()
	w.Browser().SignIn(email)
	m, err := w.Store.UserByEmail(w.t.Context(), w.acme().ID, email)
	must(w.t, err)
	c, err := w.Store.CallerOfUser(w.t.Context(), m.ID)
	must(w.t, err)
	all, err := w.Store.Sessions(w.t.Context(), c)
	must(w.t, err)
	return fmt.Sprint(slices.MaxFunc(all, func(a, b store.Session) int { return cmp.Compare(a.ID, b.ID) }).ID)
}

// TestEveryDoorNamesItsActor: every audit line has the right actor, whichever door it came through.
func TestEveryDoorNamesItsActor(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	known := append(slices.Clone(silentDoors), providerDoors...)
	for _, s := range steps() {
		known = append(known, strings.Split(s.doors, ", ")...)
		w.clock.Advance(time.Millisecond) // snapshots of one millisecond have no order
		must(t, s.do(w))
		got := w.news("acme")
		for _, line := range w.news("globex") {
			got = append(got, "globex: "+line)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(s.lines))
		if !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", s.doors, got, want)
		}
	}
	for _, door := range allDoors(t) {
		if !slices.Contains(known, door) {
			t.Errorf("the door %q has no row", door)
		}
	}
}
