package console

import (
	"strconv"
	"strings"

	"snap/api"
)

// rowsPerPage is the maximum number of rows of a table.
const rowsPerPage = 25

// membersPage is the data of members.html.
type membersPage struct {
	layout
	People []api.Person
	Count  int    // number of accounts that match
	Q      string // words to find in names, e-mails, roles and groups
	Next   string // address of the next page
}

func (s *Server) members(v *visit) error {
	all, err := v.api.People(v.r.Context())
	if err != nil {
		return err
	}
	data := membersPage{layout: s.layout(v), Q: v.query("q")}
	found := all[:0]
	for _, p := range all {
		if hasWords(data.Q, p.Email, p.Name, string(p.Role), strings.Join(p.Groups, " ")) {
			found = append(found, p)
		}
	}
	data.Count = len(found)
	data.People, data.Next = pageOf(v, "from", found)
	return s.write(v, "members.html", data)
}

// hasWords reports whether every word of q is part of one of the texts, ignoring case.
func hasWords(q string, texts ...string) bool {
	text := strings.ToLower(strings.Join(texts, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(q)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// pageOf returns a page of the rows, beginning at the position that a parameter names, and the
// address of the next page.
func pageOf[T any](v *visit, parameter string, rows []T) (page []T, next string) {
	from, err := strconv.Atoi(v.query(parameter))
	if err != nil || from < 0 || from > len(rows) {
		from = 0
	}
	if end := from + rowsPerPage; end < len(rows) {
		return rows[from:end], v.withParameter(parameter, strconv.Itoa(end))
	}
	return rows[from:], ""
}

// signOut signs a person out of every device and browser.
func (s *Server) signOut(v *visit) (string, error) {
	_, err := v.api.SignOutPerson(v.r.Context(), v.field("id"))
	return "signed-out", err
}
