package signin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// A device is signed out after LoginIdle without use, and in any case after LoginMax.
const (
	LoginIdle = 30 * 24 * time.Hour
	LoginMax  = 180 * 24 * time.Hour
)

// tokenResponse is the token response (RFC 6749 section 5.1).
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
	IDToken      string `json:"id_token,omitempty"`
}

// token is the token endpoint (RFC 6749 section 3.2). It accepts POST only, with three grant types.
func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	f, ok := s.form(w, r)
	if !ok {
		return
	}
	switch f.Get("grant_type") {
	case grantDevice:
		s.deviceGrant(w, r, f)
	case grantRefresh:
		s.refreshGrant(w, r, f)
	case grantExchange:
		s.exchangeGrant(w, r, f)
	case "":
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_request", "grant_type is missing")
	default:
		s.writeOAuthError(w, http.StatusBadRequest, "unsupported_grant_type",
			"only the device code, refresh token and token exchange grants are supported")
	}
}

// deviceGrant responds to a poll (RFC 8628 section 3.4).
func (s *Service) deviceGrant(w http.ResponseWriter, r *http.Request, f url.Values) {
	if !s.requireClient(w, r, f) {
		return
	}
	if f.Get("device_code") == "" {
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_request", "device_code is missing")
		return
	}
	refresh, now := newRefreshToken(), s.now()
	result, n, reason, err := s.store.PollDevice(r.Context(), store.Poll{
		Hash: auth.HashOf(f.Get("device_code")), ClientID: s.client, Refresh: auth.HashOf(refresh),
		Idle: now.Add(LoginIdle), Expires: now.Add(LoginMax),
	})
	if err != nil {
		s.writeFailure(w, r, err)
		return
	}
	bad := func(code, description string) { s.writeOAuthError(w, http.StatusBadRequest, code, description) }
	switch result {
	case store.PollPending:
		bad("authorization_pending", "not approved yet")
	case store.PollSlowDown:
		bad("slow_down", "polled too often; wait 5 seconds longer between requests")
	case store.PollDenied:
		s.count("device", "refused")
		bad("access_denied", reason)
	case store.PollExpired:
		s.count("device", "expired")
		bad("expired_token", "the code has expired; start again")
	case store.PollApproved:
		s.count("device", "ok")
		s.log.InfoContext(r.Context(), "signed in", "user", n.UserID, "session", n.ID, "program", n.Name, "address",
			n.Address)
		s.writeTokens(w, r, n, refresh)
	default:
		s.count("device", "wrong")
		bad("invalid_grant", "the device code is unknown or already used")
	}
}

// refreshGrant redeems a refresh token (RFC 6749 section 6).
func (s *Service) refreshGrant(w http.ResponseWriter, r *http.Request, f url.Values) {
	if !s.requireClient(w, r, f) {
		return
	}
	sent := f.Get("refresh_token")
	if sent == "" {
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_request", "refresh_token is missing")
		return
	}
	if !s.requireScope(w, f.Get("scope")) {
		return
	}
	if err := s.confirmRefresh(r.Context(), auth.HashOf(sent)); err != nil {
		s.refuseRefresh(w, r, err)
		return
	}
	next := newRefreshToken()
	n, err := s.store.RotateRefresh(r.Context(), store.Rotation{
		Hash: auth.HashOf(sent), Next: auth.HashOf(next), ClientID: s.client, Idle: s.now().Add(LoginIdle),
	})
	switch {
	case errors.Is(err, store.ErrTokenReused):
		s.count("refresh", "reused")
		s.log.WarnContext(r.Context(), "refresh token reused, session ended", "user", n.UserID, "session", n.ID,
			"address", s.address(r))
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_grant", "the session has ended; sign in again")
	case errors.Is(err, store.ErrClosed): // not invalid_grant, so that the client keeps its token
		s.count("refresh", "refused")
		s.writeOAuthError(w, http.StatusBadRequest, "unauthorized_client",
			"your organization is closed on this service")
	case errors.Is(err, snap.ErrUnauthenticated):
		s.count("refresh", "expired")
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_grant", "the session has ended; sign in again")
	case err != nil:
		s.count("refresh", outcome(err))
		s.writeFailure(w, r, err)
	default:
		s.count("refresh", "ok")
		s.writeTokens(w, r, n, next)
	}
}

