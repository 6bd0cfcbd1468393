package cloud

import (
	"net/http"
	"strconv"
)

// Constant serves one constant answer at a path, behind the same middleware and router as the
// service's routes.
func (s *Service) Constant(path string, body []byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	return s.wrap(s.load.Wrap(s.fallback(mux)))
}
