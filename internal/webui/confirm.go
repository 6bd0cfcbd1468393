package webui

import "snap/internal/look"

// confirmPage is the data of confirm.html: a question before something is gone,
// or seen by more people than it should be.
type confirmPage struct {
	look.Page
	Question string
	Detail   string
	Icon     string
	Button   string
	Action   string
	Shared   bool // the form sends shared=true
	Back     string
}
