package cloud

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// request is an example of a request to an operation.
type request struct {
	method, url, mount, path string
	parameters               []*huma.Param
	secret                   string // shell variable that holds the credential; empty for none
	body                     any    // nil for none
}

// target returns the URL, with the parameters that the operation requires.
func (r request) target() string {
	path, query := r.path, url.Values{}
	for _, p := range r.parameters {
		value := fmt.Sprint(p.Example)
		if p.Example == nil {
			value = strings.ToUpper(p.Name)
		}
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query" && p.Required:
			query.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return r.url + r.mount + path
}

func (r request) json() string {
	if r.body == nil {
		return ""
	}
	text, err := json.Marshal(r.body)
	if err != nil {
		return ""
	}
	return string(text)
}

// curl returns the request as a shell command.
func (r request) curl() string {
	parts := []string{"curl -fsS"}
	if r.method != "GET" {
		parts[0] += " -X " + r.method
	}
	if r.secret != "" {
		parts = append(parts, `-H "Authorization: Bearer `+r.secret+`"`)
	}
	if body := r.json(); body != "" {
		parts = append(parts, `-H "Content-Type: application/json"`, "-d '"+strings.ReplaceAll(body, "'", `'\''`)+"'")
	}
	return strings.Join(append(parts, `"`+r.target()+`"`), " \\\n  ")
}

// golang returns the request in Go, with the standard library.
func (r request) golang() string {
	body := "nil"
	var b strings.Builder
	if text := r.json(); text != "" {
		body = "body"
		fmt.Fprintf(&b, "body := strings.NewReader(`%s`)\n", text)
	}
	fmt.Fprintf(&b, "req, err := http.NewRequest(%q, %q, %s)\nif err != nil {\n\treturn err\n}\n", r.method,
		r.target(), body)
	if r.secret != "" {
		fmt.Fprintf(&b, "req.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(%q))\n",
			strings.TrimPrefix(r.secret, "$"))
	}
	if body != "nil" {
		b.WriteString("req.Header.Set(\"Content-Type\", \"application/json\")\n")
	}
	b.WriteString("res, err := http.DefaultClient.Do(req)\nif err != nil {\n\treturn err\n}\ndefer res.Body.Close()")
	return b.String()
}

// exampleOf returns the example that the document states for a schema. For a schema without one, it
// returns the examples of the members of an object, and nil for any other type.
func exampleOf(doc *huma.OpenAPI, s *huma.Schema) any {
	if s.Ref != "" {
		s = doc.Components.Schemas.SchemaFromRef(s.Ref)
	}
	if len(s.Examples) > 0 {
		return s.Examples[0]
	}
	if s.Type != huma.TypeObject {
		return nil
	}
	object := map[string]any{}
	for name, member := range s.Properties {
		if v := exampleOf(doc, member); v != nil {
			object[name] = v
		}
	}
	return object
}

// maxSample is the maximum depth of a sample.
const maxSample = 4

// sampleOf returns a value of a schema's shape: the examples that the document states, and
// placeholders for the rest.
func sampleOf(doc *huma.OpenAPI, s *huma.Schema, depth int) any {
	if s.Ref != "" {
		s = doc.Components.Schemas.SchemaFromRef(s.Ref)
	}
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Items != nil && depth < maxSample:
		return []any{sampleOf(doc, s.Items, depth+1)}
	case s.Type == huma.TypeObject && depth < maxSample:
		object := map[string]any{}
		for name, member := range s.Properties {
			object[name] = sampleOf(doc, member, depth+1)
		}
		return object
	case s.Format == "date-time":
		return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	case s.Type == huma.TypeInteger:
		return 1
	case s.Type == huma.TypeBoolean:
		return false
	case s.Type == huma.TypeString:
		return "..."
	}
	return nil
}

func indented(value any) string {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}
