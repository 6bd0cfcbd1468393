package signin

import (
	"net/http"
	"net/url"
	"time"

	"snap"
	"snap/internal/store"
)

// keysPage is the data of keys.html: the API keys of an organization, for its owners and admins.
type keysPage struct {
	layout
	Org      snap.OrgRef
	Keys     []store.Key
	OnlyIdle bool // keys that were not used for snap.IdleKey
	now      time.Time
}

// Idle reports whether a key was not used for so long that it may no longer be needed.
func (p keysPage) Idle(k store.Key) bool { return idle(k, p.now) }

// allKeys shows owners and admins every key of their organization, or with ?idle=yes the unused ones.
func (s *Service) allKeys(v *visit) error {
	if !v.signedIn() {
		return s.redirect(v, "/signin", url.Values{"next": {s.path + "/keys"}})
	}
	data := keysPage{layout: s.layout(v, "API keys"), Org: v.caller.Org, now: s.now(),
		OnlyIdle: v.r.URL.Query().Get("idle") != ""}
	q := store.KeyQuery{All: true}
	if data.OnlyIdle {
		q.Idle = snap.IdleKey
	}
	var err error
	if data.Keys, err = s.store.Keys(v.r.Context(), v.caller, q); err != nil {
		return err
	}
	return s.views.Page(v.w, http.StatusOK, "keys.html", data)
}
