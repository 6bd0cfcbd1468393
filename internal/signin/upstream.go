package signin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// upstreamLife is how long a sign-in at an identity provider may take.
const upstreamLife = 10 * time.Minute

// errUpstream is a failure of an identity provider. Its error page has the status 502.
type errUpstream struct{ known *snap.Error }

func (e errUpstream) Error() string { return e.known.Error() }

func (e errUpstream) Unwrap() error { return e.known }

func upstreamFailed(detail, hint string, cause error) error {
	return errUpstream{&snap.Error{Code: snap.CodeUnavailable, Detail: detail, Hint: hint, Cause: cause}}
}

// callback returns the last segment of the path to which an identity provider sends the browser
// back: the organization's slug, or "" for the path that organizations share. If organizations sign
// in with different providers, and this organization's provider does not name itself in its
// responses (RFC 9207), the organization has a path of its own. With a shared path, one
// organization's provider could forward a sign-in to another's and receive its code (RFC 9700
// section 4.4).
func (s *Service) callback(o organization, d *auth.Discovered) string {
	other := func(org organization) bool {
		return org.oidc != nil && org.provider.Issuer() != o.provider.Issuer()
	}
	if d.IssInAnswer || !slices.ContainsFunc(s.orgs, other) {
		return ""
	}
	return o.Slug
}

func (s *Service) redirectURL(o organization, d *auth.Discovered) string {
	return strings.TrimSuffix(s.issuer+"/upstream/callback/"+s.callback(o, d), "/")
}

func (s *Service) oauthConfig(o organization, d *auth.Discovered) oauth2.Config {
	scopes := o.oidc.Scopes
	if len(scopes) == 0 {
		scopes = []string{oidc.ScopeOpenID, "profile", "email"}
		if s.sealer != nil && slices.Contains(d.Scopes, oidc.ScopeOfflineAccess) {
			scopes = append(scopes, oidc.ScopeOfflineAccess)
		}
	}
	return oauth2.Config{
		ClientID: o.oidc.ClientID, ClientSecret: o.oidc.ClientSecret, Endpoint: d.Endpoint(),
		RedirectURL: s.redirectURL(o, d), Scopes: scopes,
	}
}

// startUpstream sends the browser to an organization's identity provider, with state, nonce and a
// PKCE challenge (RFC 9700 section 2.1).
func (s *Service) startUpstream(v *visit) error {
	q := v.r.URL.Query()
	org, ok := s.organization(q.Get("organization"))
	if !ok || org.oidc == nil {
		return &snap.Error{Code: snap.CodeNotFound,
			Detail: "this organization does not exist, or does not sign in with an identity provider",
			Hint:   "go back and choose another organization"}
	}
	ctx := v.r.Context()
	d, err := org.provider.Discover(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "identity provider", "organization", org.Slug, "error", err)
		return upstreamFailed("the identity provider of "+org.Name+" does not answer",
			"try again later; API keys and existing sessions keep working", err)
	}
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	err = s.store.AddUpstreamLogin(ctx, store.UpstreamLogin{
		Browser: auth.HashOf(v.number), OrgID: org.ID, Nonce: nonce, Verifier: verifier,
		Next: s.localPath(q.Get("next")), Expires: s.now().Add(upstreamLife),
	}, auth.HashOf(state))
	if err != nil {
		return err
	}
	config := s.oauthConfig(org, d)
	http.Redirect(v.w, v.r, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)),
		http.StatusSeeOther)
	return nil
}

// finishUpstream handles the identity provider's response and counts the outcome.
func (s *Service) finishUpstream(v *visit) error {
	err := s.applyResponse(v)
	s.count("provider", outcome(err))
	return err
}

