package mysql

import (
	"cmp"
	"strings"
)

// rewriteSchema calls see with the SQL of every definition. see can overwrite the SQL, and
// rewriteSchema stores the result.
func (s *structure) rewriteSchema(see func(kind, name string, sql []byte)) {
	if see == nil {
		return
	}
	for _, list := range append([]programList{{"sequence", s.Sequences}, {"table", s.Tables}}, s.programLists()...) {
		for i, d := range list.definitions {
			text := []byte(d.SQL)
			see(cmp.Or(strings.ToLower(d.Kind), list.kind), d.Name, text)
			list.definitions[i].SQL = string(text)
		}
	}
}
