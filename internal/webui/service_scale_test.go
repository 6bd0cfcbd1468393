package webui

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/servertest"
	"snap/internal/store"
)

// bigOrganization is a service with 1,000 snapshots, a large card, 200 more people in 60 groups, 60
// shares with another organization, and 60 keys.
func bigOrganization(t testing.TB) *scaled {
	t.Helper()
	c := scale(t, 1_000, 60)
	ctx, alice := t.Context(), c.As("alice@acme.test")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	acme, err := c.Store.OrgBySlug(ctx, "acme")
	must(err)
	for i := range 200 {
		group := fmt.Sprintf("team-%04d", i%60)
		_, err := c.Store.ApplySignIn(ctx, store.SignIn{OrgID: acme.ID, Issuer: "directory", Subject: fmt.Sprint(i),
			Email: fmt.Sprintf("person-%03d@acme.test", i), Name: fmt.Sprintf("Person With Number %d", i),
			Role: snap.RoleMember, Groups: []snap.Group{{GroupID: group, Name: group}}})
		must(err)
	}
	_, err = alice.ShareGroup(ctx, copyID(4), "team-0001")
	must(err)
	var tables []api.CardTable
	for i := range 100 {
		one := api.CardTable{Schema: "public", Name: fmt.Sprintf("a_table_with_a_long_name_%03d", i), Rows: 12_043,
			Bytes: 4_000_000}
		for j := range 20 {
			one.Columns = append(one.Columns, api.CardColumn{Name: fmt.Sprintf("column_%02d", j),
				Type: "character varying(320)", Mask: "email", NotNull: true})
		}
		tables = append(tables, one)
	}
	must(c.As("mia@acme.test").PutCard(ctx, copyID(4), api.PutCardRequest{Card: &api.Card{ServerVersion: "17.2",
		Encoding: "UTF8", Masking: &api.Masking{Rules: strings.Repeat("a", 64), Masked: 1, Kept: 2}, Tables: tables}}))
	mia := c.SignedIn("mia@acme.test")
	for i := range 60 {
		_, err := alice.ShareOrg(ctx, copyID(i+1), "globex", nil)
		must(err)
		_, err = mia.NewKey(ctx, api.KeyRequest{Kind: snap.UserKey, Name: fmt.Sprintf("key number %d", i)})
		must(err)
	}
	return c
}

// bigPage is a page of the service, and the requests to the API that it needs.
type bigPage struct {
	path  string
	calls []func(ctx context.Context, c *api.Client) error
}

// asking drops the response to a request.
func asking[T any](ask func(ctx context.Context, c *api.Client) (T, error)) func(context.Context, *api.Client) error {
	return func(ctx context.Context, c *api.Client) error {
		_, err := ask(ctx, c)
		return err
	}
}

