// Package cloudtest starts the whole cloud service inside a test: the real handlers over a real
// loopback port, a real database and a real blob folder, with three organizations. It is for tests
// only.
//
//	acme     alice (owner), adam (admin), mia (member of eng), gus (member of eng and dba), max (member), vic (viewer)
//	globex   gail (owner), gary (member)
//	initech  ian (owner)
//
// Everyone's e-mail is <name>@<organization>.test and their password is <name>-password.
package cloudtest

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/netutil"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/servertest"
	"snap/internal/store"
)

// Options configures [Start]. The zero value starts a service with SQLite and a folder for its
// snapshots, both in a new temporary folder.
type Options struct {
	DatabaseURL string                          // empty uses SQLite
	BlobURL     string                          // empty uses a folder
	DataDir     string                          // empty uses a new folder, removed after the test
	Recheck     time.Duration                   // see cloud.Options
	Clock       *clocktest.Clock                // nil uses the real clock
	InOrder     bool                            // serves one connection after the other, and one request on each
	Log         io.Writer                       // receives the log at debug level; may be nil
	Wrap        func(http.Handler) http.Handler // wraps the service's handler; may be nil
	Config      func(*cloud.Config)             // changes the configuration last; may be nil
}

// Cloud is a running service.
type Cloud struct {
	URL     string
	Store   *store.Store
	Service *cloud.Service
	Config  cloud.Config

	t    testing.TB
	mu   sync.Mutex
	keys map[string]string

	clock *clocktest.Clock
}

