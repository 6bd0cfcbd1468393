package signin

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/oauth2"
)

// SetProviderTimeout sets how long a request to an identity provider may take. It is called before the
// service serves.
func (s *Service) SetProviderTimeout(d time.Duration) {
	for _, org := range s.orgs {
		if org.provider != nil {
			client := org.provider.Context(context.Background()).Value(oauth2.HTTPClient).(*http.Client)
			client.Timeout = d
			client.Transport.(*http.Transport).ResponseHeaderTimeout = d
		}
	}
}

// SetTimeouts sets how long the service waits for a provider: in a check, in a request, and in a round
// of background checks.
func (s *Service) SetTimeouts(check, request, round time.Duration) {
	s.timeouts = timeouts{check, request, round}
}

// Compared returns the configured password with which a sign-in compares the entered one, and
// whether the user is known.
func (s *Service) Compared(slug, email string) (password string, known bool) {
	_, u, known := s.localUser(slug, email)
	return u.Password, known
}