func (s *Service) applyResponse(v *visit) error {
	login, err := s.store.ConsumeUpstreamLogin(v.r.Context(), auth.HashOf(v.r.URL.Query().Get("state")))
	if err != nil {
		return err
	}
	if !hmac.Equal(login.Browser, auth.HashOf(v.number)) {
		return snap.Forbidden("this sign-in was started in another browser", "sign in again here")
	}
	org, ok := s.organizationByID(login.OrgID)
	if !ok || org.oidc == nil {
		return &snap.Error{Code: snap.CodeNotFound, Detail: "the organization no longer uses this way to sign in"}
	}
	v.actAs(snap.Acting(org.OrgRef, snap.PartProvider)) // and not as a user who is already signed in
	ctx, began := v.r.Context(), s.now()
	p, token, err := s.identifyUpstream(ctx, org, login, v.r)
	if err != nil {
		s.log.WarnContext(ctx, "sign-in refused", "organization", org.Slug, "error", err)
		return err
	}
	userID, err := s.applyClaims(ctx, org, p)
	if err != nil {
		return err
	}
	err = s.signInBrowser(v, org, store.InteractiveSignIn{UserID: userID, Began: began,
		Refresh: s.sealRefresh(userID, token.RefreshToken), SID: p.Session})
	if err != nil {
		return err
	}
	http.Redirect(v.w, v.r, login.Next, http.StatusSeeOther)
	return nil
}

// identifyUpstream checks the identity provider's response and returns the person it is about.
func (s *Service) identifyUpstream(ctx context.Context, org organization, login store.UpstreamLogin,
	r *http.Request) (auth.Person, *oauth2.Token, error) {
	q := r.URL.Query()
	d, err := org.provider.Discover(ctx)
	if err != nil {
		return auth.Person{}, nil, noAnswer(org, err)
	}
	if r.PathValue("organization") != s.callback(org, d) {
		return auth.Person{}, nil,
			errUntrusted(errors.New("the response did not come to this organization's callback path"))
	}
	if iss := q.Get("iss"); iss != org.provider.Issuer() && (iss != "" || d.IssInAnswer) {
		return auth.Person{}, nil, errUntrusted(fmt.Errorf("the response names the issuer %q", printable(iss, 200)))
	}
	if code := q.Get("error"); code != "" {
		return auth.Person{}, nil, &snap.Error{
			Code: snap.CodeForbidden, Detail: "the identity provider did not sign you in: " +
				printable(code+" "+q.Get("error_description"), 200),
			Hint: "try again, or ask your administrator",
		}
	}
	ctx = org.provider.Context(ctx)
	config := s.oauthConfig(org, d)
	token, err := config.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(login.Verifier))
	if err != nil {
		return auth.Person{}, nil, upstreamFailed("the identity provider of "+org.Name+" did not confirm the sign-in",
			"try again", err)
	}
	p, err := s.personOf(ctx, org, d, token, login.Nonce)
	return p, token, err
}

func noAnswer(org organization, cause error) error {
	return upstreamFailed("the identity provider of "+org.Name+" does not answer", "try again later", cause)
}

func errUntrusted(cause error) error {
	return &snap.Error{Code: snap.CodeForbidden, Detail: "the identity provider's response cannot be trusted",
		Hint: "sign in again; if it happens again, tell your administrator", Cause: cause}
}

// personOf verifies the ID token and reads its claims. Groups and an e-mail that the token lacks
// are read from userinfo.
func (s *Service) personOf(ctx context.Context, org organization, d *auth.Discovered, token *oauth2.Token,
	nonce string) (auth.Person, error) {
	raw, _ := token.Extra("id_token").(string)
	id, err := org.provider.Verify(ctx, d, org.oidc.ClientID, raw)
	if errors.Is(err, auth.ErrProviderDown) {
		return auth.Person{}, noAnswer(org, err)
	}
	if err != nil {
		return auth.Person{}, errUntrusted(err)
	}
	if !hmac.Equal([]byte(id.Nonce), []byte(nonce)) {
		return auth.Person{}, errUntrusted(errors.New("the ID token does not have the nonce of this sign-in"))
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return auth.Person{}, errUntrusted(err)
		}
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return auth.Person{}, errUntrusted(err)
	}
	p := auth.PersonFromClaims(id.Issuer, id.Subject, claims, org.oidc.Claims)
	if (!p.Groups.Known || claims["email"] == nil) && d.UserInfoEndpoint() != "" {
		if p, err = s.addUserinfo(ctx, org, d, token, p, claims); err != nil {
			return auth.Person{}, err
		}
	}
	p.Issued = id.IssuedAt
	return p, nil
}

