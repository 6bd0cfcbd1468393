package signin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// logoutEvent is a member that a logout token must have in its claim named events.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// maxLogoutAge is the maximum age of a logout token, regardless of its expiry.
const maxLogoutAge = 10 * time.Minute

// logoutClaims are the claims of a logout token that are checked here.
type logoutClaims struct {
	Subject  string                     `json:"sub"`
	SID      string                     `json:"sid"`
	ID       string                     `json:"jti"`
	IssuedAt int64                      `json:"iat"`
	Nonce    *json.RawMessage           `json:"nonce"`
	Events   map[string]json.RawMessage `json:"events"`
}

// backChannelLogout ends the sessions of a person who signed out, or was signed out, at their
// identity provider (OpenID Connect Back-Channel Logout 1.0 section 2.5). The person's API keys are
// not revoked, because the account at the provider still exists.
func (s *Service) backChannelLogout(w http.ResponseWriter, r *http.Request) {
	f, ok := s.form(w, r)
	if !ok {
		return
	}
	ended, err := s.endByLogoutToken(r.Context(), f.Get("logout_token"))
	switch {
	case errors.Is(err, auth.ErrProviderDown): // not refused, so that the provider sends the token again
		s.log.WarnContext(r.Context(), "a logout token cannot be verified", "error", err)
		s.writeProviderDown(w, "logout",
			"the identity provider's metadata or keys cannot be read; try again in a moment")
	case errors.Is(err, errLogoutToken):
		s.count("logout", "refused")
		s.log.WarnContext(r.Context(), "a logout token was refused", "address", s.address(r), "error", err)
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_request", "the logout token is not valid")
	case err != nil:
		s.count("logout", outcome(err))
		s.writeFailure(w, r, err)
	default:
		s.count("logout", "ok")
		s.log.InfoContext(r.Context(), "signed out by the identity provider", "sessions", ended)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
	}
}

// errLogoutToken is wrapped by the errors of all invalid logout tokens.
var errLogoutToken = errors.New("invalid logout token")

// endByLogoutToken ends the sessions that a logout token names, in every organization for whose
// client the token was issued. It returns their number. If that failed in one of the organizations
// for now, it returns that error, and the same token can be sent again.
func (s *Service) endByLogoutToken(ctx context.Context, raw string) (ended int, err error) {
	refused, accepted := errLogoutToken, false
	var failed error
	for _, org := range s.orgs {
		if org.oidc == nil || auth.NamedIssuer(raw) != org.provider.Issuer() {
			continue // fetch no signing keys from a provider that did not issue the token
		}
		token, c, err := s.logoutToken(ctx, org, raw)
		if errors.Is(err, auth.ErrProviderDown) {
			failed = errors.Join(failed, err)
			continue
		}
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		ctx := snap.ActingAs(ctx, snap.Acting(org.OrgRef, snap.PartProvider))
		n, err := s.store.EndByLogout(ctx, store.Logout{OrgID: org.ID, Issuer: token.Issuer, Subject: c.Subject,
			SID: c.SID, Hash: auth.HashOf(org.Slug + " " + token.Issuer + " " + c.ID), Until: token.Expiry})
		switch {
		case err == nil:
			ended, accepted = ended+n, true
		case snap.CodeOf(err) == snap.CodeConflict:
			refused = errors.Join(refused, err)
		default:
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil || accepted {
		return ended, failed
	}
	return 0, refused
}

// logoutToken verifies a logout token for an organization's client (OpenID Connect Back-Channel
// Logout 1.0 section 2.6).
func (s *Service) logoutToken(ctx context.Context, org organization, raw string) (*oidc.IDToken, logoutClaims, error) {
	var c logoutClaims
	d, err := org.provider.Discover(ctx)
	if err != nil {
		return nil, c, err
	}
	token, err := org.provider.Verify(ctx, d, org.oidc.ClientID, raw)
	if err != nil {
		return nil, c, err
	}
	if err := token.Claims(&c); err != nil {
		return nil, c, err
	}
	age := s.now().Sub(token.IssuedAt)
	switch event := strings.TrimSpace(string(c.Events[logoutEvent])); {
	case !strings.HasPrefix(event, "{"):
		return nil, c, errors.New("it is not a logout token")
	case c.Nonce != nil:
		return nil, c, errors.New("it has a nonce, which only an ID token has")
	case c.ID == "" || c.IssuedAt == 0:
		return nil, c, errors.New("it has no jti or iat")
	case c.Subject == "" && c.SID == "":
		return nil, c, errors.New("it names neither a person nor a session")
	case !snap.Storable(c.Subject) || !snap.Storable(c.SID):
		return nil, c, errors.New("the claim sub or sid has a NUL character")
	case age > maxLogoutAge || age < -time.Minute:
		return nil, c, errors.New("it was not issued recently")
	}
	return token, c, nil
}
