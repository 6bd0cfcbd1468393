package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"snap"
	"snap/api"
)

// The environment variables and the file that provide a CI job's token, in order of precedence.
const (
	jobTokenEnv     = "SNAPCLI_ID_TOKEN"
	jobTokenFileEnv = "SNAPCLI_ID_TOKEN_FILE"
	actionsURLEnv   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	actionsTokenEnv = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
	jobTokenFile    = "/var/run/secrets/snapcloud/token"
)

// Job is the CI job that this program runs in. The job's token proves which job this is. The
// service exchanges the token for a credential (RFC 8693) if the organization trusts the job.
type Job struct {
	Where string // such as "GitHub Actions"
	read  func(ctx context.Context, h *http.Client, audience string) (string, error)
	once  bool // every read returns the same token, which the service accepts only once
}

// FindJob returns the CI job of this program, if there is one. It makes no request. hide is called
// with each secret of the job before the secret is used.
//
// GitLab puts the token in the variable that the job's id_tokens names, which must be
// SNAPCLI_ID_TOKEN. GitHub Actions gives tokens to jobs with the permission id-token: write.
// Kubernetes can mount a service account's token as a file (a projected volume), which
// SNAPCLI_ID_TOKEN_FILE names, by default /var/run/secrets/snapcloud/token.
func FindJob(env func(string) string, hide func(...string)) (Job, bool) {
	job, found := findJob(env)
	if !found {
		return Job{}, false
	}
	hide(strings.TrimSpace(env(jobTokenEnv)), env(actionsTokenEnv))
	read := job.read
	job.read = func(ctx context.Context, h *http.Client, audience string) (string, error) {
		token, err := read(ctx, h, audience)
		hide(token)
		return token, err
	}
	return job, true
}

func findJob(env func(string) string) (Job, bool) {
	if token := strings.TrimSpace(env(jobTokenEnv)); token != "" {
		return Job{Where: jobTokenEnv, once: true,
			read: func(context.Context, *http.Client, string) (string, error) { return token, nil }}, true
	}
	if path := env(jobTokenFileEnv); path != "" {
		return fileJob(path), true
	}
	if endpoint, bearer := env(actionsURLEnv), env(actionsTokenEnv); endpoint != "" && bearer != "" {
		read := func(ctx context.Context, h *http.Client, audience string) (string, error) {
			return actionsToken(ctx, h, endpoint, bearer, audience)
		}
		return Job{Where: "GitHub Actions", read: read}, true
	}
	if _, err := os.Stat(jobTokenFile); err == nil {
		return fileJob(jobTokenFile), true
	}
	return Job{}, false
}

func fileJob(path string) Job {
	const hint = "check this file, or name another one in " + jobTokenFileEnv
	return Job{Where: path, once: true, read: func(context.Context, *http.Client, string) (string, error) {
		file, err := os.Open(path)
		if err != nil {
			return "", jobProblem("the job's token in "+path+" cannot be read", hint, err)
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, maxResponse))
		if token := strings.TrimSpace(string(text)); err == nil && token != "" {
			return token, nil
		}
		return "", jobProblem("the job's token in "+path+" cannot be read or is empty", hint, err)
	}}
}

// actionsToken requests a token from GitHub Actions for an audience.
func actionsToken(ctx context.Context, h *http.Client, endpoint, bearer, audience string) (string, error) {
	const hint = "check that the job has the permission id-token: write"
	if err := checkURL(endpoint, "GitHub Actions"); err != nil {
		return "", err
	}
	u, _ := url.Parse(endpoint) // cannot fail after checkURL
	q := u.Query()
	q.Set("audience", audience)
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Accept", "application/json")
	res, err := h.Do(req)
	if err != nil {
		return "", jobProblem("GitHub Actions gave no token for the job", hint, err)
	}
	defer res.Body.Close()
	var got struct{ Value string }
	err = json.NewDecoder(io.LimitReader(res.Body, maxResponse)).Decode(&got)
	if res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	if err != nil || got.Value == "" {
		return "", jobProblem("GitHub Actions gave no token for the job", hint, err)
	}
	return got.Value, nil
}

func jobProblem(detail, hint string, cause error) error {
	return &snap.Error{Code: snap.CodeNotSignedIn, Detail: detail, Hint: hint, Cause: cause}
}

// jobCredential is a credential that the service gave a CI job, as stored in credentials.json. A
// later command of the same job uses it, because most CI systems give a job only one token.
type jobCredential struct {
	Secret string    `json:"secret"`
	Expiry time.Time `json:"expiry"` // on this machine's clock
}

