package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"snap"
	"snap/internal/engine"
)

// tool is one installed program.
type tool struct{ name, path, version string }

// dumpers and clients are the programs for a server, the best first.
func dumpers(server string) []string {
	if isMariaDB(server) {
		return []string{"mariadb-dump", "mysqldump"}
	}
	return []string{"mysqldump", "mariadb-dump"}
}

func clients(server string) []string {
	if isMariaDB(server) {
		return []string{"mariadb", "mysql"}
	}
	return []string{"mysql", "mariadb"}
}

func isMariaDB(server string) bool { return strings.Contains(server, "MariaDB") }

var versionText = regexp.MustCompile(`(?:Distrib|Ver|from) (\d+\.[0-9.]+[A-Za-z-]*)`)

// program finds the first of these programs that is installed.
func program(candidates []string) (tool, error) {
	for _, name := range candidates {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		cancel()
		if err != nil {
			continue
		}
		t := tool{name: name, path: path}
		if m := versionText.FindAllSubmatch(out, -1); m != nil {
			t.version = string(m[len(m)-1][1])
		}
		return t, nil
	}
	pack := "mariadb-client"
	if strings.HasPrefix(candidates[0], "mysql") {
		pack = "mysql-client, or mariadb-client"
	}
	return tool{}, &snap.Error{Code: snap.CodeNoTool, Detail: fmt.Sprintf("the program %s is not installed", candidates[0]), Hint: "install it: apt install " + pack + " (Debian, Ubuntu)"}
}

func (t tool) command(ctx context.Context, d database, args ...string) (*exec.Cmd, *engine.Speech) {
	cmd, said := engine.Program(ctx, t.path, append(d.arguments(), args...)...)
	cmd.Env = append(os.Environ(), d.environment()...)
	return cmd, said
}

// toolFailure makes a person's error of a program's failure.
func (d database) toolFailure(ctx context.Context, t tool, said *engine.Speech, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", t.name, err)
	}
	what := said.FirstError()
	e := &snap.Error{Code: snap.CodeDatabase, Detail: fmt.Sprintf("%s failed: %s", t.name, what), Cause: err}
	switch {
	case strings.Contains(what, "denied"):
		e.Hint = fmt.Sprintf("grant the right to the user %q, or use another user in the target's URL", d.user)
	case strings.Contains(what, "is full") || strings.Contains(what, "No space left"):
		e.Code, e.Hint = snap.CodeStorageFull, "make room on the server's disk and try again; the database is as it was"
	}
	return e
}
