package cloud_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"snap"
	"snap/internal/auth"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// F3: if somebody's groups are unknown, /me says why and suggests what to ask an admin for. If the
// groups are known, even if there are none, /me says nothing about it.
func TestMeSaysWhyGroupsAreUnknown(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	org, err := c.Store.OrgBySlug(t.Context(), "acme")
	must(t, err)
	for _, tc := range []struct{ name, claims, want string }{
		{"absent", `{}`, `the identity provider sent no groups claim named "groups"; ask your admin`},
		{"overage",
			`{"_claim_names":{"groups":"src1"}}`,
			"you are in more groups than the identity provider puts into a token; ask your admin"},
		{"too many",
			`{"groups":` + manyGroups(2001) + `}`,
			"you are in more than 2000 groups, which is too many; ask your admin"},
		{"none", `{"groups":[]}`, ""},
	} {
		claims := map[string]any{}
		must(t, json.Unmarshal([]byte(tc.claims), &claims))
		p := auth.PersonFromClaims("https://idp.test", "why", claims, auth.ClaimNames{})
		id, err := c.Store.ApplySignIn(t.Context(), store.SignIn{
			OrgID: org.ID, Issuer: p.Issuer, Subject: p.Subject, Email: p.Email, Role: snap.RoleMember,
			Groups: p.Groups.Groups, GroupsUnknown: !p.Groups.Known, GroupsWhy: p.Groups.Why,
		})
		must(t, err)
		secret, _, err := c.Service.Auth().NewKey(t.Context(),
			auth.KeySpec{OrgID: org.ID, UserID: id, Kind: snap.UserKey, Name: tc.name})
		must(t, err)
		me, err := c.Client(secret).Me(t.Context())
		must(t, err)
		if !strings.HasPrefix(me.GroupsWhy, tc.want) || (me.GroupsWhy == "") != (tc.want == "") ||
			me.GroupsUnknown != (tc.want != "") {
			t.Errorf("%s: unknown %v because %q", tc.name, me.GroupsUnknown, me.GroupsWhy)
		}
	}
}

// manyGroups is a claim with n groups.
func manyGroups(n int) string {
	var groups []string
	for i := range n {
		groups = append(groups, fmt.Sprint("g", i))
	}
	text, _ := json.Marshal(groups)
	return string(text)
}
