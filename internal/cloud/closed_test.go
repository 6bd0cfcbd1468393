package cloud_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// restart starts the service of c once more, as another replica of it, with
// only these organizations in its configuration. It returns the log and the
// page on which somebody of globex would sign in.
func restart(t *testing.T, c *cloudtest.Cloud, slugs ...string) (log, signIn string) {
	t.Helper()
	config := c.Config
	config.Organizations = slices.DeleteFunc(slices.Clone(config.Organizations),
		func(o cloud.Organization) bool { return !slices.Contains(slugs, o.Slug) })
	var out lockedBuffer
	s, err := cloud.New(t.Context(), config, cloud.Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
	must(t, err)
	defer s.Close()
	page := httptest.NewRecorder()
	s.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/auth/signin?organization=globex", nil))
	return out.String(), page.Body.String()
}

// An organization that a start does not list is locked out at once, at every replica and with every
// credential and link that its people have. Nothing is lost: when a start lists it again,
// everything works again.
func TestUnlistedOrganizationsAreClosed(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" },
		"postgres": cloudtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cloudtest.Start(t, cloudtest.Options{DatabaseURL: database(t), Config: allowPrivate})
			h := newClosing(t, c)
			h.check(true)
			for range 2 { // a second start that does not list it changes nothing
				log, page := restart(t, c, "acme", "initech")
				if strings.Count(log, "is closed") != 1 || !strings.Contains(log, "organization=globex") ||
					!strings.Contains(page, "No organization here is known as globex") {
					t.Errorf("the start says %s, and the sign-in page %s", log, page)
				}
				h.check(false)
			}
			if log, page := restart(t, c, "acme", "globex", "initech"); strings.Contains(log, "is closed") ||
				strings.Contains(page, "No organization") {
				t.Errorf("listed again, the start says %s, and the sign-in page %s", log, page)
			}
			h.check(true)
		})
	}
}

// closing holds the credentials of globex's people, and the snapshots that acme shares with them.
type closing struct {
	*testing.T
	cloud    *cloudtest.Cloud
	alice    *api.Client
	given    string // a snapshot that acme shares with globex
	got      string // a snapshot that globex shares with acme
	download string // a URL that was issued to globex
	holds    map[string]func() (snap.Code, error)
	receiver *receiver
	told     int // events for globex's webhook, sent or waiting
}

func newClosing(t *testing.T, c *cloudtest.Cloud) *closing {
	ctx := context.Background()
	alice, gail := c.As("alice@acme.test"), c.As("gail@globex.test")
	h := &closing{T: t, cloud: c, alice: alice, receiver: newReceiver(t)}
	h.given, h.got = c.Push(alice, "shop", []byte("given")).ID, c.Push(gail, "shop", []byte("got")).ID
	_, err := alice.ShareOrg(ctx, h.given, "globex", nil)
	must(t, err)
	_, err = gail.ShareOrg(ctx, h.got, "acme", nil)
	must(t, err)
	pull, err := gail.Pull(ctx, h.given)
	must(t, err)
	h.download = pull.URL
	_, err = gail.AddWebhook(ctx, api.WebhookRequest{URL: h.receiver.URL, Events: []snap.AuditAction{snap.AuditPulled}})
	must(t, err)

	lists := func(client *api.Client) func() (snap.Code, error) {
		return func() (snap.Code, error) {
			_, err := client.Snapshots(ctx, api.ListOptions{})
			return snap.CodeOf(err), nil
		}
	}
	browser := c.Browser()
	browser.SignIn("gail@globex.test")
	h.holds = map[string]func() (snap.Code, error){
		"a user's key":     lists(gail),
		"a pipeline's key": lists(c.Client(c.OrgKey("globex", snap.PipelineKey, snap.ScopePull))),
		"an agent's key":   lists(c.Client(c.OrgKey("globex", snap.AgentKey, snap.ScopePull))),
		"a login":          lists(c.SignedIn("gary@globex.test")),
		"a browser": func() (snap.Code, error) {
			res, err := browser.Client().Get(c.URL + api.MountUser + "/me")
			if err != nil {
				return "", err
			}
			defer res.Body.Close()
			return map[int]snap.Code{http.StatusUnauthorized: snap.CodeUnauthenticated}[res.StatusCode], nil
		},
	}
	return h
}

