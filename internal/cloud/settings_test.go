package cloud_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// Replicas that start together with a changed configuration write one line for each affected
// organization. The line holds the changes, and no secret.
func TestChangesOfTheConfigurationAreLines(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		c := cloudtest.Start(t, o)
		if got := configured(t, c, "alice@acme.test"); len(got) != 0 {
			t.Errorf("before any change: %+v", got)
		}
		startTogether(t, c, c.Config)
		if got := configured(t, c, "alice@acme.test"); len(got) != 0 {
			t.Errorf("after a start with the same configuration: %+v", got)
		}
		changed := c.Config
		changed.Organizations = append([]cloud.Organization{}, c.Config.Organizations...)
		acme := &changed.Organizations[0]
		acme.SignIn.Domains, acme.SignIn.ExternalIDClaim = []string{"acme.test"}, "oid"
		acme.Policy.MaxStaleness, acme.Policy.MaxCrossOrgExpiry = "3h", "30d"
		acme.Users = append([]cloud.LocalUser{}, acme.Users...)
		acme.Users[2].Name, acme.Users[2].Password, acme.Users[2].Role = "Mia Moss", "a-new-password", snap.RoleAdmin
		startTogether(t, c, changed)
		want := "policy.max_staleness set to 3h; sign_in.domains set to acme.test; " +
			"sign_in.external_id_claim set to oid; users.mia@acme.test changed from member eng to admin eng; " +
			"users.mia@acme.test.name changed from Mia to Mia Moss; users.mia@acme.test.password changed"
		got := configured(t, c, "alice@acme.test")
		if len(got) != 1 || said(got[0]) != want {
			t.Errorf("acme's lines are %+v\nwant one: %s", got, want)
		}
		page, err := c.As("alice@acme.test").Audit(t.Context(), api.AuditOptions{Action: snap.AuditPolicy})
		must(t, err)
		if len(page.Items) != 1 || !strings.Contains(page.Items[0].Detail.Policy, "2592000000000000") {
			t.Errorf("lines of the changed policy: %+v", page.Items)
		}
		if text, _ := json.Marshal(got); strings.Contains(string(text), "a-new-password") {
			t.Errorf("the line holds a password: %s", text)
		}
		if got := configured(t, c, "gail@globex.test"); len(got) != 0 {
			t.Errorf("globex's lines are %+v", got)
		}
		changed.TrustProxies = []string{"10.1.0.0/16"}
		startTogether(t, c, changed)
		for _, who := range []string{"alice@acme.test", "gail@globex.test", "ian@initech.test"} {
			if got := configured(t, c, who); len(got) == 0 || said(got[0]) != "trust_proxies set to 10.1.0.0/16" {
				t.Errorf("%s reads %+v", who, got)
			}
		}
	})
}

// A trust rule that may now reach a private address is a change that the audit log shows.
func TestTrustOfAPrivateIssuerIsRecorded(t *testing.T) {
	t.Parallel()
	public := cloud.Trust{Name: "ci", Type: "oidc", Issuer: "https://ci.test", Scopes: []snap.Scope{snap.ScopePull}}
	private := public
	private.AllowPrivate = true
	if public.String() == private.String() {
		t.Errorf("both rules are recorded as %s", public)
	}
}

// startTogether starts three replicas of c at once.
func startTogether(t *testing.T, c *cloudtest.Cloud, config cloud.Config) {
	t.Helper()
	var starts sync.WaitGroup
	for range 3 {
		starts.Go(func() {
			s, err := cloud.New(t.Context(), config, cloud.Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	starts.Wait()
}

// configured returns the lines about the configuration of a user's organization, the newest first.
func configured(t *testing.T, c *cloudtest.Cloud, who string) []api.AuditEntry {
	t.Helper()
	page, err := c.As(who).Audit(t.Context(), api.AuditOptions{Action: snap.AuditConfigured})
	must(t, err)
	return page.Items
}

func said(e api.AuditEntry) string {
	var all []string
	for _, change := range e.Detail.Settings {
		all = append(all, change.String())
	}
	return strings.Join(all, "; ")
}
