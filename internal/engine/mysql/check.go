package mysql

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"snap"
	"snap/internal/schema"
)

// checker checks the statements of a dump from elsewhere. Each must create one object in the
// database being loaded, with the kind and name that the dump gives. The checker replaces the
// header of each statement with a generated one.
type checker struct {
	mariadb bool
	version int            // of the server
	known   *schema.Schema // the schema that the manifest announces; nil in older snapshots
}

// runs reports whether the server executes the content of an executable comment with this version.
func (k checker) runs(mariadb bool, version int) bool {
	if mariadb && !k.mariadb || k.mariadb && !mariadb && 50700 <= version && version <= 99999 {
		return false
	}
	return version <= k.version
}

// structure checks all statements and returns them with generated headers.
func (k checker) structure(s structure) (structure, error) {
	var out structure
	announced, tables := k.announced(), s.tableNames()
	for _, list := range []struct {
		kind string
		from []definition
		to   *[]definition
	}{{"SEQUENCE", s.Sequences, &out.Sequences}, {"TABLE", s.Tables, &out.Tables}, {"", s.Routines, &out.Routines},
		{"TRIGGER", s.Triggers, &out.Triggers}, {"VIEW", s.Views, &out.Views}, {"EVENT", s.Events, &out.Events}} {
		for _, d := range list.from {
			kind := cmp.Or(list.kind, d.Kind)
			checked, err := k.definition(kind, d, tables)
			if err == nil && announced != nil && !announced[strings.ToLower(kind)+" "+d.Name] {
				err = fmt.Errorf("the snapshot's list of objects does not include it")
			}
			if err != nil {
				return out, errRefused(kind, d.Name, err)
			}
			*list.to = append(*list.to, checked)
		}
	}
	return out, nil
}

func errRefused(kind, name string, why error) error {
	return &snap.Error{
		Code: snap.CodeInvalid, Cause: why,
		Detail: fmt.Sprintf("the %.20s %.80q of the snapshot failed a safety check: %v",
			strings.ToLower(kind), name, why),
		Hint: "nothing was run; ask for a snapshot that was rebuilt with a current snapcli",
	}
}

// announced returns the set of objects that the manifest lists, by kind and name, or nil if the
// manifest has no list.
func (k checker) announced() map[string]bool {
	if k.known == nil {
		return nil
	}
	all := map[string]bool{}
	for _, q := range k.known.Sequences {
		all["sequence "+q.Name.Name] = true
	}
	for _, t := range k.known.Tables {
		all["table "+t.Name.Name] = true
	}
	for _, p := range k.known.Programs {
		if p.Kind == "table" || p.On == "" || p.Kind == "trigger" {
			all[p.Kind+" "+p.Name.Name] = true
		}
	}
	return all
}

var (
	modePattern = regexp.MustCompile(`^[A-Z0-9_,]*$`)
	zonePattern = regexp.MustCompile(`^[A-Za-z0-9_+:/-]*$`)
)

// definition checks one statement and the settings that it runs with.
func (k checker) definition(kind string, d definition, tables map[string]bool) (definition, error) {
	if !modePattern.MatchString(d.Mode) || !zonePattern.MatchString(d.TimeZone) ||
		len(d.Period) != 0 && len(d.Period) != 2 {
		return d, fmt.Errorf("its settings are unknown")
	}
	if err := checkName(append([]string{d.Name}, d.Period...)...); err != nil {
		return d, err
	}
	if d.Charset != "" && !slices.Contains([]string{"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"}, d.Charset) {
		d.Charset, d.Collation = "", ""
	}
	if kind == "SEQUENCE" {
		q, err := describeSequence(d)
		if err == nil {
			d.SQL, err = sequenceSQL(q)
		}
		return d, err
	}
	m := modeOf(d.Mode)
	if kind == "TABLE" {
		m = modeOf(storedMode)
	}
	text, err := expandComments(d.SQL, m, k.runs)
	if err != nil {
		return d, err
	}
	h, err := readHeader(text, m)
	if err != nil {
		return d, err
	}
	if h.kind != kind || h.name.name != d.Name || h.name.database != "" || h.on.database != "" {
		return d, fmt.Errorf("it creates %.40q", text)
	}
	body, err := read(text[h.body:], m)
	if err != nil {
		return d, err
	}
	d.SQL, err = k.regenerate(h, body, tables)
	return d, err
}

