package signin

import "time"

// SetProviderTimeout sets how long a request to an identity provider may take. It is called before the
// service serves.
func (s *Service) SetProviderTimeout(d time.Duration) {
	for _, org := range s.orgs {
		if org.provider != nil {
			org.provider.SetTimeout(d)
		}
	}
}

// SetPatience sets how long the service waits for a provider: in a check, in a request, and in a round
// of background checks.
func (s *Service) SetPatience(check, request, round time.Duration) {
	s.patience = patience{check, request, round}
}
