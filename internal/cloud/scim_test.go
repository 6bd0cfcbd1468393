package cloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// provisioner is an identity provider that reports people and groups by SCIM.
type provisioner struct {
	t        testing.TB
	url, key string
}

// provision returns the provider of an organization.
func provision(t *testing.T, c *cloudtest.Cloud, slug string) *provisioner {
	t.Helper()
	return &provisioner{t, c.URL + "/scim/v2", scimKey(t, c, slug)}
}

func scimKey(t testing.TB, c *cloudtest.Cloud, slug string) string {
	t.Helper()
	org, err := c.Store.OrgBySlug(context.Background(), slug)
	must(t, err)
	secret, _, err := c.Service.Auth().NewKey(context.Background(),
		auth.KeySpec{OrgID: org.ID, Kind: snap.SCIMKey, Name: "scim"})
	must(t, err)
	return secret
}

// do sends a request and checks the status of the response, which it returns.
func (p *provisioner) do(method, path, body string, status int) map[string]any {
	p.t.Helper()
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	must(p.t, err)
	req.Header.Set("Content-Type", "application/scim+json; charset=utf-8")
	req.Header.Set("Authorization", "Bearer "+p.key)
	res, err := http.DefaultClient.Do(req)
	must(p.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(p.t, err)
	if res.StatusCode != status {
		p.t.Fatalf("%s %s: status %d instead of %d: %s", method, path, res.StatusCode, status, text)
	}
	if len(text) == 0 {
		return nil
	}
	if kind := res.Header.Get("Content-Type"); kind != "application/scim+json" {
		p.t.Errorf("%s %s: the answer is %s", method, path, kind)
	}
	var answer map[string]any
	must(p.t, json.Unmarshal(text, &answer))
	return answer
}

// find returns the IDs that match a filter.
func (p *provisioner) find(kind, filter string) (ids []string) {
	p.t.Helper()
	a := p.do("GET", "/"+kind+"?filter="+url.QueryEscape(filter), "", 200)
	for _, r := range a["Resources"].([]any) {
		ids = append(ids, r.(map[string]any)["id"].(string))
	}
	if int(a["totalResults"].(float64)) != len(ids) {
		p.t.Errorf("%s: %v results, %d on the page", filter, a["totalResults"], len(ids))
	}
	return ids
}

// user reports a person whose accounts have this subject.
func (p *provisioner) user(subject string) (id string) {
	p.t.Helper()
	return p.do("POST", "/Users", fmt.Sprintf(`{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
		"userName": %q, "externalId": %q, "active": true}`, subject, subject), 201)["id"].(string)
}

// group reports a group.
func (p *provisioner) group(name string, members ...string) (id string) {
	p.t.Helper()
	all := []map[string]string{}
	for _, m := range members {
		all = append(all, map[string]string{"value": m})
	}
	body, err := json.Marshal(map[string]any{"displayName": name, "members": all})
	must(p.t, err)
	return p.do("POST", "/Groups", string(body), 201)["id"].(string)
}

func (p *provisioner) members(group string) (ids []string) {
	p.t.Helper()
	for _, m := range p.do("GET", "/Groups/"+group, "", 200)["members"].([]any) {
		ids = append(ids, m.(map[string]any)["value"].(string))
	}
	return ids
}

// patched is the body of a PATCH request.
func patched(operations string) string {
	return `{"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": [` + operations + `]}`
}

func groupsOf(t *testing.T, c *cloudtest.Cloud, email string) (names []string) {
	t.Helper()
	me, err := c.As(email).Me(context.Background())
	must(t, err)
	for _, g := range me.Groups {
		names = append(names, g.GroupID)
	}
	slices.Sort(names)
	return names
}

// bothDatabases runs a test on SQLite and on PostgreSQL.
func bothDatabases(t *testing.T, test func(*testing.T, *cloudtest.Cloud)) {
	t.Helper()
	for name, database := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" },
		"postgres": cloudtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cloudtest.Start(t, cloudtest.Options{DatabaseURL: database(t)}))
		})
	}
}

