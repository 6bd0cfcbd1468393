package local

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"snap"
)

// Targets returns the targets sorted by name.
func (a *Agent) Targets() []Target {
	return slices.SortedFunc(maps.Values(a.Config().Targets),
		func(x, y Target) int { return strings.Compare(x.Name, y.Name) })
}

// Target returns the target with this name. A not_found error suggests a similar name.
func (a *Agent) Target(name string) (Target, error) {
	clean, err := snap.CleanTarget(name)
	if err != nil {
		return Target{}, err
	}
	if t, ok := a.Config().Targets[clean]; ok {
		return t, nil
	}
	hint := fmt.Sprintf("add it with `snapcli targets add %s --source URL`, or with --destination URL to load into it",
		snap.ShellWord(clean))
	if len(a.Config().Targets) > 0 {
		hint = "`snapcli targets` lists the existing ones; " + hint
	}
	if near := snap.Closest(clean, slices.Sorted(maps.Keys(a.Config().Targets))); near != "" {
		hint = fmt.Sprintf("did you mean %q? `snapcli targets` lists them", near)
	}
	return Target{}, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no target %q", clean),
		Hint: hint}
}

// AddTarget writes a target to config.yaml, or replaces the one with its name. The comments and the
// order of the other entries remain.
func (a *Agent) AddTarget(t Target) error {
	return a.ChangeTarget(t.Name, func(old *Target) { *old = t })
}

// ChangeTarget changes a target in config.yaml, or adds it. change receives the settings in the
// file, without those from the environment, and must change only the settings that the user
// changes. The path of a SQLite file that it sets may be relative to the working directory and is
// made absolute. The comments and the order of the other entries remain.
func (a *Agent) ChangeTarget(name string, change func(*Target)) error {
	name, err := snap.CleanTarget(name)
	if err != nil {
		return err
	}
	return a.file.editTarget(name, func(old *Target) (*Target, error) {
		if old == nil {
			old = &Target{}
		}
		before := *old
		change(old)
		err := errors.Join(acceptURL(&old.Source, before.Source), acceptURL(&old.Destination, before.Destination),
			acceptURL(&old.Scratch, before.Scratch))
		return old, err
	})
}

// acceptURL checks a database URL. If it is new, the path of a SQLite file is made absolute.
func acceptURL(raw *string, before string) error {
	if *raw == "" {
		return nil
	}
	err := CheckURL(*raw)
	if err == nil && *raw != before && !strings.Contains(*raw, "${") {
		*raw, err = absoluteURL(*raw)
	}
	return err
}

// RemoveTarget removes a target from config.yaml. Its snapshots remain. It fails with code usage if
// the environment also defines the target.
func (a *Agent) RemoveTarget(name string) error {
	t, err := a.Target(name)
	if err != nil {
		return err
	}
	err = a.file.editTarget(t.Name, func(*Target) (*Target, error) { return nil, nil })
	if _, stays := a.Config().Targets[t.Name]; err == nil && stays {
		err = snap.Usage(fmt.Sprintf("environment variables still define the target %q", t.Name),
			fmt.Sprintf("unset the variables %s__...", envName(sectionTargets+keyDelim+t.Name)))
	}
	return err
}

// CheckURL returns an error of code usage if a database URL is not valid. It makes no connection.
// It accepts every URL that begins with ${NAME}, because such a URL can only be checked on use.
func CheckURL(raw string) error {
	if strings.HasPrefix(raw, "${") {
		return nil
	}
	_, err := engineOf(raw)
	return err
}

// absoluteURL returns a database URL in which the path of a SQLite file is absolute.
func absoluteURL(raw string) (string, error) {
	kind, err := engineOf(raw)
	if err != nil || kind != snap.SQLite {
		return raw, err
	}
	scheme, rest, _ := strings.Cut(raw, ":")
	path := strings.TrimPrefix(rest, "//")
	if path == "" || filepath.IsAbs(path) {
		return raw, nil
	}
	path, query, hasQuery := strings.Cut(path, "?")
	path, err = filepath.Abs(path)
	if hasQuery {
		path += "?" + query
	}
	return scheme + "://" + path, err
}

// engineOf returns the engine that a database URL names.
func engineOf(raw string) (snap.Engine, error) {
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok {
		return "", badURL("it has no scheme")
	}
	engine, ok := map[string]snap.Engine{"postgres": snap.Postgres, "postgresql": snap.Postgres, "mysql": snap.MySQL,
		"mariadb": snap.MySQL, "sqlite": snap.SQLite, "sqlite3": snap.SQLite}[strings.ToLower(scheme)]
	switch {
	case !ok:
		return "", badURL(fmt.Sprintf("%q is not a supported kind of database", scheme))
	case engine != snap.SQLite && !strings.HasPrefix(rest, "//"):
		return "", badURL(fmt.Sprintf("there is no // after %s:", scheme))
	}
	return engine, nil
}

func badURL(why string) error {
	return snap.Usage("the database URL is invalid: "+why,
		"use postgres://user@host/database, mysql://user@host/database or sqlite:///path/to/file")
}

// Redact returns a database URL for display, with xxxxx in place of its password and of the
// passwords and keys in its query. If the URL cannot be parsed, only its scheme remains. A URL
// without a secret is returned unchanged; a reference such as ${NAME} is not a secret.
func Redact(raw string) string {
	if !holdsSecret(raw) {
		return raw
	}
	u, err := parseURL(raw)
	if err != nil {
		scheme, _, hasScheme := strings.Cut(raw, ":")
		if !hasScheme {
			return "..."
		}
		return scheme + "://..."
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), "xxxxx")
		}
	}
	q := u.Query()
	for key := range q {
		if isSecret(key) {
			q.Set(key, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// parseURL parses a database URL. It fails if a password may be in the wrong part of the URL: one
// with an unescaped /, ? or #, or one in a URL without the two slashes.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err == nil && u.User == nil && u.Host != "" && strings.Contains(raw, "@") && !u.Query().Has("user") {
		err = badURL("its password is not escaped")
	}
	if err == nil && u.Opaque != "" && strings.Contains(raw, "@") {
		err = badURL("there is no // after its scheme")
	}
	return u, err
}

// holdsSecret reports whether a database URL has a password or key, apart from its ${NAME}
// references. It returns true for a URL that cannot be parsed.
func holdsSecret(raw string) bool {
	u, err := parseURL(reference.ReplaceAllString(raw, ""))
	if err != nil {
		return true
	}
	q, err := url.ParseQuery(u.RawQuery)
	password, _ := u.User.Password()
	holds := err != nil || password != ""
	for key, values := range q {
		holds = holds || isSecret(key) && strings.Join(values, "") != ""
	}
	return holds
}

// isSecret reports whether a parameter in the query of a database URL is a password or key.
func isSecret(parameter string) bool {
	parameter = strings.ToLower(parameter)
	return strings.Contains(parameter, "pass") || strings.Contains(parameter, "key")
}
