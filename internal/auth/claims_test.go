package auth_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"snap"
	"snap/internal/auth"
)

// F3: providers send groups in many shapes. A missing claim is not an empty list, and if there are
// too many groups, they are unknown.
func TestGroupShapes(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 600) + `"`
	for _, tc := range []struct{ name, claim, claims, want string }{
		{"Okta", "groups", `{"groups":["eng","dba"]}`, "eng=eng dba=dba"},
		{"Entra", "groups",
			`{"groups":["8a7c1f0e-1111-4222-8333-444455556666"]}`,
			"8a7c1f0e-1111-4222-8333-444455556666=8a7c1f0e-1111-4222-8333-444455556666"},
		{"Entra overage", "groups",
			`{"_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{"endpoint":"https://graph.windows.net/x"}}}`,
			"unknown: you are in more groups than"},
		{"Entra hasgroups", "groups",
			`{"hasgroups":true}`, "unknown: you are in more groups than the identity provider puts into a token; " +
				"ask your admin"},
		{"Google", "groups", `{"hd":"acme.test"}`, "unknown: sent no groups claim named"},
		{"null", "groups", `{"groups":null}`, "unknown: sent no groups claim named"},
		{"none", "groups", `{"groups":[]}`, ""},
		{"empty string", "groups", `{"groups":""}`, ""},
		{"Keycloak path", "groups", `{"groups":["/parent/child","/ops"]}`, "/parent/child=child /ops=ops"},
		{"Auth0", "https://acme.test/groups", `{"https://acme.test/groups":["eng"]}`, "eng=eng"},
		{"literal before path", "a.b", `{"a.b":["literal"],"a":{"b":["path"]}}`, "literal=literal"},
		{"dotted path", "realm_access.roles", `{"realm_access":{"roles":["eng"]}}`, "eng=eng"},
		{"broken path", "realm_access.roles.x",
			`{"realm_access":{"roles":["eng"]}}`, "unknown: sent no groups claim named"},
		{"string", "groups", `{"groups":"eng"}`, "eng=eng"},
		{"comma list", "groups", `{"groups":"eng, dba,,"}`, "eng=eng dba=dba"},
		{"JSON string", "groups", `{"groups":"[\"eng\",\"a,b\"]"}`, "eng=eng a,b=a,b"},
		{"objects", "groups",
			`{"groups":[{"id":"42","name":"Engineers"},{"value":"7","display":"DBA"},{"name":"only"}]}`,
			"42=Engineers 7=DBA only=only"},
		{"twice", "groups", `{"groups":["eng","eng","Eng"]}`, "eng=eng Eng=Eng"},
		{"verbatim", "groups", `{"groups":[" CN=eng,OU=x "]}`, " CN=eng,OU=x = CN=eng,OU=x "},
		{"numbers", "groups", `{"groups":[1,2]}`, "unknown: that is not a group"},
		{"a number", "groups", `{"groups":7}`, "unknown: sent something other than a list of groups"},
		{"NUL", "groups", `{"groups":["eng","a\u0000"]}`, "unknown: in the claim \"groups\" that is not a group"},
		{"NUL in a name", "groups", `{"groups":[{"id":"1","name":"a\u0000"}]}`, "unknown: that is not a group"},
		{"too long", "groups", `{"groups":["eng",` + long + `]}`, "unknown: that is not a group"},
		{"too many", "groups",
			`{"groups":[` + many(2001) + `]}`,
			"unknown: you are in more than 2000 groups, which is too many; ask your admin"},
	} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(tc.claims), &claims); err != nil {
			t.Fatal(err)
		}
		got := auth.GroupsFromClaims(claims, tc.claim)
		var text []string
		for _, g := range got.Groups {
			text = append(text, g.GroupID+"="+g.Name)
		}
		joined := strings.Join(text, " ")
		why, unknown := strings.CutPrefix(tc.want, "unknown: ")
		if got.Known == unknown || unknown && (!strings.Contains(got.Why, why) || len(got.Groups) > 0) || !unknown &&
			joined != tc.want {
			t.Errorf("%s: %q, known %v, because %q", tc.name, joined, got.Known, got.Why)
		}
	}
}

// TestClaimsThatCannotBeStored: a sign-in is refused if a claim has a NUL character or an
// identifier was not UTF-8. The error names the claim. Nothing is removed from the claim.
func TestClaimsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ claims, external, refused string }{
		{`{"sub":"a","name":"Mia","oid":"7"}`, "oid", ""},
		{`{"sub":"a","name":"M` + "\xff" + `a"}`, "", ""}, // shown with a replacement character
		{`{"sub":"a\u0000"}`, "", "sub"}, {`{"sub":"a` + "\xff" + `"}`, "", "sub"}, {`{"sub":"a\ud800"}`, "", "sub"},
		{`{"sub":"a","sid":"s\u0000"}`, "", "sid"}, {`{"sub":"a","oid":"7\u0000"}`, "oid", "oid"},
		{`{"sub":"a","email":"a\u0000@acme.test"}`, "", "email"}, {`{"sub":"a","name":"a\u0000"}`, "", "name"},
		{`{"sub":"a","preferred_username":"a\u0000"}`, "", "preferred_username"},
		{`{"sub":"a","client_id":"a\u0000"}`, "", "client_id"},
	} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(tc.claims), &claims); err != nil {
			t.Fatal(err)
		}
		subject, _ := claims["sub"].(string)
		p := auth.PersonFromClaims("https://idp.test", subject, claims, auth.ClaimNames{ExternalID: tc.external})
		_, err := p.SignIn(1, nil)
		if tc.refused == "" && err != nil || tc.refused != "" && (snap.CodeOf(err) != snap.CodeForbidden ||
			!strings.Contains(err.Error(), "the claim "+tc.refused+" has a NUL")) {
			t.Errorf("%q: %v, want %q refused", tc.claims, err, tc.refused)
		}
	}
}