// The requests that Okta sends, in the shapes of its documentation.
func TestSCIMRequestsOfOkta(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, c *cloudtest.Cloud) {
		p := provision(t, c, "acme")
		if ids := p.find("Users", `userName eq "mia@acme.test"`); len(ids) != 0 {
			t.Errorf("before anything was reported: %v", ids)
		}
		p.do("GET", "/Users?startIndex=1&count=2", "", 200)
		mia := p.do("POST", "/Users", `{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
			"userName": "mia@acme.test", "name": {"givenName": "Mia", "familyName": "M"},
			"emails": [{"primary": true, "value": "mia@acme.test", "type": "work"}], "displayName": "Mia M",
			"locale": "en-US", "externalId": "mia@acme.test", "groups": [], `+
			`"password": "1mz050nq", "active": true}`, 201)
		id := mia["id"].(string)
		if mia["userName"] != "mia@acme.test" || mia["active"] != true || mia["password"] != nil ||
			mia["meta"].(map[string]any)["location"] != p.url+"/Users/"+id {
			t.Errorf("created: %v", mia)
		}
		p.do("GET", "/Users/"+id, "", 200)
		p.do("PUT", "/Users/"+id, fmt.Sprintf(`{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "id": %q,
			"userName": "mia@acme.test", "name": {"givenName": "Mia", "middleName": "", "familyName": "Moss"},
			"active": true, "groups": [], "meta": {"resourceType": "User"}}`, id), 200)
		if ids := p.find("Users", `externalId eq "mia@acme.test"`); !slices.Equal(ids, []string{id}) {
			t.Errorf("a replacement without externalId removed it: %v", ids)
		}
		team := p.do("POST", "/Groups", `{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
			"displayName": "platform", "members": []}`, 201)["id"].(string)
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "add", "path": "members",
			"value": [{"value": "`+id+`", "display": "mia@acme.test"}]}`), 204)
		if got := groupsOf(t, c, "mia@acme.test"); !slices.Equal(got, []string{"eng", "platform"}) {
			t.Errorf("added: %v", got)
		}
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "replace", "value": {"id": "`+team+`", `+
			`"displayName": "core"}}`), 204)
		if got := groupsOf(t, c, "mia@acme.test"); !slices.Equal(got, []string{"core", "eng"}) {
			t.Errorf("renamed: %v", got)
		}
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "remove", "path": "members[value eq \"`+id+`\"]"}`), 204)
		if got := groupsOf(t, c, "mia@acme.test"); !slices.Equal(got, []string{"eng"}) {
			t.Errorf("removed: %v", got)
		}
		p.do("PUT", "/Groups/"+team, `{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
			"displayName": "core", "members": [{"value": "`+id+`", "display": "mia@acme.test"}]}`, 200)
		if got := p.members(team); !slices.Equal(got, []string{id}) {
			t.Errorf("replaced: %v", got)
		}
		gus := p.user("gus@acme.test")
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "remove", "path": "members[value eq \"`+id+`\"]"},
			{"op": "add", "path": "members", "value": [{"value": "`+gus+`", "display": "gus@acme.test"}]}`), 204)
		if got := p.members(team); !slices.Equal(got, []string{gus}) {
			t.Errorf("one removed and one added: %v", got)
		}
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "replace", "path": "members", "value": [
			{"value": "`+id+`", "display": "mia@acme.test"}, {"value": "`+gus+`", "display": "gus@acme.test"}]}`), 204)
		if got := p.members(team); !slices.Equal(got, []string{id, gus}) {
			t.Errorf("a full push of the members: %v", got)
		}
		p.do("GET", "/Groups?startIndex=1&count=100", "", 200)
		p.do("PUT", "/Users/"+gus, fmt.Sprintf(`{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "id": %q,
			"userName": "gus@acme.test", "active": false, "groups": [], "meta": {"resourceType": "User"}}`, gus), 200)
		if _, err := c.Client(c.Key("gus@acme.test")).Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("a key of somebody whom a PUT deactivated: %v", err)
		}
		key := c.Client(c.Key("mia@acme.test"))
		p.do("PATCH", "/Users/"+id, patched(`{"op": "replace", "value": {"active": false}}`), 200)
		if _, err := key.Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("a key of somebody who is not active: %v", err)
		}
		p.do("DELETE", "/Groups/"+team, "", 204)
		p.do("GET", "/Groups/"+team, "", 404)
	})
}

// The requests that Microsoft Entra ID sends, in the shapes of its documentation.
func TestSCIMRequestsOfEntra(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, c *cloudtest.Cloud) {
		p := provision(t, c, "acme")
		if ids := p.find("Users", `userName eq "35ff3ec6-45a9-4c96-9b21-0cd4a4f1b1b5"`); len(ids) != 0 {
			t.Errorf("the test of the connection finds %v", ids)
		}
		gus := p.do("POST", "/Users", `{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User",
			"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"], "externalId": "gus@acme.test",
			"userName": "Gus@acme.test", "active": true, "emails": [{"primary": true, "type": "work", `+
			`"value": "gus@acme.test"}],
			"meta": {"resourceType": "User"}, "name": {"formatted": "Gus G", "familyName": "G", "givenName": "Gus"},
			"roles": []}`, 201)["id"].(string)
		p.do("POST", "/Users", `{"userName": "gus@ACME.test", "externalId": "other"}`, 409)
		for _, filter := range []string{`userName eq "gus@acme.test"`, `externalId eq "gus@acme.test"`,
			`urn:ietf:params:scim:schemas:core:2.0:User:userName Eq "GUS@acme.test" and ` +
				`externalId eq "gus@acme.test"`} {
			if ids := p.find("Users", filter); !slices.Equal(ids, []string{gus}) {
				t.Errorf("%s finds %v", filter, ids)
			}
		}
		p.do("PATCH", "/Users/"+gus, patched(`{"op": "Replace", "path": "emails[type eq \"work\"].value", `+
			`"value": "g@acme.test"},
			{"op": "Replace", "path": "name.familyName", "value": "Green"},
			{"op": "Add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department", `+
			`"value": "R"},
			{"op": "Add", "path": "displayName", "value": "Gus Green"}`), 200)
		p.do("PATCH", "/Users/"+gus, patched(`{"op": "Replace", "path": "userName", `+
			`"value": "gus.green@acme.test"}`), 200)
		if ids := p.find("Users", `userName eq "gus.green@acme.test"`); !slices.Equal(ids, []string{gus}) {
			t.Errorf("the new name finds %v", ids)
		}
		p.do("GET", "/Users/5171a35d82074e068ce2", "", 404)
		const dba = "6c75de36-30fa-4d2d-a196-6bdcdb6b6539"
		team := p.do("POST", "/Groups", `{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group",
			"http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"], "externalId": "`+dba+`",
			"displayName": "Databases", "meta": {"resourceType": "Group"}}`, 201)["id"].(string)
		if a := p.do("GET", "/Groups/"+team+"?excludedAttributes=members", "", 200); a["members"] != nil {
			t.Errorf("the members were excluded: %v", a)
		}
		a := p.do("GET", "/Groups?excludedAttributes=members&filter="+url.QueryEscape(`displayName eq `+
			`"databases"`), "", 200)
		if a["totalResults"] != 1.0 || a["Resources"].([]any)[0].(map[string]any)["members"] != nil {
			t.Errorf("by its name: %v", a)
		}
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "Add", "path": "members",
			"value": [{"$ref": null, "value": "`+gus+`"}]}`), 204)
		if got := groupsOf(t, c, "gus@acme.test"); !slices.Equal(got, []string{dba, "dba", "eng"}) {
			t.Errorf("added: %v", got)
		}
		if ids := p.find("Groups", `id eq "`+team+`" and members eq "`+gus+`"`); len(ids) != 1 {
			t.Errorf("the check of a member finds %v", ids)
		}
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "Replace", "path": "displayName", "value": "Databases 2"}`), 204)
		if got := groupsOf(t, c, "gus@acme.test"); !slices.Contains(got, dba) {
			t.Errorf("a group with an external ID is another one after it was renamed: %v", got)
		}
		p.do("PATCH", "/Groups/"+team, patched(`{"op": "Remove", "path": "members",
			"value": [{"$ref": null, "value": "`+gus+`"}]}`), 204)
		if got := groupsOf(t, c, "gus@acme.test"); !slices.Equal(got, []string{"dba", "eng"}) {
			t.Errorf("removed: %v", got)
		}
		key := c.Client(c.Key("gus@acme.test"))
		p.do("PATCH", "/Users/"+gus, patched(`{"op": "Replace", "path": "active", "value": "False"}`), 200)
		if _, err := key.Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("a key of somebody who is not active: %v", err)
		}
		for _, active := range []string{`"True"`, `true`, `false`} {
			a := p.do("PATCH", "/Users/"+gus,
				`{"Operations": [{"op": "Replace", "path": "active", "value": `+active+`}],
				"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]}`, 200)
			if a["active"] != (active != "false") {
				t.Errorf("active: %s becomes %v", active, a["active"])
			}
		}
		p.do("DELETE", "/Users/"+gus, "", 204)
		p.do("DELETE", "/Users/"+gus, "", 404)
	})
}

