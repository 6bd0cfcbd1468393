package webui

import (
	"net/http"

	"snap/internal/look"
)

// confirmPage is the data of confirm.html: a question before something is deleted or shared widely.
type confirmPage struct {
	look.Page
	Question string
	Detail   string
	Icon     string
	Button   string
	Action   string
	Fields   []look.Hidden
	Stays    bool   // the dialog stays open and receives the response
	Unpicks  bool   // afterwards, no row of the list is selected
	Removes  string // ID of the element to remove from the page afterwards
	Back     string
}

// ask responds with a question.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, page confirmPage) error {
	page.Narrow = true
	return s.show(w, r, "confirm.html", "dialog", page)
}
