package sqlite

import (
	"fmt"
	"strings"

	"snap"
)

// entry is a row of a file's schema.
type entry struct {
	kind, name, table string
	root              int64
	sql               string
}

// check returns an error unless the entry's SQL is a single statement that creates an object with
// the entry's kind and name in the file itself. Call check before running the statement.
func (e entry) check() error {
	list, err := tokens(e.sql)
	if err == nil {
		err = e.create(&reader{list: list})
	}
	if err != nil {
		return &snap.Error{
			Code:   snap.CodeCorrupt,
			Detail: fmt.Sprintf("the definition of the %s %q is not a single CREATE statement", e.kind, e.name),
			Hint: "the file was altered by hand: do not use it, or drop the object from it and build the snapshot " +
				"again",
		}
	}
	return nil
}

// create parses the statement.
func (e entry) create(r *reader) error {
	if !r.accept("CREATE") {
		return errStatement
	}
	unique := r.accept("UNIQUE")
	virtual := !unique && r.accept("VIRTUAL")
	if !r.accept(e.kind) || unique && e.kind != "index" || virtual && e.kind != "table" {
		return errStatement
	}
	if name, ok := r.name(); !ok || name != e.name || r.peek(".") {
		return errStatement
	}
	switch {
	case e.kind == "trigger":
		return r.skipTrigger()
	case e.kind == "index":
		return e.onTable(r)
	case virtual && !r.peek("USING"):
		return errStatement
	}
	return r.end()
}

// onTable parses the rest of a CREATE INDEX statement. The index must be on the entry's table.
func (e entry) onTable(r *reader) error {
	if !r.accept("ON") {
		return errStatement
	}
	if name, ok := r.name(); !ok || !strings.EqualFold(name, e.table) || !r.peek("(") {
		return errStatement
	}
	return r.end()
}

// reader reads tokens one after another.
type reader struct {
	list []token
	at   int
}

func (r *reader) done() bool { return r.at >= len(r.list) }

// peek reports whether the next token is this keyword or symbol.
func (r *reader) peek(text string) bool { return r.at < len(r.list) && r.list[r.at].is(text) }

// accept consumes the next token if it is this keyword or symbol.
func (r *reader) accept(text string) bool {
	if r.peek(text) {
		r.at++
		return true
	}
	return false
}

// acceptAll consumes these tokens if all of them follow, and otherwise none.
func (r *reader) acceptAll(texts ...string) bool {
	at := r.at
	for _, text := range texts {
		if !r.accept(text) {
			r.at = at
			return false
		}
	}
	return true
}

// name consumes a name and returns it.
func (r *reader) name() (string, bool) {
	if r.done() {
		return "", false
	}
	name, ok := r.list[r.at].name()
	if ok {
		r.at++
	}
	return name, ok
}

// end consumes the rest of the statement. No other statement may follow.
func (r *reader) end() error {
	for ; !r.done(); r.at++ {
		if r.list[r.at].is(";") {
			return errStatement
		}
	}
	return nil
}

// skipTrigger consumes the rest of a trigger. Its statements end with ";", and the first END after
// a ";" ends the trigger.
func (r *reader) skipTrigger() error {
	for !r.done() && !r.peek("BEGIN") {
		if r.accept(";") {
			return errStatement
		}
		r.at++
	}
	for ; !r.done(); r.at++ {
		if r.list[r.at].is(";") && r.at+1 < len(r.list) && r.list[r.at+1].is("END") {
			if r.at += 2; !r.done() {
				return errStatement
			}
			return nil
		}
	}
	return errStatement
}

// writes reports whether a statement of a trigger inserts, updates or deletes rows of a table.
func writes(trigger, table string) bool {
	list, err := tokens(trigger)
	if err != nil {
		return true
	}
	for r := (&reader{list: list}); !r.done(); {
		if !r.accept("INTO") && !r.acceptAll("DELETE", "FROM") && !r.accept("UPDATE") {
			r.at++
			continue
		}
		if r.accept("OR") {
			r.at++ // the action for a conflict
		}
		if name, ok := r.name(); ok && strings.EqualFold(name, table) {
			return true
		}
	}
	return false
}
