// Package login is the client side of signing in: the device grant (RFC 8628), the sessions in
// credentials.json, and their refresh.
package login

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"snap"
	"snap/api"
)

// Code is the information a user needs to approve a login. Its strings are safe to print.
type Code struct {
	UserCode string    // in display form, such as BCDF-GHJK
	URL      string    // where to enter it
	Complete string    // the URL including the code; empty if the service sends none
	Expires  time.Time // when the code expires
	Opened   bool      // a browser is being opened
	Why      string    // the reason no browser is opened, unless the user asked for none
}

// Prompt shows the progress of a login to a person.
type Prompt interface {
	Code(Code)                       // called once, before Waiting
	Waiting(remaining time.Duration) // called about once a second until the end
	Note(text string)                // shows a line of text
}

// Options configures [Login].
type Options struct {
	CloudURL  string
	AuthURL   string // empty: discovered from the cloud service
	ClientID  string // empty: discovered from the cloud service
	Scope     string // empty: the scopes that the service suggests
	As        string // the account's name; empty: derived from the user, see [Session.Account]
	NoBrowser bool
	ConfigDir string
	Program   string                     // such as "snapcli 1.2", shown on the approval page
	Host      string                     // this machine's name, shown on the approval page
	Env       func(string) string        // nil is os.Getenv
	Terminal  bool                       // whether a person can see the prompt
	OpenURL   func(string) error         // nil opens the system's browser, detached
	Browser   func() (bool, string)      // whether a browser can be opened, and if not, why; nil checks the machine
	Confirm   func(question string) bool // nil answers no
	Prompt    Prompt
	HTTP      *http.Client
	Now       func() time.Time
	After     func(time.Duration) <-chan time.Time // nil is time.After
}

// Login signs in by device grant, stores the session as the account in use, and ends the session
// that it replaces: the one with the same name or, if no name is given, the one of the same user.
// Its errors have the codes forbidden (denied), not_signed_in (expired), unauthenticated,
// rate_limited, unavailable, unreachable, interrupted and usage. After an error, the previous
// session remains valid.
func Login(ctx context.Context, o Options) (Session, error) {
	o.setDefaults()
	base, err := api.CheckBaseURL(o.CloudURL)
	if err != nil {
		return Session{}, err
	}
	o.CloudURL = base
	if o.As != "" {
		if err := CheckName(o.As); err != nil {
			return Session{}, err
		}
	}
	suggested, err := o.resolve(ctx)
	if err != nil {
		return Session{}, err
	}
	p, err := discover(ctx, o.HTTP, o.AuthURL)
	if err != nil {
		return Session{}, err
	}
	if err := o.file().requireWritable(ctx); err != nil {
		return Session{}, err
	}
	o.Scope = p.scope(o.Scope, suggested)
	d := &device{Options: o, provider: p}
	got, err := d.run(ctx)
	if err != nil {
		return Session{}, err
	}
	s := Session{
		Name: o.As, CloudURL: base, AuthURL: o.AuthURL, TokenURL: p.Token, RevokeURL: p.Revocation,
		ClientID: o.ClientID, Scope: got.Scope, AccessToken: got.AccessToken, RefreshToken: got.RefreshToken,
		Expiry: got.expiry(o.Now()), SignedIn: o.Now(),
	}
	return o.store(ctx, s)
}

func (o *Options) setDefaults() {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Browser == nil {
		o.Browser = machine{o.Env, runtime.GOOS, exists, o.Terminal}.browser
	}
	if o.OpenURL == nil {
		o.OpenURL = opener{env: o.Env}.open
	}
	if o.Confirm == nil {
		o.Confirm = func(string) bool { return false }
	}
	o.HTTP = withoutRedirects(o.HTTP)
}

