package cloud

import (
	"cmp"
	"embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"snap"
	"snap/api"
	"snap/internal/console"
	"snap/internal/look"
)

//go:embed pages
var pageFiles embed.FS

// reference is an HTML page of the API's reference, made from the OpenAPI document: the list of
// resources or, if Resource is set, the operations of that resource. It loads nothing from other
// hosts.
type reference struct {
	look.Page
	Version    string
	AgentMount string
	UserMount  string
	Resources  []chapter
	Resource   *chapter
	Errors     []snap.CodeInfo
	Query      string // words that were searched for
	Found      int    // how many operations contain these words
}

// chapter is a group of operations; see tags.
type chapter struct {
	Name, About string
	Operations  []operation
}

// operation is one route on the page.
type operation struct {
	ID, Method, Path, Summary string
	Resource                  string
	Mounts                    string
	Parameters                []field
	Request                   []field
	Status                    string // status of a successful response
	Response                  []field
	Errors                    []snap.CodeInfo
	Curl, Go                  string // the example's request
	Example                   string // body of the response to that request, as JSON
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
	Login   string // the command that signs in to this service
}

func (s *Service) openPages(mux *http.ServeMux, version string) error {
	assets := look.NewAssets("/assets/", look.Files())
	views, err := look.Parse(assets, func() time.Time { return s.now().UTC() }, pageFiles, "pages/*.html")
	if err != nil {
		return err
	}
	page := look.Page{Product: "snapcloud", Nav: []look.Link{{URL: console.Snapshots, Text: "Snapshots"},
		{URL: "/docs", Text: "API"}, {URL: "/auth/account", Text: "Account"}}}
	show := func(status int, name string, data any) http.Handler {
		return look.Secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := views.Page(w, status, name, data); err != nil {
				s.writeError(w, r, err)
			}
		}))
	}
	mux.Handle("GET /assets/", assets)
	front := home{Page: page, AuthURL: "/auth/device", Login: "snapcli login " + s.config.PublicURL}
	front.Title, front.Narrow = "Share database snapshots", true
	mux.Handle("GET /{$}", show(http.StatusOK, "home.html", front))
	missing := page
	missing.Title, missing.Narrow = "Not found", true
	s.web.notFound = show(http.StatusNotFound, "missing.html", missing)
	s.openReference(mux, version, page, func(w http.ResponseWriter, r *http.Request, ref reference) {
		show(http.StatusOK, "reference.html", ref).ServeHTTP(w, r)
	})
	return nil
}

// openReference adds the pages of the API's reference. Their data is made once, at the first
// request.
func (s *Service) openReference(mux *http.ServeMux, version string, page look.Page,
	show func(http.ResponseWriter, *http.Request, reference)) {
	all := sync.OnceValue(func() reference {
		all := reference{Page: page, Version: version, AgentMount: api.MountAgent, UserMount: api.MountUser,
			Resources: s.resources()}
		all.Title = "API"
		for _, row := range snap.Codes() {
			if row.Status != 0 {
				all.Errors = append(all.Errors, row)
			}
		}
		return all
	})
	mux.HandleFunc("GET /docs", func(w http.ResponseWriter, r *http.Request) {
		ref := all()
		ref.search(r.URL.Query().Get("q"))
		show(w, r, ref)
	})
	mux.HandleFunc("GET /docs/{resource}", func(w http.ResponseWriter, r *http.Request) {
		ref := all()
		i := slices.IndexFunc(ref.Resources, func(x chapter) bool { return x.Name == r.PathValue("resource") })
		if i < 0 {
			s.web.notFound.ServeHTTP(w, r)
			return
		}
		ref.Resource = &ref.Resources[i]
		ref.Title = "API: " + ref.Resource.Name
		show(w, r, ref)
	})
}

// search keeps the operations that have all words of q in their ID, method, path, summary, resource
// or field names.
func (ref *reference) search(q string) {
	ref.Query = strings.TrimSpace(q)
	if ref.Query == "" {
		return
	}
	var found []chapter
	for _, x := range ref.Resources {
		operations := slices.DeleteFunc(slices.Clone(x.Operations), func(o operation) bool {
			return !o.has(strings.Fields(strings.ToLower(ref.Query)))
		})
		if len(operations) > 0 {
			found = append(found, chapter{Name: x.Name, About: x.About, Operations: operations})
			ref.Found += len(operations)
		}
	}
	ref.Resources = found
}

func (o operation) has(words []string) bool {
	text := o.ID + " " + o.Method + " " + o.Path + " " + o.Summary + " " + o.Resource
	for _, f := range slices.Concat(o.Parameters, o.Request, o.Response) {
		text += " " + f.Name
	}
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// resources groups the operations by their tags, in the order of the document.
func (s *Service) resources() (all []chapter) {
	operations := operations(s.web.openAPI, s.config.PublicURL)
	for _, tag := range s.web.openAPI.Tags {
		x := chapter{Name: tag.Name, About: tag.Description}
		for _, o := range operations {
			if o.Resource == tag.Name {
				x.Operations = append(x.Operations, o)
			}
		}
		if len(x.Operations) > 0 {
			all = append(all, x)
		}
	}
	return all
}

// operations lists the operations of the document. A route on both mounts is one entry.
func operations(doc *huma.OpenAPI, publicURL string) []operation {
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
			out = append(out, describe(doc, op, method, short, mounts, publicURL))
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

func describe(doc *huma.OpenAPI, op *huma.Operation, method, path, mounts, publicURL string) operation {
	out := operation{ID: strings.TrimPrefix(op.OperationID, "api-v1-"), Method: method, Path: path, Summary: op.Summary,
		Mounts: mounts, Resource: op.Tags[0]}
	for _, p := range op.Parameters {
		out.Parameters = append(out.Parameters, field{Name: p.Name, In: p.In, Type: typeName(p.Schema),
			Doc: p.Description, Required: p.Required})
	}
	example := request{method: method, path: path, parameters: op.Parameters, url: publicURL}
	if op.RequestBody != nil {
		if body := op.RequestBody.Content["application/json"]; body != nil {
			out.Request = fields(doc, body.Schema)
			example.body = exampleOf(doc, body.Schema)
		}
	}
	for status, response := range op.Responses {
		if status[0] != '2' {
			for code := range response.Content["application/problem+json"].Examples {
				out.Errors = append(out.Errors, snap.Code(code).Info())
			}
			continue
		}
		out.Status = status
		if body := response.Content["application/json"]; body != nil {
			out.Response = fields(doc, body.Schema)
			out.Example = indented(sampleOf(doc, body.Schema, 0))
		}
	}
	slices.SortFunc(out.Errors, func(a, b snap.CodeInfo) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	example.mount, example.secret = api.MountAgent, "$SNAP_KEY"
	switch {
	case mounts == "":
		example.mount, example.secret = "", ""
	case mounts != "both mounts":
		example.mount, example.secret = api.MountUser, "$SNAP_TOKEN"
	}
	out.Curl, out.Go = example.curl(), example.golang()
	return out
}

// fields lists the members of an object, the required ones first.
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
		return strings.Join(each(s.Enum, func(v any) string { return fmt.Sprint(v) }), " | ")
	}
	if s.Items != nil {
		return "list of " + typeName(s.Items)
	}
	if s.Format == "date-time" {
		return "time (RFC 3339)"
	}
	return s.Type
}
