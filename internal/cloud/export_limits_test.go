package cloud

import (
	"net/http"
	"time"
)

// Moving returns a handler of bytes that may stand still for this long.
func Moving(next http.Handler, stall time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(newMoving(w, r, stall), r) })
}

// Admitted puts the admission in front of a handler.
func (s *Service) Admitted(next http.Handler) http.Handler { return s.admitted(next) }
