// Package auth determines the caller of a request. The agent mount (/api/v1/agents) accepts API
// keys (SPEC 5.1); the user mount (/api/v1) accepts access tokens of a login (RFC 9068) and browser
// sessions. Every request is checked again: a revoked key, an ended session, a disabled user or a
// changed role takes effect at the next request.
//
// Every invalid credential gets the same snap.ErrUnauthenticated, so that trying credentials
// reveals nothing. An address that sends too many invalid credentials must wait.
package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"snap"
	"snap/internal/limit"
	"snap/internal/store"
)

// Options configures an [Authenticator].
type Options struct {
	Issuer    string           // of the access tokens to accept: the auth service's URL
	Audience  string           // the audience that they must name; empty means PublicURL
	PublicURL string           // of the service; decides the cookie's name
	Sealer    *Sealer          // encrypts the signing keys; nil leaves them unencrypted
	Now       func() time.Time // nil is time.Now
	Proxies   []netip.Prefix   // proxies whose X-Forwarded-For names the client
	Log       *slog.Logger     // nil discards
	// Confirm decides whether the identity provider's last confirmation of a caller's user is
	// recent enough. If ask is set, Confirm may ask the provider again. fresh means that the
	// provider has just confirmed the user, whose role and groups may have changed. Confirm fails
	// with snap.ErrUnauthenticated if the user is not confirmed. A nil Confirm accepts every user.
	Confirm  func(ctx context.Context, c snap.Caller, confirmed time.Time, ask bool) (fresh bool, err error)
	External *External      // an external auth service; nil means none
	Limiter  *limit.Limiter // nil creates one that uses the store
	// Failures is the number of invalid credentials that one address may send per minute. 0 means
	// DefaultFailures; a negative value means no limit.
	Failures limit.Rate
}

// DefaultFailures is how often an address may fail in a minute before it must wait.
const DefaultFailures = 60

// Authenticator determines the callers of requests. It is safe for concurrent use.
type Authenticator struct {
	store    *store.Store
	tokens   *Tokens
	browser  Browser
	now      func() time.Time
	address  func(*http.Request) string     // of the client, for rate limits
	client   func(*http.Request) netip.Addr // of the client, not rounded to a network; invalid if unknown
	log      *slog.Logger
	confirm  func(ctx context.Context, c snap.Caller, confirmed time.Time, ask bool) (bool, error)
	cross    *http.CrossOriginProtection
	limiter  *limit.Limiter
	failures limit.Rate
	external *External
}

// New returns an authenticator that uses the store's keys and sessions.
func New(s *store.Store, o Options) *Authenticator {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Audience == "" {
		o.Audience = o.PublicURL
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Confirm == nil {
		o.Confirm = func(context.Context, snap.Caller, time.Time, bool) (bool, error) { return false, nil }
	}
	address := ProxiedAddress(o.Proxies)
	if o.Failures == 0 {
		o.Failures = DefaultFailures
	}
	if o.Limiter == nil {
		o.Limiter = limit.New(s.Spend, o.Now)
	}
	return &Authenticator{
		store:    s,
		tokens:   NewTokens(s, o.Issuer, o.Audience, o.Sealer, o.Now),
		browser:  NewBrowser(s, o.PublicURL, o.Now, address),
		now:      o.Now,
		address:  address,
		client:   ClientAddress(o.Proxies),
		log:      o.Log,
		confirm:  o.Confirm,
		cross:    CrossOrigin(o.PublicURL),
		limiter:  o.Limiter,
		failures: o.Failures,
		external: o.External,
	}
}

// CrossOrigin returns the protection for requests that change something and are authenticated by
// cookie. It refuses a request if the browser's headers say that a page of another site sent it.
// Pages at the public URL never count as another site.
func CrossOrigin(publicURL string) *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		_ = p.AddTrustedOrigin(u.Scheme + "://" + u.Host) // an invalid URL adds no origin
	}
	return p
}

