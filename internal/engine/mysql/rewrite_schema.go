package mysql

import "strings"

// rewriteSchema calls see with the SQL of every definition. see can overwrite the SQL, and
// rewriteSchema stores the result. It skips sequences, because their definitions contain no
// strings.
func (s *structure) rewriteSchema(see func(kind, name string, sql []byte)) {
	if see == nil {
		return
	}
	for _, part := range []struct {
		kind string
		list []definition
	}{{"table", s.Tables}, {"routine", s.Routines}, {"trigger", s.Triggers}, {"view", s.Views}, {"event", s.Events}} {
		for i, d := range part.list {
			kind := part.kind
			if d.Kind != "" {
				kind = strings.ToLower(d.Kind)
			}
			text := []byte(d.SQL)
			see(kind, d.Name, text)
			part.list[i].SQL = string(text)
		}
	}
}
