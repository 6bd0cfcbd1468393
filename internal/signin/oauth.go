package signin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"snap"
	"snap/internal/auth"
)

// The grant types of the token endpoint.
const (
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
	grantRefresh = "refresh_token"
)

// scopes returns the scopes that a client may request. With openid, the client gets an ID token.
// The client's rights depend on the user's role, not on the scopes.
func scopes() []string { return []string{"openid", "profile", "email", "offline_access"} }

// oauthError is the body of an error (RFC 6749 section 5.2).
type oauthError struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

func (s *Service) writeOAuthError(w http.ResponseWriter, status int, code, description string) {
	writeJSON(w, status, oauthError{Code: code, Description: description})
}

// writeFailure responds that the service has an error and that the client may retry.
func (s *Service) writeFailure(w http.ResponseWriter, r *http.Request, err error) {
	known := s.fault(r, err)
	w.Header().Set("Retry-After", retrySoon)
	s.writeOAuthError(w, http.StatusServiceUnavailable, "temporarily_unavailable", known.Error()+"; "+known.Hint)
}

// writeProviderDown responds that a provider or CI system does not answer, and counts it for a
// method of [Options].Count.
func (s *Service) writeProviderDown(w http.ResponseWriter, method, description string) {
	s.count(method, "unavailable")
	w.Header().Set("Retry-After", retrySoon)
	s.writeOAuthError(w, http.StatusServiceUnavailable, "temporarily_unavailable", description)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// postOnly responds to GET at an endpoint that accepts only POST.
func (s *Service) postOnly(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	s.writeOAuthError(w, http.StatusMethodNotAllowed, "invalid_request", "use POST")
}

// form reads the parameters of a request's body. It refuses a repeated parameter (RFC 6749 section
// 3.2), and ignores parameters in the URL.
func (s *Service) form(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	r.Body = http.MaxBytesReader(w, r.Body, auth.MaxForm)
	if err := r.ParseForm(); err != nil {
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_request", "the body is not a form")
		return nil, false
	}
	for name, values := range r.PostForm {
		if !snap.Storable(name) || !snap.Storable(strings.Join(values, "")) {
			s.writeOAuthError(w, http.StatusBadRequest, "invalid_request",
				"the body has a NUL character or is not UTF-8")
			return nil, false
		}
		if len(values) > 1 {
			s.writeOAuthError(w, http.StatusBadRequest, "invalid_request",
				"a parameter is repeated: "+printable(name, 40))
			return nil, false
		}
	}
	return r.PostForm, true
}

// requireClient checks that the request names the only client. The client is public: it sends
// client_id in the body, or a Basic header with its ID and an empty secret, as golang.org/x/oauth2
// does (RFC 6749 section 2.3.1).
func (s *Service) requireClient(w http.ResponseWriter, r *http.Request, f url.Values) bool {
	named := f["client_id"]
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Basic") {
		id, ok := basicClient(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="snapcloud"`)
			s.writeOAuthError(w, http.StatusUnauthorized, "invalid_client",
				"the client has no secret; send client_id alone")
			return false
		}
		named = append(slices.Clone(named), id)
	}
	if len(named) > 0 && !slices.ContainsFunc(named, func(id string) bool { return id != s.client }) {
		return true
	}
	s.writeOAuthError(w, http.StatusUnauthorized, "invalid_client", "unknown client_id")
	return false
}

// basicClient returns the client that a Basic header names. It returns false for a malformed header
// and for one with a secret.
func basicClient(r *http.Request) (id string, ok bool) {
	user, secret, ok := r.BasicAuth()
	if !ok || secret != "" || len(r.Header.Values("Authorization")) != 1 {
		return "", false
	}
	id, err := url.QueryUnescape(user)
	return id, err == nil
}

// grantedScope returns the requested scopes that exist, or all if none were requested (RFC 6749
// section 3.3).
func grantedScope(asked string) string {
	if strings.TrimSpace(asked) == "" {
		return strings.Join(scopes(), " ")
	}
	var granted []string
	for _, word := range strings.Fields(asked) {
		if slices.Contains(scopes(), word) && !slices.Contains(granted, word) {
			granted = append(granted, word)
		}
	}
	return strings.Join(granted, " ")
}

func hasScope(granted, scope string) bool { return slices.Contains(strings.Fields(granted), scope) }

// printable returns at most max printable characters of text that a client sent.
func printable(text string, max int) string {
	clean := snap.CleanText(text)
	if runes := []rune(clean); len(runes) > max {
		clean = string(runes[:max])
	}
	return strings.TrimSpace(clean)
}
