package auth_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// FuzzCredential: only an issued key or token is accepted, on either mount and in
// either header. A wrong credential differs from a failure of the service.
func FuzzCredential(f *testing.F) {
	s, err := store.Open(f.Context(), store.Options{DataDir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	a := auth.New(s, auth.Options{Issuer: issuer, Audience: audience, PublicURL: audience, Now: time.Now})
	tokens := auth.NewTokens(s, issuer, audience, nil, time.Now)
	signed, err := tokens.Access(f.Context(), auth.Claims{Session: 99, Subject: "1", ClientID: "snapcli"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		signed, signed + "x", signed[:len(signed)-8], strings.Replace(signed, ".", "..", 1), "eyJhbGciOiJub25lIn0.e30.",
		"cak_" + strings.Repeat("0", 38),
		"clt_0", "sak_", "", "Bearer", "a.b.c.d.e", "{}", `{"payload":"","signatures":[]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, credential string) {
		for _, header := range []string{"Authorization", "X-Api-Key"} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header[header] = []string{map[bool]string{true: "Bearer "}[header == "Authorization"] + credential}
			for _, door := range []func(*http.Request) (snap.Caller, error){a.User, a.Agent} {
				c, err := door(r)
				if err == nil || c.Principal() != 0 {
					t.Fatalf("%s %q is accepted as %+v", header, credential, c)
				}
				if code := snap.CodeOf(err); code == snap.CodeInternal {
					t.Fatalf("%s %q: %v", header, credential, err)
				}
			}
		}
		if claims, err := tokens.Verify(t.Context(), credential); err == nil && claims.Session != 99 {
			t.Fatalf("%q verifies as %+v", credential, claims)
		}
	})
}

// FuzzForwarded: only trusted proxies can choose the address that is counted and logged, and even
// they can only set it to a valid address.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"1.2.3.4", "1.2.3.4, 10.0.0.1", "::1", "fe80::1%eth0", "x", "10.0.0.1,,",
		"1.2.3.4\r\nX: y", "::ffff:1.2.3.4"} {
		f.Add(seed)
	}
	direct := auth.ProxiedAddress(nil)
	behind := auth.ProxiedAddress([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	f.Fuzz(func(t *testing.T, forwarded string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "192.0.2.7:1234"
		r.Header["X-Forwarded-For"] = []string{forwarded}
		if got := direct(r); got != "192.0.2.7" {
			t.Fatalf("%q made the address %q", forwarded, got)
		}
		if got := behind(r); got != "192.0.2.7" {
			t.Fatalf("%q from a stranger made the address %q", forwarded, got)
		}
		r.RemoteAddr = "10.1.2.3:1234"
		got, _, _ := strings.Cut(behind(r), "/")
		if _, err := netip.ParseAddr(got); err != nil {
			t.Fatalf("%q from a proxy made the address %q", forwarded, got)
		}
	})
}

// FuzzNetworks: the site of an address is inside its network, and both contain the
// address. Text that is not an address is its own network.
func FuzzNetworks(f *testing.F) {
	for _, seed := range []string{"192.0.2.7", "2001:db8:1:2ff::/64", "2001:db8::1", "::1", "x", "", "/64",
		"1.2.3.4/64",
		"fe80::1%eth0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		site, network := auth.Networks(address)
		ip, err := netip.ParseAddr(strings.TrimSuffix(address, "/64"))
		if err != nil {
			if site != address || network != address {
				t.Fatalf("%q is in %q and %q", address, site, network)
			}
			return
		}
		bits := 48
		if ip.Is4() {
			bits = 24
		}
		prefix, err := netip.ParsePrefix(network)
		if err != nil || prefix.Bits() != bits || !prefix.Contains(ip.WithZone("")) {
			t.Fatalf("%q is in the network %q, %v", address, network, err)
		}
		if near, err := netip.ParsePrefix(site); !ip.Is4() && (err != nil || near.Bits() != 56 ||
			!prefix.Overlaps(near) || !near.Contains(ip.WithZone(""))) {
			t.Fatalf("%q is in the site %q and the network %q, %v", address, site, network, err)
		}
	})
}