// resolve sets the auth service and the client ID from the flags or the cloud service (SPEC 5.2),
// and returns the scopes that the cloud service suggests. If the cloud service names a different
// auth service than before, resolve asks for confirmation.
func (o *Options) resolve(ctx context.Context) (scopes []string, err error) {
	pinned := o.AuthURL != ""
	if !pinned || o.ClientID == "" {
		client, err := api.New(api.Options{BaseURL: o.CloudURL, UserAgent: o.Program, HTTP: o.HTTP})
		if err != nil {
			return nil, err
		}
		config, err := client.AuthConfig(ctx)
		if err != nil {
			return nil, err
		}
		if !pinned {
			o.AuthURL, scopes = config.AuthURL, config.Scopes
		}
		if o.ClientID == "" {
			o.ClientID = config.ClientID
		}
	}
	known, err := OpenFile(o.ConfigDir).read()
	if err != nil && snap.CodeOf(err) != snap.CodeNotSignedIn {
		return nil, err
	}
	before := known.AuthURLs[key(o.CloudURL)]
	if !pinned && before != "" && before != o.AuthURL {
		question := fmt.Sprintf("%s used the auth service %s before and now uses %s. Sign in at the new one?",
			o.CloudURL, snap.CleanText(before), snap.CleanText(o.AuthURL))
		if !o.Confirm(question) {
			return nil, snap.Usage(fmt.Sprintf("the cloud service now names another auth service: %s, not %s",
				snap.CleanText(o.AuthURL), snap.CleanText(before)),
				"ask its operator; if that is right, run `snapcli login --auth-url "+snap.CleanText(o.AuthURL)+"`")
		}
	}
	if host := hostOf(o.AuthURL); host != hostOf(o.CloudURL) {
		o.Prompt.Note("signing in at " + snap.CleanText(host))
	}
	return scopes, nil
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Host
}

// store adds the user's identity to a new session, saves it, and then ends the old session.
func (o *Options) store(ctx context.Context, s Session) (Session, error) {
	if err := o.fetchIdentity(ctx, &s); err != nil {
		return Session{}, err
	}
	var old Session
	err := o.file().change(context.WithoutCancel(ctx), func(c *contents) {
		s, old = c.keep(s)
		c.AuthURLs[key(s.CloudURL)] = s.AuthURL
	})
	if err != nil {
		return Session{}, err
	}
	if old.RefreshToken != "" && old.RefreshToken != s.RefreshToken {
		if err := revoke(ctx, o.HTTP, old); err != nil {
			o.Prompt.Note("the previous session could not be ended at the service")
		}
	}
	return s, nil
}

func (o *Options) file() *File {
	f := OpenFile(o.ConfigDir)
	f.Warn = o.Prompt.Note
	return f
}

// fetchIdentity fills in the session's user and organization from the cloud service. It fails if
// the service refuses the session. If the service does not answer, they stay empty.
func (o *Options) fetchIdentity(ctx context.Context, s *Session) error {
	client, err := api.New(api.Options{
		BaseURL: o.CloudURL, Mount: api.MountUser, Token: api.StaticToken(s.AccessToken), UserAgent: o.Program,
		HTTP: o.HTTP,
	})
	if err != nil {
		return err
	}
	me, err := client.Me(ctx)
	switch snap.CodeOf(err) {
	case "":
		s.Email, s.Organization = me.Email, me.Organization
	case snap.CodeUnauthenticated, snap.CodeForbidden:
		return &snap.Error{
			Code: snap.CodeOf(err),
			Detail: "you signed in at " + hostOf(s.AuthURL) + ", but " + s.CloudURL + " does not accept the session: " +
				err.Error(),
			Hint:  "check --auth-url and --client-id, or ask the operator of the cloud service",
			Cause: err,
		}
	default:
		o.Prompt.Note("signed in, but the cloud service did not return your name: " + err.Error())
	}
	return nil
}

// key normalizes a cloud URL for use as a key of the sessions.
func key(cloudURL string) string {
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(cloudURL), "/"))
	if err != nil {
		return cloudURL
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return u.String()
}
