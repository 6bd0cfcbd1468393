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
)

// signsIn lets a person sign in with `snapcli login`: the command prints a
// code, the person opens the page in a browser, signs in there and approves,
// and the command goes on (RFC 8628).
func (w *world) signsIn(ctx context.Context, p person) error {
	args := []string{"login", "--no-browser"}
	w.out.command(p, "snapcli", args)
	cmd := w.prepare(ctx, p, "snapcli", args...)
	code := newWatch(w.out.file)
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
	w.out.aside("%s opens the page in a browser, signs in and approves the code %s", p.name, code.user)
	if err := w.approve(ctx, p, code.user); err != nil {
		return errors.Join(fmt.Errorf("approve in the browser: %w", err), cmd.Process.Signal(os.Interrupt), <-ended)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("snapcli login: %w", err)
	}
	return nil
}

// watch passes on what a program writes and looks for a user code in it.
type watch struct {
	to   io.Writer
	seen chan struct{} // closed when there is one
	user string        // the code, once seen is closed

	mu   sync.Mutex
	text bytes.Buffer
}

func newWatch(to io.Writer) *watch { return &watch{to: to, seen: make(chan struct{})} }

var userCode = regexp.MustCompile(`(?m)\b[A-Z]{4}-[A-Z]{4}\b`)

// Write implements [io.Writer].
func (c *watch) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.user == "" {
		c.text.Write(b)
		if c.user = userCode.FindString(c.text.String()); c.user != "" {
			close(c.seen)
		}
	}
	return c.to.Write(b)
}

// approve does in a browser what a person does there: enter the code, sign in,
// compare the code, approve.
func (w *world) approve(ctx context.Context, p person, code string) error {
	b, err := newBrowser()
	if err != nil {
		return err
	}
	if err := b.open(ctx, w.url+"/auth/device"); err != nil {
		return err
	}
	approved := false
	for range 5 { // the pages on the way, in whatever order they come
		switch {
		case b.asks("password"):
			err = b.submit(ctx, map[string]string{"organization": p.org, "email": p.email(), "password": p.password()})
		case b.asks("decision"):
			if page := text(b.root); !strings.Contains(page, code) {
				return fmt.Errorf("the page to approve does not show the code: %s", page)
			}
			err = b.submit(ctx, map[string]string{"decision": "approve"})
			approved = true
		case b.asks("user_code"):
			err = b.submit(ctx, map[string]string{"user_code": code})
		}
		if err != nil || approved {
			return err
		}
	}
	return errors.New("the pages do not lead to the approval: " + text(b.root))
}
