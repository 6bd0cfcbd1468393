package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// The limits of a device login, and of the logins that wait for approval at the same time.
const (
	deviceLife     = 10 * time.Minute
	deviceInterval = 2 * time.Second // between two polls
	maxPerAddress  = 50
	maxPerSite     = 200 // for each IPv6 /56
	maxPerNetwork  = 500 // for each IPv6 /48 or IPv4 /24
	maxWaiting     = 10_000
)

// deviceResponse is the device authorization response (RFC 8628 section 3.2).
type deviceResponse struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URL        string `json:"verification_uri"`
	Complete   string `json:"verification_uri_complete"`
	ExpiresIn  int    `json:"expires_in"`
	Interval   int    `json:"interval"`
}

// deviceAuthorization begins a login (RFC 8628 section 3.1). It accepts two parameters of our own,
// program and host. The approving user sees them, marked as unverified claims of the client.
func (s *Service) deviceAuthorization(w http.ResponseWriter, r *http.Request) {
	f, ok := s.form(w, r)
	if !ok || !s.requireClient(w, r, f) || !s.requireScope(w, f.Get("scope")) {
		return
	}
	deviceCode := rand.Text() + rand.Text()
	g, err := s.addDeviceGrant(r.Context(), s.newGrant(r, f), deviceCode)
	switch {
	case errors.Is(err, &snap.Error{Code: snap.CodeRateLimited}):
		w.Header().Set("Retry-After", "60")
		s.writeOAuthError(w, http.StatusTooManyRequests, "temporarily_unavailable", err.Error())
		return
	case err != nil:
		s.writeFailure(w, r, err)
		return
	}
	code := formatUserCode(g.UserCode)
	writeJSON(w, http.StatusOK, deviceResponse{
		DeviceCode: deviceCode, UserCode: code, URL: s.issuer + "/device",
		Complete:  s.issuer + "/device?user_code=" + url.QueryEscape(code),
		ExpiresIn: int(deviceLife.Seconds()), Interval: int(deviceInterval.Seconds()),
	})
}

func (s *Service) newGrant(r *http.Request, f url.Values) store.DeviceGrant {
	program := cmp.Or(printable(f.Get("program"), 80), printable(r.UserAgent(), 80), "an unnamed program")
	address := s.address(r)
	site, network := auth.Networks(address)
	return store.DeviceGrant{
		ClientID: s.client, Scope: grantedScope(f.Get("scope")), Program: program, Host: printable(f.Get("host"), 80),
		Address: address, Site: site, Network: network, Expires: s.now().Add(deviceLife), Wait: deviceInterval,
	}
}

// addDeviceGrant gives a grant an unused user code and stores it.
func (s *Service) addDeviceGrant(ctx context.Context, g store.DeviceGrant, deviceCode string) (store.DeviceGrant,
	error) {
	limits := store.DeviceLimits{PerAddress: maxPerAddress, PerSite: maxPerSite, PerNetwork: maxPerNetwork,
		Total: maxWaiting}
	const attempts = 5
	var err error
	for range attempts {
		g.UserCode = newUserCode()
		err = s.store.AddDeviceGrant(ctx, g, auth.HashOf(deviceCode), limits)
		if !errors.Is(err, &snap.Error{Code: snap.CodeConflict}) {
			break
		}
	}
	return g, err
}

// userCodeLetters are 20 consonants, which spell no words and are hard to mix up (RFC 8628 section
// 6.1). A code of eight has 34.6 bits of entropy.
const (
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

func newUserCode() string {
	code := make([]byte, 0, userCodeLength)
	var buf [32]byte
	for len(code) < userCodeLength {
		_, _ = rand.Read(buf[:])
		for _, b := range buf {
			if b < 240 && len(code) < userCodeLength { // 240 is the largest multiple of 20 that fits in a byte
				code = append(code, userCodeLetters[b%20])
			}
		}
	}
	return string(code)
}

// formatUserCode formats a code for people: BCDF-GHJK.
func formatUserCode(code string) string {
	if len(code) != userCodeLength {
		return code
	}
	return code[:userCodeLength/2] + "-" + code[userCodeLength/2:]
}

// cleanUserCode normalizes a typed code to its stored form: in upper case, without spaces and
// hyphens. It returns false when the result cannot be a code.
func cleanUserCode(typed string) (string, bool) {
	code := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r == ' ' || r == '-' || r == '_' || r == '\t' || r == 0xa0 || r == 0x2010 || r == 0x2011 || r == 0x2013:
			return -1
		}
		return r
	}, typed)
	isOther := func(r rune) bool { return !strings.ContainsRune(userCodeLetters, r) }
	if len(code) != userCodeLength || strings.ContainsFunc(code, isOther) {
		return "", false
	}
	return code, true
}
