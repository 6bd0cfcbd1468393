package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"charm.land/huh/v2"
	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [URL]",
		Short: "Ask for a database, and take its first snapshot",
		Long: `Init asks for the URL of a database, tests the connection, and asks for a name
and for the database to load snapshots into. Until these questions are answered,
nothing is written, and Ctrl-C changes nothing. Then init adds a target with
these settings and offers to take the first snapshot.

It needs a terminal. Scripts use ` + "`snapcli targets add`" + `.`,
		Example: examples("answer the questions", "snapcli init",
			"begin with a database", "snapcli init postgres://me@localhost/shop"),
		Args: command.AtMostOneArg("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.askForTarget(cmd.Context(), cmp.Or(args...))
		},
	}
}

// askForTarget asks a person for a target, adds it, and offers the first build. If source is not
// empty, it is the answer to the first question.
func (a *app) askForTarget(ctx context.Context, source string) error {
	if !a.canAsk() {
		return snap.Usage("init asks questions, and this is not a terminal",
			"use `snapcli targets add NAME --source URL`")
	}
	agent, err := a.agent()
	if err != nil {
		return err
	}
	t, err := a.askTarget(ctx, agent, source)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, huh.ErrUserAborted) {
			err = &snap.Error{Code: snap.CodeInterrupted, Detail: "nothing was changed", Cause: err}
		}
		return err
	}
	if err := agent.AddTarget(t); err != nil {
		return err
	}
	a.done(t.Name, "added the target %s to %s", t.Name, agent.ConfigPath())
	build, err := a.askYesNo(ctx, "Take the first snapshot now?", "The database is only read.")
	if err != nil || !build {
		a.nextForTarget(agent, t)
		return nil //nolint:nilerr // the target was added, and the question can be answered later
	}
	return a.build(ctx, t.Name, local.BuildOptions{})
}

// askTarget asks for the settings of a target.
func (a *app) askTarget(ctx context.Context, agent *local.Agent, source string) (t local.Target, err error) {
	t.Source, err = a.askDatabase(ctx, source, databaseQuestion{"Which database do you want snapshots of?",
		"Its URL, such as postgres://me@localhost/shop, mysql://me@localhost/shop or sqlite:///path/to/shop.db.",
		func(url string) []local.DatabaseCheck { return agent.CheckDatabases(ctx, local.Target{Source: url}) }})
	if err == nil && t.Source == "" {
		err = snap.Usage("no database was given, so nothing was changed", "run `snapcli init` again with its URL")
	}
	if err != nil {
		return t, err
	}
	if t.Name, err = a.askTargetName(ctx, agent, nameFromURL(t.Source)); err != nil {
		return t, err
	}
	t.Destination, err = a.askDatabase(ctx, "", databaseQuestion{"Which database may `snapcli load` replace?",
		"The URL of another database, usually on your own machine. It need not exist yet. Press Enter to skip this.",
		func(url string) []local.DatabaseCheck {
			return agent.CheckDatabases(ctx, local.Target{Destination: url})
		}})
	return t, err
}

// databaseQuestion is a question for the URL of a database.
type databaseQuestion struct {
	text, details string
	check         func(url string) []local.DatabaseCheck
}

// askDatabase asks for a database until one can be used, or until the answer is empty. The
// parameter given is the first answer, unless it is empty.
func (a *app) askDatabase(ctx context.Context, given string, q databaseQuestion) (string, error) {
	for {
		if given == "" {
			var err error
			if given, err = a.askText(ctx, q.text, q.details, ""); err != nil || given == "" {
				return "", err
			}
		}
		err := a.tryDatabase(given, q.check)
		if err == nil {
			return given, nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		a.writeError(asError(err))
		given = ""
	}
}

// tryDatabase checks a database's URL and connects to it.
func (a *app) tryDatabase(raw string, check func(url string) []local.DatabaseCheck) error {
	if err := local.CheckURL(raw); err != nil {
		return err
	}
	if hasPassword(raw) {
		return snap.Usage("the URL contains a password, which would be written into the config file",
			"write it as ${NAME}, and set that variable; or omit it and use ~/.pgpass (PostgreSQL) "+
				"or ~/.my.cnf (MySQL)")
	}
	x := &examination{app: a}
	for _, c := range check(raw) {
		x.database(c.Role, c)
	}
	for _, f := range x.findings {
		if f.Verdict == broken {
			return &snap.Error{Code: f.code, Detail: f.Text, Hint: f.Hint}
		}
		x.printFinding(f)
	}
	return nil
}

// hasPassword reports whether a URL contains a literal password, not only the name of a variable.
func hasPassword(raw string) bool { return hidePassword(raw) != raw }

// warnOfPassword warns if one of the URLs that were written into the config file has a literal
// password.
func (a *app) warnOfPassword(urls ...string) {
	if slices.ContainsFunc(urls, hasPassword) {
		a.warn("the config file now contains a password; write it as ${NAME} instead, in single quotes, and set that " +
			"variable")
	}
}

// variable matches ${NAME}, with which a URL refers to an environment variable.
var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// askTargetName asks for a name that no target has. It proposes a name, which the user accepts by
// pressing Enter.
func (a *app) askTargetName(ctx context.Context, agent *local.Agent, base string) (string, error) {
	proposed := base
	for n := 2; ; n++ {
		if _, err := agent.Target(proposed); err != nil {
			break
		}
		proposed = fmt.Sprintf("%s-%d", base, n)
	}
	for {
		answer, err := a.askText(ctx, "What is the target called?",
			fmt.Sprintf("Commands and colleagues use this name. Press Enter to use %q.", proposed), proposed)
		if err != nil {
			return "", err
		}
		name, err := snap.CleanTarget(answer)
		if _, missing := agent.Target(name); err == nil && missing == nil {
			err = snap.Usage(fmt.Sprintf("there is already a target %q", name),
				"choose another name, or change that target with `snapcli targets add`")
		}
		if err == nil {
			return name, nil
		}
		a.writeError(asError(err))
	}
}

// nameFromURL proposes the name of a database as the name of its target, or "shop" if that is not a
// valid name.
func nameFromURL(raw string) string {
	u, err := url.Parse(variable.ReplaceAllString(raw, "x"))
	if err != nil {
		return "shop"
	}
	base := path.Base(u.Path)
	if u.Scheme == "sqlite" {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if name, err := snap.CleanTarget(base); err == nil && name != "/" && name != "." {
		return name
	}
	return "shop"
}
