package signin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/clocktest"
	"snap/internal/servertest"
	"snap/internal/signin"
)

// Sign-in with three third-party providers, oidc-provider, Dex and that of zitadel/oidc, by code
// and PKCE with groups in every shape, from the ID token and from userinfo (F1, F3).
func TestSignInAtProvidersOfOthers(t *testing.T) {
	t.Parallel()
	every := shapes{
		"array":   {map[string]any{"groups": []string{"eng", "admins"}}, "admins eng"},
		"paths":   {map[string]any{"groups": []string{"/acme/eng"}}, "/acme/eng"},
		"text":    {map[string]any{"groups": "eng, dba"}, "dba eng"},
		"json":    {map[string]any{"groups": `["eng"]`}, "eng"},
		"objects": {map[string]any{"groups": []map[string]string{{"id": "42", "name": "Engineers"}}}, "42"},
		"empty":   {map[string]any{"groups": []string{}}, ""},
		"absent":  {map[string]any{}, "unknown"},
		"toomany": {map[string]any{"hasgroups": true}, "unknown"},
		"guids": {map[string]any{"groups": []string{"8a7c1f0e-1111-4222-8333-444455556666"}},
			"8a7c1f0e-1111-4222-8333-444455556666"},
	}
	// Dex sends a list, or nothing if the list is empty.
	lists := shapes{
		"array": every["array"], "paths": every["paths"], "guids": every["guids"],
		"empty": {map[string]any{"groups": []string{}}, "unknown"}, "absent": every["absent"],
	}
	withGroups := []string{"openid", "profile", "email", "groups"}
	for name, tc := range map[string]struct {
		provider  func(testing.TB, servertest.OIDC) string
		shapes    shapes
		inIDToken bool
		scopes    []string
	}{
		"oidc-provider, userinfo": {servertest.OIDCProvider, every, false, nil},
		"oidc-provider, ID token": {servertest.OIDCProvider, every, true, nil},
		"zitadel, userinfo":       {servertest.Zitadel, every, false, nil},
		"zitadel, ID token":       {servertest.Zitadel, every, true, nil},
		"dex":                     {servertest.Dex, lists, true, withGroups},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &house{t: t, dir: t.TempDir(), clock: clocktest.New(time.Now()), log: &syncBuffer{}}
			h.listen()
			issuer := tc.provider(t, servertest.OIDC{Redirect: h.url + "/auth/upstream/callback", Audience: h.url,
				Claims: tc.shapes.claims(), InIDToken: tc.inIDToken})
			h.open(storeIn(h), []signin.Organization{{Slug: "acme", OIDC: &signin.OIDC{
				Issuer: issuer, ClientID: "snapcloud", ClientSecret: servertest.OIDCSecret, AllowPrivate: true,
				Scopes: tc.scopes,
				Roles:  map[snap.Role][]string{snap.RoleAdmin: {"admins"}},
			}}})
			for account, shape := range tc.shapes {
				h.signsInAs(account, shape.want)
			}
		})
	}
}

// shapes are accounts whose claims name their groups in different forms, with the expected result.
type shapes map[string]struct {
	claims map[string]any
	want   string
}

func (s shapes) claims() map[string]map[string]any {
	all := map[string]map[string]any{}
	for account, shape := range s {
		all[account] = shape.claims
	}
	return all
}

// signsInAs signs an account in at the identity provider of acme and compares
// its groups and role.
func (h *house) signsInAs(account, groups string) {
	h.t.Helper()
	status, at, body := servertest.OIDCSignIn(h.t, h.browser().c, h.url+startAcme, account)
	if at.Path != "/auth/account" {
		h.t.Fatalf("%s: %d at %s: %s", account, status, at, body)
	}
	m, err := h.member("acme", account+"@acme.test")
	if err != nil {
		h.t.Fatal(err)
	}
	if got := groupsOf(m); got != groups {
		h.t.Errorf("%s: groups %q, want %q", account, got, groups)
	}
	if (m.Role == snap.RoleAdmin) != (account == "array") {
		h.t.Errorf("%s: role %s", account, m.Role)
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
			h := &house{t: t, dir: t.TempDir(), clock: clocktest.New(time.Now()), log: &syncBuffer{}}
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
			if got.Claims["email"] != "mia@acme.test" || got.Who["email"] != "mia@acme.test" ||
				got.After != "invalid_grant" {
				t.Errorf("it got %+v", got)
			}
		})
	}
}
