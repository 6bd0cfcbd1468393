package signin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/signin"
)

// Against oidc-provider, a certified provider that others wrote: sign-in with
// groups in every shape, from the ID token and from userinfo (F3).
func TestSignInAtOIDCProvider(t *testing.T) {
	t.Parallel()
	shapes := map[string]map[string]any{
		"array":   {"groups": []string{"eng", "admins"}},
		"paths":   {"groups": []string{"/acme/eng"}},
		"text":    {"groups": "eng, dba"},
		"json":    {"groups": `["eng"]`},
		"objects": {"groups": []map[string]string{{"id": "42", "name": "Engineers"}}},
		"empty":   {"groups": []string{}},
		"absent":  {},
		"toomany": {"hasgroups": true},
		"guids":   {"groups": []string{"8a7c1f0e-1111-4222-8333-444455556666"}},
	}
	want := map[string]string{
		"array": "admins eng", "paths": "/acme/eng", "text": "dba eng", "json": "eng", "objects": "42", "empty": "",
		"absent": "unknown", "toomany": "unknown", "guids": "8a7c1f0e-1111-4222-8333-444455556666",
	}
	for _, inIDToken := range []bool{false, true} {
		t.Run(map[bool]string{false: "userinfo", true: "ID token"}[inIDToken], func(t *testing.T) {
			t.Parallel()
			h := &house{t: t, dir: t.TempDir(), clock: &clock{now: time.Now()}, log: &syncBuffer{}}
			h.listen()
			issuer := servertest.OIDCProvider(t, servertest.OIDC{Redirect: h.url + "/auth/upstream/callback", Audience: h.url, Claims: shapes, InIDToken: inIDToken})
			h.open(storeIn(h), []signin.Organization{{Slug: "acme", OIDC: &signin.OIDC{
				Issuer: issuer, ClientID: "snapcloud", ClientSecret: servertest.OIDCSecret, AllowPrivate: true,
				Roles: map[snap.Role][]string{snap.RoleAdmin: {"admins"}},
			}}})
			for account := range shapes {
				b := h.browser()
				status, at, body := servertest.OIDCSignIn(t, b.c, h.url+startAcme, account)
				if at.Path != "/auth/account" {
					t.Fatalf("%s: %d at %s: %s", account, status, at, body)
				}
				m, err := h.member("acme", account+"@acme.test")
				if err != nil {
					t.Fatal(err)
				}
				if got := groupsOf(m); got != want[account] {
					t.Errorf("%s: groups %q, want %q", account, got, want[account])
				}
				if (m.Role == snap.RoleAdmin) != (account == "array") {
					t.Errorf("%s: role %s", account, m.Role)
				}
			}
		})
	}
}

func groupsOf(m snap.Member) string {
	if m.GroupsUnknown {
		return "unknown"
	}
	var ids []string
	for _, g := range m.Groups {
		ids = append(ids, g.GroupID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// RFC 8628, 8414, 7009: the certified openid-client goes through our device
// grant, refresh, userinfo and revocation, found by either discovery document.
func TestThirdPartyClient(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"oauth2", "oidc"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			h := &house{t: t, dir: t.TempDir(), clock: &clock{now: time.Now()}, log: &syncBuffer{}}
			h.open(storeIn(h), nil)
			p := servertest.Node(t, "client.js", "ISSUER="+h.url+"/auth", "ALGORITHM="+algorithm)
			var begun struct {
				UserCode string `json:"user_code"`
			}
			if err := json.Unmarshal([]byte(p.Line()), &begun); err != nil {
				t.Fatal(err)
			}
			h.browser().approve(begun.UserCode, "mia@acme.test", "mia-password")
			p.Say("approved")
			var got struct {
				Claims, Who map[string]any
				After       string
			}
			if err := json.Unmarshal([]byte(p.Line()), &got); err != nil {
				t.Fatal(err)
			}
			if got.Claims["email"] != "mia@acme.test" || got.Who["email"] != "mia@acme.test" || got.After != "invalid_grant" {
				t.Errorf("it got %+v", got)
			}
		})
	}
}
