package webui

import "snap/internal/look"

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
	Unpicks  bool   // the list's selected rows are then no longer selected
	Removes  string // ID of the element that the page no longer needs afterwards
	Back     string
}
