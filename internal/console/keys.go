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
	Idle     bool // only keys that were not used for snap.IdleKey
	Sessions []api.Session
	More     int // number of all sessions, if not all are shown
	now      time.Time
}

// maxSessions and maxKeys bound the page.
const (
	maxSessions = 100
	maxKeys     = 200
)

// IsIdle reports whether a key was not used for so long that it may no longer be needed.
func (p keysPage) IsIdle(k api.Key) bool {
	used := k.CreatedAt
	if k.LastUsed != nil {
		used = *k.LastUsed
	}
	return !p.now.Before(used.Add(snap.IdleKey))
}

func (s *Server) keys(v *visit) (err error) {
	data := keysPage{layout: s.layout(v), Idle: v.query("idle") != "", now: s.o.Now()}
	filter := api.KeyFilter{All: true}
	if data.Idle {
		filter.Idle = snap.IdleKey
	}
	if data.Keys, err = v.api.Keys(v.r.Context(), filter); err != nil {
		return err
	}
	if data.Sessions, err = v.api.AllSessions(v.r.Context()); err != nil {
		return err
	}
	if len(data.Sessions) > maxSessions {
		data.More, data.Sessions = len(data.Sessions), data.Sessions[:maxSessions]
	}
	return s.write(v, "keys.html", data)
}

// changeKeys revokes a key or ends a session.
func (s *Server) changeKeys(v *visit) (string, error) {
	if id := v.field("session"); id != "" {
		return "session", v.api.EndSession(v.r.Context(), id)
	}
	return "revoked", v.api.RevokeKey(v.r.Context(), v.field("key"))
}
