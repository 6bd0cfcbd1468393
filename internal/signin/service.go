// Package signin is the auth service built into snapcloud.
package signin

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"snap"
	"snap/internal/store"
)

// LocalUser is a user listed in the configuration.
type LocalUser struct {
	Email, Name, Password string
	Role                  snap.Role
	Groups                []string
}

// OIDC is an organization's OpenID Connect identity provider.
type OIDC struct {
	Issuer, ClientID, ClientSecret string
	Scopes                         []string // empty is openid, profile, email
	GroupsClaim                    string   // empty is groups
	Roles                          map[snap.Role][]string
	AllowPrivate                   bool // the issuer may be on a private or loopback address, and plain http
}

// Organization is how one organization signs in: exactly one of Local and OIDC.
type Organization struct {
	Slug  string
	Local []LocalUser
	OIDC  *OIDC
}

// Options configure a [Service].
type Options struct {
	PublicURL      string // of the whole service; the issuer is {PublicURL}/auth
	ClientID       string // of the command line
	Audience       string // of the access tokens; empty is PublicURL
	Organizations  []Organization
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	Now            func() time.Time
	Log            *slog.Logger
}

// Service is the auth service.
type Service struct{ o Options }

// New returns the service. Local users are applied to the store.
func New(ctx context.Context, s *store.Store, o Options) (*Service, error) {
	return &Service{o: o}, nil
}

// Issuer returns {public_url}/auth.
func (s *Service) Issuer() string { return s.o.PublicURL + "/auth" }

// Handler serves everything below /auth/, and the RFC 8414 document at
// /.well-known/oauth-authorization-server/auth.
func (s *Service) Handler() http.Handler { return http.NotFoundHandler() }