// JobSource returns a token source that authenticates requests to the client's service as the job.
// The source returns an API key, which only the agent mount accepts. It gets the key in exchange
// for the job's token, and fails with code not_signed_in if the service does not accept the job.
func (f *File) JobSource(job Job, client *api.Client, h *http.Client) api.TokenSource {
	var mu sync.Mutex
	var have jobCredential
	return func(ctx context.Context, refused string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if f.usableJob(have, refused) {
			return have.Secret, nil
		}
		e := exchange{job: job, client: client, http: withoutRedirects(h), file: f}
		token, err := job.read(ctx, e.http, client.BaseURL())
		if err != nil {
			return "", err
		}
		if job.once {
			have, err = e.storedOrNew(ctx, token, refused)
		} else {
			have, err = e.send(ctx, token, "")
		}
		return have.Secret, err
	}
}

func (f *File) usableJob(c jobCredential, refused string) bool {
	return c.Secret != "" && c.Secret != refused && f.now().Add(refreshMargin).Before(c.Expiry)
}

// exchange is one exchange of a job's token.
type exchange struct {
	job    Job
	client *api.Client
	http   *http.Client
	file   *File
}

// storedOrNew returns the credential that an earlier command got for a token, or gets one and
// stores it.
func (e exchange) storedOrNew(ctx context.Context, token, refused string) (jobCredential, error) {
	unlock, err := e.file.lock(ctx)
	if err != nil {
		return jobCredential{}, err
	}
	defer unlock()
	c, err := e.file.read()
	if err != nil {
		return jobCredential{}, err
	}
	name := jobName(e.client.BaseURL(), token)
	have := c.Jobs[name]
	if e.file.usableJob(have, refused) {
		return have, nil
	}
	got, err := e.send(ctx, token, have.Secret)
	if err != nil {
		return jobCredential{}, err
	}
	return got, e.file.changeLocked(func(c *contents) { c.putJob(name, got, e.file.now()) })
}

// jobName returns the name under which the credential of a token is stored.
func jobName(cloudURL, token string) string {
	sum := sha256.Sum256([]byte(key(cloudURL) + "\n" + token))
	return hex.EncodeToString(sum[:])
}

// putJob stores a job's credential and removes credentials that expired more than a day ago.
func (c *contents) putJob(name string, got jobCredential, now time.Time) {
	maps.DeleteFunc(c.Jobs, func(_ string, old jobCredential) bool { return now.Sub(old.Expiry) > 24*time.Hour })
	c.Jobs[name] = got
}

// send exchanges a token for a credential. previous is the credential that the same token was
// exchanged for before, if there is one: the service renews it.
func (e exchange) send(ctx context.Context, token, previous string) (jobCredential, error) {
	config, err := e.client.AuthConfig(ctx)
	if err != nil {
		return jobCredential{}, err
	}
	if config.ExchangeURL == "" {
		return jobCredential{}, jobProblem(e.client.BaseURL()+" does not accept CI jobs",
			"set SNAPCLI_CLOUD__API_KEY, or ask the service's operator for a rule that trusts this job", nil)
	}
	if err := checkURL(config.ExchangeURL, "an endpoint of the auth service"); err != nil {
		return jobCredential{}, err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token": {token}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}}
	if previous != "" {
		form.Set("actor_token", previous)
		form.Set("actor_token_type", "urn:ietf:params:oauth:token-type:access_token")
	}
	var got tokenResponse
	err = postForm(ctx, e.http, config.ExchangeURL, form, &got)
	if err == nil && got.AccessToken == "" {
		err = errLostResponse
	}
	var r *refusal
	switch {
	case err == nil:
		return jobCredential{Secret: got.AccessToken, Expiry: got.expiry(e.file.now())}, nil
	case errors.As(err, &r) && r.status < 500 && r.status != http.StatusTooManyRequests:
		return jobCredential{}, jobProblem(fmt.Sprintf("the service does not accept the token of %s: %s", e.job.Where,
			snap.CleanText(r.Description)), "ask the service's operator for a rule that trusts this job", r)
	case r != nil:
		return jobCredential{}, &snap.Error{Code: snap.CodeUnreachable, Cause: r,
			Detail: "the job's token was not exchanged: " + r.Error(), Hint: "run the job again in a moment"}
	}
	return jobCredential{}, &snap.Error{Code: snap.CodeUnreachable, Cause: err,
		Detail: hostOf(config.ExchangeURL) + " cannot be reached to exchange the job's token",
		Hint:   "check the network and run the job again"}
}
