// Package login is the client half of signing in.
package login

import (
	"context"
	"errors"
	"net/http"
	"time"

	"snap/api"
)

// Session is a login session as credentials.json keeps it.
type Session struct {
	CloudURL     string    `json:"cloud_url"`
	AuthURL      string    `json:"auth_url"`
	ClientID     string    `json:"client_id"`
	Scope        string    `json:"scope,omitempty"`
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry"` // of the access token
	SignedIn     time.Time `json:"signed_in"`
	Email        string    `json:"email,omitempty"`
	Organization string    `json:"organization,omitempty"`
}

// File is credentials.json.
type File struct{ dir string }

// OpenFile returns the credentials file in a configuration directory. Nothing
// is read or made yet.
func OpenFile(configDir string) *File { return &File{dir: configDir} }

// Session returns the session kept for a cloud URL, if there is one.
func (f *File) Session(cloudURL string) (Session, bool, error) {
	return Session{}, false, errors.ErrUnsupported
}

// Source returns the session's access token for each request and refreshes it
// when it ends or was refused. It fails with code not_signed_in when there is
// no session, or it has ended.
func (f *File) Source(cloudURL string, h *http.Client) api.TokenSource {
	return func(context.Context, string) (string, error) { return "", errors.ErrUnsupported }
}

// Code is what a person needs to approve the login.
type Code struct {
	UserCode string    // as to be shown, such as BCDF-GHJK
	URL      string    // where to enter it
	Complete string    // the same with the code in it; empty if the service gives none
	Expires  time.Time // when the code ends
	Opened   bool      // a browser is being opened
}

// Prompt shows a login's progress to a person.
type Prompt interface {
	Code(Code)                       // first, always (AUTH U1)
	Waiting(remaining time.Duration) // about once a second until the end
	Note(text string)                // something worth a line
}

// Options configure [Login].
type Options struct {
	CloudURL  string
	AuthURL   string // empty: discovered from the cloud service
	ClientID  string // empty: discovered from the cloud service
	Scope     string // empty: what the service suggests
	NoBrowser bool
	ConfigDir string
	Program   string                     // such as "snapcli 1.2", shown on the approval page
	Host      string                     // this machine's name, shown on the approval page
	Env       func(string) string        // nil is os.Getenv
	Terminal  bool                       // a person sees the prompt
	OpenURL   func(string) error         // nil opens the system's browser, detached
	Confirm   func(question string) bool // nil answers no
	Prompt    Prompt
	HTTP      *http.Client
	Now       func() time.Time
	After     func(time.Duration) <-chan time.Time // nil is time.After
}

// Login signs in by device grant and stores the session.
func Login(ctx context.Context, o Options) (Session, error) { return Session{}, errors.ErrUnsupported }

// Logout revokes the session at the auth service and deletes it here. The
// session is always deleted; warning says why the service may still hold it.
func Logout(ctx context.Context, f *File, cloudURL string, h *http.Client) (ended bool, warning error) {
	return false, errors.ErrUnsupported
}
