package cloud

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"snap"
)

// requireStorable keeps text that PostgreSQL cannot store (see [snap.Storable]) from every handler.
// In the path, U+FFFD replaces such text, so that the response is the same as for an ID that does
// not exist. In the query, it is refused.
func (s *Service) requireStorable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !snap.Storable(r.URL.Path) {
			r.URL.Path = strings.ReplaceAll(strings.ToValidUTF8(r.URL.Path, "\uFFFD"), "\x00", "\uFFFD")
			r.URL.RawPath = ""
		}
		if r.URL.RawQuery != "" {
			for name, values := range r.URL.Query() {
				if !snap.Storable(name) || !snap.Storable(strings.Join(values, "")) {
					s.writeError(w, r, snap.Invalid("the query has a NUL character or is not UTF-8",
						"correct its parameters"))
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// storableJSON is JSON whose text can be stored.
var storableJSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: func(data []byte, v any) error {
	if snap.NULInJSON(data) {
		return snap.Invalid("the body has a NUL character", "remove it")
	}
	return json.Unmarshal(data, v)
}}
