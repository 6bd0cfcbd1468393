package signin

import "time"

// SetPatience sets how long the service waits for a provider: in a check, in a request, and in a round
// of background checks.
func (s *Service) SetPatience(check, request, round time.Duration) {
	s.patience = patience{check, request, round}
}
