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
	Fields   []confirmField
	Stays    bool // the dialog stays open for what the answer puts into it
	Back     string
}

// confirmField is a value that the form sends along.
type confirmField struct{ Name, Value string }