// regenerate returns a statement with a generated header.
func (k checker) regenerate(h header, body *reader, tables map[string]bool) (string, error) {
	text, ok := "CREATE "+h.kind+" "+quote(h.name.name), false
	switch h.kind {
	case "TABLE":
		return text + " " + body.text, checkTable(body)
	case "VIEW":
		text = "CREATE ALGORITHM=" + viewAlgorithm(h.algorithm) + " SQL SECURITY DEFINER VIEW " + quote(h.name.name)
		if body.calls("LOAD_FILE") { // would run with the privileges of the user who queries the view
			return "", fmt.Errorf("it reads files with LOAD_FILE")
		}
		ok = (body.is("AS") || body.is("(")) && !body.has(";")
	case "TRIGGER":
		if !tables[h.on.name] {
			return "", fmt.Errorf("it is on a table that the snapshot does not have")
		}
		text += " " + h.moment + " ON " + quote(h.on.name) + " FOR EACH ROW"
		if h.order != "" {
			text += " " + h.order + " " + quote(h.other)
		}
		ok = !body.ended()
	case "EVENT":
		ok = body.is("ON", "SCHEDULE")
	case "FUNCTION":
		if h.aggregate {
			text = "CREATE AGGREGATE FUNCTION " + quote(h.name.name)
		}
		ok = (body.is("(") || body.is("RETURN")) && !body.has("SONAME")
	case "PROCEDURE":
		ok = body.is("(") || body.is("AS") || body.is("IS")
	case "PACKAGE", "PACKAGE BODY":
		ok = !body.has("SQL", "SECURITY")
	}
	if !ok || !body.oneStatement() {
		return "", fmt.Errorf("it is not a single %s", strings.ToLower(h.kind))
	}
	return text + " " + body.text, nil
}

func viewAlgorithm(name string) string {
	switch name = strings.ToUpper(name); name {
	case "MERGE", "TEMPTABLE":
		return name
	}
	return "UNDEFINED"
}

// has reports whether these words occur in sequence anywhere in the text.
func (r *reader) has(words ...string) bool {
	for i := range r.tokens {
		if (&reader{r.text, r.tokens[i:]}).is(words...) {
			return true
		}
	}
	return false
}

// calls reports whether the text calls a function, with or without quotes around its name.
func (r *reader) calls(function string) bool {
	for i, t := range r.tokens[:max(0, len(r.tokens)-1)] {
		if (t.kind == wordToken || t.kind == nameToken) && strings.EqualFold(t.value, function) &&
			r.tokens[i+1].nesting() > 0 {
			return true
		}
	}
	return false
}

// oneStatement reports whether a body is a single statement: a statement without a semicolon, or a
// compound statement that ends with END. The server also rejects a second statement.
func (r *reader) oneStatement() bool {
	tokens := r.tokens
	if n := len(tokens); n > 0 && tokens[n-1].isSign(";") {
		tokens = tokens[:n-1]
	}
	body, last := &reader{r.text, tokens}, &reader{r.text, tokens[max(0, len(tokens)-3):]}
	return !body.has(";") || last.has("END") // END, END IF or END label
}

// checkTable checks that a table's columns and options refer to no other database, no files, no
// other server and no query.
func checkTable(body *reader) error {
	if !body.is("(") || body.has(";") || body.calls("LOAD_FILE") {
		return fmt.Errorf("it is not a single table")
	}
	for i, t := range body.tokens {
		rest := &reader{body.text, body.tokens[i:]}
		if t.kind == wordToken && !isDigit(t.value[0]) || t.kind == nameToken {
			if len(rest.tokens) > 1 && rest.tokens[1].isSign(".") {
				return fmt.Errorf("it names a database")
			}
		}
		for _, word := range []string{"SELECT", "UNION", "DIRECTORY", "CONNECTION", "TABLESPACE", "LIKE", "TABLE",
			"VALUES"} {
			if rest.is(word) && !rest.is("VALUES", "LESS") && !rest.is("VALUES", "IN") &&
				!(word == "LIKE" && body.inExpression(i)) {
				return fmt.Errorf("it contains the word %s", word)
			}
		}
		if rest.accept("ENGINE") {
			rest.accept("=")
			if name, _ := rest.name(); !engines[strings.ToLower(name)] {
				return fmt.Errorf("its engine is %.40q", name)
			}
		}
	}
	return nil
}

// inExpression reports whether the token at an index is inside nested parentheses, and therefore in
// an expression.
func (r *reader) inExpression(at int) bool {
	depth := 0
	for _, t := range r.tokens[:at] {
		depth += t.nesting()
	}
	return depth > 1
}

// requireNoRiskyWords returns an error if a program contains a word with which it could access
// files.
func (s structure) requireNoRiskyWords() error {
	for _, list := range s.programLists() {
		for _, d := range list.definitions {
			r, err := read(d.SQL, modeOf(d.Mode))
			if err != nil {
				return err
			}
			for _, word := range []string{"OUTFILE", "DUMPFILE", "LOAD_FILE", "INFILE"} {
				if r.has(word) || r.calls(word) {
					return &snap.Error{Code: snap.CodeInvalid,
						Detail: fmt.Sprintf("the %s %.80q of the snapshot uses %s, which can access files",
							cmp.Or(strings.ToLower(d.Kind), list.kind), d.Name, word),
						Hint: "load as a MySQL user with the privileges CREATE USER and GRANT OPTION"}
				}
			}
		}
	}
	return nil
}

func (s structure) hasPrograms() bool {
	return len(s.Routines)+len(s.Triggers)+len(s.Views)+len(s.Events) > 0
}