// addUserinfo adds the claims of userinfo, which must be about the same subject. If the userinfo
// endpoint fails, the claims are left unchanged.
func (s *Service) addUserinfo(ctx context.Context, org organization, d *auth.Discovered, token *oauth2.Token,
	p auth.Person, claims map[string]any) (auth.Person, error) {
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		s.log.WarnContext(ctx, "userinfo of the identity provider", "organization", org.Slug, "error", err)
		return p, nil
	}
	if info.Subject != p.Subject {
		return auth.Person{}, errUntrusted(errors.New("userinfo is about someone else"))
	}
	if err := auth.AddUserinfo(claims, info); err != nil {
		return auth.Person{}, errUntrusted(err)
	}
	return auth.PersonFromClaims(p.Issuer, p.Subject, claims, org.oidc.Claims), nil
}

// signInBrowser signs a person's browser in until they must sign in again, unless their account is
// disabled.
func (s *Service) signInBrowser(v *visit, org organization, in store.InteractiveSignIn) error {
	ctx := v.r.Context()
	if err := s.store.RecordSignIn(ctx, in); err != nil {
		return err
	}
	if err := s.checkEnabled(ctx, in.UserID); err != nil {
		return err
	}
	t, err := s.store.StandingOf(ctx, in.UserID)
	if err != nil {
		return err
	}
	_, err = s.browser.SignIn(v.w, v.r, in.UserID, in.Began, org.due(t))
	return err
}

// checkEnabled fails with code forbidden when an account is disabled.
func (s *Service) checkEnabled(ctx context.Context, userID int64) error {
	_, err := s.store.CallerWithoutGroups(ctx, userID)
	if snap.CodeOf(err) == snap.CodeUnauthenticated {
		return snap.Forbidden("this account is disabled", "ask an owner or admin of your organization")
	}
	return err
}

// applyClaims applies the identity provider's claims to the user's account.
func (s *Service) applyClaims(ctx context.Context, org organization, p auth.Person) (userID int64, err error) {
	if !p.Groups.Known {
		s.log.WarnContext(ctx, "groups are unknown, so group shares give no access", "organization", org.Slug,
			"subject", p.Subject, "why", p.Groups.Why)
	}
	in, err := p.SignIn(org.ID, org.oidc.Roles)
	if err != nil {
		return 0, err
	}
	return s.store.ApplySignIn(ctx, in)
}

// Reporter returns the identity provider of a caller's organization. The provider uses the caller's
// key to report people and groups by SCIM.
func (s *Service) Reporter(c snap.Caller) store.Reporter {
	r := store.Reporter{Caller: c, Issuer: localIssuer}
	if o, ok := s.organizationByID(c.Org.ID); ok && o.oidc != nil {
		r.Issuer = o.oidc.Issuer
		r.RoleOf = func(email string, verified bool, groups []snap.Group) snap.Role {
			return auth.RoleWith(email, verified, groups, o.oidc.Roles)
		}
	}
	return r
}

// External returns the external auth service (auth.issuer) whose access tokens the API accepts. Its
// users belong to the one organization that signs in with the same issuer.
func (s *Service) External(issuer, audience string) (*auth.External, error) {
	var found *auth.External
	for _, o := range s.orgs {
		if o.oidc == nil || o.oidc.Issuer != issuer {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("auth.issuer %s: several organizations sign in with it, so its tokens do not "+
				"identify one of them", issuer)
		}
		found = &auth.External{Provider: o.provider, Audience: audience, Org: o.OrgRef, Claims: o.oidc.Claims,
			Roles: o.oidc.Roles}
	}
	if found == nil {
		return nil, fmt.Errorf("auth.issuer %s: it is not the issuer in any organization's sign_in", issuer)
	}
	return found, nil
}
