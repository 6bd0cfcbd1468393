package cloud

import (
	"context"
	"net/http"

	"snap"
	"snap/api"
	"snap/internal/console"
)

// openConsole adds the organization's pages. Their requests to the API go to the same mux. They
// bypass the limit on concurrent requests, which already admitted the request for the page.
func (s *Service) openConsole(mux *http.ServeMux) error {
	pages, err := console.New(console.Options{
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mux.ServeHTTP(w, mayUseReserve(r))
		}),
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
