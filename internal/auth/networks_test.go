package auth_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// TestKeysOfNetworks checks that a key that is limited to networks works only from them, whatever
// the request says about its origin, and that it is otherwise refused like an unknown key (K5).
func TestKeysOfNetworks(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	networks, err := snap.ParseNetworks([]string{"10.0.0.0/8", "2001:db8:1::/48"})
	if err != nil {
		t.Fatal(err)
	}
	secret, key := g.key(auth.KeySpec{Kind: snap.PipelineKey, Networks: networks})
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("fd00::7/128")}
	direct := g.Authenticator
	behind := auth.New(g.store, auth.Options{PublicURL: "https://cloud.test", Now: g.clock.Now, Proxies: proxies})
	for name, test := range map[string]struct {
		by        *auth.Authenticator
		remote    string
		forwarded []string
		good      bool
	}{
		"inside":                          {direct, "10.1.2.3:99", nil, true},
		"outside":                         {direct, "11.1.2.3:99", nil, false},
		"inside by IPv6":                  {direct, "[2001:db8:1::5]:99", nil, true},
		"outside by IPv6, next to it":     {direct, "[2001:db8:2::5]:99", nil, false},
		"IPv4 written as IPv6":            {direct, "[::ffff:10.1.2.3]:99", nil, true},
		"IPv4 outside written as IPv6":    {direct, "[::ffff:11.1.2.3]:99", nil, false},
		"address with a zone":             {direct, "[2001:db8:1::5%eth0]:99", nil, true},
		"no address":                      {direct, "@", nil, false},
		"forged header, no proxies":       {direct, "11.1.2.3:99", []string{"10.1.2.3"}, false},
		"forged header from a stranger":   {behind, "11.1.2.3:99", []string{"10.1.2.3"}, false},
		"through the proxy":               {behind, "192.0.2.1:99", []string{"10.1.2.3"}, true},
		"through the proxy, from outside": {behind, "192.0.2.1:99", []string{"11.1.2.3"}, false},
		"forged beginning":                {behind, "192.0.2.1:99", []string{"10.1.2.3, 11.1.2.3"}, false},
		"forged first header":             {behind, "192.0.2.1:99", []string{"10.1.2.3", "11.1.2.3"}, false},
		"two proxies":                     {behind, "192.0.2.1:99", []string{"10.1.2.3, 192.0.2.9"}, true},
		"two proxies, forged":             {behind, "192.0.2.1:99", []string{"10.1.2.3, 11.1.2.3, 192.0.2.9"}, false},
		"through the IPv6 proxy":          {behind, "[fd00::7]:99", []string{"10.1.2.3"}, true},
		"through its neighbor":            {behind, "[fd00::8]:99", []string{"10.1.2.3"}, false},
		"forwarded IPv4 written as IPv6":  {behind, "192.0.2.1:99", []string{"::ffff:10.1.2.3"}, true},
		"forwarded nonsense":              {behind, "192.0.2.1:99", []string{"10.1.2.3, nonsense"}, false},
		"forwarded with a port":           {behind, "192.0.2.1:99", []string{"10.1.2.3:99"}, false},
		"proxy that forwards nothing":     {behind, "192.0.2.1:99", nil, false},
	} {
		r := withKey(secret)
		r.RemoteAddr = test.remote
		r.Header["X-Forwarded-For"] = test.forwarded
		_, err := test.by.Agent(r)
		if test.good != (err == nil) || !test.good && err != error(snap.ErrUnauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := test.by.Recheck(r, snap.PipelineKey, key.ID, g.org.ID); test.good != (err == nil) {
			t.Errorf("%s, a download: %v", name, err)
		}
	}
}

