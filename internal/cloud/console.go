package cloud

import (
	"context"
	"net/http"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/console"
)

// openConsole adds the organization's pages. Their requests to the API go to the same mux. They
// bypass the limit on concurrent requests, which already admitted the request for the page.
func (s *Service) openConsole(mux *http.ServeMux) error {
	pages, err := console.New(console.Options{
		API: func(w http.ResponseWriter, r *http.Request, c *snap.Caller) {
			r = mayUseReserve(r)
			if c != nil {
				r = r.WithContext(context.WithValue(r.Context(), pageCallerKey{}, *c))
			}
			mux.ServeHTTP(w, r)
		},
		PublicURL: s.config.PublicURL,
		Caller: func(r *http.Request) (snap.Caller, error) {
			c, err := s.auth.User(r)
			if err == nil {
				noteCaller(r.Context(), c)
			}
			return c, err
		},
		Forms:    s.signin.Forms(),
		NotFound: s.web.notFound,
		Problem: func(ctx context.Context, err error) api.Problem {
			return problemOf(ctx, s.telemetry.outages, err).Problem
		},
		Now: s.now,
	})
	if err != nil {
		return err
	}
	pages.Register(mux)
	return nil
}

// pageCallerKey is the key of the caller of a page of the console, in the context of the page's own
// requests to the API. Nothing that a client sends sets it.
type pageCallerKey struct{}

// authenticate returns the caller of a request to the API. The request of a page that only reads has
// the caller for whom the page was admitted.
func (s *Service) authenticate(r *http.Request) (snap.Caller, error) {
	if c, ok := r.Context().Value(pageCallerKey{}).(snap.Caller); ok {
		return c, nil
	}
	if strings.HasPrefix(r.URL.Path, api.MountAgent+"/") {
		return s.auth.Agent(r)
	}
	return s.auth.User(r)
}