// check tries all credentials of globex, and acme's rights over its shares.
func (h *closing) check(open bool) {
	h.Helper()
	ctx := context.Background()
	want, status, shared := snap.Code(""), http.StatusOK, snap.Code("")
	if !open {
		want, status, shared = snap.CodeUnauthenticated, http.StatusNotFound, snap.CodeOrganizationNotFound
	}
	for name, try := range h.holds {
		if code, err := try(); err != nil || code != want {
			h.Errorf("open %v: %s: %s, %v", open, name, code, err)
		}
	}
	if res, _ := get(h.T, h.download); res.StatusCode != status {
		h.Errorf("open %v: a download URL of before: %d", open, res.StatusCode)
	}
	_, err := h.alice.ShareOrg(ctx, h.given, "globex", nil)
	if snap.CodeOf(err) != shared {
		h.Errorf("open %v: sharing with it: %v", open, err)
	}
	if suggested := h.alice.SuggestOrg(ctx, "globex", err); suggested != err {
		h.Errorf("open %v: sharing with it: suggested %+v", open, suggested)
	}
	shares, err := h.alice.OrgShares(ctx, h.given)
	if err != nil || len(shares) != 1 {
		h.Errorf("open %v: the share with it: %+v, %v", open, shares, err)
	}

	// Its shares stay, and the messages to its webhook wait.
	must(h.T, h.alice.Pulled(ctx, h.got, 1))
	h.told++
	_, err = h.cloud.Service.Deliver(ctx)
	must(h.T, err)
	h.receiver.mu.Lock()
	defer h.receiver.mu.Unlock()
	if told := len(h.receiver.got); open && told != h.told || !open && told != 1 {
		h.Errorf("open %v: its webhook received %d events of %d", open, told, h.told)
	}
}

// A start that fails locks nobody out, and an organization that is closed does
// not lose snapshots to its retention.
func TestClosingLosesNothing(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	gail := c.As("gail@globex.test")
	for _, content := range []string{"older", "newer"} {
		c.Push(gail, "shop", []byte(content))
	}
	_, err := gail.SetRetention(ctx, api.RetentionRule{Target: "shop", KeepLast: 1})
	must(t, err)

	less := c.Config
	less.Organizations = less.Organizations[:1]
	if told := fmt.Sprint(cloud.Verdicts(ctx, less)); !strings.Contains(told, "start closes them: globex, initech") {
		t.Errorf("before the start, check says %s", told)
	}
	broken := c.Config
	broken.Organizations, broken.Auth.Issuer = broken.Organizations[:1], "https://nobody.example"
	if _, err := cloud.New(ctx, broken, cloud.Options{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Fatal("a start with an issuer that no organization has did not fail")
	}
	if page, err := gail.Snapshots(ctx, api.ListOptions{}); err != nil || len(page.Items) != 2 {
		t.Fatalf("after a start that failed: %d snapshots, %v", len(page.Items), err)
	}
	for _, listed := range [][]string{{"acme"}, {"acme", "globex"}} {
		restart(t, c, listed...)
		must(t, c.Service.ExpireAll(ctx))
		if len(listed) == 1 {
			if told := fmt.Sprint(cloud.Verdicts(ctx, less)); strings.Contains(told, "closes them") {
				t.Errorf("check says that the next start closes what is closed: %s", told)
			}
			restart(t, c, "globex")
			if page, err := gail.Snapshots(ctx, api.ListOptions{}); err != nil || len(page.Items) != 2 {
				t.Errorf("retention while closed left %d snapshots, %v", len(page.Items), err)
			}
		}
	}
	if page, err := gail.Snapshots(ctx, api.ListOptions{}); err != nil || len(page.Items) != 1 {
		t.Errorf("retention once open left %d snapshots, %v", len(page.Items), err)
	}
}