// TestSCIMAndSignIns: groups that SCIM reports for a person win over those of sign-ins, group by
// group. A reported group may have members without an account.
func TestSCIMAndSignIns(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, c *cloudtest.Cloud) {
		p := provision(t, c, "acme")
		mia := p.user("mia@acme.test")
		stranger := p.do("POST", "/Users", `{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
			"userName": "max@acme.test", "externalId": "stranger", "active": true,
			"emails": [{"value": "max@acme.test", "primary": true}]}`, 201)["id"].(string)
		signIn := func(email string, want ...string) {
			t.Helper()
			c.Browser().SignIn(email)
			if got := groupsOf(t, c, email); !slices.Equal(got, want) {
				t.Errorf("%s after a sign-in: %v, want %v", email, got, want)
			}
		}
		signIn("mia@acme.test", "eng")
		eng := p.group("eng") // SCIM says that she is not in it, and her sign-ins that she is
		signIn("mia@acme.test")
		signIn("gus@acme.test", "dba", "eng") // SCIM does not know him
		dba := p.group("dba", mia, stranger)
		signIn("mia@acme.test", "dba")
		if got := groupsOf(t, c, "max@acme.test"); len(got) != 0 {
			t.Errorf("a person was matched by an e-mail address: %v", got)
		}
		p.do("PATCH", "/Groups/"+eng, patched(`{"op": "add", "path": "members", "value": [{"value": "`+mia+`"}]}`), 204)
		signIn("mia@acme.test", "dba", "eng")
		p.do("DELETE", "/Groups/"+dba, "", 204)
		signIn("mia@acme.test", "eng")
		org, err := c.Store.OrgBySlug(t.Context(), "acme")
		must(t, err)
		keys, err := c.Store.OrgKeys(t.Context(), org.ID, 0)
		must(t, err)
		p.do("PATCH", "/Groups/"+eng, patched(`{"op": "remove", "path": "members"}`), 204)
		signIn("mia@acme.test")
		for _, k := range keys { // without a key nobody reports, so no report counts
			if k.Kind == snap.SCIMKey {
				must(t, c.Store.RevokeOrgKey(t.Context(), org.ID, k.ID))
			}
		}
		signIn("mia@acme.test", "eng")
	})
}

