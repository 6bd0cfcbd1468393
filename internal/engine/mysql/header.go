package mysql

import (
	"fmt"
	"strings"
)

// header is the beginning of a CREATE statement, up to the object's definition.
type header struct {
	kind      string // TABLE, SEQUENCE, VIEW, TRIGGER, EVENT, PROCEDURE, FUNCTION, PACKAGE or PACKAGE BODY
	name      objectName
	definer   span
	algorithm string // of a view
	aggregate bool   // of a function

	moment string // of a trigger: BEFORE INSERT and so on
	on     objectName
	order  string // of a trigger: FOLLOWS or PRECEDES, else ""
	other  string // the trigger that this one follows or precedes

	body int // where the object's definition begins
}

// objectName is an optionally qualified name and its position in the statement.
type objectName struct {
	database, name string
	at             span
}

// span is the position of a part of a statement.
type span struct{ from, to int }

// headTokens is more than the number of tokens in any header.
const headTokens = 60

// readHeader parses the header of a statement. It does not read the rest.
func readHeader(text string, m lexMode) (header, error) {
	var h header
	r := &reader{text: text}
	for i := 0; i < len(text) && len(r.tokens) < headTokens; {
		t, err := lexOne(text, i, m)
		if err != nil {
			break // reading the body finds an error after the header; an incomplete header fails below
		}
		if i = t.to; t.kind != endToken {
			r.tokens = append(r.tokens, t)
		}
	}
	if !r.accept("CREATE") {
		return h, errUnknownObject(text)
	}
	r.accept("OR", "REPLACE")
	h.modifiers(r)
	if !h.readKind(r) {
		return h, errUnknownObject(text)
	}
	r.accept("IF", "NOT", "EXISTS")
	var ok bool
	if h.name, ok = r.objectName(); !ok || h.kind == "TRIGGER" && !h.trigger(r) {
		return h, errUnknownObject(text)
	}
	h.body = r.peek().from
	return h, nil
}

func errUnknownObject(text string) error {
	return fmt.Errorf("%.60q does not create a known kind of object", text)
}

// modifiers reads the words between CREATE and the kind of object.
func (h *header) modifiers(r *reader) {
	for {
		switch {
		case r.is("DEFINER", "="):
			h.definer.from = r.peek().from
			r.accept("DEFINER", "=")
			r.skip()
			r.accept("(", ")")
			if r.accept("@") {
				r.skip()
			}
			h.definer.to = r.peek().from
		case r.accept("ALGORITHM", "="):
			h.algorithm, _ = r.word()
		case r.accept("SQL", "SECURITY"):
			r.skip()
		case r.accept("AGGREGATE"):
			h.aggregate = true
		default:
			return
		}
	}
}

func (h *header) readKind(r *reader) bool {
	if r.accept("PACKAGE", "BODY") {
		h.kind = "PACKAGE BODY"
		return true
	}
	word, _ := r.word()
	h.kind = strings.ToUpper(word)
	switch h.kind {
	case "TABLE", "SEQUENCE", "VIEW", "TRIGGER", "EVENT", "PROCEDURE", "FUNCTION", "PACKAGE":
		return true
	}
	return false
}

// objectName consumes a name and the database qualifier before it, if there is one.
func (r *reader) objectName() (n objectName, ok bool) {
	n.at = span{r.peek().from, r.peek().to}
	if n.name, ok = r.name(); !ok {
		return n, false
	}
	if r.accept(".") {
		n.database, n.at.to = n.name, r.peek().to
		n.name, ok = r.name()
	}
	return n, ok
}

// trigger reads the part of a header that only triggers have.
func (h *header) trigger(r *reader) (ok bool) {
	when, _ := r.word()
	event, _ := r.word()
	h.moment = strings.ToUpper(when + " " + event)
	switch h.moment {
	case "BEFORE INSERT", "BEFORE UPDATE", "BEFORE DELETE", "AFTER INSERT", "AFTER UPDATE", "AFTER DELETE":
	default:
		return false
	}
	if !r.accept("ON") {
		return false
	}
	if h.on, ok = r.objectName(); !ok || !r.accept("FOR", "EACH", "ROW") {
		return false
	}
	for _, order := range []string{"FOLLOWS", "PRECEDES"} {
		if r.accept(order) {
			h.order = order
			h.other, ok = r.name()
		}
	}
	return ok
}

// withoutQualifiers returns a statement without its definer and its database qualifiers, which
// refer to the source server.
func (h header) withoutQualifiers(text string) string {
	if h.on.database != "" {
		text = text[:h.on.at.from] + quote(h.on.name) + text[h.on.at.to:]
	}
	if h.name.database != "" {
		text = text[:h.name.at.from] + quote(h.name.name) + text[h.name.at.to:]
	}
	return text[:h.definer.from] + text[h.definer.to:]
}
