package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// browser is a minimal web browser for the sign-in pages. It keeps cookies, follows redirects and
// submits the forms of a page with their values.
type browser struct {
	client *http.Client
	page   *url.URL
	root   *html.Node
}

func newBrowser() (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &browser{client: &http.Client{Jar: jar}}, nil
}

// open goes to an address.
func (b *browser) open(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Sec-Fetch-Site", "none")
	return b.load(req)
}

// load sends a request and reads the page that it leads to.
func (b *browser) load(req *http.Request) error {
	req.Header.Set("Accept", "text/html")
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		return fmt.Errorf("%s responded with %s: %s", resp.Request.URL.Path, resp.Status, text)
	}
	b.page = resp.Request.URL
	b.root, err = html.Parse(resp.Body)
	return err
}

// hasField reports whether a form of the page has this field.
func (b *browser) hasField(field string) bool {
	return slices.ContainsFunc(elements(b.root, "form"), func(form *html.Node) bool {
		return hasFields(form, map[string]string{field: ""})
	})
}

// submit fills in the form that has all these fields and sends it. The form's other inputs keep the
// values that the page gave them, except checkboxes and radio buttons, which are not sent.
func (b *browser) submit(ctx context.Context, fields map[string]string) error {
	for _, form := range elements(b.root, "form") {
		if !hasFields(form, fields) {
			continue
		}
		values := url.Values{}
		for _, input := range elements(form, "input") {
			if kind := attribute(input, "type"); kind != "submit" && kind != "checkbox" && kind != "radio" {
				values.Set(attribute(input, "name"), attribute(input, "value"))
			}
		}
		for name, value := range fields {
			values.Set(name, value)
		}
		to, err := b.page.Parse(attribute(form, "action"))
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(values.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", b.page.Scheme+"://"+b.page.Host)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		return b.load(req)
	}
	return fmt.Errorf("no form of the page has the fields %q; the page says: %s",
		slices.Sorted(maps.Keys(fields)), text(b.root))
}

// hasFields reports whether a form has an input, button or select with each of these names.
func hasFields(form *html.Node, fields map[string]string) bool {
	found := map[string]bool{}
	for _, kind := range []string{"input", "button", "select"} {
		for _, e := range elements(form, kind) {
			found[attribute(e, "name")] = true
		}
	}
	for name := range fields {
		if !found[name] {
			return false
		}
	}
	return true
}

// elements returns the elements of one kind below n.
func elements(n *html.Node, kind string) []*html.Node {
	var all []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == kind {
			all = append(all, d)
		}
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text returns the visible text of a page.
func text(n *html.Node) string {
	var words []string
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" && d.Parent.Data != "script" {
			words = append(words, strings.Fields(d.Data)...)
		}
	}
	return strings.Join(words, " ")
}
