package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

// tool is an installed program of PostgreSQL.
type tool struct {
	path    string
	version string
	problem error // the reason if the program cannot be used; it then has no version
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\S+)`)

var forbiddenExtension = regexp.MustCompile(`permission denied to create extension (".+")`)

var missingRole = regexp.MustCompile(`role (".+") does not exist`)

// usualFolders returns the folders where packages install the programs of each version.
func usualFolders() []string {
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/opt/postgresql@*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/opt/homebrew/opt/libpq/bin", "/Library/PostgreSQL/*/bin",
		"/usr/local/pgsql/bin", `C:\Program Files\PostgreSQL\*\bin`,
	} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return dirs
}

// tool returns the installed program with the lowest version that is at least atLeast. pg_dump
// must not be older than the server, and pg_restore not older than the dump. A newer program can
// write SQL that an older server does not understand.
func (e Engine) tool(name string, atLeast int) (tool, error) { return e.findTool(name)(atLeast) }

// findTool starts to look for a program and returns a function that waits for the result. The
// function returns the same as [Engine.tool].
func (e Engine) findTool(name string) func(atLeast int) (tool, error) {
	found := make(chan []tool, 1)
	go func() { found <- e.installed(name) }()
	return func(atLeast int) (tool, error) { return e.lowest(name, <-found, atLeast) }
}

// lowest returns the program with the lowest version that is at least atLeast.
func (e Engine) lowest(name string, installed []tool, atLeast int) (tool, error) {
	var best tool
	newest, broken := "", tool{}
	for _, t := range installed {
		if t.problem != nil {
			broken = t
			continue
		}
		if newest == "" || major(t.version) > major(newest) {
			newest = t.version
		}
		if major(t.version) >= atLeast && (best.path == "" || major(t.version) < major(best.version)) {
			best = t
		}
	}
	if best.path != "" {
		return best, nil
	}
	missing := &snap.Error{Code: snap.CodeNoTool, Detail: fmt.Sprintf("the program %s is not installed", name)}
	if len(e.Tools) > 0 {
		missing.Detail = fmt.Sprintf("the program %s is not in %s", name, strings.Join(e.Tools, " or "))
	}
	if broken.problem != nil {
		missing.Detail = fmt.Sprintf("the program %s cannot be used: %v", broken.path, broken.problem)
	}
	if newest != "" {
		missing.Detail = fmt.Sprintf("the installed %s is version %s, and version %d or newer is needed", name, newest,
			atLeast)
	}
	missing.Hint = fmt.Sprintf("install it: apt install postgresql-client-%d (Debian, Ubuntu; see "+
		"apt.postgresql.org), or brew install postgresql@%d", atLeast, atLeast)
	if len(e.Tools) > 0 {
		missing.Hint += "; or add its folder to postgres_tools, which lists the only folders that are searched"
	}
	return tool{}, missing
}

// wrapper is the script that every PostgreSQL program in Debian's /usr/bin is a link to. It is
// skipped because it only starts one of the programs in usualFolders, which takes longer.
const wrapper = "pg_wrapper"

// installed runs the program of this name in every folder, in parallel, to get its version.
func (e Engine) installed(name string) []tool {
	var all []tool
	known := map[string]bool{}
	for _, dir := range e.folders() {
		path := filepath.Join(dir, name)
		file, err := filepath.EvalSymlinks(path)
		if err != nil || known[file] || len(e.Tools) == 0 && filepath.Base(file) == wrapper {
			continue
		}
		known[file] = true
		all = append(all, tool{path: path})
	}
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { all[i].version, all[i].problem = toolVersion(all[i].path) })
	}
	running.Wait()
	return all
}

func (e Engine) folders() []string {
	if len(e.Tools) > 0 {
		return e.Tools
	}
	return append(filepath.SplitList(os.Getenv("PATH")), usualFolders()...)
}

// toolVersion runs a program to get its version.
func toolVersion(path string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute,
		errors.New("it did not print its version within a minute"))
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	if m := versionText.FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	return "", errors.New("it is not a program of PostgreSQL")
}

// command prepares a run of the tool against a database. It passes the password, if any, through
// the environment, and collects the tool's messages.
func (t tool) command(ctx context.Context, d database, args ...string) (*exec.Cmd, *engine.Stderr) {
	cmd, stderr := engine.Program(ctx, t.path, append(args, "--no-password", "--dbname="+d.public())...)
	cmd.Env = append(os.Environ(), d.environment()...)
	return cmd, stderr
}

// toolFailure converts a tool's failure to a *snap.Error.
func (d database) toolFailure(ctx context.Context, name string, stderr *engine.Stderr, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", name, err)
	}
	text := charset.Readable(stderr.FirstError())
	e := &snap.Error{Code: snap.CodeDatabase, Detail: fmt.Sprintf("%s failed: %s", name, text), Cause: err}
	d.advise(e, text)
	return e
}

// advised converts a failure to create objects to a *snap.Error. The error's message begins with
// the argument what. If [database.advise] has no hint, advised returns the error of
// [database.failure].
func (d database) advised(err error, what string) error {
	if state(err) == "" {
		return d.failure(err)
	}
	e := &snap.Error{Code: snap.CodeDatabase, Cause: err, Detail: what + ": " + message(err)}
	if d.advise(e, message(err)); e.Hint == "" {
		return d.failure(err)
	}
	return e
}

// advise completes the error of a tool, or of a statement that creates objects. text is the server's
// message. If advise recognizes the message, it sets the hint and, if necessary, a more specific
// code and detail.
func (d database) advise(e *snap.Error, text string) {
	switch {
	case strings.Contains(text, "No space left on device"):
		e.Code, e.Hint = snap.CodeStorageFull,
			"free some space on the server's disk and try again; the database is unchanged"
	case forbiddenExtension.MatchString(text):
		x := forbiddenExtension.FindStringSubmatch(text)[1]
		e.Detail = fmt.Sprintf("the user %q is not allowed to create the extension %s of the snapshot",
			d.config.User, x)
		e.Hint = fmt.Sprintf("have an administrator run CREATE EXTENSION %s in the destination and use "+
			"--into-existing, or build again with --exclude-extension %s", x, x)
	case strings.Contains(text, "permission denied for database"):
		e.Hint = fmt.Sprintf("as its owner, run: GRANT CREATE ON DATABASE %s TO %s",
			quote(d.name()), quote(d.config.User))
	case strings.Contains(text, "permission denied") || strings.Contains(text, "must be owner") ||
		strings.Contains(text, "must be superuser"):
		e.Hint = fmt.Sprintf("grant the privilege to the user %q, or use another user in the target's URL",
			d.config.User)
	case missingRole.MatchString(text):
		e.Hint = fmt.Sprintf("a policy, user mapping or grant names that role; create it on the destination's server: "+
			"CREATE ROLE %s", missingRole.FindStringSubmatch(text)[1])
	case strings.Contains(text, "row-level security"):
		e.Hint = "use a user who sees every row: a superuser, or one with BYPASSRLS"
	case strings.Contains(text, "extension") && strings.Contains(text, "not available"):
		e.Hint = "install the extension's package on the destination's server, or build again with " +
			"--exclude-extension"
	}
}
