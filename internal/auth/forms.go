package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"snap"
	"snap/internal/store"
)

// Forms protects the forms of our pages against other sites. A form must come from our own pages,
// which is checked twice: by the origin that the browser sends, and by a token that belongs to the
// browser and its session.
type Forms struct {
	browser Browser
	cross   *http.CrossOriginProtection
	secret  []byte
}

// NewForms returns the protection for the forms at a public URL. All replicas of a service accept
// the same tokens.
func NewForms(ctx context.Context, s *store.Store, publicURL string, b Browser) (Forms, error) {
	secret, err := s.Secret(ctx, "signin-forms", 32)
	if err != nil {
		return Forms{}, fmt.Errorf("read the secret of forms: %w", err)
	}
	return Forms{browser: b, cross: CrossOrigin(publicURL), secret: secret}, nil
}

// formCookie holds the random number that binds forms to a browser.
const formCookie = "snap_form"

// MaxForm is the maximum size of a form in bytes.
const MaxForm = 64 << 10

// Number returns the random number in the browser's cookie. If there is none, it sets a cookie with
// a new number.
func (f Forms) Number(w http.ResponseWriter, r *http.Request) string {
	if cookie, err := r.Cookie(f.browser.CookieName(formCookie)); err == nil && len(cookie.Value) >= 26 {
		return cookie.Value
	}
	number := rand.Text()
	f.browser.SetCookie(w, formCookie, number, 0)
	return number
}

// Token returns the csrf_token of the forms of a browser with this number and session: a keyed hash
// of both. The session is 0 when nobody is signed in.
func (f Forms) Token(number string, session int64) string {
	mac := hmac.New(sha256.New, f.secret)
	_, _ = mac.Write([]byte(number + "|" + strconv.FormatInt(session, 10)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Check reads the form of a POST and fails unless one of our pages sent the form with this token.
func (f Forms) Check(w http.ResponseWriter, r *http.Request, token string) error {
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	if err := r.ParseForm(); err != nil {
		return snap.Invalid("the form cannot be read", "go back and submit it again")
	}
	for _, values := range r.PostForm {
		if !snap.Storable(strings.Join(values, "")) {
			return snap.Invalid("the form has a NUL character or is not UTF-8", "go back and correct it")
		}
	}
	if err := f.cross.Check(r); err != nil {
		return snap.Forbidden("this form was sent from another site",
			"open the page yourself and submit the form again")
	}
	if !hmac.Equal([]byte(r.PostFormValue("csrf_token")), []byte(token)) {
		return snap.Forbidden("this form is outdated or belongs to another browser",
			"go back, reload the page and submit the form again")
	}
	return nil
}
