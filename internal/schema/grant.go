package schema

// Grant is rights of a user, or of everybody, on an object of the source. Only a snapshot of one's own
// organization has its grants applied, and only if the person who loads it asks for that.
type Grant struct {
	Kind string `json:"kind"` // see [GrantKinds]
	Name
	Arguments string   `json:"arguments,omitempty"` // of a function
	Columns   []string `json:"columns,omitempty"`   // none: the whole object
	To        string   `json:"to,omitempty"`        // "" is everybody
	Rights    []string `json:"rights,omitempty"`    // none: everybody's usual rights are taken away
	Pass      bool     `json:"pass,omitempty"`      // with the right to grant them to others
}

// GrantKinds are the kinds of objects that grants are recorded for, as GRANT writes them.
func GrantKinds() []string { return []string{"SCHEMA", "TABLE", "SEQUENCE", "ROUTINE"} }
