package reach_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/reach"
)

// TestPassword checks the password that a program prints, and that no error shows its output or its
// arguments.
func TestPassword(t *testing.T) {
	t.Parallel()
	shell := func(text string) []string { return []string{"/bin/sh", "-c", text, "s3cret"} }
	for _, c := range []struct {
		words          []string
		password, want string
	}{
		{words: shell("echo 's3cret with spaces '"), password: "s3cret with spaces "},
		{words: shell("printf 'no newline'"), password: "no newline"},
		{words: []string{"printf", `%s\r\n`, "$(id);`id`"}, password: "$(id);`id`"}, // no shell reads it
		{words: shell("echo s3cret; echo s3cret >&2; exit 7"), want: "the password, failed: exit status 7"},
		{words: shell("true"), want: "printed nothing"},
		{words: shell("echo a; echo s3cret"), want: "more than one line"},
		{words: shell("head -c 100000 /dev/zero | tr '\\0' s"), want: "printed more than"},
		{words: []string{"/no/such/s3cret-program"}, want: "no such file"},
		{words: []string{"no-such-program"}, want: "not found"},
	} {
		got, err := reach.Command{Setting: "targets.shop.password_command", Words: c.words}.Run(t.Context())
		var said *snap.Error
		switch {
		case c.want == "" && (err != nil || got != c.password):
			t.Errorf("%q: %.99q, %v", c.words, got, err)
		case c.want == "":
		case !errors.As(err, &said) || got != "" || !strings.Contains(said.Detail, c.want) ||
			!strings.Contains(said.Hint, "targets.shop.password_command"):
			t.Errorf("%q: %.99q, %v", c.words, got, err)
		case strings.Contains(strings.ReplaceAll(said.Error()+said.Hint, "s3cret-program", ""), "s3cret"):
			t.Errorf("%q: the error shows the secret: %v", c.words, err)
		}
	}
}

// TestPasswordIsCanceled: a program that ignores the interrupt is stopped when the command that
// needs the password is canceled.
func TestPasswordIsCanceled(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	words := []string{"/bin/sh", "-c", `trap "" INT; touch "$0"; exec sleep 1000`, started}
	go func() {
		_, err := reach.Command{Words: words}.Run(ctx)
		done <- err
	}()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for _, err := os.Stat(started); err != nil; _, err = os.Stat(started) {
		<-again.C
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
