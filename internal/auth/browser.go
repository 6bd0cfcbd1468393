package auth

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"snap"
	"snap/internal/store"
)

// A browser is signed out after BrowserIdle without use, and in any case after BrowserMax, or
// earlier if its organization limits logins.
const (
	BrowserIdle = 24 * time.Hour
	BrowserMax  = 7 * 24 * time.Hour
)

// Browser keeps browsers signed in with a cookie. The cookie holds a random secret, and the store
// holds its hash.
type Browser struct {
	store   *store.Store
	secure  bool
	now     func() time.Time
	address func(*http.Request) string
}

// NewBrowser returns a Browser for the pages at a public URL.
func NewBrowser(s *store.Store, publicURL string, now func() time.Time, address func(*http.Request) string) Browser {
	u, err := url.Parse(publicURL)
	return Browser{store: s, secure: err != nil || u.Scheme != "http", now: now, address: address}
}

// CookieName returns the full name of a cookie. Unless the public URL is plain http, the name has
// the prefix __Host-, which binds the cookie to this host over https.
func (b Browser) CookieName(name string) string {
	if b.secure {
		return "__Host-" + name
	}
	return name
}

// SetCookie sets a cookie that scripts cannot read. Browsers send it only to this host, and with a
// request from another site only when the person follows a link. A negative life deletes it. With a
// life of 0, it lasts until the browser is closed.
func (b Browser) SetCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: b.CookieName(name), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		Secure: b.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

const sessionCookie = "snap_session"

// SignIn starts a session for a user, ends the browser's previous session, and sets the cookie. The
// cookie has a new value at every sign-in. began is when the sign-in began; zero means now. The
// session ends at due, or after BrowserMax if that is earlier.
func (b Browser) SignIn(w http.ResponseWriter, r *http.Request, userID int64, began, due time.Time) (
	store.Session, error) {
	if err := b.end(r); err != nil {
		return store.Session{}, err
	}
	secret := rand.Text()
	now := b.now()
	life := min(BrowserMax, due.Sub(now))
	n, err := b.store.AddBrowserSession(r.Context(), store.Session{
		UserID: userID, Kind: snap.Browser, Name: browserName(r.UserAgent()), Address: b.address(r),
		Began: began, Idle: now.Add(BrowserIdle), Expires: now.Add(life),
	}, HashOf(secret))
	if err != nil {
		return store.Session{}, err
	}
	b.SetCookie(w, sessionCookie, secret, life)
	return n, nil
}

// SignOut ends the browser's session and deletes the cookie.
func (b Browser) SignOut(w http.ResponseWriter, r *http.Request) error {
	b.SetCookie(w, sessionCookie, "", -time.Second)
	return b.end(r)
}

func (b Browser) end(r *http.Request) error {
	cookie, err := r.Cookie(b.CookieName(sessionCookie))
	if err != nil {
		return nil //nolint:nilerr // no cookie, no session to end
	}
	return b.store.EndSessionByHash(r.Context(), HashOf(cookie.Value))
}

// Session returns the browser's live session and records its use, which postpones its idle end. It
// fails with snap.ErrUnauthenticated if there is none.
func (b Browser) Session(r *http.Request) (store.Session, error) {
	cookie, err := r.Cookie(b.CookieName(sessionCookie))
	if err != nil {
		return store.Session{}, snap.ErrUnauthenticated
	}
	n, err := b.store.SessionByHash(r.Context(), HashOf(cookie.Value))
	if err == nil && n.Kind != snap.Browser {
		err = snap.ErrUnauthenticated
	}
	if err != nil {
		return store.Session{}, err
	}
	return n, b.store.TouchSession(r.Context(), n, b.address(r), b.now().Add(BrowserIdle))
}

// browserName names the browser and its system in a few words, from its User-Agent.
func browserName(agent string) string {
	name := "a browser"
	for _, known := range []struct{ mark, name string }{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	} {
		if strings.Contains(agent, known.mark) {
			name = known.name
			break
		}
	}
	for _, known := range []struct{ mark, name string }{
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"},
		{"Linux", "Linux"},
	} {
		if strings.Contains(agent, known.mark) {
			return name + " on " + known.name
		}
	}
	return name
}