// The errors for a credential that is sent to the wrong mount. The credential is recognized by its
// form alone, whether it is valid or not.
var (
	errTokenHere = &snap.Error{
		Code: snap.CodeUnauthenticated, Detail: "this is an access token, but paths below /api/v1/agents take API keys",
		Hint: "send it to the same path below /api/v1",
	}
	errKeyHere = &snap.Error{
		Code:   snap.CodeUnauthenticated,
		Detail: "this is an API key, but paths directly below /api/v1 take access tokens and browser sessions",
		Hint:   "send it to the same path below /api/v1/agents",
	}
)

func looksLikeKey(credential string) bool { return keyPrefix.MatchString(credential) }

var keyPrefix = regexp.MustCompile(`^` + snap.KeyPrefixPattern)

// Agent returns the caller of a request on the agent mount, by the API key in Authorization: Bearer
// or X-API-Key. It fails with snap.ErrUnauthenticated or rate_limited.
func (a *Authenticator) Agent(r *http.Request) (snap.Caller, error) {
	return a.guarded(r, func() (snap.Caller, error) {
		key := r.Header.Get("X-API-Key")
		if key == "" {
			key = bearer(r)
		}
		if strings.Count(key, ".") == 2 {
			return snap.Caller{}, errTokenHere
		}
		if strings.HasPrefix(key, scimPrefix) {
			return snap.Caller{}, snap.ErrUnauthenticated
		}
		return a.byKey(r, key)
	})
}

// User returns the caller of a request on the user mount, by the access token in Authorization:
// Bearer, otherwise by the browser's session cookie. A request that changes something and is
// authenticated by cookie must come from our own pages; otherwise User fails with forbidden. It
// also fails with snap.ErrUnauthenticated or rate_limited.
func (a *Authenticator) User(r *http.Request) (snap.Caller, error) {
	return a.guarded(r, func() (snap.Caller, error) {
		if token := bearer(r); token != "" {
			if looksLikeKey(token) {
				return snap.Caller{}, errKeyHere
			}
			return a.byToken(r.Context(), token)
		}
		if looksLikeKey(r.Header.Get("X-API-Key")) {
			return snap.Caller{}, errKeyHere
		}
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-API-Key") != "" {
			return snap.Caller{}, snap.ErrUnauthenticated
		}
		return a.byCookie(r)
	})
}

// credentialInURL reports whether a request has a credential in its URL, where logs and browser
// histories would keep it. Such a request is always refused.
func credentialInURL(r *http.Request) bool {
	if !strings.Contains(r.URL.RawQuery, "_") {
		return false
	}
	q := r.URL.Query()
	return q.Has("api_key") || q.Has("access_token")
}

// bearer returns the token of an Authorization: Bearer header.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// guarded counts failed attempts by address and refuses further ones when there were too many. A
// valid credential is still accepted, because many people may share an address.
func (a *Authenticator) guarded(r *http.Request, f func() (snap.Caller, error)) (snap.Caller, error) {
	c, err := snap.Caller{}, error(snap.ErrUnauthenticated)
	if !credentialInURL(r) {
		c, err = f()
	}
	if !errors.Is(err, snap.ErrUnauthenticated) || !hasCredential(r) {
		return c, err
	}
	if wait := a.limiter.Allow(r.Context(), "failed:"+a.address(r), a.failures); wait > 0 {
		return snap.Caller{}, &snap.Error{
			Code:       snap.CodeRateLimited,
			Detail:     "too many wrong credentials from your address",
			Hint:       "wait a minute, and check the credential that you send",
			RetryAfter: wait,
		}
	}
	return c, err
}

// hasCredential reports whether the request has a credential other than a cookie.
func hasCredential(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || r.Header.Get("X-API-Key") != "" || credentialInURL(r)
}

// scimPrefix is the prefix of SCIM keys, which are accepted only by the SCIM routes.
const scimPrefix = string(snap.SCIMKey) + "_"

