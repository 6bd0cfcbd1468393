package look

import (
	"net/http"
	"strings"
)

// Policy returns the Content-Security-Policy of our pages: scripts, styles and images only from the
// page's own origin, nothing inline, no framing. Forms may be sent to the page's origin and to
// formTargets. Browsers apply this to redirects as well, so a page whose form leads to an identity
// provider must list the provider's origin.
func Policy(formTargets ...string) string {
	forms := strings.Join(append([]string{"'self'"}, formTargets...), " ")
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action " + forms + "; base-uri 'none'; frame-ancestors 'none'"
}

// Secure wraps a page handler so that every response has the headers that protect it in a browser:
// [Policy], no content sniffing, no framing, no referrer to other sites, origin isolation, and no
// caching unless the handler sets its own Cache-Control.
func Secure(next http.Handler, formTargets ...string) http.Handler {
	policy := Policy(formTargets...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