// TestSCIMEndsFormerExternalIDs: a person who leaves loses the accounts of their earlier external
// IDs too, except for an ID that another person has now.
func TestSCIMEndsFormerExternalIDs(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, c *cloudtest.Cloud) {
		p := provision(t, c, "acme")
		put := func(id, body string) { p.do("PUT", "/Users/"+id, body, 200) }
		patch := func(id, body string) {
			p.do("PATCH", "/Users/"+id, patched(`{"op": "replace", "value": `+body+`}`), 200)
		}
		for email, leave := range map[string]func(id string){
			"alice@acme.test": func(id string) { put(id, `{"userName": "a", "externalId": "a", "active": false}`) },
			"adam@acme.test":  func(id string) { patch(id, `{"externalId": "b", "active": false}`) },
			"mia@acme.test": func(id string) {
				put(id, `{"userName": "m", "externalId": "c"}`)
				put(id, `{"userName": "m", "active": false}`)
			},
			"gus@acme.test": func(id string) {
				patch(id, `{"externalId": "d"}`)
				p.do("DELETE", "/Users/"+id, "", 204)
			},
		} {
			as := c.SignedIn(email)
			_, err := as.Me(t.Context())
			must(t, err)
			leave(p.user(email))
			if _, err := as.Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated {
				t.Errorf("%s after they left: %v", email, err)
			}
		}
		gail := c.SignedIn("gail@globex.test")
		p = provision(t, c, "globex")
		wrong := p.user("gail@globex.test")
		patch(wrong, `{"externalId": "other"}`)
		p.do("POST", "/Users", `{"userName": "gail", "externalId": "gail@globex.test"}`, 201)
		p.do("DELETE", "/Users/"+wrong, "", 204)
		_, err := gail.Me(t.Context())
		must(t, err)
	})
}

