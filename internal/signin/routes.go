package signin

import (
	"net/http"
	"strings"

	"snap/internal/look"
	"snap/internal/store"
)

// Handler serves everything below the issuer's path, and the issuer's metadata where RFC 8414
// section 3.1 puts it: /.well-known/oauth-authorization-server/auth.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(route string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(route, " ")
		mux.Handle(method+" "+s.path+path, h)
	}
	// For programs.
	handle("GET /.well-known/oauth-authorization-server", s.metadata)
	handle("GET /.well-known/openid-configuration", s.metadata)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server"+s.path, s.metadata)
	for path, h := range map[string]http.HandlerFunc{
		"/device_authorization": s.deviceAuthorization,
		"/token":                s.token,
		"/revoke":               s.revoke,
		"/upstream/logout":      s.backChannelLogout,
	} {
		handle("POST "+path, h)
		handle("GET "+path, s.postOnly)
	}
	handle("GET /jwks", s.jwks)
	handle("GET /userinfo", s.userinfo)
	handle("POST /userinfo", s.userinfo)

	// For people.
	page := func(route string, h pageHandler) { handle(route, look.Secure(s.page(h)).ServeHTTP) }
	account := func(route string, h pageHandler) { handle(route, look.Secure(s.accountPage(h)).ServeHTTP) }
	handle("GET /assets/", s.assets.ServeHTTP)
	page("GET /{$}", s.home)
	page("GET /device", s.enterCode)
	page("POST /device", s.postCode)
	page("GET /device/confirm", s.confirm)
	page("POST /device/confirm", s.decide)
	page("GET /device/done", s.done)
	page("GET /signin", s.signInPage)
	page("POST /signin", s.postSignIn)
	page("GET /upstream/start", s.startUpstream)
	page("GET /upstream/callback", s.finishUpstream)
	page("GET /upstream/callback/{organization}", s.finishUpstream)
	page("POST /signout", s.signOut)
	account("GET /account", s.account)
	account("POST /account/sessions/end", s.endSession)
	account("POST /account/keys", s.createKey)
	account("POST /account/keys/revoke", s.revokeKey)
	page("GET /", s.noPage)
	return allowReserve(mux)
}

// allowReserve lets people sign in, refresh and end sessions on a full disk, so that they can still
// revoke access.
func allowReserve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/device_authorization") && !strings.HasSuffix(r.URL.Path, "/account/keys") {
			r = r.WithContext(store.AllowReserve(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}