// SCIM returns the caller of a SCIM request, by the SCIM key in Authorization: Bearer. It fails
// with snap.ErrUnauthenticated or rate_limited.
func (a *Authenticator) SCIM(r *http.Request) (snap.Caller, error) {
	return a.guarded(r, func() (snap.Caller, error) {
		if !strings.HasPrefix(bearer(r), scimPrefix) {
			return snap.Caller{}, snap.ErrUnauthenticated
		}
		return a.byKey(r, bearer(r))
	})
}

func (a *Authenticator) byKey(r *http.Request, secret string) (snap.Caller, error) {
	if !wellFormedKey(secret) {
		return snap.Caller{}, snap.ErrUnauthenticated
	}
	u, err := a.store.CallerOfKey(r.Context(), HashOf(secret))
	if err != nil {
		return snap.Caller{}, err
	}
	return a.useKey(r, u, true)
}

// useKey returns the caller of a usable key if the request comes from a network that the key is
// limited to and the key's user is still confirmed. Otherwise the error is the same as for a
// revoked key, because a stolen key must not reveal where it works. The reason is only logged.
func (a *Authenticator) useKey(r *http.Request, u store.KeyUse, ask bool) (snap.Caller, error) {
	ctx := r.Context()
	if client := a.client(r); !snap.InNetworks(u.Networks, client) {
		a.log.WarnContext(ctx, "a key was refused: it is limited to other networks", "key", u.Credential.ID,
			"organization", u.Org.Slug, "address", client.String())
		return snap.Caller{}, snap.ErrUnauthenticated
	}
	fresh, err := a.confirm(ctx, u.Caller, u.Confirmed, ask)
	if err == nil && fresh {
		u, err = a.store.CallerOfKeyID(ctx, u.Credential.ID)
	}
	if errors.Is(err, snap.ErrUnauthenticated) {
		a.log.WarnContext(ctx, "a key was refused: the identity provider has not confirmed its user recently",
			"key", u.Credential.ID, "organization", u.Org.Slug, "confirmed", u.Confirmed)
	}
	if err != nil {
		return snap.Caller{}, err
	}
	return u.Caller, a.store.TouchKey(ctx, u.Credential.ID, u.Used)
}

func (a *Authenticator) byToken(ctx context.Context, token string) (snap.Caller, error) {
	if a.external != nil && NamedIssuer(token) == a.external.Provider.Issuer() {
		return a.byExternal(ctx, token)
	}
	claims, err := a.tokens.Verify(ctx, token)
	if err != nil {
		return snap.Caller{}, err
	}
	n, err := a.store.LiveSession(ctx, claims.Session)
	if err != nil {
		return snap.Caller{}, err
	}
	return a.confirmedCaller(ctx, n, true)
}

func (a *Authenticator) byCookie(r *http.Request) (snap.Caller, error) {
	n, err := a.browser.Session(r)
	if err != nil {
		return snap.Caller{}, err
	}
	if err := a.cross.Check(r); err != nil {
		return snap.Caller{}, &snap.Error{
			Code:   snap.CodeForbidden,
			Detail: "the request came from another site",
			Hint:   "use the service's own pages",
			Cause:  err,
		}
	}
	return a.confirmedCaller(r.Context(), n, true)
}

// confirmedCaller is like sessionCaller, but fails if the identity provider's last confirmation of
// the user is too old. If ask is set, it may ask the provider first.
func (a *Authenticator) confirmedCaller(ctx context.Context, n store.Session, ask bool) (snap.Caller, error) {
	c, err := a.sessionCaller(ctx, n)
	if err != nil {
		return snap.Caller{}, err
	}
	fresh, err := a.confirm(ctx, c, n.Confirmed, ask)
	if err != nil || !fresh {
		return c, err
	}
	return a.sessionCaller(ctx, n)
}

// sessionCaller returns the caller of a live session.
func (a *Authenticator) sessionCaller(ctx context.Context, n store.Session) (snap.Caller, error) {
	c, err := a.store.CallerWithoutGroups(ctx, n.UserID)
	if err != nil {
		return snap.Caller{}, err
	}
	c.Credential = snap.Credential{Kind: n.Kind, ID: n.ID, Name: n.Name}
	return c, nil
}
