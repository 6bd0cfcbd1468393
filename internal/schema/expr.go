package schema

// Expr is an expression as a small tree. Exactly one of the fields Literal,
// Column, Op, Call and Cast says what it is.
type Expr struct {
	Literal *Literal `json:"literal,omitempty"`
	Column  string   `json:"column,omitempty"`
	Op      string   `json:"op,omitempty"`   // an operator of the allowed list, in upper case
	Call    string   `json:"call,omitempty"` // a built-in function of the allowed list, in lower case
	Cast    *Type    `json:"cast,omitempty"` // a cast of the one argument
	Args    []Expr   `json:"args,omitempty"`
}

// Literal is a constant. Kind is string, number, boolean, null or bytes; bytes
// are hexadecimal.
type Literal struct {
	Kind  string `json:"kind"`
	Value string `json:"value,omitempty"`
}
