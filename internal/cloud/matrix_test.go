package cloud_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// scene is one snapshot of acme, pushed by mia, shared with the group dba and
// with globex, and hidden from everyone else.
type scene struct {
	*cloudtest.Cloud
	id string
}

func newScene(t testing.TB, c *cloudtest.Cloud) scene {
	t.Helper()
	ctx := context.Background()
	sn := c.Push(c.As("mia@acme.test"), "shop", []byte("the bytes of a snapshot "+t.Name()+snap.NewSnapshotID()))
	if _, err := c.As("mia@acme.test").ShareGroup(ctx, sn.ID, "dba"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.As("alice@acme.test").ShareOrg(ctx, sn.ID, "globex", nil); err != nil {
		t.Fatal(err)
	}
	return scene{c, sn.ID}
}

// scenes tries requests. After a request that changed the scene, the next request gets a new
// one.
type scenes struct {
	t   *testing.T
	now scene
}

func newScenes(t *testing.T, c *cloudtest.Cloud) *scenes {
	t.Helper()
	return &scenes{t, newScene(t, c)}
}

// try returns the result of a request.
func (s *scenes) try(mount, pattern, body, credential string) string {
	s.t.Helper()
	got := try(s.t, s.now, mount, pattern, body, credential)
	if !strings.HasPrefix(pattern, "GET ") && strings.HasPrefix(got, "2") {
		s.now = newScene(s.t, s.now.Cloud)
	}
	return got
}

// callers are the columns of the matrix: each caller with a kind of credential.
var callers = []string{
	"anonymous", "owner", "admin", "pusher", "group member", "member", "viewer",
	"recipient member", "recipient owner", "outsider", "plain key", "pipeline key", "agent key", "pull-only key",
	"revoked key",
	"expired key",
}

// emails are the people among them.
var emails = map[string]string{
	"owner": "alice@acme.test", "admin": "adam@acme.test", "pusher": "mia@acme.test", "group member": "gus@acme.test",
	"member": "max@acme.test", "viewer": "vic@acme.test", "recipient member": "gary@globex.test",
	"recipient owner": "gail@globex.test", "outsider": "ian@initech.test",
}

func credential(t testing.TB, c *cloudtest.Cloud, caller string) string {
	t.Helper()
	switch caller {
	case "anonymous":
		return ""
	case "pipeline key":
		return c.OrgKey("acme", snap.PipelineKey, snap.Scopes()...)
	case "agent key":
		return c.OrgKey("acme", snap.AgentKey, snap.Scopes()...)
	case "pull-only key":
		return c.OrgKey("acme", snap.PipelineKey, snap.ScopePull, snap.ScopePrivate)
	case "plain key":
		return c.OrgKey("acme", snap.PipelineKey, snap.ScopePull, snap.ScopePush)
	case "revoked key":
		return c.RevokedKey("acme")
	case "expired key":
		return c.ExpiredKey("acme")
	}
	return c.Key(emails[caller])
}

// Short names of the results that a cell expects: a status, and for refusals the code.
const (
	ok       = "200"
	done     = "204"
	who      = "401 unauthenticated"
	hidden   = "404 not_found"
	no       = "403 forbidden"
	bad      = "400 invalid"
	nameless = "403 user_attribution_required"
)

// cells writes a row for the callers that may see the snapshot; the anonymous,
// the revoked and those from whom it is hidden are the same in every row.
func cells(owner, admin, pusher, group, recipient, recipientOwner, pipeline, agent, pullOnly string) map[string]string {
	return map[string]string{
		"anonymous": who, "revoked key": who, "expired key": who, "member": hidden, "viewer": hidden,
		"outsider": hidden, "plain key": hidden,
		"owner": owner, "admin": admin, "pusher": pusher, "group member": group,
		"recipient member": recipient, "recipient owner": recipientOwner,
		"pipeline key": pipeline, "agent key": agent, "pull-only key": pullOnly,
	}
}

// everyone is a row in which all callers get want, except that the anonymous, the revoked and the
// expired are refused.
func everyone(want string) map[string]string {
	row := map[string]string{}
	for _, c := range callers {
		row[c] = want
	}
	row["anonymous"], row["revoked key"], row["expired key"] = who, who, who
	return row
}

func with(row map[string]string, changes ...string) map[string]string {
	for i := 0; i < len(changes); i += 2 {
		row[changes[i]] = changes[i+1]
	}
	return row
}

// admins is a row for owners and admins of any organization.
var admins = with(everyone(no), "owner", ok, "admin", ok, "recipient owner", ok, "outsider", ok)

// absent is a row of owners' and admins' requests for something that does not exist.
var absent = with(everyone(no), "owner", hidden, "admin", hidden, "recipient owner", hidden, "outsider", hidden)

// incomplete is a row of owners' and admins' requests that leave out a required field.
var incomplete = with(everyone(no), "owner", bad, "admin", bad, "recipient owner", bad, "outsider", bad)

// sharing is a row of a route that changes shares: keys that name no user are
// refused before anything is looked up.
func sharing(row map[string]string) map[string]string { return with(row, "plain key", nameless) }

const pushBody = `{"target":"shop","name":"shop-x","type":"snapshot","engine":"sqlite","size":3,` +
	`"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}`

// matrix is SPEC 4.1, 4.2, 5.1, 5.3, 7 and the design's table of rights, as statuses: route ×
// caller. TestOwnKeysAndSessions tests routes that exist only below the user mount.
var matrix = map[string]struct {
	body string
	row  map[string]string
}{
	"GET /snapshots":            {"", everyone(ok)},
	"GET /snapshots/count":      {"", everyone(ok)},
	"GET /snapshots/{id}":       {"", cells(ok, ok, ok, ok, ok, ok, ok, ok, ok)},
	"DELETE /snapshots/{id}":    {"", cells(done, done, no, no, no, no, nameless, nameless, nameless)},
	"POST /snapshots/{id}/pull": {"", cells(ok, ok, ok, ok, ok, ok, ok, ok, ok)},
	"POST /snapshots/{id}/pull-delta": {`{"have":["snap_7h2k9m4p6r8t0v2w"]}`,
		cells(ok, ok, ok, ok, ok, ok, ok, ok, ok)},
	"POST /snapshots/{id}/delta":  {`{"base":"snap_7h2k9m4p6r8t0v2w","size":9}`, with(everyone(hidden))},
	"GET /snapshots/{id}/card":    {"", cells(ok, ok, ok, ok, ok, ok, ok, ok, ok)},
	"GET /snapshots/{id}/changes": {"", cells(ok, ok, ok, ok, ok, ok, ok, ok, ok)},
	"POST /snapshots/{id}/card":   {`{"card":{"tables":[]}}`, cells(ok, ok, ok, no, no, no, nameless, nameless, no)},
	"DELETE /snapshots/{id}/card": {"", cells(done, done, done, no, no, no, nameless, nameless, no)},
	"GET /snapshots/{id}/pulls":   {"", cells(ok, ok, ok, no, no, no, no, no, no)},
	"POST /snapshots/{id}/about": {`{"description":"d","labels":[]}`,
		cells(ok, ok, ok, no, no, no, nameless, nameless, nameless)},
	"POST /snapshots/{id}/pulled":     {`{"bytes":1}`, cells(done, done, done, done, done, done, done, done, done)},
	"GET /snapshots/{id}/access":      {"", cells(ok, ok, ok, no, no, no, no, no, no)},
	"GET /snapshots/{id}/why":         {"", cells(ok, ok, ok, ok, ok, ok, ok, ok, ok)},
	"GET /snapshots/{id}/newcomers":   {"", cells(ok, ok, ok, no, no, no, nameless, nameless, nameless)},
	"DELETE /snapshots/{id}/received": {"", cells(no, no, no, no, no, done, nameless, nameless, nameless)},
	"GET /channels":                   {"", admins}, "GET /retention": {"", admins}, "GET /webhooks": {"", admins},
	"POST /channels":        {`{"target":"elsewhere"}`, admins},
	"POST /retention":       {`{"target":"elsewhere","keep_last":3}`, admins},
	"POST /retention/run":   {`{"dry_run":true}`, admins},
	"POST /webhooks":        {`{"url":"https://hooks.example/x"}`, admins},
	"DELETE /channels/{id}": {"", absent}, "DELETE /webhooks/{id}": {"", absent},
	"DELETE /retention/{target}":    {"", absent},
	"GET /webhooks/{id}/deliveries": {"", absent},
	"POST /webhooks/{id}/enable":    {"", absent},
	"POST /webhooks/{id}/test":      {"", absent},
	"POST /webhooks/{id}/rotate":    {`{}`, absent},
	"POST /webhooks/{id}/replay":    {`{"since":"2026-01-01T00:00:00Z"}`, absent},
	"GET /audit":                    {"", admins},
	"GET /audit/checkpoint":         {"", admins},
	"GET /audit/records":            {"", admins},
	"GET /audit/inclusion":          {"", incomplete},
	"GET /audit/growth":             {"", incomplete},
	"GET /snapshots/{id}/receipt":   {"", cells(bad, bad, bad, bad, ok, ok, bad, bad, bad)},
	"GET /audit/access":             {"", incomplete},
	"POST /snapshots":               {pushBody, with(everyone(ok), "viewer", no, "pull-only key", no)},
	"POST /snapshots/{id}/parts":    {`{"parts":[]}`, with(everyone(hidden))},
	"POST /snapshots/{id}/complete": {"", cells(ok, ok, ok, ok, ok, ok, ok, ok, no)},
	"POST /snapshots/{id}/share":    {"", sharing(cells(ok, ok, ok, no, no, no, nameless, nameless, nameless))},
	"DELETE /snapshots/{id}/share": {"",
		sharing(cells(done, done, done, no, no, no, nameless, nameless, nameless))},
	"POST /snapshots/{id}/share-group": {`{"group_id":"eng"}`,
		sharing(cells(ok, ok, ok, no, no, no, nameless, nameless, nameless))},
	"DELETE /snapshots/{id}/share-group/{groupId}": {"",
		sharing(cells(done, done, done, no, no, no, nameless, nameless, nameless))},
	"GET /snapshots/{id}/group-shares": {"", cells(ok, ok, ok, ok, no, no, ok, ok, ok)},
	"POST /snapshots/{id}/shares": {`{"group_ids":["dba"]}`,
		sharing(cells(ok, ok, ok, no, no, no, nameless, nameless, nameless))},
	"POST /snapshots/{id}/unshare": {`{"group_ids":["dba"]}`,
		sharing(cells(ok, ok, ok, no, no, no, nameless, nameless, nameless))},
	"POST /snapshots/{id}/share-org": {`{"org_slug":"initech"}`,
		sharing(cells(ok, ok, no, no, no, no, nameless, nameless, nameless))},
	"DELETE /snapshots/{id}/share-org/{slug}": {"",
		sharing(cells(done, done, no, no, no, no, nameless, nameless, nameless))},
	"GET /snapshots/{id}/org-shares": {"", cells(ok, ok, no, no, no, no, nameless, nameless, nameless)},
	"POST /bulk":                     {`{"ids":["x"],"delete":true}`, everyone(ok)},
	"POST /access-requests": {`{"snapshot":"snap_0000000000000000"}`, with(everyone(done), "plain key", nameless,
		"pipeline key", nameless, "agent key", nameless, "pull-only key", nameless)},
	"GET /access-requests":              {"", everyone(ok)},
	"DELETE /access-requests/{id}":      {"", everyone(hidden)},
	"POST /access-requests/{id}/refuse": {"", everyone(hidden)},
	"GET /org/sso/groups":               {"", everyone(ok)},
	"GET /org/members":                  {"", everyone(ok)},
	"GET /org/certificate-keys":         {"", everyone(ok)},
	"POST /org/certificate-keys":        {`{"public":"no key"}`, incomplete},
	"DELETE /org/certificate-keys/{id}": {"", absent},
	"GET /me":                           {"", everyone(ok)},
	"GET /org/people":                   {"", admins}, "GET /org/shares": {"", admins},
	"GET /org/storage":               {"", admins},
	"GET /org/overview":              {"", admins},
	"POST /org/people/{id}/sign-out": {"", absent},
	"GET /uploads":                   {"", with(everyone(ok), "viewer", no, "pull-only key", no)},
	"DELETE /uploads/{id}":           {"", everyone(hidden)},
}

// onlyUsers are the routes that the agent mount does not have.
var onlyUsers = []string{"GET /keys", "POST /keys", "DELETE /keys/{id}", "GET /sessions", "DELETE /sessions/{id}"}

// Every route gives every caller the right answer on the agent mount, with API keys.
func TestEveryRouteForEveryCaller(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{Clock: clocktest.New(time.Now()), Config: behindProxy})
	c.ExpiredKey("acme")
	scenes := newScenes(t, c)
	for _, pattern := range c.Service.Routes() {
		if slices.Contains(onlyUsers, pattern) {
			continue
		}
		row, known := matrix[pattern]
		if !known {
			t.Errorf("route %s has no row in the matrix", pattern)
			continue
		}
		for _, caller := range callers {
			want, known := row.row[caller]
			if !known {
				t.Errorf("%s: no cell for %s", pattern, caller)
				continue
			}
			got := scenes.try(api.MountAgent, pattern, row.body, credential(t, c, caller))
			if got != want {
				t.Errorf("%s as %s: got %s, want %s", pattern, caller, got, want)
			}
		}
	}
}

