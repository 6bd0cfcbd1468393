package cloud_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// remover is an identity provider that ends people's access, by SCIM and by back-channel logout, at
// three replicas of the service over PostgreSQL.
type remover struct {
	*cloudtest.Cloud
	t        *testing.T
	issuer   string
	key      *ecdsa.PrivateKey
	replicas []string // URLs
	scim     []*provisioner
	org      store.Org
	owner    *api.Client
	sn       snap.Snapshot
	sent     chan time.Time // when the second and third replica stopped sending bytes
}

func newRemover(t *testing.T, content []byte) *remover {
	t.Helper()
	m := &remover{t: t, sent: make(chan time.Time, 1000)}
	m.serveProvider()
	database, dir := cloudtest.Postgres(t), t.TempDir()
	configure := func(c *cloud.Config) {
		o := &c.Organizations[0]
		o.Users, o.SignIn = nil, cloud.SignIn{Type: "oidc", Issuer: m.issuer, ClientID: "snapcloud", ClientSecret: "x",
			AllowPrivate: true}
	}
	m.Cloud = cloudtest.Start(t, cloudtest.Options{DatabaseURL: database, DataDir: dir, Config: configure})
	m.replicas = []string{m.URL}
	for range 2 {
		s, err := cloud.New(t.Context(), m.Config, cloud.Options{Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/blobs/") && r.Header.Get("Range") == "" {
				defer func() { m.sent <- time.Now() }()
			}
			s.Handler().ServeHTTP(w, r)
		}))
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
			s.Close()
		})
		m.replicas = append(m.replicas, server.URL)
	}
	var err error
	m.org, err = m.Store.OrgBySlug(t.Context(), "acme")
	must(t, err)
	secret := scimKey(t, m.Cloud, "acme")
	for _, u := range m.replicas {
		m.scim = append(m.scim, &provisioner{t, u + "/scim/v2", secret})
	}
	m.owner = m.Client(m.keyOf(m.account("owner", snap.RoleOwner)))
	m.sn.ID = m.Push(m.owner, "shop", content).ID
	return m
}

// serveProvider serves the parts of a provider that the service needs to verify a logout token.
func (m *remover) serveProvider() {
	var err error
	m.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(m.t, err)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	m.t.Cleanup(server.Close)
	m.issuer = server.URL
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"issuer": m.issuer, "authorization_endpoint": m.issuer + "/a",
			"token_endpoint": m.issuer + "/t", "jwks_uri": m.issuer + "/jwks",
			"id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: m.key.Public(), KeyID: "k",
			Algorithm: "ES256", Use: "sig"}}})
	})
}

// account returns the account of a subject, as after a sign-in.
func (m *remover) account(subject string, role snap.Role) int64 {
	m.t.Helper()
	ctx := context.Background()
	id, err := m.Store.ApplySignIn(ctx, store.SignIn{OrgID: m.org.ID, Issuer: m.issuer, Subject: subject,
		Email: subject + "@acme.test", Role: role})
	must(m.t, err)
	must(m.t, m.Store.RecordSignIn(ctx, store.InteractiveSignIn{UserID: id}))
	return id
}

func (m *remover) keyOf(user int64) string {
	m.t.Helper()
	secret, _, err := m.Service.Auth().NewKey(context.Background(),
		auth.KeySpec{OrgID: m.org.ID, UserID: user, Kind: snap.UserKey, Name: "key"})
	must(m.t, err)
	return secret
}

// logout signs a subject out at a replica.
func (m *remover) logout(subject, replica string) {
	m.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: m.key, KeyID: "k"}},
		nil)
	must(m.t, err)
	now := time.Now()
	token, err := jwt.Signed(signer).Claims(map[string]any{"iss": m.issuer, "aud": "snapcloud", "iat": now.Unix(),
		"exp": now.Add(time.Minute).Unix(), "jti": rand.Text(), "sub": subject,
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}).Serialize()
	must(m.t, err)
	res, err := http.PostForm(replica+"/auth/upstream/logout", url.Values{"logout_token": {token}})
	must(m.t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		m.t.Errorf("logout: status %d", res.StatusCode)
	}
}