func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%q", fmt.Sprint("g", i)))
	}
	return strings.Join(all, ",")
}

// F4: a role by e-mail needs an e-mail address that the provider has verified. Unknown groups
// never give more rights.
func TestRoles(t *testing.T) {
	t.Parallel()
	roles := map[snap.Role][]string{
		snap.RoleOwner: {"boss@acme.test"}, snap.RoleAdmin: {"admins"}, snap.RoleViewer: {"guests", "vic@acme.test"},
	}
	for _, tc := range []struct {
		name, claims string
		want         snap.Role
	}{
		{"by group", `{"groups":["admins"]}`, snap.RoleAdmin},
		{"the most powerful", `{"groups":["guests","admins"]}`, snap.RoleAdmin},
		{"by e-mail", `{"groups":[],"email":"Boss@acme.test","email_verified":true}`, snap.RoleOwner},
		{"by e-mail, verified as text",
			`{"groups":[],"email":"boss@acme.test","email_verified":"true"}`, snap.RoleOwner},
		{"unverified e-mail", `{"groups":[],"email":"boss@acme.test","email_verified":false}`, snap.RoleMember},
		{"e-mail without email_verified", `{"groups":[],"email":"boss@acme.test"}`, snap.RoleMember},
		{"a group named like an e-mail", `{"groups":["vic@acme.test"]}`, snap.RoleViewer},
		{"case of a group", `{"groups":["Admins"]}`, snap.RoleMember},
		{"nothing", `{"groups":[]}`, snap.RoleMember},
		{"unknown groups", `{}`, snap.RoleViewer},
	} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(tc.claims), &claims); err != nil {
			t.Fatal(err)
		}
		got, known := auth.RoleOf(auth.PersonFromClaims("https://idp.test", "s", claims, auth.ClaimNames{}), roles)
		if got != tc.want || known != (tc.name != "unknown groups") {
			t.Errorf("%s: %s, known %v; want %s", tc.name, got, known, tc.want)
		}
	}
	p := auth.PersonFromClaims("https://idp.test", "subject-7",
		map[string]any{"email": "boss@acme.test", "email_verified": false}, auth.ClaimNames{})
	if p.Email != "subject-7" || p.Verified {
		t.Errorf("an e-mail that is not verified is shown: %+v", p)
	}
	if got, known := auth.RoleOf(auth.Person{},
		map[snap.Role][]string{snap.RoleAdmin: {"admins"}}); got != snap.RoleViewer || known {
		t.Errorf("unknown groups without viewers: %s, known %v", got, known)
	}
	if got, known := auth.RoleOf(auth.Person{}, nil); got != snap.RoleMember || !known {
		t.Errorf("no roles at all: %s, known %v", got, known)
	}
	if got, known := auth.RoleOf(auth.Person{},
		map[snap.Role][]string{snap.RoleAdmin: {"a@acme.test"}}); got != snap.RoleMember || !known {
		t.Errorf("roles that no group gives: %s, known %v", got, known)
	}
}

// F5: an identity provider must use https and a public address, unless private addresses are
// allowed.
func TestProviderAddressIsGuarded(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"http://idp.test", "ftp://idp.test", "idp.test", ""} {
		if _, err := auth.NewProvider(issuer, false, nil); err == nil {
			t.Errorf("%q was accepted", issuer)
		}
	}
	g := newGate(t)
	for _, issuer := range []string{
		"https://169.254.169.254", "https://127.0.0.1:1", "https://[::1]:1", "https://10.0.0.1", "https://localhost:1",
		"https://[::ffff:127.0.0.1]:1", "https://0.0.0.0:1", "https://[fd00::1]", "https://100.100.100.200",
		"https://[64:ff9b::7f00:1]",
	} {
		p, err := auth.NewProvider(issuer, false, g.clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "private address") {
			t.Errorf("%s was not refused as a private address: %v", issuer, err)
		}
	}
}

// Reserved networks, and addresses that embed another address, are not public (RFC 6890).
func TestReservedAddressesAreNotPublic(t *testing.T) {
	t.Parallel()
	for _, reserved := range []string{"192.88.99.1", "::10.0.0.1", "::ffff:10.0.0.1", "2001:2::1", "2001:10::1",
		"2001:0:7f00:1::", "2002:7f00:1::1", "64:ff9b::7f00:1"} {
		if auth.IsPublic(netip.MustParseAddr(reserved)) {
			t.Errorf("%s counts as public", reserved)
		}
	}
	for _, public := range []string{"192.88.98.1", "2001:200::1", "2606:4700::1111", "::ffff:1.1.1.1"} {
		if !auth.IsPublic(netip.MustParseAddr(public)) {
			t.Errorf("%s does not count as public", public)
		}
	}
}
