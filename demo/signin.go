package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// login lets a person sign in with `snapcli login`: the command prints a code, the person opens the
// page in a browser, signs in there and approves, and the command continues (RFC 8628). Its output
// goes to out. login calls the function waiting as soon as the command waits for the approval.
func (w *world) login(ctx context.Context, p person, out io.Writer, waiting func(code string)) error {
	cmd := w.prepare(ctx, p, "snapcli", loginArgs...)
	code := newCodeWatcher(out)
	cmd.Stdout, cmd.Stderr = code, code
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("snapcli login ended before anybody approved: %w", errors.Join(err, ctx.Err()))
	case <-code.seen:
	}
	waiting(code.user)
	if err := w.approve(ctx, p, code.user); err != nil {
		return errors.Join(fmt.Errorf("approve in the browser: %w", err), cmd.Process.Signal(os.Interrupt), <-ended)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("snapcli login: %w", err)
	}
	return nil
}

// loginArgs are the arguments of snapcli that sign in on a machine without a browser.
var loginArgs = []string{"login", "--no-browser"}

// allSignIn signs in all four callers at once, and shows Alice's login.
func (w *world) allSignIn(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, p := range []person{mia, vic, gary} {
		all.Go(func() error {
			var output bytes.Buffer
			if err := w.login(ctx, p, &output, func(string) {}); err != nil {
				return fmt.Errorf("%s: %w\n%s", p.name, err, output.String())
			}
			return nil
		})
	}
	all.Go(func() error {
		w.out.command(alice, "snapcli", loginArgs)
		return w.login(ctx, alice, w.out.file, func(code string) {
			w.out.aside("Alice opens the page in a browser, signs in, compares the code %s and approves", code)
		})
	})
	return all.Wait()
}

// codeWatcher forwards a program's output and looks for a user code in it.
type codeWatcher struct {
	to   io.Writer
	seen chan struct{} // closed when there is a code
	user string        // the code, once seen is closed

	mu   sync.Mutex
	text bytes.Buffer
}

func newCodeWatcher(to io.Writer) *codeWatcher {
	return &codeWatcher{to: to, seen: make(chan struct{})}
}

// userCode matches a line that is only a code.
var userCode = regexp.MustCompile(`(?m)^\s*([A-Z]{4}-[A-Z]{4})\s*\n`)

// Write implements [io.Writer].
func (c *codeWatcher) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.to.Write(b)
	if c.user == "" {
		c.text.Write(b)
		if found := userCode.FindStringSubmatch(c.text.String()); found != nil {
			c.user = found[1]
			close(c.seen)
		}
	}
	return n, err
}

// approve performs a person's steps in the browser: enter the code, sign in, compare the code,
// approve.
func (w *world) approve(ctx context.Context, p person, code string) error {
	b, err := newBrowser()
	if err != nil {
		return err
	}
	if err := b.open(ctx, w.url+"/auth/device"); err != nil {
		return err
	}
	approved := false
	for range 5 { // the pages may come in any order
		switch {
		case b.hasField("password"):
			err = b.submit(ctx, map[string]string{"organization": p.org, "email": p.email(), "password": p.password()})
		case b.hasField("decision"):
			if page := text(b.root); !strings.Contains(page, code) {
				return fmt.Errorf("the page to approve does not show the code: %s", page)
			}
			err = b.submit(ctx, map[string]string{"decision": "approve"})
			approved = true
		case b.hasField("user_code"):
			err = b.submit(ctx, map[string]string{"user_code": code})
		}
		if err != nil || approved {
			return err
		}
	}
	return errors.New("the pages do not lead to the approval: " + text(b.root))
}
