package cloud

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"snap/internal/store"
)

// Constant serves one answer at a path as a route of the service would: behind
// the same middleware, router and answer for what is not found.
func (s *Service) Constant(path string, body []byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	return s.wrap(s.admitted(s.fallback(mux)))
}

// KeepNothing makes every listing ask the database, or no longer.
func (s *Service) KeepNothing(on bool) {
	s.kept.version = s.store.Version
	if on {
		s.kept.version = func(context.Context) (store.Version, error) { return store.Version{}, errors.New("none") }
	}
}

// KeepUnproven makes kept answers stand whatever has been committed, to show
// what proving them is for.
func (s *Service) KeepUnproven() {
	s.kept.version = func(context.Context) (store.Version, error) { return store.Version{At: s.now()}, nil }
}
