package look

import (
	"net/http"
	"strings"
)

// Policy returns the Content-Security-Policy of our pages: scripts, styles and
// images from the page's own origin only, nothing inline, no framing. A form
// may be sent to the page's origin and to the given ones; a browser applies
// this also to where the answer redirects, so a page whose form leads to an
// identity provider must name its origin.
func Policy(formTargets ...string) string {
	forms := strings.Join(append([]string{"'self'"}, formTargets...), " ")
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action " + forms + "; base-uri 'none'; frame-ancestors 'none'"
}

// Secure wraps a handler of pages so that every answer carries the headers that
// keep it safe in a browser: [Policy], no sniffing, no framing, no referrer to
// elsewhere, an origin of its own, and no storing in caches unless the handler
// says otherwise.
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
