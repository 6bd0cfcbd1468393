package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"snap"
)

// device is the state of one login by device grant (RFC 8628).
type device struct {
	Options
	provider provider
	began    deviceResponse
	deadline time.Time
	wait     time.Duration // between two polls, set by the service
	failures int           // consecutive polls that failed
	lastErr  error         // the error of the last such poll
}

// deviceResponse is the device authorization response (RFC 8628 section 3.2).
type deviceResponse struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URL        string `json:"verification_uri"`
	Complete   string `json:"verification_uri_complete"`
	ExpiresIn  int    `json:"expires_in"`
	Interval   int    `json:"interval"`
}

// tokenResponse is a successful token response.
type tokenResponse struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
}

// defaultLife is the assumed lifetime of an access token whose response has no expires_in.
const defaultLife = 5 * time.Minute

// maxExpiresIn is about 68 years in seconds. A much larger number would overflow a time.Duration.
const maxExpiresIn = 1 << 31

func (g tokenResponse) expiry(now time.Time) time.Time {
	if g.ExpiresIn <= 0 {
		return now.Add(defaultLife)
	}
	return now.Add(time.Duration(min(g.ExpiresIn, maxExpiresIn)) * time.Second)
}

// refusal is an OAuth error response.
type refusal struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
	Interval    int    `json:"interval"`
	status      int
}

func (r *refusal) Error() string {
	return strings.TrimRight(fmt.Sprintf("the auth service answered %d %s: %s", r.status, snap.CleanText(r.Code),
		snap.CleanText(r.Description)), ": ")
}

// errLostResponse means that the service granted the request, but its response was lost.
var errLostResponse = errors.New("the response was lost")

// postForm sends a form and decodes the JSON response into out. It returns a *refusal for every
// status other than 200, and errLostResponse if the body of a response with status 200 cannot be
// read.
func postForm(ctx context.Context, h *http.Client, target string, form url.Values, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	res, err := h.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if res.StatusCode == http.StatusOK {
		if out != nil && (err != nil || json.Unmarshal(body, out) != nil) {
			return errLostResponse
		}
		return nil
	}
	r := &refusal{status: res.StatusCode}
	if err != nil || json.Unmarshal(body, r) != nil {
		r.Code = ""
	}
	return r
}

// run performs the whole device grant and returns the tokens.
func (d *device) run(ctx context.Context) (tokenResponse, error) {
	form := url.Values{"client_id": {d.ClientID}, "program": {d.Program}, "host": {d.Host}}
	if d.Scope != "" {
		form.Set("scope", d.Scope)
	}
	err := postForm(ctx, d.HTTP, d.provider.DeviceAuthorization, form, &d.began)
	if err == nil && (d.began.DeviceCode == "" || d.began.UserCode == "" ||
		checkURL(d.began.URL, "the login page") != nil) {
		err = errLostResponse
	}
	if err != nil {
		return tokenResponse{}, d.startError(ctx, err)
	}
	d.schedule()
	d.show()
	for {
		got, err := d.poll(ctx)
		if !errors.Is(err, errPending) {
			return got, err
		}
		if err := d.pause(ctx); err != nil {
			return tokenResponse{}, err
		}
	}
}

func (d *device) startError(ctx context.Context, err error) error {
	var r *refusal
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx)
	case errors.As(err, &r) && r.status == http.StatusTooManyRequests:
		return &snap.Error{Code: snap.CodeRateLimited, Detail: "the auth service has too many logins waiting",
			Hint: "try again in a few minutes", Cause: err}
	case errors.As(err, &r) && (r.Code == "invalid_client" || r.Code == "unauthorized_client"):
		return &snap.Error{Code: snap.CodeForbidden, Detail: "the auth service does not know the client " +
			snap.CleanText(d.ClientID), Hint: "check --client-id", Cause: err}
	case errors.As(err, &r) && r.Code == "invalid_scope":
		return snap.Usage("the auth service does not know the scope "+snap.CleanText(d.Scope), "omit --scope")
	}
	return &snap.Error{Code: snap.CodeUnreachable, Detail: "the auth service at " + snap.CleanText(hostOf(d.AuthURL)) +
		" did not start a login", Hint: "try again later", Cause: err}
}

// Limits for the service's values, which may be unreasonable.
const (
	defaultInterval = 5 * time.Second
	maxInterval     = 60 * time.Second
	maxLife         = 30 * time.Minute
)

func (d *device) schedule() {
	d.wait = interval(d.began.Interval, defaultInterval)
	life := time.Duration(d.began.ExpiresIn) * time.Second
	if life <= 0 || life > maxLife {
		life = maxLife
	}
	d.deadline = d.Now().Add(life)
}