// The same routes on the user mount, by access tokens: the same people get the same responses, and
// API keys are refused (DESIGN 3).
func TestEveryRouteOnTheUserMount(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{Clock: clocktest.New(time.Now()), Config: behindProxy})
	c.ExpiredKey("acme")
	scenes := newScenes(t, c)
	for pattern, row := range matrix {
		for caller, want := range row.row {
			token := ""
			switch email := emails[caller]; {
			case email != "":
				token = c.Token(email)
			case caller != "anonymous":
				token, want = credential(t, c, caller), who
			}
			if got := scenes.try(api.MountUser, pattern, row.body, token); got != want {
				t.Errorf("%s as %s: got %s, want %s", pattern, caller, got, want)
			}
		}
	}
}

// Only people who are signed in manage keys and sessions, each their own. Only owners and admins
// make keys that act as the organization.
func TestOwnKeysAndSessions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, gus, alice := c.SignedIn("mia@acme.test"), c.SignedIn("gus@acme.test"), c.SignedIn("alice@acme.test")
	key, err := mia.NewKey(ctx, api.KeyRequest{Kind: snap.UserKey, Name: "laptop"})
	must(t, err)
	if me, err := c.Client(key.Secret).Me(ctx); err != nil || me.Email != "mia@acme.test" ||
		me.Credential.Name != "laptop" {
		t.Errorf("the new key is %+v, %v", me, err)
	}
	if err := gus.RevokeKey(ctx, key.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("another's key: %v", err)
	}
	if _, err := mia.NewKey(ctx, api.KeyRequest{Kind: snap.PipelineKey, Name: "ci",
		Scopes: []snap.Scope{snap.ScopePull}}); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a member makes an organization-level key: %v", err)
	}
	for name, r := range map[string]api.KeyRequest{
		"no scopes":     {Kind: snap.PipelineKey, Name: "ci"},
		"unknown scope": {Kind: snap.AgentKey, Name: "ci", Scopes: []snap.Scope{"admin"}},
		"user's scopes": {Kind: snap.UserKey, Name: "x", Scopes: []snap.Scope{snap.ScopePull}},
		"no name":       {Kind: snap.UserKey},
	} {
		if _, err := alice.NewKey(ctx, r); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = alice.NewKey(ctx, api.KeyRequest{Kind: snap.PipelineKey, Name: "ci", Scopes: []snap.Scope{snap.ScopePull}})
	must(t, err)
	must(t, mia.RevokeKey(ctx, key.ID))
	if _, err := c.Client(key.Secret).Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("a revoked key: %v", err)
	}
	sessions, err := mia.Sessions(ctx)
	must(t, err)
	for _, s := range sessions {
		if err := gus.EndSession(ctx, s.ID); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("another's session: %v", err)
		}
		if s.Current {
			must(t, mia.EndSession(ctx, s.ID))
		}
	}
	if _, err := mia.Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("an ended session: %v", err)
	}
}

// try sends one request on a mount and returns its status, with the code when
// it was refused.
func try(t *testing.T, s scene, mount, pattern, body, credential string) string {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.NewReplacer("{id}", s.id, "{groupId}", "dba", "{slug}", "globex").Replace(path)
	res, data := send(t, method, s.URL+mount+path, body, credential)
	if res.StatusCode >= 400 {
		return fmt.Sprint(res.StatusCode, " ", problemIn(t, res, data).Code)
	}
	return fmt.Sprint(res.StatusCode)
}

// behindProxy lets every request come from an address of its own, so that the
// limit on failed authentication (AUTH K6) does not count them together.
func behindProxy(c *cloud.Config) { c.TrustProxies = []string{"127.0.0.0/8"} }

var requests atomic.Int64

// send sends one request. All carry the same X-Request-Id, so that responses can
// be compared byte for byte.
func send(t *testing.T, method, url, body, credential string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", "test")
	n := requests.Add(1)
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", n>>8&255, n&255))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, data
}
