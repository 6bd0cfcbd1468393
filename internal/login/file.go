package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"snap"
	"snap/internal/disk"
)

// Session is a login session as stored in credentials.json (SPEC 2.5).
type Session struct {
	Name         string    `json:"name,omitempty"` // see [Session.Account]
	CloudURL     string    `json:"cloud_url"`
	AuthURL      string    `json:"auth_url"`
	TokenURL     string    `json:"token_url"`
	RevokeURL    string    `json:"revoke_url,omitempty"`
	ClientID     string    `json:"client_id"`
	Scope        string    `json:"scope,omitempty"`
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry"` // of the access token, on this machine's clock
	SignedIn     time.Time `json:"signed_in"`
	Email        string    `json:"email,omitempty"`
	Organization string    `json:"organization,omitempty"`
}

// File is <config-dir>/credentials.json, which holds the sessions by cloud URL and account. Only
// its owner can read it. It is replaced atomically while a separate lock file is locked, so several
// processes can use it at the same time.
//
// A File keeps working with the first account it selected, even if another process switches
// accounts.
type File struct {
	dir string

	mu     sync.Mutex
	choice Choice
	pinned map[string]string // account names, by cloud URL

	// Warn, if set, receives a message about each repair, for example of a file mode that is too
	// open.
	Warn func(text string)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// OpenFile returns the credentials file of a configuration directory. It does not read or create
// the file.
func OpenFile(configDir string) *File { return &File{dir: configDir, pinned: map[string]string{}} }

// Path returns the file's path.
func (f *File) Path() string { return filepath.Join(f.dir, "credentials.json") }

// Session returns the session for a cloud URL, if there is one. It fails with code not_signed_in if
// the selected account does not exist, and with usage if several accounts match the choice.
func (f *File) Session(cloudURL string) (Session, bool, error) {
	c, err := f.read()
	if err != nil {
		return Session{}, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, there := c.byName(cloudURL, f.pinned[key(cloudURL)]); there {
		return s, true, nil
	}
	s, found, err := c.session(cloudURL, f.choice)
	if found {
		f.pinned[key(cloudURL)] = s.Account()
	}
	return s, found, err
}

// contents is the decoded file.
type contents struct {
	// Sessions are the sessions in use, one per cloud URL. Earlier versions stored only these.
	Sessions map[string]Session `json:"sessions"`
	// Others are the sessions of the other accounts.
	Others map[string][]Session `json:"other_sessions,omitempty"`
	// AuthURLs records the auth service of the last login to each cloud service, so that a change
	// is detected.
	AuthURLs map[string]string `json:"auth_urls,omitempty"`
	// Jobs are the credentials of CI jobs, by [jobName].
	Jobs map[string]jobCredential `json:"jobs,omitempty"`
}

func (f *File) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

func (f *File) read() (contents, error) {
	c := contents{}
	data, err := os.ReadFile(f.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return c, fmt.Errorf("read the login sessions: %w", err)
	default:
		if err := json.Unmarshal(data, &c); err != nil {
			return c, &snap.Error{
				Code:   snap.CodeNotSignedIn,
				Detail: f.Path() + " is damaged",
				Hint:   "delete it and sign in again with `snapcli login`",
				Cause:  err,
			}
		}
		f.repair(f.Path(), 0o600)
	}
	return c, nil
}

// repair removes the permissions of other users and calls f.Warn about it.
func (f *File) repair(path string, mode fs.FileMode) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&^mode == 0 {
		return
	}
	text := fmt.Sprintf("%s could be read by others (mode %04o); it is now %04o", path, info.Mode().Perm(), mode)
	if err := os.Chmod(path, mode); err != nil {
		text = fmt.Sprintf("%s can be read by others (mode %04o): %v", path, info.Mode().Perm(), err)
	}
	if f.Warn != nil {
		f.Warn(text)
	}
}

// lockWait is the interval between attempts to take the lock.
const lockWait = 20 * time.Millisecond

// lock waits for the exclusive right to change the file. The lock is released when the process
// ends, however it ends.
func (f *File) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the configuration directory: %w", err)
	}
	f.repair(f.dir, 0o700)
	l := flock.New(filepath.Join(f.dir, "credentials.lock"), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockWait); err != nil {
		if ctx.Err() != nil {
			return nil, &snap.Error{Code: snap.CodeInterrupted, Cause: ctx.Err()}
		}
		return nil, fmt.Errorf("lock the login sessions: %w", err)
	}
	disk.RemoveTemporary(f.Path())
	return func() { _ = l.Unlock() }, nil
}

// requireWritable reports an error if no session can be written to the file. Login calls it before
// the user approves anything.
func (f *File) requireWritable(ctx context.Context) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	probe, err := os.CreateTemp(f.dir, ".credentials.json*")
	if err != nil {
		return fmt.Errorf("keep the login session: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// change changes the file under its lock.
func (f *File) change(ctx context.Context, edit func(*contents)) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f.changeLocked(edit)
}

// changeLocked reads, edits and replaces the file. A damaged file counts as empty. No map is nil
// when edit is called. The caller must hold the lock.
func (f *File) changeLocked(edit func(*contents)) error {
	c, err := f.read()
	if snap.CodeOf(err) == snap.CodeNotSignedIn {
		c, err = contents{}, nil
	}
	if err != nil {
		return err
	}
	if c.Sessions == nil {
		c.Sessions = map[string]Session{}
	}
	if c.Others == nil {
		c.Others = map[string][]Session{}
	}
	if c.AuthURLs == nil {
		c.AuthURLs = map[string]string{}
	}
	if c.Jobs == nil {
		c.Jobs = map[string]jobCredential{}
	}
	edit(&c)
	if err := disk.ReplaceJSON(f.Path(), c); err != nil {
		return fmt.Errorf("write the login sessions: %w", err)
	}
	return nil
}