func interval(seconds int, otherwise time.Duration) time.Duration {
	if seconds <= 0 {
		return otherwise
	}
	return time.Duration(min(seconds, int(maxInterval/time.Second))) * time.Second
}

// show displays the code and the URL, and only then opens a browser.
func (d *device) show() {
	c := Code{UserCode: snap.CleanText(d.began.UserCode), URL: snap.CleanText(d.began.URL), Expires: d.deadline}
	if checkURL(d.began.Complete, "") == nil {
		c.Complete = snap.CleanText(d.began.Complete)
	}
	if !d.NoBrowser {
		c.Opened, c.Why = d.Browser()
	}
	d.Prompt.Code(c)
	if !c.Opened {
		return
	}
	if err := d.OpenURL(cmp.Or(c.Complete, c.URL)); err != nil {
		d.Prompt.Note("no browser could be opened: " + snap.CleanText(err.Error()))
	}
}

// errPending means that the user has not decided yet.
var errPending = errors.New("not decided yet")

// poll asks once whether the user has decided. If not, it returns errPending. It does the same if
// the network or the service fails, and counts the failure.
func (d *device) poll(ctx context.Context) (tokenResponse, error) {
	var got tokenResponse
	err := postForm(ctx, d.HTTP, d.provider.Token, url.Values{
		"grant_type":  {"urn:ietf:params:oauth:grant-type:device_code"},
		"client_id":   {d.ClientID},
		"device_code": {d.began.DeviceCode},
	}, &got)
	if err == nil && (got.AccessToken == "" || !strings.EqualFold(got.TokenType, "bearer")) {
		err = errLostResponse
	}
	if err == nil {
		return got, nil
	}
	if ctx.Err() != nil {
		return tokenResponse{}, interrupted(ctx)
	}
	if errors.Is(err, errLostResponse) {
		return tokenResponse{}, &snap.Error{Code: snap.CodeUnreachable,
			Detail: "the login was approved, but the response was lost",
			Hint:   "run `snapcli login` again"}
	}
	return tokenResponse{}, d.pollError(err)
}

// pollError interprets the error of a poll (RFC 8628 section 3.5).
func (d *device) pollError(err error) error {
	var r *refusal
	if !errors.As(err, &r) || r.status >= 500 || r.status == http.StatusTooManyRequests {
		d.failures, d.lastErr = d.failures+1, err
		return errPending
	}
	d.failures, d.lastErr = 0, nil
	switch r.Code {
	case "authorization_pending":
		return errPending
	case "slow_down":
		d.wait = max(d.wait+5*time.Second, interval(r.Interval, 0))
		return errPending
	case "access_denied":
		return &snap.Error{Code: snap.CodeForbidden,
			Detail: cmp.Or(snap.CleanText(r.Description), "the login was denied"), Hint: deniedHint(r.Description)}
	case "expired_token":
		return expired()
	}
	return &snap.Error{Code: snap.CodeNotSignedIn, Detail: "the auth service ended the login",
		Hint: "run `snapcli login` again", Cause: r}
}

// deniedHint returns the hint for a denied login. It does not suggest logging in again if the
// organization does not allow login from a terminal.
func deniedHint(reason string) string {
	if strings.Contains(reason, "does not allow") {
		return "use an API key: set SNAPCLI_CLOUD__API_KEY, or ask an owner of the organization to allow login from " +
			"a terminal"
	}
	return "if that was not you, run `snapcli login` again"
}

func expired() error {
	return &snap.Error{Code: snap.CodeNotSignedIn, Detail: "the code expired before it was approved",
		Hint: "run `snapcli login` again"}
}

// pause waits until the next poll, a fifth longer than the service asked for, because the clocks of
// virtual machines can run fast. After failures it waits longer.
func (d *device) pause(ctx context.Context) error {
	wait := d.wait + d.wait/5
	if d.failures > 0 {
		wait = max(wait, min(time.Second<<min(d.failures, 5), 30*time.Second))
	}
	until := d.Now().Add(wait)
	for {
		remaining := d.deadline.Sub(d.Now())
		if remaining <= 0 {
			return d.tooLate()
		}
		d.Prompt.Waiting(remaining)
		step := min(time.Second, until.Sub(d.Now()), remaining)
		if step <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return interrupted(ctx)
		case <-d.After(step):
		}
	}
}

func (d *device) tooLate() error {
	if d.failures == 0 {
		return expired()
	}
	return &snap.Error{Code: snap.CodeUnreachable, Detail: "the auth service did not answer before the code expired",
		Hint: "check your network and run `snapcli login` again", Cause: d.lastErr}
}
