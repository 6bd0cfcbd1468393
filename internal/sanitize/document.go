package sanitize

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"snap/internal/personal"
)

// isDocument reports whether a value is a JSON object or array.
func isDocument(v string) bool {
	trimmed := strings.TrimSpace(v)
	return len(trimmed) > 1 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(v))
}

// redactDocument redacts the strings and numbers of a valid JSON document. Its structure, booleans
// and keys remain, except that keys which do not look like names are redacted too. The result is
// compact and has sorted keys, so that equal documents in different databases stay equal.
func redactDocument(v string) string {
	r := documentReader{in: v}
	return string(r.value().append(make([]byte, 0, len(v))))
}

// node is a redacted value of a JSON document.
type node struct {
	key    string // in an object
	kind   byte   // '{', '[' or '"'; 0 for any other scalar
	text   string // of a string, without quotes, or of another scalar
	values []node // of '{' and '['
}

// append appends the value as JSON.
func (n node) append(out []byte) []byte {
	switch n.kind {
	case 0:
		return append(out, n.text...)
	case '"':
		return appendQuoted(out, n.text)
	}
	out = append(out, n.kind)
	for i, v := range n.values {
		if i > 0 {
			out = append(out, ',')
		}
		if n.kind == '{' {
			out = append(appendQuoted(out, v.key), ':')
		}
		out = v.append(out)
	}
	return append(out, n.kind+2) // the closing bracket
}

// documentReader reads a valid document.
type documentReader struct {
	in string
	at int
}

// next skips spaces and returns the next byte.
func (r *documentReader) next() byte {
	for strings.IndexByte(" \t\r\n", r.in[r.at]) >= 0 {
		r.at++
	}
	return r.in[r.at]
}

// value reads a value and redacts it.
func (r *documentReader) value() node {
	switch c := r.next(); c {
	case '{', '[':
		n := node{kind: c}
		for r.at++; r.next() != c+2; {
			if r.in[r.at] == ',' {
				r.at++
			}
			n.values = append(n.values, r.member(c == '{'))
		}
		r.at++
		if c == '{' {
			n.values = redactKeys(n.values)
		}
		return n
	case '"':
		return node{kind: c, text: redact(r.text())}
	case 't', 'f', 'n':
		from := r.at
		r.skip("truefalsn")
		return node{text: r.in[from:r.at]}
	}
	r.skip("+-.0123456789eE")
	return node{text: "0"}
}

// member reads an element of an array, or, if keyed is set, a key of an object and its value.
func (r *documentReader) member(keyed bool) node {
	if !keyed {
		return r.value()
	}
	r.next()
	key := r.text()
	r.next()
	r.at++ // the colon
	n := r.value()
	n.key = key
	return n
}

// skip skips the bytes that are in set.
func (r *documentReader) skip(set string) {
	for r.at < len(r.in) && strings.IndexByte(set, r.in[r.at]) >= 0 {
		r.at++
	}
}

// text reads a JSON string and returns its value.
func (r *documentReader) text() string {
	from, plain := r.at, true
	for r.at++; r.in[r.at] != '"'; r.at++ {
		plain = plain && r.in[r.at] != '\\' && r.in[r.at] < utf8.RuneSelf
		if r.in[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	if plain {
		return r.in[from+1 : r.at-1]
	}
	var v string
	if err := json.Unmarshal([]byte(r.in[from:r.at]), &v); err != nil { // cannot happen: the document is valid
		return ""
	}
	return v
}

// redactKeys sorts the members of an object and redacts the keys that do not look like names. If
// several members have the same key, it keeps the last one. Different keys stay different when they
// are redacted.
func redactKeys(members []node) []node {
	byKey := func(a, b node) int { return strings.Compare(a.key, b.key) }
	slices.Reverse(members)
	slices.SortStableFunc(members, byKey)
	members = slices.CompactFunc(members, func(a, b node) bool { return a.key == b.key })
	if !slices.ContainsFunc(members, func(n node) bool { return !personal.IsSchemaKey(n.key) }) {
		return members
	}
	taken := map[string]bool{}
	for i := range members {
		name := members[i].key
		if !personal.IsSchemaKey(name) {
			name = redact(name)
		}
		for taken[name] {
			name += "x"
		}
		taken[name], members[i].key = true, name
	}
	slices.SortFunc(members, byKey)
	return members
}

// appendQuoted appends v as a JSON string.
func appendQuoted(out []byte, v string) []byte {
	for _, c := range []byte(v) {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return append(out, quotedJSON(v)...)
		}
	}
	return append(append(append(out, '"'), v...), '"')
}

func quotedJSON(v string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