// No request without the key of an open organization is answered, and none reaches another
// organization's resources.
func TestSCIMRefusals(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	p, other := provision(t, c, "acme"), provision(t, c, "globex")
	mia := p.user("mia@acme.test")
	eng := p.group("eng", mia)
	for name, key := range map[string]string{"none": "", "a user's": c.Key("alice@acme.test"),
		"a pipeline's": c.OrgKey("acme", snap.PipelineKey), "altered": p.key[:len(p.key)-1] + "!"} {
		wrong := &provisioner{t, p.url, key}
		for _, path := range []string{"/Users", "/Users/" + mia, "/Groups/" + eng, "/Schemas", "/nonsense"} {
			a := wrong.do("GET", path, "", 401)
			if a["status"] != "401" ||
				!strings.Contains(fmt.Sprint(a["detail"]), "`snapcloud key create --org SLUG --kind scim`") {
				t.Errorf("%s: %v", name, a)
			}
		}
	}
	if _, err := c.Client(p.key).Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("a SCIM key calls the API: %v", err)
	}
	for _, request := range [][3]string{{"GET", "/Users/" + mia, ""}, {"DELETE", "/Users/" + mia, ""},
		{"PATCH", "/Users/" + mia, patched(`{"op": "replace", "path": "active", "value": false}`)},
		{"PUT", "/Users/" + mia, `{"userName": "x"}`}, {"GET", "/Groups/" + eng, ""}, {"DELETE", "/Groups/" + eng, ""},
		{"PATCH", "/Groups/" + eng, patched(`{"op": "remove", "path": "members"}`)},
		{"PUT", "/Groups/" + eng, `{"displayName": "x"}`}} {
		hidden := other.do(request[0], request[1], request[2], 404)
		absent := other.do(request[0], request[1][:8]+"AAAAAAAAAAAAAAAA", request[2], 404)
		if fmt.Sprint(hidden) != fmt.Sprint(absent) {
			t.Errorf("%v differs from an ID that does not exist: %v, %v", request, hidden, absent)
		}
	}
	if ids := other.find("Users", `userName eq "mia@acme.test"`); len(ids) != 0 {
		t.Errorf("another organization finds %v", ids)
	}
	theirs := other.group("eng")
	a := other.do("PATCH", "/Groups/"+theirs, patched(`{"op": "add", `+
		`"path": "members", "value": [{"value": "`+mia+`"}]}`), 400)
	if a["scimType"] != "invalidValue" {
		t.Errorf("a member of another organization: %v", a)
	}
	for _, bad := range []struct{ method, path, body, kind string }{
		{"GET", "/Users?filter=" + url.QueryEscape(`userName co "m"`), "", "invalidFilter"},
		{"GET", "/Users?filter=" + url.QueryEscape(`active eq true`), "", "invalidFilter"},
		{"GET", "/Groups?filter=" + url.QueryEscape(`displayName eq "x" or id eq "y"`), "", "invalidFilter"},
		{"GET", "/Groups?filter=" + url.QueryEscape(`members eq "x" and members eq "y"`), "", "invalidFilter"},
		{"POST", "/Users", `{"displayName": "no name"}`, "invalidValue"},
		{"POST", "/Users", `{"userName": "` + strings.Repeat("x", 600) + `"}`, "invalidValue"},
		{"POST", "/Users", `nonsense`, "invalidSyntax"},
		{"POST", "/Groups", `{"displayName": "x", "members": [{"value": "nobody"}]}`, "invalidValue"},
		{"PATCH", "/Users/" + mia, patched(`{"op": "move", "path": "active"}`), "invalidSyntax"},
		{"PATCH", "/Users/" + mia, patched(`{"op": "remove"}`), "noTarget"},
		{"PATCH", "/Users/" + mia, patched(`{"op": "remove", "path": "userName"}`), "invalidValue"},
		{"PATCH", "/Users/" + mia, patched(`{"op": "replace", "path": "active", "value": "perhaps"}`), "invalidValue"},
		{"PATCH", "/Users/" + mia, patched(``), "invalidSyntax"},
		{"PATCH", "/Groups/" + eng, patched(`{"op": "remove", "path": "members[value eq \"x\""}`), "invalidPath"},
		{"PATCH", "/Groups/" + eng, patched(`{"op": "add", ` +
			`"path": "members[value eq \"x\"]", "value": 1}`), "invalidPath"},
		{"PATCH", "/Groups/" + eng, patched(`{"op": "add", "path": "members", "value": [` +
			strings.TrimSuffix(strings.Repeat(`{"value":"x"},`, 20_001), ",") + `]}`), "tooMany"},
	} {
		if a := p.do(bad.method, bad.path, bad.body, 400); a["scimType"] != bad.kind || a["status"] != "400" ||
			a["detail"] == "" {
			t.Errorf("%s %s %.80s: %v", bad.method, bad.path, bad.body, a)
		}
	}
	p.do("POST", "/Users", `{"userName": "`+strings.Repeat("x", 1<<20)+`"}`, 413)
	p.do("POST", "/Users", `{"userName": "twin", "externalId": "mia@acme.test"}`, 409)
	p.do("POST", "/Groups", `{"displayName": "another", "externalId": "eng"}`, 409)
	if got := p.members(eng); !slices.Equal(got, []string{mia}) {
		t.Errorf("a refused request changed the group: %v", got)
	}
	must(t, c.Store.CloseAllBut(t.Context(), []string{"globex"}))
	p.do("GET", "/Users", "", 401)
}