// leaver is a person with everything that lets them see a snapshot.
type leaver struct {
	m              *remover
	subject, scim  string // scim is the ID of the reported person
	cookie, key    string
	link, userLink string // by the key, and by the session
}

func (m *remover) newLeaver(subject string) *leaver {
	m.t.Helper()
	return &leaver{m: m, subject: subject, scim: m.scim[0].user(subject)}
}

// arrive signs the person in, and gives them a key and links.
func (l *leaver) arrive() {
	m := l.m
	m.t.Helper()
	ctx := context.Background()
	m.scim[0].do("PATCH", "/Users/"+l.scim, patched(`{"op": "replace", "path": "active", "value": true}`), 200)
	user := m.account(l.subject, snap.RoleAdmin)
	l.cookie, l.key = rand.Text(), m.keyOf(user)
	sum, end := sha256.Sum256([]byte(l.cookie)), time.Now().Add(time.Hour)
	_, err := m.Store.AddBrowserSession(ctx, store.Session{UserID: user, Kind: snap.Browser, Name: "b", Idle: end,
		Expires: end}, sum[:])
	must(m.t, err)
	byKey, err := m.Client(l.key).Pull(ctx, m.sn.ID)
	must(m.t, err)
	l.link = byKey.URL
	res, text := l.send(m.URL, "POST", "/api/v1/snapshots/"+m.sn.ID+"/pull")
	var pull api.PullResponse
	must(m.t, json.Unmarshal(text, &pull))
	if l.userLink = pull.URL; res != http.StatusOK || pull.URL == "" {
		m.t.Fatalf("pull by the session: %d %s", res, text)
	}
}

// send sends a request with the session's cookie.
func (l *leaver) send(replica, method, path string) (status int, body []byte) {
	l.m.t.Helper()
	r, err := http.NewRequest(method, replica+path, nil)
	must(l.m.t, err)
	r.AddCookie(&http.Cookie{Name: "snap_session", Value: l.cookie})
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return l.answered(r)
}

func (l *leaver) answered(r *http.Request) (status int, body []byte) {
	l.m.t.Helper()
	res, err := http.DefaultClient.Do(r)
	must(l.m.t, err)
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	must(l.m.t, err)
	return res.StatusCode, body
}

// The ways in.
var doors = []string{"session", "session's link", "key", "key's link"}

// enter reports whether a way in is open at a replica.
func (l *leaver) enter(door, replica string) bool {
	l.m.t.Helper()
	path := func(link string) string {
		u, err := url.Parse(link)
		must(l.m.t, err)
		return replica + u.RequestURI()
	}
	var status int
	switch door {
	case "session":
		status, _ = l.send(replica, "GET", "/api/v1/snapshots/"+l.m.sn.ID)
	case "key":
		r, err := http.NewRequest("GET", replica+"/api/v1/agents/snapshots/"+l.m.sn.ID, nil)
		must(l.m.t, err)
		r.Header.Set("Authorization", "Bearer "+l.key)
		status, _ = l.answered(r)
	default:
		link := map[string]string{"session's link": l.userLink, "key's link": l.link}[door]
		r, err := http.NewRequest("GET", path(link), nil)
		must(l.m.t, err)
		r.Header.Set("Range", "bytes=0-0")
		status, _ = l.answered(r)
	}
	if !slices.Contains([]int{200, 206, 401, 404, 429}, status) {
		l.m.t.Errorf("%s: status %d", door, status)
	}
	return status < 300
}

// removals are the ways in which a provider ends access, each with the doors that it closes.
func (m *remover) removals() map[string]struct {
	end   func(l *leaver, replica int)
	doors []string
} {
	type removal = struct {
		end   func(l *leaver, replica int)
		doors []string
	}
	return map[string]removal{
		"scim": {func(l *leaver, replica int) {
			m.scim[replica].do("PATCH", "/Users/"+l.scim,
				patched(`{"op": "Replace", "path": "active", "value": "False"}`),
				200)
		}, doors},
		"logout": {func(l *leaver, replica int) { m.logout(l.subject, m.replicas[replica]) }, doors[:2]},
	}
}

// races is about how many removals TestSCIMRemovalIsImmediate makes.
func races() int {
	if n, err := strconv.Atoi(os.Getenv("SNAP_RACES")); err == nil {
		return n
	}
	return 20
}

