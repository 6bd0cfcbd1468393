package cloud

import (
	"context"
	"net/http"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/console"
)

// openConsole adds the pages of the web console. A page calls the API with requests to the same
// mux. These requests bypass the limit on concurrent requests, because the request for the page has
// already passed it.
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

// pageCallerKey is a context key. In a page's own requests to the API, its value is the caller who
// requested the page. A client cannot set it.
type pageCallerKey struct{}

// authenticate returns the caller of a request to the API. If a page of the console makes the
// request to read data, the caller is the person who requested the page.
func (s *Service) authenticate(r *http.Request) (snap.Caller, error) {
	if c, ok := r.Context().Value(pageCallerKey{}).(snap.Caller); ok {
		return c, nil
	}
	if strings.HasPrefix(r.URL.Path, api.MountAgent+"/") {
		return s.auth.Agent(r)
	}
	return s.auth.User(r)
}
