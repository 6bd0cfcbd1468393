package console

import (
	"time"

	"snap"
	"snap/api"
)

// keysPage is the data of keys.html: all keys and sessions of the organization.
type keysPage struct {
	layout
	Keys     []api.Key
	Idle     bool   // only keys that were not used for snap.IdleKey
	Count    int    // number of keys on all pages
	NextKeys string // address of the page with the next keys
	Sessions []api.Session
	Next     string // address of the page with the next sessions
	now      time.Time
}

// IsIdle reports whether a key was not used for so long that it may no longer be needed.
func (p keysPage) IsIdle(k api.Key) bool {
	used := k.CreatedAt
	if k.LastUsed != nil {
		used = *k.LastUsed
	}
	return !p.now.Before(used.Add(snap.IdleKey))
}

func (s *Server) keys(v *visit) error {
	data := keysPage{layout: s.layout(v), Idle: v.query("idle") != "", now: s.o.Now()}
	filter := api.KeyFilter{All: true}
	if data.Idle {
		filter.Idle = snap.IdleKey
	}
	keys, err := v.api.Keys(v.r.Context(), filter)
	if err != nil {
		return err
	}
	sessions, err := v.api.AllSessions(v.r.Context())
	if err != nil {
		return err
	}
	data.Count = len(keys)
	data.Keys, data.NextKeys = pageOf(v, "keys", keys)
	data.Sessions, data.Next = pageOf(v, "sessions", sessions)
	return s.write(v, "keys.html", data)
}

// changeKeys revokes a key or ends a session.
func (s *Server) changeKeys(v *visit) (string, error) {
	if id := v.field("session"); id != "" {
		return "session", v.api.EndSession(v.r.Context(), id)
	}
	return "revoked", v.api.RevokeKey(v.r.Context(), v.field("key"))
}
