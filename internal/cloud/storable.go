package cloud

import (
	"encoding/json"
	"net/http"
	"net/url"
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
		for pair := range strings.SplitSeq(r.URL.RawQuery, "&") { // r.URL.Query leaves out pairs with a semicolon
			if text, err := url.QueryUnescape(pair); err == nil && !snap.Storable(text) {
				s.writeError(w, r, snap.Invalid("the query has a NUL character or is not UTF-8",
					"correct its parameters"))
				return
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
