package auth_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// gate is an authenticator over a store with one organization, acme, and its
// member mia.
type gate struct {
	*auth.Authenticator
	t     *testing.T
	store *store.Store
	dir   string
	org   snap.OrgRef
	mia   int64
	clock *clocktest.Clock
}

// migrated copies an empty database with the newest schema into a folder.
var migrated = servertest.Template(func(dir string) error {
	s, err := store.Open(context.Background(), store.Options{DataDir: dir})
	if err != nil {
		return err
	}
	return s.Close()
})

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, dir: t.TempDir(), clock: clocktest.New(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))}
	migrated(t, g.dir)
	s, err := store.Open(t.Context(), store.Options{DataDir: g.dir, Now: g.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	g.store = s
	if g.org, err = s.ApplyOrg(t.Context(), "acme", "Acme", snap.Policy{}); err != nil {
		t.Fatal(err)
	}
	g.mia = g.user("mia", snap.RoleMember)
	g.Authenticator = auth.New(s, auth.Options{Issuer: "https://cloud.test/auth", PublicURL: "https://cloud.test",
		Now: g.clock.Now})
	return g
}

func (g *gate) user(name string, role snap.Role) int64 {
	g.t.Helper()
	id, err := g.store.ApplySignIn(g.t.Context(), store.SignIn{
		OrgID: g.org.ID, Issuer: "local", Subject: name, Email: name + "@acme.test", Name: name, Role: role,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

func (g *gate) key(k auth.KeySpec) (string, store.Key) {
	g.t.Helper()
	k.OrgID = g.org.ID
	if k.Name == "" {
		k.Name = "test"
	}
	secret, key, err := g.NewKey(g.t.Context(), k)
	if err != nil {
		g.t.Fatal(err)
	}
	return secret, key
}

func request(method, target string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func withKey(secret string) *http.Request {
	return request(http.MethodGet, "/api/v1/agents/me", "Authorization", "Bearer "+secret)
}

// SPEC 5.1: each kind of key acts as the user or organization that it names, from either header.
func TestKeysAndTheirCallers(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	cak, _ := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia})
	clt, _ := g.key(auth.KeySpec{Kind: snap.PipelineKey, Scopes: []snap.Scope{snap.ScopePull}})
	sak, _ := g.key(auth.KeySpec{Kind: snap.AgentKey})
	for _, r := range []*http.Request{withKey(cak), request(http.MethodGet, "/", "X-API-Key", cak)} {
		c, err := g.Agent(r)
		if err != nil || c.User == nil || c.User.ID != g.mia || c.Role != snap.RoleMember ||
			c.Credential.Kind != snap.UserKey {
			t.Errorf("cak: %+v, %v", c, err)
		}
	}
	c, err := g.Agent(withKey(clt))
	if err != nil || c.User != nil || c.Org.Slug != "acme" || fmt.Sprint(c.Credential.Scopes) != "[pull]" {
		t.Errorf("clt: %+v, %v", c, err)
	}
	if c, err = g.Agent(withKey(sak)); err != nil || fmt.Sprint(c.Credential.Scopes) != "[pull push]" {
		t.Errorf("sak: %+v, %v", c, err)
	}
	if _, err := g.User(withKey(cak)); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("a key on the user mount: %v", err)
	}
}

// K3, K5: expired, revoked, unknown and malformed keys, and those of disabled users, all get
// exactly the same error; expiry and revocation take effect immediately.
func TestBadKeysAreAllTheSame(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	expiring, _ := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia, Expires: g.clock.Now().Add(time.Hour)})
	revoked, key := g.key(auth.KeySpec{Kind: snap.PipelineKey})
	gone := g.user("gone", snap.RoleMember)
	disabled, _ := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: gone})
	for _, good := range []string{expiring, revoked, disabled} {
		if _, err := g.Agent(withKey(good)); err != nil {
			t.Fatal(err)
		}
	}
	g.clock.Advance(time.Hour)
	if err := g.store.RevokeOrgKey(t.Context(), g.org.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	if err := g.store.SetDisabled(t.Context(), gone, true); err != nil {
		t.Fatal(err)
	}
	other := newGate(t)
	unknown, _ := other.key(auth.KeySpec{Kind: snap.PipelineKey})
	for name, bad := range map[string]string{
		"expired": expiring, "revoked": revoked, "disabled user": disabled, "unknown": unknown,
		"malformed": "cak_nonsense", "typo": revoked[:10] + "x" + revoked[11:], "empty": "",
	} {
		if _, err := g.Agent(withKey(bad)); err != error(snap.ErrUnauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// K3: the last use is recorded, at most once a minute; creator and name are stored.
func TestKeyRecord(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	secret, _ := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia, Name: "ci", CreatedBy: g.mia})
	lastUsed := func() time.Time {
		keys, err := g.store.OrgKeys(t.Context(), g.org.ID, 0)
		if err != nil || len(keys) != 1 || keys[0].Name != "ci" || keys[0].CreatedBy != "mia@acme.test" ||
			keys[0].User != "mia@acme.test" {
			t.Fatalf("keys %+v, %v", keys, err)
		}
		return keys[0].LastUsed
	}
	if !lastUsed().IsZero() {
		t.Error("a new key has a time of last use")
	}
	start := g.clock.Now()
	for _, step := range []struct {
		move time.Duration
		want time.Duration
	}{{0, 0}, {30 * time.Second, 0}, {29 * time.Second, 0}, {time.Second, time.Minute},
		{59 * time.Second, time.Minute}} {
		g.clock.Advance(step.move)
		if _, err := g.Agent(withKey(secret)); err != nil {
			t.Fatal(err)
		}
		if got := lastUsed().Sub(start); got != step.want {
			t.Errorf("after %v: last used %v, want %v", g.clock.Now().Sub(start), got, step.want)
		}
	}
}

// K3: a user revokes their own keys, an admin any of the organization; keys of
// others are not found.
func TestWhoRevokesKeys(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, mias := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia})
	_, ci := g.key(auth.KeySpec{Kind: snap.PipelineKey})
	caller := func(id int64) snap.Caller {
		c, err := g.store.CallerOfUser(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	max, ada := caller(g.user("max", snap.RoleMember)), caller(g.user("ada", snap.RoleAdmin))
	for _, id := range []int64{mias.ID, ci.ID} {
		if err := g.store.RevokeKey(t.Context(), max, id); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("another member revokes: %v", err)
		}
	}
	if _, err := g.store.Keys(t.Context(), max, store.KeyQuery{All: true}); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a member lists all keys: %v", err)
	}
	if err := g.store.RevokeKey(t.Context(), caller(g.mia), mias.ID); err != nil {
		t.Errorf("mia revokes her key: %v", err)
	}
	if err := g.store.RevokeKey(t.Context(), ada, ci.ID); err != nil {
		t.Errorf("an admin revokes a key: %v", err)
	}
	if keys, err := g.store.Keys(t.Context(), ada, store.KeyQuery{All: true}); err != nil || len(keys) != 0 {
		t.Errorf("after all keys were revoked: %v, %v", keys, err)
	}
}