// requireScope refuses scopes that do not exist (RFC 6749 section 5.2). Existing scopes give no
// rights, so a refresh may ask for any of them. The new access token keeps the scope that was
// granted.
func (s *Service) requireScope(w http.ResponseWriter, asked string) bool {
	for _, word := range strings.Fields(asked) {
		if !slices.Contains(scopes(), word) {
			s.writeOAuthError(w, http.StatusBadRequest, "invalid_scope",
				fmt.Sprintf("the scope %q does not exist; the scopes are %s", printable(word, 40),
					strings.Join(scopes(), ", ")))
			return false
		}
	}
	return true
}

// writeTokens responds with new tokens for a session.
func (s *Service) writeTokens(w http.ResponseWriter, r *http.Request, n store.Session, refresh string) {
	answer, err := s.newTokens(r.Context(), n)
	switch {
	case errors.Is(err, snap.ErrUnauthenticated):
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_grant", "the account is disabled")
	case err != nil:
		s.writeFailure(w, r, err)
	default:
		answer.RefreshToken = refresh
		writeJSON(w, http.StatusOK, answer)
	}
}

func (s *Service) newTokens(ctx context.Context, n store.Session) (tokenResponse, error) {
	c, err := s.store.CallerOfUser(ctx, n.UserID)
	if err != nil {
		return tokenResponse{}, err
	}
	subject := formatID(n.UserID)
	access, err := s.tokens.Access(ctx, auth.Claims{Session: n.ID, Subject: subject, ClientID: n.ClientID,
		Scope: n.Scope})
	if err != nil {
		return tokenResponse{}, err
	}
	answer := tokenResponse{AccessToken: access, TokenType: "Bearer", ExpiresIn: int(auth.AccessLife.Seconds()),
		Scope: n.Scope}
	if hasScope(n.Scope, "openid") {
		answer.IDToken, err = s.tokens.ID(ctx, auth.Identity{
			Subject: subject, ClientID: n.ClientID, Email: c.User.Email, Name: c.User.Name, AuthTime: n.Created,
		})
	}
	return answer, err
}

// refreshPrefix lets secret scanners recognize a refresh token.
const refreshPrefix = "crt_"

func newRefreshToken() string { return refreshPrefix + rand.Text() + rand.Text() }

// revoke ends the session of a refresh or access token (RFC 7009). For a token that is unknown or
// belongs to another client, it sends the same response and changes nothing.
func (s *Service) revoke(w http.ResponseWriter, r *http.Request) {
	f, ok := s.form(w, r)
	if !ok || !s.requireClient(w, r, f) {
		return
	}
	if f.Get("token") == "" {
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_request", "token is missing")
		return
	}
	if err := s.revokeToken(r.Context(), f.Get("token")); err != nil {
		s.writeFailure(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

func (s *Service) revokeToken(ctx context.Context, token string) error {
	ended, err := s.store.RevokeRefresh(ctx, auth.HashOf(token), s.client)
	if err != nil || ended {
		return err
	}
	claims, err := s.tokens.Verify(ctx, token)
	if errors.Is(err, snap.ErrUnauthenticated) || err == nil && claims.ClientID != s.client {
		return nil
	}
	if err != nil {
		return err
	}
	n, err := s.store.LiveSession(ctx, claims.Session)
	if errors.Is(err, snap.ErrUnauthenticated) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.store.EndSession(ctx, snap.Caller{User: &snap.User{ID: n.UserID}}, n.ID)
}

// userinfoResponse describes the user of an access token (OpenID Connect Core section 5.3).
type userinfoResponse struct {
	Subject      string   `json:"sub"`
	Email        string   `json:"email,omitempty"`
	Name         string   `json:"name,omitempty"`
	Organization string   `json:"organization"`
	Role         string   `json:"role"`
	Groups       []string `json:"groups"`
}

func (s *Service) userinfo(w http.ResponseWriter, r *http.Request) {
	c, err := s.keys.User(r)
	if snap.CodeOf(err) == snap.CodeInternal { // the token was not checked
		s.writeFailure(w, r, err)
		return
	}
	if err != nil || c.Credential.Kind != snap.LoginToken {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		s.writeOAuthError(w, http.StatusUnauthorized, "invalid_token",
			"the access token is missing, wrong, expired or revoked")
		return
	}
	groups, err := s.store.GroupsOf(r.Context(), c)
	if err != nil {
		s.writeFailure(w, r, err)
		return
	}
	answer := userinfoResponse{
		Subject: formatID(c.User.ID), Email: c.User.Email, Name: c.User.Name,
		Organization: c.Org.Slug, Role: string(c.Role), Groups: []string{},
	}
	for _, g := range groups {
		answer.Groups = append(answer.Groups, g.GroupID)
	}
	writeJSON(w, http.StatusOK, answer)
}
