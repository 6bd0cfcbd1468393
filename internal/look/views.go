package look

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed parts
var parts embed.FS

// Page is the data that every page needs. The data of each page embeds it.
type Page struct {
	Title   string // the page's title, without the product's name
	Product string // shown in the corner, such as "snapcli"
	Home    string // URL of the corner link; empty means "/"
	Nav     []Link
	Find    string   // URL of the search link; empty for none
	Who     string   // the signed-in user; empty for nobody
	WhoLink string   // URL of the user's link
	Narrow  bool     // one centered card instead of the full width
	Styles  []string // further stylesheets, by asset name
	Scripts []string // ES modules, by asset name
	// Revision tells which of two versions of a fragment is newer. It is empty on pages whose
	// fragments are not replaced.
	Revision string
}

// Link is an entry of the navigation.
type Link struct {
	URL, Text, Icon string
	Current         bool
	Count           int // shown next to the text if not 0
}

// Views holds the page templates of a program. Each page is parsed when it is first used, because a
// process rarely shows all of them.
type Views struct {
	pages map[string]func() (*template.Template, error)
}

// Parse reads the shared parts of all pages. Every page file may define "main", "head" and its own
// parts, and may use the parts in files whose name starts with an underscore. now is the clock for
// relative times.
func Parse(a *Assets, now func() time.Time, pages fs.FS, pattern string) (*Views, error) {
	root, err := template.New("").Funcs(funcs(a, now)).ParseFS(parts, "parts/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse the shared parts: %w", err)
	}
	names, err := fs.Glob(pages, pattern)
	if err != nil {
		return nil, fmt.Errorf("find the page templates: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			if root, err = root.ParseFS(pages, name); err != nil {
				return nil, fmt.Errorf("parse %s: %w", name, err)
			}
		}
	}
	v := &Views{pages: map[string]func() (*template.Template, error){}}
	for _, name := range names {
		if !strings.HasPrefix(path.Base(name), "_") {
			v.pages[path.Base(name)] = sync.OnceValues(func() (*template.Template, error) {
				return parsePage(root, pages, name)
			})
		}
	}
	return v, nil
}

// parsePage adds a page to a copy of the shared parts.
func parsePage(root *template.Template, pages fs.FS, name string) (*template.Template, error) {
	page, err := root.Clone()
	if err == nil {
		page, err = page.ParseFS(pages, name)
	}
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	return page, nil
}

// Page writes a whole page. It writes nothing if the template fails.
func (v *Views) Page(w http.ResponseWriter, status int, page string, data any) error {
	return v.Part(w, status, page, "base", data)
}

// Write writes one part of a page to a plain writer.
func (v *Views) Write(w io.Writer, page, part string, data any) error {
	parsed, ok := v.pages[page]
	if !ok {
		return fmt.Errorf("no page template %s", page)
	}
	t, err := parsed()
	if err != nil {
		return err
	}
	if err := t.ExecuteTemplate(w, part, data); err != nil {
		return fmt.Errorf("render %s: %w", page, err)
	}
	return nil
}

// Part writes one part of a page, which a script inserts into the page. It writes nothing if the
// template fails.
func (v *Views) Part(w http.ResponseWriter, status int, page, part string, data any) error {
	var buf bytes.Buffer
	if err := v.Write(&buf, page, part, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := buf.WriteTo(w)
	return err
}

// Names returns the names of the page files, in any order.
func (v *Views) Names() []string { return slices.Collect(maps.Keys(v.pages)) }