// After a removal by SCIM or a back-channel logout was answered, no request that begins later, at
// any replica and through any door, is served. Requests race with each removal, and each history
// must be linearizable. SNAP_RACES sets [races].
func TestSCIMRemovalIsImmediate(t *testing.T) {
	t.Parallel()
	m := newRemover(t, []byte("the bytes of a snapshot"))
	var all sync.WaitGroup
	removals := m.removals()
	const people = 2
	for person := range people {
		random := mathrand.New(mathrand.NewPCG(11, uint64(person)))
		l := m.newLeaver(fmt.Sprintf("leaver-%d", person))
		all.Go(func() {
			for range races() / people {
				for _, name := range []string{"scim", "logout"} {
					if r := removals[name]; !t.Failed() && random.IntN(2) == 0 {
						l.race(name, r.doors, random, r.end)
					}
				}
			}
		})
	}
	all.Wait()
}

// race lets requests race with one removal, and judges the responses.
func (l *leaver) race(name string, closed []string, random *mathrand.Rand, end func(*leaver, int)) {
	m := l.m
	l.arrive()
	var mu sync.Mutex
	var history []porcupine.Operation
	began := time.Now()
	note := func(client int, in, out any, f func() any) {
		called := time.Since(began)
		if got := f(); got != nil {
			out = got
		}
		returned := time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(called),
			Return: int64(returned)})
	}
	look := func(client int, door, replica string) {
		note(client, nil, nil, func() any { return l.enter(door, replica) })
	}
	var running sync.WaitGroup
	for client := range 3 {
		looks := make([][2]string, 3)
		for i := range looks {
			looks[i] = [2]string{closed[random.IntN(len(closed))], m.replicas[random.IntN(3)]}
		}
		running.Go(func() {
			for _, at := range looks {
				look(client, at[0], at[1])
			}
		})
	}
	where := random.IntN(3)
	running.Go(func() { note(3, change{false}, nil, func() any { end(l, where); return nil }) })
	running.Wait()
	for i, replica := range m.replicas {
		look(4, closed[(i+random.IntN(len(closed)))%len(closed)], replica)
	}
	model := porcupine.Model{Init: func() any { return true }, Step: func(state, in, out any) (bool, any) {
		if c, write := in.(change); write {
			return true, c.on
		}
		return out == state, state
	}}
	if !porcupine.CheckOperations(model, history) {
		m.t.Errorf("%s: a history is not linearizable: %+v", name, history)
	}
}

// A removal by SCIM or a back-channel logout ends a download that is running at another replica,
// within about a second. The time is checked only if [races] is at least 1000.
func TestRemovalEndsRunningDownloads(t *testing.T) {
	t.Parallel()
	content := make([]byte, 64<<20) // takes seconds to read in the pieces below
	m := newRemover(t, content)
	for name, r := range m.removals() {
		l := m.newLeaver("reader-" + name)
		l.arrive()
		u, err := url.Parse(map[string]string{"scim": l.link, "logout": l.userLink}[name])
		must(t, err)
		res, err := http.Get(m.replicas[1] + u.RequestURI())
		must(t, err)
		_, err = io.CopyN(io.Discard, res.Body, 1<<20)
		must(t, err)
		r.end(l, 2)
		ended, read := time.Now(), int64(0)
		tick := time.NewTicker(2 * time.Millisecond)
		for err == nil {
			var n int64
			<-tick.C
			n, err = io.CopyN(io.Discard, res.Body, 16<<10)
			read += n
		}
		tick.Stop()
		res.Body.Close()
		took := (<-m.sent).Sub(ended)
		t.Logf("%s: the service stopped sending %v after the removal, %d bytes later", name, took, read)
		if races() >= 1000 && took > 1200*time.Millisecond { // where nothing else runs
			t.Errorf("%s: the download went on for %v", name, took)
		}
		if err == io.EOF || read > 48<<20 {
			t.Errorf("%s: the download went on for %d bytes and ended with %v", name, read, err)
		}
		if status, body := l.send(m.replicas[0], "GET", "/api/v1/me"); status != http.StatusUnauthorized ||
			!strings.Contains(string(body), "unauthenticated") {
			t.Errorf("%s: the next request: %d %s", name, status, body)
		}
	}
}
