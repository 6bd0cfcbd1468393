package console

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"snap/internal/look"
)

// flash is the announcement that a page shows after a change of shares, with the form that undoes
// the change. It is kept in a cookie that lives as long as Undo is offered. A cookie without the
// session's token is ignored, so that another site cannot make a page offer a change.
type flash struct {
	Text    string        `json:"text"`
	Warning string        `json:"warning,omitempty"` // why the change may have been a mistake
	Undo    []look.Hidden `json:"undo,omitempty"`    // fields of the form
}

// announced is returned instead of the name of a success when a form has stored a [flash].
const announced = "announced"

const (
	flashCookie = "snap_flash"
	undoSeconds = 10 // how long Undo is offered
	maxFlash    = 3000
)

// announce stores the announcement for the next page or, if our script made the request, for the
// response.
func (v *visit) announce(f flash) {
	if id := v.field("snapshot"); id != "" && f.Undo != nil {
		f.Undo = append(f.Undo, look.Fields("snapshot", id)...)
	}
	if v.fragment() {
		v.announcement = &f
		return
	}
	text, err := json.Marshal(f)
	if err != nil || len(text) > maxFlash { // too long for a cookie, because Undo repeats names
		text = []byte(`{"text":"The shares were changed."}`)
	}
	v.setFlash(v.csrf+"."+base64.RawURLEncoding.EncodeToString(text), undoSeconds)
}

// flash returns the announcement and deletes its cookie, so that it is shown only once.
func (v *visit) flash() *flash {
	cookie, err := v.r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	v.setFlash("", -1)
	token, text, _ := strings.Cut(cookie.Value, ".")
	if token != v.csrf {
		return nil
	}
	var f flash
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &f) != nil || f.Text == "" {
		return nil
	}
	return &f
}

func (v *visit) setFlash(value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: flashCookie, Value: value, Path: v.r.URL.Path, MaxAge: seconds,
		HttpOnly: true, Secure: v.secure, SameSite: http.SameSiteStrictMode})
}
