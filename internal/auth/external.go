package auth

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"

	"snap"
	"snap/internal/store"
)

// External is an external auth service (auth.issuer), whose access tokens the user mount accepts in
// addition to our own. Its users belong to one organization.
type External struct {
	Provider *Provider
	Audience string // the audience that its access tokens must name
	Org      snap.OrgRef
	Claims   ClaimNames
	Roles    map[snap.Role][]string
}

// byExternal returns the caller of an external access token. The token is verified at every
// request. At the first request, its claims are applied to the account as at a sign-in, and the
// token becomes a session. The session lives as long as the token, and its user can end it.
func (a *Authenticator) byExternal(ctx context.Context, token string) (snap.Caller, error) {
	d, id, claims, err := a.verifyExternal(ctx, token)
	if errors.Is(err, ErrProviderDown) {
		return snap.Caller{}, &snap.Error{Code: snap.CodeUnavailable, Detail: "the auth service does not answer",
			Hint: "try again later, or use an API key", Cause: err}
	}
	if err != nil {
		return snap.Caller{}, err
	}
	n, err := a.store.SessionByHash(ctx, HashOf(token))
	if errors.Is(err, snap.ErrUnauthenticated) {
		n, err = a.admitExternal(ctx, d, token, id, claims)
	}
	if err != nil {
		return snap.Caller{}, err
	}
	return a.sessionCaller(ctx, n)
}

// verifyExternal checks signature, algorithm, issuer, audience and time. It refuses ID tokens, and
// tokens without iat, whose age is unknown. It fails with ErrProviderDown if the auth service does
// not answer.
func (a *Authenticator) verifyExternal(ctx context.Context, token string) (d *Discovered, id *oidc.IDToken,
	claims map[string]any, err error) {
	if d, err = a.external.Provider.Discover(ctx); err != nil {
		return nil, nil, nil, err
	}
	id, err = a.external.Provider.Verify(ctx, d, a.external.Audience, token)
	if errors.Is(err, ErrProviderDown) {
		return nil, nil, nil, err
	}
	if err != nil || id.Claims(&claims) != nil || id.IssuedAt.IsZero() || isIDToken(token, claims) {
		return nil, nil, nil, snap.ErrUnauthenticated
	}
	return d, id, claims, nil
}

// isIDToken reports whether a token is an ID token. An access token that follows RFC 9068 names its
// type in the header. A token without this type is an ID token if it has a claim that only ID
// tokens have.
func isIDToken(token string, claims map[string]any) bool {
	parsed, err := jwt.ParseSigned(token, AsymmetricAlgorithms())
	if err != nil || len(parsed.Headers) != 1 {
		return true
	}
	typ, _ := parsed.Headers[0].ExtraHeaders[jose.HeaderType].(string)
	if strings.EqualFold(strings.TrimPrefix(typ, "application/"), typeAccess) {
		return false
	}
	return claims["nonce"] != nil || claims["at_hash"] != nil || claims["c_hash"] != nil || claims["typ"] == "ID"
}

// AsymmetricAlgorithms returns the signature algorithms that identity providers may use for their
// tokens.
func AsymmetricAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512,
		jose.EdDSA,
	}
}

// admitExternal applies the claims of a new token to the user's account and creates the token's
// session. Groups and an e-mail that the token lacks are read from userinfo. A token that is used
// for the first time may be older than the stored role and groups, and then changes nothing. The
// token confirms the user as of the time at which it was issued.
func (a *Authenticator) admitExternal(ctx context.Context, d *Discovered, token string, id *oidc.IDToken,
	claims map[string]any) (store.Session, error) {
	p, late := PersonFromClaims(id.Issuer, id.Subject, claims, a.external.Claims), true
	if (!p.Groups.Known || claims["email"] == nil) && d.UserInfoEndpoint() != "" {
		source := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token, TokenType: "Bearer"})
		if info, err := d.UserInfo(a.external.Provider.Context(ctx), source); err == nil && info.Subject == id.Subject {
			all := maps.Clone(claims)
			_ = AddUserinfo(all, info) // userinfo that cannot be read adds nothing
			late = p.Groups.Known || claims["email"] != nil
			p = PersonFromClaims(id.Issuer, id.Subject, all, a.external.Claims)
		}
	}
	ctx = store.AllowReserve(snap.ActingAs(ctx, snap.Acting(a.external.Org, snap.PartProvider))) // it is a sign-in
	in, err := p.SignIn(a.external.Org.ID, a.external.Roles)
	if err != nil {
		return store.Session{}, err
	}
	if in.Late = late; late {
		in.AsOf = id.IssuedAt
	}
	userID, err := a.store.ApplySignIn(ctx, in)
	if err != nil {
		return store.Session{}, err
	}
	signIn := store.InteractiveSignIn{UserID: userID, Began: id.IssuedAt, SID: p.Session}
	if err := a.store.Readmit(ctx, signIn); err != nil {
		return store.Session{}, err
	}
	n, err := a.store.AddTokenSession(ctx, store.Session{
		UserID: userID, Kind: snap.LoginToken, Name: "login at " + hostOf(id.Issuer), Began: id.IssuedAt,
		ClientID: text(claims, "client_id", "azp"), Idle: id.Expiry, Expires: id.Expiry.Truncate(time.Second),
	}, HashOf(token))
	if err != nil {
		return store.Session{}, err
	}
	return n, a.store.RecordConfirmed(ctx, userID, id.IssuedAt)
}

// AddUserinfo adds to a token's claims the claims of userinfo that the token lacks.
func AddUserinfo(claims map[string]any, info *oidc.UserInfo) error {
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return err
	}
	for name, value := range more { // more is nil if the response is null
		if _, known := claims[name]; !known {
			claims[name] = value
		}
	}
	return nil
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Host
}

// NamedIssuer returns the issuer that an unverified token names. Callers may use it only to choose
// the verifier.
func NamedIssuer(token string) string {
	parsed, err := jwt.ParseSigned(token, AsymmetricAlgorithms())
	if err != nil {
		return ""
	}
	var c jwt.Claims
	if parsed.UnsafeClaimsWithoutVerification(&c) != nil {
		return ""
	}
	return c.Issuer
}
