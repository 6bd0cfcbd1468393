package cloud

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// Routes returns the patterns of every route that needs a caller, for tests
// that walk the route table.
func (s *Service) Routes() []string {
	var out []string
	for _, rt := range s.table {
		out = append(out, rt.pattern)
	}
	return out
}

// Described returns the OpenAPI document.
func (s *Service) Described() *huma.OpenAPI { return s.openAPI }

// Wrapped returns a handler behind what every request passes.
func (s *Service) Wrapped(h http.Handler) http.Handler { return s.wrap(h) }
