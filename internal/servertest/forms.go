package servertest

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var (
	formTag  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	inputTag = regexp.MustCompile(`<input[^>]*>`)
	attr     = regexp.MustCompile(`(name|value)="([^"]*)"`)
)

// OIDCSignIn opens a page and fills in the forms of an identity provider for this account, until it
// reaches a page without a form or on another host. It returns that page.
func OIDCSignIn(t testing.TB, c *http.Client, page, account string) (status int, at *url.URL, body string) {
	t.Helper()
	status, at, body = visit(t, c, http.MethodGet, page, nil)
	provider := at.Host
	for range 8 {
		form := formTag.FindStringSubmatch(body)
		if form == nil || at.Host != provider {
			return status, at, body
		}
		action, err := at.Parse(html.UnescapeString(form[1]))
		if err != nil {
			t.Fatal(err)
		}
		status, at, body = visit(t, c, http.MethodPost, action.String(), fillIn(form[2], account))
	}
	t.Fatalf("the forms do not end: %s", body)
	return 0, nil, ""
}

func fillIn(form, account string) url.Values {
	fields := url.Values{}
	for _, input := range inputTag.FindAllString(form, -1) {
		values := map[string]string{}
		for _, m := range attr.FindAllStringSubmatch(input, -1) {
			values[m[1]] = html.UnescapeString(m[2])
		}
		switch values["name"] {
		case "":
		case "login", "username", "password":
			fields.Set(values["name"], account)
		default:
			fields.Set(values["name"], values["value"])
		}
	}
	return fields
}

func visit(t testing.TB, c *http.Client, method, target string, fields url.Values) (int, *url.URL, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, target, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Request.URL, string(body)
}
