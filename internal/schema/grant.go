package schema

// Grant holds the rights of a database user, or of everybody, on an object of the source. A load
// applies the grants of a snapshot only with --with-grants, and never if the snapshot's trust is
// engine.Foreign.
type Grant struct {
	Kind string `json:"kind"` // see [GrantKinds]
	Name
	Arguments string   `json:"arguments,omitempty"` // of a function
	Columns   []string `json:"columns,omitempty"`   // none: the whole object
	To        string   `json:"to,omitempty"`        // "" means everybody
	Rights    []string `json:"rights,omitempty"`    // none: everybody's usual rights are revoked
	Pass      bool     `json:"pass,omitempty"`      // WITH GRANT OPTION: To may grant the rights to others
}

// GrantKinds returns the kinds of objects that grants are recorded for, as written in a GRANT
// statement.
func GrantKinds() []string { return []string{"SCHEMA", "TABLE", "SEQUENCE", "ROUTINE"} }
