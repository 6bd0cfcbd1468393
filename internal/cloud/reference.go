package cloud

import (
	"cmp"
	"embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"snap"
	"snap/api"
	"snap/internal/look"
)

//go:embed pages
var pageFiles embed.FS

// reference is the HTML page of the API, made from the OpenAPI document. It loads nothing from
// other hosts.
type reference struct {
	look.Page
	Version    string
	AgentMount string
	UserMount  string
	Operations []operation
	Errors     []snap.CodeInfo
}

// operation is one route on the page.
type operation struct {
	ID, Method, Path, Summary string
	Mounts                    string
	Parameters                []field
	Request                   []field
	Answer                    string // status and shape
	Response                  []field
}

// field is a parameter, or a member of a JSON body.
type field struct {
	Name, In, Type, Doc string
	Required            bool
}

// home is the service's front page.
type home struct {
	look.Page
	AuthURL string
}

func (s *Service) openPages(mux *http.ServeMux, version string) error {
	assets := look.NewAssets("/assets/", look.Files())
	views, err := look.Parse(assets, func() time.Time { return s.now().UTC() }, pageFiles, "pages/*.html")
	if err != nil {
		return err
	}
	page := look.Page{Product: "snapcloud", Nav: []look.Link{{URL: "/docs", Text: "API"},
		{URL: "/auth/account", Text: "Account"}}}
	show := func(status int, name string, data any) http.Handler {
		return look.Secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := views.Page(w, status, name, data); err != nil {
				s.writeError(w, r, err)
			}
		}))
	}
	mux.Handle("GET /assets/", assets)
	front := home{Page: page, AuthURL: "/auth/device"}
	front.Title, front.Narrow = "Share database snapshots", true
	mux.Handle("GET /{$}", show(http.StatusOK, "home.html", front))
	missing := page
	missing.Title, missing.Narrow = "Not found", true
	s.web.notFound = show(http.StatusNotFound, "missing.html", missing)
	ref := reference{Page: page, Version: version, AgentMount: api.MountAgent, UserMount: api.MountUser,
		Operations: operations(s.web.openAPI)}
	ref.Title = "API"
	for _, row := range snap.Codes() {
		if row.Status != 0 {
			ref.Errors = append(ref.Errors, row)
		}
	}
	mux.Handle("GET /docs", show(http.StatusOK, "reference.html", ref))
	return nil
}

// operations lists the operations of the document. A route on both mounts is one entry.
func operations(doc *huma.OpenAPI) []operation {
	var out []operation
	for path, item := range doc.Paths {
		for method, op := range methods(item) {
			short, mounts := path, ""
			switch {
			case strings.HasPrefix(path, api.MountAgent):
				continue // listed with the route on the other mount
			case doc.Paths[api.MountAgent+strings.TrimPrefix(path, api.MountUser)] != nil:
				short, mounts = strings.TrimPrefix(path, api.MountUser), "both mounts"
			case path != api.PathAuthConfig:
				short, mounts = strings.TrimPrefix(path, api.MountUser), "user mount only"
			}
			out = append(out, describe(doc, op, method, short, mounts))
		}
	}
	slices.SortFunc(out, func(a, b operation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return out
}

func methods(item *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "DELETE": item.Delete, "PUT": item.Put}
	for method, op := range all {
		if op == nil {
			delete(all, method)
		}
	}
	return all
}

func describe(doc *huma.OpenAPI, op *huma.Operation, method, path, mounts string) operation {
	out := operation{ID: strings.TrimPrefix(op.OperationID, "api-v1-"), Method: method, Path: path, Summary: op.Summary,
		Mounts: mounts}
	for _, p := range op.Parameters {
		out.Parameters = append(out.Parameters, field{Name: p.Name, In: p.In, Type: typeName(p.Schema),
			Doc:      p.Description,
			Required: p.Required})
	}
	if op.RequestBody != nil {
		if body := op.RequestBody.Content["application/json"]; body != nil {
			out.Request = fields(doc, body.Schema)
		}
	}
	for status, response := range op.Responses {
		if status[0] != '2' {
			continue
		}
		out.Answer = status
		if body := response.Content["application/json"]; body != nil {
			out.Response = fields(doc, body.Schema)
		}
	}
	return out
}

// fields lists the members of an object, those required first.
func fields(doc *huma.OpenAPI, s *huma.Schema) []field {
	if s.Ref != "" {
		s = doc.Components.Schemas.SchemaFromRef(s.Ref)
	}
	var out []field
	for name, member := range s.Properties {
		out = append(out, field{Name: name, Type: typeName(member), Doc: member.Description,
			Required: slices.Contains(s.Required, name)})
	}
	slices.SortFunc(out, func(a, b field) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

// typeName describes the type of a value in a few words.
func typeName(s *huma.Schema) string {
	if s == nil {
		return ""
	}
	if s.Ref != "" {
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprint(v))
		}
		return strings.Join(values, " | ")
	}
	if s.Items != nil {
		return "list of " + typeName(s.Items)
	}
	if s.Format == "date-time" {
		return "time (RFC 3339)"
	}
	return s.Type
}
