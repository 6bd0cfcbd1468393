package cloud

import "net/http"

// Limited puts the load control in front of a handler.
func (s *Service) Limited(next http.Handler) http.Handler { return s.load.Wrap(next) }
