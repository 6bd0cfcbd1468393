package sanitize

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"snap/internal/engine"
	"snap/internal/personal"
)

// errNoXML means that a value is not well-formed XML, has declarations, such as entities, that only
// a validating parser supports, or has names that may be data.
var errNoXML = errors.New("the value is not XML that can be masked by path")

// xmlByPath masks the text and attributes of an XML value by their paths, such as "person/email" or
// "person/@id". A value that is not XML, or has names that may be data, is masked as a whole.
func xmlByPath(key []byte, c ColumnRule, limit int) engine.Mask {
	d := newDocumentMask(key, c, xmlPath)
	whole := c.rest(key, limit)
	return func(v string) (string, bool) {
		out, err := d.maskedXML(v, c.Otherwise == "keep")
		if err != nil {
			return whole(v)
		}
		return out, false
	}
}

// xmlPath splits a path such as "/person/@id" into its steps; * is any element or attribute.
func xmlPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// isXML reports whether a value is XML: a document, or text and elements without a common root.
func isXML(v string) bool {
	_, err := documentMask{rest: neverNull(strings.Clone)}.maskedXML(v, true)
	return err == nil
}

// redactXML redacts the text and attributes of XML. It fails if the value is not XML, or if the
// names of its elements or attributes do not look like names of a schema.
func redactXML(v string) (string, bool) {
	if !strings.HasPrefix(strings.TrimSpace(v), "<") {
		return "", false
	}
	out, err := documentMask{rest: neverNull(redact), schema: true}.maskedXML(v, false)
	return out, err == nil
}

// maskedXML masks the text and attributes of XML. The markup does not change, except that comments
// and processing instructions are removed unless keep is set.
func (d documentMask) maskedXML(v string, keep bool) (string, error) {
	in := xml.NewDecoder(strings.NewReader(v))
	in.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // the dump is UTF-8
	var out bytes.Buffer
	var at []string // the open elements
	for {
		before := in.InputOffset()
		token, err := in.RawToken()
		if errors.Is(err, io.EOF) && len(at) == 0 {
			return out.String(), nil
		}
		if err != nil {
			return "", errNoXML
		}
		raw := v[before:in.InputOffset()]
		switch token := token.(type) {
		case xml.StartElement:
			at = append(at, nameOf(token.Name))
			if !d.writeTag(&out, token, at, strings.HasSuffix(raw, "/>")) {
				return "", errNoXML
			}
		case xml.EndElement:
			if len(at) == 0 || at[len(at)-1] != nameOf(token.Name) {
				return "", errNoXML
			}
			at = at[:len(at)-1]
			out.WriteString(raw)
		case xml.CharData:
			d.writeText(&out, string(token), at)
		case xml.Directive:
			return "", errNoXML
		case xml.ProcInst:
			if !keep && token.Target == "xml" && !xmlDeclaration.MatchString(raw) { // it may hold data
				return "", errNoXML
			}
			if keep || token.Target == "xml" {
				out.WriteString(raw)
			}
		case xml.Comment:
			if keep {
				out.WriteString(raw)
			}
		}
	}
}

// xmlDeclaration matches a declaration of XML 1.0 that holds no other text.
var xmlDeclaration = regexp.MustCompile(`^<\?xml\s+version\s*=\s*["']1\.[0-9]["']` +
	`(\s+encoding\s*=\s*["'][A-Za-z0-9._-]{1,40}["'])?(\s+standalone\s*=\s*["'](yes|no)["'])?\s*\?>$`)

// nameOf returns a name as it is written, with its prefix.
func nameOf(n xml.Name) string { return strings.TrimPrefix(n.Space+":"+n.Local, ":") }

// writeTag writes the start of an element with masked attributes. It returns false if a name may be
// data. Declarations of namespaces are not data.
func (d documentMask) writeTag(out *bytes.Buffer, e xml.StartElement, at []string, closed bool) bool {
	mayBeData := func(n xml.Name, at []string) bool {
		isSchema := personal.IsSchemaKey(n.Local) && (n.Space == "" || personal.IsSchemaKey(n.Space))
		return d.schema && !isSchema && !d.accepts(at)
	}
	ok := !mayBeData(e.Name, at)
	out.WriteString("<" + at[len(at)-1])
	for _, a := range e.Attr {
		name, value := nameOf(a.Name), a.Value
		path := append(slices.Clone(at), "@"+name)
		ok = ok && !mayBeData(a.Name, path)
		if a.Name.Space != "xmlns" && name != "xmlns" {
			value, _ = d.maskAt(path)(value)
		}
		out.WriteString(" " + name + `="`)
		_ = xml.EscapeText(out, []byte(value)) // writing to a buffer never fails
		out.WriteString(`"`)
	}
	if closed {
		out.WriteString("/")
	}
	out.WriteString(">")
	return ok
}

// writeText writes the masked text of an element. The space around the text stays.
func (d documentMask) writeText(out *bytes.Buffer, value string, at []string) {
	bare := strings.TrimSpace(value)
	if bare == "" {
		out.WriteString(value)
		return
	}
	head, tail, _ := strings.Cut(value, bare)
	masked, _ := d.maskAt(at)(bare) // NULL becomes an empty string
	out.WriteString(head)
	_ = xml.EscapeText(out, []byte(masked)) // writing to a buffer never fails
	out.WriteString(tail)
}