// TestMaxKeyAge: the policy refuses new keys that would be valid for longer than its maximum age.
// Earlier keys end when they reach that age, at every use and in every list.
func TestMaxKeyAge(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	day := 24 * time.Hour
	old, _ := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia})
	g.clock.Advance(20 * day)
	young, _ := g.key(auth.KeySpec{Kind: snap.PipelineKey, Expires: g.clock.Now().Add(400 * day)})
	if _, err := g.store.ApplyOrg(t.Context(), "acme", "Acme", snap.Policy{MaxKeyAge: 30 * day}); err != nil {
		t.Fatal(err)
	}
	for name, expires := range map[string]time.Time{"never": {}, "later": g.clock.Now().Add(30*day + time.Second)} {
		_, _, err := g.NewKey(t.Context(), auth.KeySpec{OrgID: g.org.ID, Kind: snap.UserKey, UserID: g.mia, Name: "x",
			Expires: expires})
		if snap.CodeOf(err) != snap.CodePolicy {
			t.Errorf("%s: %v", name, err)
		}
	}
	allowed, _ := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia, Expires: g.clock.Now().Add(30 * day)})
	use := func(want ...bool) {
		t.Helper()
		for i, secret := range []string{old, young, allowed} {
			if _, err := g.Agent(withKey(secret)); (err == nil) != want[i] {
				t.Errorf("on %s, key %d: %v", g.clock.Now(), i, err)
			}
		}
	}
	use(true, true, true)
	keys, err := g.store.OrgKeys(t.Context(), g.org.ID, 0)
	if err != nil || len(keys) != 3 || !keys[2].Expires.Equal(g.clock.Now().Add(10*day)) ||
		!keys[1].Expires.Equal(g.clock.Now().Add(30*day)) {
		t.Errorf("%+v, %v", keys, err)
	}
	g.clock.Advance(10 * day)
	use(false, true, true)
	g.clock.Advance(20 * day)
	use(false, false, false)
	if _, err := g.store.ApplyOrg(t.Context(), "acme", "Acme", snap.Policy{}); err != nil {
		t.Fatal(err)
	}
	use(true, true, false)
}

// TestIdleKeys: idle keys are found by the time since their last use or, if they were never
// used, since they were created. Only owners and admins see the keys of others.
func TestIdleKeys(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	ada := g.user("ada", snap.RoleAdmin)
	g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia, Name: "never used"})
	used, _ := g.key(auth.KeySpec{Kind: snap.UserKey, UserID: g.mia, Name: "used"})
	g.key(auth.KeySpec{Kind: snap.PipelineKey, Name: "ci"})
	g.clock.Advance(10 * 24 * time.Hour)
	if _, err := g.Agent(withKey(used)); err != nil {
		t.Fatal(err)
	}
	g.clock.Advance(snap.IdleKey - 10*24*time.Hour)
	for _, test := range []struct {
		user     int64
		own, all int
	}{{g.mia, 1, 0}, {ada, 0, 2}} {
		c, err := g.store.CallerOfUser(t.Context(), test.user)
		if err != nil {
			t.Fatal(err)
		}
		own, all, err := g.store.IdleKeys(t.Context(), c)
		if err != nil || own != test.own || all != test.all {
			t.Errorf("%s: %d and %d, %v", c.User.Email, own, all, err)
		}
		keys, err := g.store.Keys(t.Context(), c, store.KeyQuery{Idle: snap.IdleKey})
		if err != nil || len(keys) != test.own {
			t.Errorf("%s: %v, %v", c.User.Email, keys, err)
		}
	}
	keys, err := g.store.OrgKeys(t.Context(), g.org.ID, snap.IdleKey)
	if err != nil || len(keys) != 2 || keys[0].Name != "ci" || keys[1].Name != "never used" {
		t.Errorf("idle keys %+v, %v", keys, err)
	}
	if keys, err := g.store.OrgKeys(t.Context(), g.org.ID, snap.IdleKey-time.Hour*24*11); err != nil || len(keys) != 3 {
		t.Errorf("idle keys %+v, %v", keys, err)
	}
}

// TestClientAddressIsExact: limits count networks, but keys are checked against addresses.
func TestClientAddressIsExact(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "[2001:db8::1:2:3:4]:99"
	if got := auth.ClientAddress(nil)(r); got.String() != "2001:db8::1:2:3:4" {
		t.Errorf("%s", got)
	}
	if got := auth.ProxiedAddress(nil)(r); got != "2001:db8::/64" {
		t.Errorf("%s", got)
	}
}