func bigPages() []bigPage {
	type ask = []func(context.Context, *api.Client) error
	me := asking(func(ctx context.Context, c *api.Client) (api.Me, error) { return c.Me(ctx) })
	people := asking(func(ctx context.Context, c *api.Client) ([]api.Person, error) { return c.People(ctx) })
	members := asking(func(ctx context.Context, c *api.Client) ([]api.Member, error) { return c.Members(ctx) })
	groups := asking(func(ctx context.Context, c *api.Client) ([]api.Group, error) { return c.Groups(ctx) })
	shares := func(group string) func(context.Context, *api.Client) error {
		return asking(func(ctx context.Context, c *api.Client) (api.LiveSharePage, error) {
			return c.LiveShares(ctx, group, "", 25)
		})
	}
	list := func(o api.ListOptions) func(context.Context, *api.Client) error {
		return asking(func(ctx context.Context, c *api.Client) (api.SnapshotPage, error) { return c.Snapshots(ctx, o) })
	}
	count := asking(func(ctx context.Context, c *api.Client) (api.Count, error) {
		return c.CountSnapshots(ctx, api.ListOptions{})
	})
	requests := asking(func(ctx context.Context, c *api.Client) ([]api.AccessRequest, error) {
		return c.AccessRequests(ctx)
	})
	ownRequests := asking(func(ctx context.Context, c *api.Client) ([]api.AccessRequest, error) {
		return c.OwnAccessRequests(ctx)
	})
	id := copyID(4)
	return []bigPage{
		{"/snapshots", ask{list(api.ListOptions{Limit: 25}), requests, count}},
		{"/snapshots?owner=mia", ask{list(api.ListOptions{Limit: 25, Owner: "mia"}), requests,
			asking(func(ctx context.Context, c *api.Client) (api.Count, error) {
				return c.CountSnapshots(ctx, api.ListOptions{Owner: "mia"})
			})}},
		{"/snapshots/" + id, ask{
			asking(func(ctx context.Context, c *api.Client) (api.SnapshotCard, error) {
				return c.Card(ctx, id, "", 1)
			}),
			asking(func(ctx context.Context, c *api.Client) ([]api.AccessWay, error) { return c.Why(ctx, id) }),
			me, requests, groups, members,
			asking(func(ctx context.Context, c *api.Client) ([]api.GroupShare, error) {
				return c.GroupShares(ctx, id)
			}),
			asking(func(ctx context.Context, c *api.Client) ([]api.OrgShare, error) { return c.OrgShares(ctx, id) }),
			asking(func(ctx context.Context, c *api.Client) ([]string, error) { return c.SharedWith(ctx) }),
			asking(func(ctx context.Context, c *api.Client) (api.Access, error) { return c.Access(ctx, id, "") }),
			list(api.ListOptions{Target: "shop", Type: snap.TypeSanitized, Limit: versionsShown}),
			asking(func(ctx context.Context, c *api.Client) (api.CardChanges, error) { return c.CardChanges(ctx, id) }),
			asking(func(ctx context.Context, c *api.Client) ([]api.PullCount, error) { return c.Pulls(ctx, id) })}},
		{"/requests", ask{requests, ownRequests}},
		{"/console", ask{asking(func(ctx context.Context, c *api.Client) (api.Overview, error) {
			return c.Overview(ctx, 30)
		})}},
		{"/console/members", ask{people}},
		{"/console/groups?id=team-0001", ask{groups, members, shares("team-0001")}},
		{"/console/outside", ask{shares("")}},
		{"/console/keys", ask{
			asking(func(ctx context.Context, c *api.Client) ([]api.Key, error) {
				return c.Keys(ctx, api.KeyFilter{All: true})
			}),
			asking(func(ctx context.Context, c *api.Client) ([]api.Session, error) { return c.AllSessions(ctx) })}},
		{"/console/channels", ask{groups,
			asking(func(ctx context.Context, c *api.Client) ([]api.Channel, error) { return c.Channels(ctx) })}},
		{"/console/retention", ask{
			asking(func(ctx context.Context, c *api.Client) ([]api.RetentionRule, error) { return c.Retention(ctx) }),
			asking(func(ctx context.Context, c *api.Client) (api.RetentionResult, error) {
				return c.RunRetention(ctx, api.RetentionRun{DryRun: true})
			})}},
		{"/console/webhooks", ask{
			asking(func(ctx context.Context, c *api.Client) ([]api.Webhook, error) { return c.Webhooks(ctx) })}},
		{"/console/audit", ask{asking(func(ctx context.Context, c *api.Client) (api.AuditPage, error) {
			return c.Audit(ctx, api.AuditOptions{Limit: 25})
		})}},
		{"/console/storage", ask{people,
			asking(func(ctx context.Context, c *api.Client) (api.Storage, error) { return c.Storage(ctx) })}},
	}
}

// load requests an address of the service as a browser does, and returns the transferred bytes.
func load(t testing.TB, browser *http.Client, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip, deflate, br")
	res, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", address, res.StatusCode, err)
	}
	return string(text)
}

// assets are the addresses of a page's stylesheets and scripts.
var assets = regexp.MustCompile(`(?:href|src)="([^"]+\.(?:css|js))"`)

// TestServicePagesOfManyStaySmall: the pages of a large organization transfer less than 60 KB each,
// with their stylesheets and scripts.
func TestServicePagesOfManyStaySmall(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := bigOrganization(t)
	b := c.Browser()
	b.SignIn("adam@acme.test")
	for _, p := range bigPages() {
		text := load(t, b.Client(), c.URL+p.path)
		size := len(text)
		for _, asset := range assets.FindAllStringSubmatch(text, -1) {
			size += len(load(t, b.Client(), c.URL+asset[1]))
		}
		t.Logf("%s: %d bytes", p.path, size)
		if size > 60_000 {
			t.Errorf("%s is %d bytes with its stylesheets and scripts", p.path, size)
		}
	}
}

// BenchmarkServicePagesAndTheirCalls compares a page of the service with the requests to the API
// that it needs, sent over HTTP one after the other. It compares the fastest of at least 25
// measurements of each.
func BenchmarkServicePagesAndTheirCalls(b *testing.B) {
	c := bigOrganization(b)
	person := c.Browser()
	person.SignIn("adam@acme.test")
	client := c.SignedIn("adam@acme.test")
	for _, p := range bigPages() {
		b.Run(p.path, func(b *testing.B) {
			var page, alone []time.Duration
			for b.Loop() {
				for range 25 {
					start := time.Now()
					load(b, person.Client(), c.URL+p.path)
					page = append(page, time.Since(start))
					start = time.Now()
					for _, call := range p.calls {
						if err := call(b.Context(), client); err != nil {
							b.Fatal(err)
						}
					}
					alone = append(alone, time.Since(start))
				}
			}
			b.ReportMetric(float64(len(p.calls)), "calls")
			b.ReportMetric(float64(slices.Min(page))/float64(slices.Min(alone)), "page/calls")
		})
	}
}
