package cloudtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"snap/api"
)

// Browser is a person's browser: it keeps cookies, fills in the auth service's forms and follows
// redirects.
type Browser struct {
	c      *Cloud
	client *http.Client
}

// Browser returns a new browser that is not signed in.
func (c *Cloud) Browser() *Browser {
	c.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return &Browser{c, &http.Client{Jar: jar}}
}

var csrfToken = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)

// Submit opens a page below /auth, takes its form's token, and posts the form.
func (b *Browser) Submit(page, action string, form url.Values) {
	b.c.t.Helper()
	found := csrfToken.FindStringSubmatch(b.get(page))
	if found == nil {
		b.c.t.Fatalf("%s has no form", page)
	}
	form.Set("csrf_token", found[1])
	req, err := http.NewRequest(http.MethodPost, b.c.URL+action, strings.NewReader(form.Encode()))
	if err != nil {
		b.c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.c.URL)
	b.do(req)
}

// SignIn signs a person in by e-mail and password.
func (b *Browser) SignIn(email string) {
	b.c.t.Helper()
	name, org, _ := strings.Cut(strings.TrimSuffix(email, ".test"), "@")
	b.Submit("/auth/signin?next=/auth/device", "/auth/signin", url.Values{
		"next": {"/auth/device"}, "organization": {org}, "email": {email}, "password": {name + "-password"},
	})
}

// Client returns the HTTP client with the browser's cookies.
func (b *Browser) Client() *http.Client { return b.client }

func (b *Browser) get(page string) string {
	b.c.t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.c.URL+page, nil)
	if err != nil {
		b.c.t.Fatal(err)
	}
	return b.do(req)
}

func (b *Browser) do(req *http.Request) string {
	b.c.t.Helper()
	res, err := b.client.Do(req)
	if err != nil {
		b.c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		b.c.t.Fatalf("%s %s: status %d, %v: %s", req.Method, req.URL.Path, res.StatusCode, err, text)
	}
	return string(text)
}

// Token returns an access token of the user with this e-mail. It gets the token by a device login
// (RFC 8628) that the person approves in a browser, and returns the same token at every call.
func (c *Cloud) Token(email string) string {
	c.t.Helper()
	return c.once("token "+email, func() string { return c.logIn(email) })
}

func (c *Cloud) logIn(email string) (token string) {
	c.t.Helper()
	begun := c.form("/auth/device_authorization",
		url.Values{"client_id": {"snapcli"}, "scope": {"openid offline_access"}})
	b := c.Browser()
	b.SignIn(email)
	b.Submit("/auth/device/confirm?user_code="+begun["user_code"], "/auth/device/confirm",
		url.Values{"user_code": {begun["user_code"]}, "decision": {"approve"}})
	return c.form("/auth/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {"snapcli"},
		"device_code": {begun["device_code"]},
	})["access_token"]
}

// form posts a form and returns the strings in the JSON response.
func (c *Cloud) form(path string, form url.Values) map[string]string {
	c.t.Helper()
	res, err := http.PostForm(c.URL+path, form)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	var all map[string]any
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: status %d, %v, %v", path, res.StatusCode, err, all)
	}
	out := map[string]string{}
	for name, v := range all {
		if text, ok := v.(string); ok {
			out[name] = text
		}
	}
	return out
}

// SignedIn returns a client of the user mount that uses an access token of the user with this
// e-mail.
func (c *Cloud) SignedIn(email string) *api.Client {
	c.t.Helper()
	return c.client(api.MountUser, c.Token(email))
}