// K6: an address that sends too many wrong keys is rate-limited. A valid key from
// there still works.
func TestFailuresAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	good, _ := g.key(auth.KeySpec{Kind: snap.PipelineKey})
	var last error
	for range 100 {
		_, last = g.Agent(withKey("cak_wrong"))
	}
	if snap.CodeOf(last) != snap.CodeRateLimited {
		t.Errorf("the hundredth wrong key: %v", last)
	}
	if _, err := g.Agent(withKey(good)); err != nil {
		t.Errorf("a good key: %v", err)
	}
	elsewhere := withKey("cak_wrong")
	elsewhere.RemoteAddr = "198.51.100.7:4711"
	if _, err := g.Agent(elsewhere); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("another address: %v", err)
	}
	g.clock.Advance(time.Minute)
	if _, err := g.Agent(withKey("cak_wrong")); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("a minute later: %v", err)
	}
}

// K7: a key in the URL is refused, even with a good header.
func TestKeyInURLIsRefused(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	good, _ := g.key(auth.KeySpec{Kind: snap.PipelineKey})
	for _, r := range []*http.Request{
		request(http.MethodGet, "/snapshots?api_key="+good),
		request(http.MethodGet, "/snapshots?access_token="+good),
		request(http.MethodGet, "/snapshots?api_key="+good, "Authorization", "Bearer "+good),
	} {
		if _, err := g.Agent(r); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("%s with %v: %v", r.URL, r.Header, err)
		}
		if _, err := g.User(r); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("%s with %v on the user mount: %v", r.URL, r.Header, err)
		}
	}
}

// K2: the database holds no key, only its hash and hint.
func TestNoKeyInTheDatabase(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	secret, _ := g.key(auth.KeySpec{Kind: snap.PipelineKey})
	if found := inFiles(t, g.dir, secret[8:38]); found != "" {
		t.Errorf("the key is in %s", found)
	}
	if found := inFiles(t, g.dir, secret[:8]); found == "" {
		t.Error("the hint is not in the database, so the search above proves nothing")
	}
}

func inFiles(t *testing.T, dir, text string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return file
		}
	}
	return ""
}

// NewKey refuses invalid settings and contradictory ones.
func TestKeySpecs(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for name, k := range map[string]auth.KeySpec{
		"no name":             {Kind: snap.PipelineKey, Name: " "},
		"name too long":       {Kind: snap.PipelineKey, Name: strings.Repeat("é", 101)},
		"not a key kind":      {Kind: snap.Browser, Name: "n"},
		"user key, no user":   {Kind: snap.UserKey, Name: "n"},
		"org key of a user":   {Kind: snap.PipelineKey, Name: "n", UserID: g.mia},
		"user key with scope": {Kind: snap.UserKey, Name: "n", UserID: g.mia, Scopes: []snap.Scope{snap.ScopePull}},
		"unknown scope":       {Kind: snap.PipelineKey, Name: "n", Scopes: []snap.Scope{"delete"}},
		"expired":             {Kind: snap.PipelineKey, Name: "n", Expires: g.clock.Now()},
	} {
		k.OrgID = g.org.ID
		if _, _, err := g.NewKey(t.Context(), k); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	g.key(auth.KeySpec{Kind: snap.PipelineKey, Name: strings.Repeat("é", 100)})
}

// A credential on the wrong mount gets an error that says so, even if it is not valid.
func TestCredentialOnTheWrongMount(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	if _, err := g.Agent(withKey("eyJhbGciOiJFUzI1NiJ9.e30.c2ln")); snap.CodeOf(err) != snap.CodeUnauthenticated ||
		!strings.Contains(err.Error(), "access token") {
		t.Errorf("a token on the agent mount: %v", err)
	}
	bearer := httptest.NewRequest(http.MethodGet, "/", nil)
	bearer.Header.Set("Authorization", "Bearer clt_1")
	header := httptest.NewRequest(http.MethodGet, "/", nil)
	header.Header.Set("X-API-Key", "cak_1")
	for _, r := range []*http.Request{bearer, header} {
		if _, err := g.User(r); snap.CodeOf(err) != snap.CodeUnauthenticated ||
			!strings.Contains(err.Error(), "API key") {
			t.Errorf("a key on the user mount: %v", err)
		}
	}
}
