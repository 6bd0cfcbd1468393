package login

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"snap"
)

// provider is the metadata of the auth service (RFC 8414, OpenID Connect Discovery).
type provider struct {
	Issuer              string   `json:"issuer"`
	DeviceAuthorization string   `json:"device_authorization_endpoint"`
	Token               string   `json:"token_endpoint"`
	Revocation          string   `json:"revocation_endpoint"`
	Scopes              []string `json:"scopes_supported"`
}

// maxResponse limits the bytes read of one response.
const maxResponse = 1 << 20

// withoutRedirects returns an HTTP client that follows no redirects, because a redirect could send
// a token or code to another host.
func withoutRedirects(h *http.Client) *http.Client {
	c := &http.Client{Timeout: 30 * time.Second}
	if h != nil {
		copied := *h
		c = &copied
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// discover reads the metadata of an auth service. The metadata must name the requested issuer, and
// every endpoint must use https, except on loopback.
func discover(ctx context.Context, h *http.Client, issuer string) (provider, error) {
	if err := checkURL(issuer, "the auth service"); err != nil {
		return provider{}, err
	}
	var last error
	for _, metadataURL := range metadataURLs(issuer) {
		p, err := fetchMetadata(ctx, h, metadataURL)
		switch {
		case err == nil:
			return p, p.check(issuer)
		case ctx.Err() != nil:
			return provider{}, interrupted(ctx)
		}
		last = err
	}
	return provider{}, &snap.Error{
		Code:   snap.CodeUnreachable,
		Detail: "cannot read the metadata of the auth service at " + snap.CleanText(issuer),
		Hint:   "check cloud.url or --auth-url, and your network",
		Cause:  last,
	}
}

// metadataURLs returns the possible URLs of the metadata: RFC 8414 puts the issuer's path after the
// well-known part, and OpenID Connect puts it before.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(strings.TrimRight(issuer, "/"))
	if err != nil {
		return nil
	}
	inserted := *u
	inserted.Path = "/.well-known/oauth-authorization-server" + u.Path
	return []string{strings.TrimRight(issuer, "/") + "/.well-known/openid-configuration", inserted.String()}
}

func fetchMetadata(ctx context.Context, h *http.Client, metadataURL string) (p provider, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, metadataURL, nil)
	if err != nil {
		return p, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := h.Do(req)
	if err != nil {
		return p, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return p, fmt.Errorf("status %d", res.StatusCode)
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxResponse)).Decode(&p)
	return p, err
}

func (p provider) check(issuer string) error {
	if strings.TrimRight(p.Issuer, "/") != strings.TrimRight(issuer, "/") {
		return &snap.Error{
			Code: snap.CodeUnreachable,
			Detail: fmt.Sprintf("the auth service at %s reports that its URL is %s", snap.CleanText(issuer),
				snap.CleanText(p.Issuer)),
			Hint: "check cloud.url or --auth-url: the auth service must report the URL at which it is reached",
		}
	}
	if p.DeviceAuthorization == "" || p.Token == "" {
		return &snap.Error{
			Code:   snap.CodeUnavailable,
			Detail: "the auth service at " + snap.CleanText(issuer) + " offers no login by device code",
			Hint:   "use an API key: set cloud.api_key",
		}
	}
	for _, endpoint := range []string{p.DeviceAuthorization, p.Token, p.Revocation} {
		if endpoint == "" {
			continue
		}
		if err := checkURL(endpoint, "an endpoint of the auth service"); err != nil {
			return err
		}
	}
	return nil
}

// checkURL returns an error unless a URL uses https or is on loopback.
func checkURL(raw, what string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return snap.Usage(fmt.Sprintf("%q is not the URL of %s", snap.CleanText(raw), what),
			"use one like https://auth.example")
	}
	if u.Scheme == "http" && !snap.IsLoopback(u.Hostname()) {
		return snap.Usage(fmt.Sprintf("%s, %s, is not encrypted", what, snap.CleanText(raw)), "use https://")
	}
	return nil
}

// scope chooses the scope to request: the user's choice, otherwise the cloud service's suggestion,
// limited to the scopes the auth service supports. Without a suggestion, it is openid and
// offline_access, because some servers cannot approve an empty scope.
func (p provider) scope(wanted string, suggested []string) string {
	if wanted != "" {
		return wanted
	}
	if len(suggested) == 0 {
		suggested = []string{"openid", "offline_access"}
	}
	var scopes []string
	for _, s := range suggested {
		if len(p.Scopes) == 0 || slices.Contains(p.Scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return strings.Join(scopes, " ")
}

func interrupted(ctx context.Context) error {
	return &snap.Error{Code: snap.CodeInterrupted, Detail: "the login was interrupted", Cause: context.Cause(ctx)}
}