// Start starts a service that ends with the test.
func Start(t testing.TB, o Options) *Cloud {
	t.Helper()
	servertest.CollectLess()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cloud{URL: "http://" + listener.Addr().String(), t: t, keys: map[string]string{}, clock: o.Clock}
	c.Config = configuration(t, o, listener.Addr().String())
	logger := slog.New(slog.DiscardHandler)
	if o.Log != nil {
		logger = slog.New(slog.NewTextHandler(o.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var now func() time.Time
	if o.Clock != nil {
		now = o.Clock.Now
	}
	c.Service, err = cloud.New(t.Context(), c.Config,
		cloud.Options{Log: logger, Now: now, Version: "test", Recheck: o.Recheck})
	if err != nil {
		listener.Close()
		t.Fatalf("start the service: %v", err)
	}
	c.Store = c.Service.Store()
	handler := c.Service.Handler()
	if o.Wrap != nil {
		handler = o.Wrap(handler)
	}
	serve(t, listener, o.InOrder, handler, slog.NewLogLogger(logger.Handler(), slog.LevelDebug), c.Service.Close)
	return c
}

// serve serves until the test ends. Then it waits for running requests, even those whose client has
// disconnected, before it closes the service. Otherwise these requests would use files that the
// test has already removed.
func serve(t testing.TB, l net.Listener, inOrder bool, handler http.Handler, log *log.Logger,
	closeService func() error) {
	var running sync.RWMutex
	ctx, end := context.WithCancel(context.Background())
	server := &http.Server{ErrorLog: log, ReadHeaderTimeout: servertest.Patience,
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.RLock()
			defer running.RUnlock()
			handler.ServeHTTP(w, r)
		})}
	if inOrder {
		l = netutil.LimitListener(l, 1)
		server.SetKeepAlivesEnabled(false)
	}
	go server.Serve(l)
	t.Cleanup(func() {
		end()
		server.Close()
		running.Lock()
		defer running.Unlock()
		closeService()
	})
}

// copyEmptyDatabase copies an empty SQLite database with the newest schema into a folder.
var copyEmptyDatabase = servertest.Template(func(dir string) error { return migrate(store.Options{DataDir: dir}) })

// Postgres returns the URL of an empty PostgreSQL database with the newest schema.
var Postgres = servertest.PostgresTemplate(func(url string) error { return migrate(store.Options{URL: url}) })

// migrate creates the newest schema in an empty database.
func migrate(o store.Options) error {
	s, err := store.Open(context.Background(), o)
	if err != nil {
		return err
	}
	return s.Close()
}

func configuration(t testing.TB, o Options, address string) cloud.Config {
	config := cloud.Config{
		Listen: address, PublicURL: "http://" + address, DataDir: o.DataDir,
		Database: cloud.Database{URL: o.DatabaseURL}, Blob: cloud.Blob{URL: o.BlobURL},
		Auth: cloud.Auth{ClientID: "snapcli"},
		// Tests send requests faster than any person, some of them while the clock does not move.
		// On a busy machine, requests wait for each other longer than people would.
		Limits: cloud.Limits{RequestsPerCredential: -1, RequestsPerAddress: -1, SignInRequestsPerAddress: -1,
			DiskReserve: -1, QueueWait: "1m"},
		Organizations: []cloud.Organization{
			{Slug: "acme", Name: "Acme Inc", SignIn: cloud.SignIn{Type: "local"}, Users: []cloud.LocalUser{
				person("alice", "acme", snap.RoleOwner), person("adam", "acme", snap.RoleAdmin),
				person("mia", "acme", snap.RoleMember, "eng"), person("gus", "acme", snap.RoleMember, "eng", "dba"),
				person("max", "acme", snap.RoleMember), person("vic", "acme", snap.RoleViewer),
			}},
			{Slug: "globex", Name: "Globex Corporation", SignIn: cloud.SignIn{Type: "local"}, Users: []cloud.LocalUser{
				person("gail", "globex", snap.RoleOwner), person("gary", "globex", snap.RoleMember),
			}},
			{Slug: "initech", Name: "Initech", SignIn: cloud.SignIn{Type: "local"}, Users: []cloud.LocalUser{
				person("ian", "initech", snap.RoleOwner),
			}},
		},
	}
	if config.DataDir == "" {
		config.DataDir = t.TempDir()
	}
	if o.Config != nil {
		o.Config(&config)
	}
	if left, err := os.ReadDir(config.DataDir); err == nil && len(left) == 0 && config.Database.URL == "" {
		copyEmptyDatabase(t, config.DataDir)
	}
	return config
}

func person(name, org string, role snap.Role, groups ...string) cloud.LocalUser {
	title := strings.ToUpper(name[:1]) + name[1:]
	return cloud.LocalUser{Email: name + "@" + org + ".test", Name: title, Password: name + "-password", Role: role,
		Groups: groups}
}

// Key returns a user-scoped key (cak_) of the user with this e-mail. It returns the same key at
// every call.
func (c *Cloud) Key(email string) string {
	c.t.Helper()
	return c.key(email, func() auth.KeySpec {
		_, slug, _ := strings.Cut(strings.TrimSuffix(email, ".test"), "@")
		org := c.org(slug)
		m, err := c.Store.UserByEmail(context.Background(), org.ID, email)
		if err != nil {
			c.t.Fatalf("user %s: %v", email, err)
		}
		return auth.KeySpec{OrgID: org.ID, UserID: m.ID, Kind: snap.UserKey, Name: "test"}
	})
}

// OrgKey returns an organization-level key of this kind with these scopes. It returns the same key
// at every call.
func (c *Cloud) OrgKey(slug string, kind snap.CredentialKind, scopes ...snap.Scope) string {
	c.t.Helper()
	return c.key(fmt.Sprint(slug, kind, scopes), func() auth.KeySpec {
		return auth.KeySpec{OrgID: c.org(slug).ID, Kind: kind, Name: "test", Scopes: scopes}
	})
}

func (c *Cloud) key(name string, spec func() auth.KeySpec) string {
	c.t.Helper()
	return c.once(name, func() string {
		secret, _ := c.newKey(spec())
		return secret
	})
}

// once returns the result of the first call with this name.
func (c *Cloud) once(name string, create func() string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys[name] == "" {
		c.keys[name] = create()
	}
	return c.keys[name]
}

func (c *Cloud) newKey(spec auth.KeySpec) (secret string, key store.Key) {
	c.t.Helper()
	secret, key, err := c.Service.Auth().NewKey(context.Background(), spec)
	if err != nil {
		c.t.Fatalf("make a key: %v", err)
	}
	return secret, key
}

func (c *Cloud) org(slug string) store.Org {
	c.t.Helper()
	org, err := c.Store.OrgBySlug(context.Background(), slug)
	if err != nil {
		c.t.Fatalf("organization %s: %v", slug, err)
	}
	return org
}

// Client returns a client of the agent mount with this API key.
func (c *Cloud) Client(key string) *api.Client {
	c.t.Helper()
	return c.client(api.MountAgent, key)
}

// client returns a client that does not give up because the machine is busy.
func (c *Cloud) client(mount, secret string) *api.Client {
	c.t.Helper()
	client, err := api.New(api.Options{BaseURL: c.URL, Mount: mount, Token: api.StaticToken(secret),
		UserAgent: "cloudtest", HTTP: &http.Client{Timeout: servertest.Patience}, ReadTimeout: servertest.Patience})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// As returns a client of the agent mount for the user with this e-mail.
func (c *Cloud) As(email string) *api.Client {
	c.t.Helper()
	return c.Client(c.Key(email))
}

// ExpiredKey returns a user-scoped key of the organization's owner that has expired. It returns the
// same key at every call. The service must have been started with a clock, which the first call for
// an organization advances by a minute.
func (c *Cloud) ExpiredKey(slug string) string {
	c.t.Helper()
	return c.once("expired "+slug, func() string {
		secret, _ := c.newKey(auth.KeySpec{OrgID: c.org(slug).ID, UserID: c.owner(slug).ID, Kind: snap.UserKey,
			Name: "expired", Expires: c.Store.Now().Add(time.Minute)})
		c.clock.Advance(time.Minute)
		return secret
	})
}

func (c *Cloud) owner(slug string) snap.Member {
	c.t.Helper()
	name := map[string]string{"acme": "alice", "globex": "gail", "initech": "ian"}[slug]
	m, err := c.Store.UserByEmail(context.Background(), c.org(slug).ID, name+"@"+slug+".test")
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// RevokedKey returns a user-scoped key of the organization's owner that has been revoked. It
// returns the same key at every call.
func (c *Cloud) RevokedKey(slug string) string {
	c.t.Helper()
	return c.once("revoked "+slug, func() string {
		org := c.org(slug)
		secret, key := c.newKey(auth.KeySpec{OrgID: org.ID, UserID: c.owner(slug).ID, Kind: snap.UserKey,
			Name: "revoked"})
		if err := c.Store.RevokeOrgKey(context.Background(), org.ID, key.ID); err != nil {
			c.t.Fatal(err)
		}
		return secret
	})
}
