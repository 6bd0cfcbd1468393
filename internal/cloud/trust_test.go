package cloud_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// TestTrustConfiguration: values are strings, numbers or lists; a rule that trusts only names keeps
// the service from starting, and the error names the claim to add.
func TestTrustConfiguration(t *testing.T) {
	t.Parallel()
	load := func(rule string) (cloud.Config, error) {
		file := filepath.Join(t.TempDir(), "snapcloud.yaml")
		text := "organizations:\n  - slug: acme\n" +
			"    sign_in: {type: oidc, issuer: https://idp.test, client_id: web}\n    trust:\n      - " +
			strings.ReplaceAll(rule, "\n", "\n        ") + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return cloud.LoadConfig(file, nil)
	}
	c, err := load("name: shop\ntype: kubernetes\nissuer: https://k8s.test\nclaims:\n" +
		"  kubernetes.io.serviceaccount.uid: 11111111-2222-3333-4444-555555555555\n  sub: [a, b]\nscopes: [pull]")
	if err != nil {
		t.Fatal(err)
	}
	want := "type kubernetes, issuer https://k8s.test, audience public_url, kubernetes.io.serviceaccount.uid " +
		"11111111-2222-3333-4444-555555555555, sub a or b, scopes pull"
	if got := c.Organizations[0].Trust[0].String(); got != want {
		t.Errorf("%s", got)
	}
	numbers := "\nclaims: {repository_id: 74, repository_owner_id: 65}"
	for rule, says := range map[string]string{
		"type: github\nscopes: [pull]" + numbers:                                 "",
		"type: github\nscopes: [pull]\nclaims: {repository: octo/shop}":          "claims lack repository_id",
		"type: gitlab\nscopes: [pull]\nclaims: {project_path: octo/shop}":        "claims lack project_id",
		"type: github\nscopes: [pull]\nclaims: {repository_id: 1.5}":             "must be text, a whole number",
		"type: github\nscopes: [pull]\nclaims: {repository_id: [[74]]}":          "must be text",
		"type: other\nissuer: https://idp.test\naudience: web\nclaims: {sub: c}": "tokens of people could match",
		"type: github\nscopes: [pull]\nwho: me" + numbers:                        "who",
	} {
		rule = "name: shop\n" + rule
		_, err := load(rule)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s\n%v, want %q", rule, err, says)
		}
	}
}

// jobCredential gives the credential of a CI job, as a token exchange does.
func jobCredential(t *testing.T, c *cloudtest.Cloud, rule string) string {
	t.Helper()
	org, err := c.Store.OrgBySlug(t.Context(), "acme")
	must(t, err)
	must(t, c.Store.ApplyTrust(t.Context(), org.ID, []string{rule}))
	secret, sum, hint := auth.NewSecret(snap.PipelineKey)
	_, err = c.Store.Exchange(t.Context(), store.Exchange{Org: org.OrgRef, Rule: rule, Issuer: "https://ci.test",
		Subject: "job", Token: sum, Until: c.Store.Now().Add(time.Hour), Kind: snap.PipelineKey, Name: "shop",
		Scopes: []snap.Scope{snap.ScopePull, snap.ScopePrivate}, Hash: sum, Hint: hint,
		Expires: c.Store.Now().Add(15 * time.Minute)})
	must(t, err)
	return secret
}

// TestLinksOfJobsEnd: the links of a CI job end with its credential, and at once when
// the rule is removed.
func TestLinksOfJobsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*cloudtest.Cloud, *clocktest.Clock) error{
		"expired": func(_ *cloudtest.Cloud, clock *clocktest.Clock) error {
			clock.Advance(10 * time.Minute) // the link itself would be valid for another five
			return nil
		},
		"rule removed": func(c *cloudtest.Cloud, _ *clocktest.Clock) error {
			org, err := c.Store.OrgBySlug(context.Background(), "acme")
			if err == nil {
				err = c.Store.ApplyTrust(context.Background(), org.ID, []string{"another"})
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
			s := newScene(t, c)
			job := c.Client(jobCredential(t, c, "rule"))
			clock.Advance(5 * time.Minute)
			pull, err := job.Pull(t.Context(), s.id)
			must(t, err)
			if res, _ := get(t, pull.URL); res.StatusCode != http.StatusOK {
				t.Fatalf("before: %d", res.StatusCode)
			}
			must(t, end(c, clock))
			if res, _ := get(t, pull.URL, "Range", "bytes=0-3"); res.StatusCode != http.StatusNotFound {
				t.Errorf("after: %d", res.StatusCode)
			}
			if _, err := job.Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated {
				t.Errorf("the credential: %v", err)
			}
		})
	}
}