// An organization has one SCIM key; the previous one works for another day.
func TestSCIMKeysRotate(t *testing.T) {
	t.Parallel()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	first, second := provision(t, c, "acme"), provision(t, c, "acme")
	first.do("GET", "/Users", "", 200)
	clock.Advance(24 * time.Hour)
	first.do("GET", "/Users", "", 401)
	second.do("GET", "/Users", "", 200)
}

// Tests the documents that describe the service, and the pages of a listing.
func TestSCIMDocumentsAndPages(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	p := provision(t, c, "acme")
	if a := p.do("GET", "/ServiceProviderConfig", "", 200); a["patch"].(map[string]any)["supported"] != true ||
		a["bulk"].(map[string]any)["supported"] != false {
		t.Errorf("%v", a)
	}
	for _, kind := range []string{"ResourceTypes", "Schemas"} {
		for _, r := range p.do("GET", "/"+kind, "", 200)["Resources"].([]any) {
			p.do("GET", "/"+kind+"/"+r.(map[string]any)["id"].(string), "", 200)
		}
		p.do("GET", "/"+kind+"/none", "", 404)
	}
	var want, got []string
	for i := range 7 {
		want = append(want, p.user(fmt.Sprintf("user-%d", i)))
	}
	for start := 1; start <= 7; start += 3 {
		a := p.do("GET", fmt.Sprintf("/Users?startIndex=%d&count=3", start), "", 200)
		if a["totalResults"] != 7.0 || a["startIndex"] != float64(start) {
			t.Errorf("page from %d: %v", start, a)
		}
		for _, r := range a["Resources"].([]any) {
			got = append(got, r.(map[string]any)["id"].(string))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages have %v", got)
	}
	if a := p.do("GET", "/Users?count=0", "", 200); a["totalResults"] != 7.0 || a["itemsPerPage"] != 0.0 {
		t.Errorf("a page of none: %v", a)
	}
	if bytes.Contains([]byte(fmt.Sprint(p.do("GET", "/Users/nobody", "", 404))), []byte("snap.")) {
		t.Error("an error shows what is internal")
	}
}
