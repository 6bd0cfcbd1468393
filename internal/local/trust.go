package local

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/disk"
)

// Trusted is an organization or a user of a cloud service whose programs may be loaded.
type Trusted struct {
	Service      string    `json:"service"`
	Organization string    `json:"organization,omitempty"`
	Person       string    `json:"person,omitempty"`
	Since        time.Time `json:"since"`
}

// Name returns the name that commands use: "org:globex", or an e-mail address.
func (t Trusted) Name() string {
	if t.Organization != "" {
		return "org:" + t.Organization
	}
	return t.Person
}

// covers reports whether a snapshot with this provenance comes from t.
func (t Trusted) covers(p Provenance) bool {
	switch {
	case p.Service == "" || t.Service != p.Service:
		return false
	case t.Organization != "":
		return t.Organization == p.Organization
	}
	return t.Person != "" && strings.EqualFold(t.Person, p.Person)
}

// Trusts lists the trusted organizations and users in the order they were added.
func (a *Agent) Trusts() ([]Trusted, error) {
	var all []Trusted
	if err := disk.ReadJSON(a.trustPath(), &all); err != nil {
		return nil, snap.Usage(fmt.Sprintf("the trust list %s cannot be read: %s", a.trustPath(), reason(err)),
			"delete the file and run `snapcli trust add` again for everyone you trust")
	}
	return all, nil
}

// trustPath returns the path of the trust list. The list is in the data directory, because a
// configuration file can come from somebody else as part of a project.
func (a *Agent) trustPath() string { return filepath.Join(a.data, "trust.json") }

// Trust adds an organization ("org:SLUG") or a user (an e-mail address) of the configured cloud
// service. added is false if it was already trusted.
func (a *Agent) Trust(name string) (t Trusted, added bool, err error) {
	if t, err = a.trustNamed(name); err != nil {
		return t, false, err
	}
	t.Since = a.now().UTC()
	err = a.changeTrust(func(all []Trusted) []Trusted {
		if added = !slices.ContainsFunc(all, t.same); added {
			all = append(all, t)
		}
		return all
	})
	return t, added, err
}

// Distrust removes an entry that Trust added.
func (a *Agent) Distrust(name string) (Trusted, error) {
	t, err := a.trustNamed(name)
	if err != nil {
		return t, err
	}
	removed := false
	err = a.changeTrust(func(all []Trusted) []Trusted {
		before := len(all)
		all = slices.DeleteFunc(all, t.same)
		removed = len(all) < before
		return all
	})
	if err == nil && !removed {
		err = &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("%s is not trusted", t.Name()),
			Hint: "see your list with `snapcli trust list`"}
	}
	return t, err
}

func (t Trusted) same(other Trusted) bool {
	return t.Service == other.Service && t.Name() == other.Name()
}

// trustNamed parses a name as typed on the command line.
func (a *Agent) trustNamed(name string) (Trusted, error) {
	var t Trusted
	service, err := api.CheckBaseURL(a.Config().Cloud.URL)
	if err != nil {
		return t, err
	}
	t.Service = service
	slug, isOrg := strings.CutPrefix(name, "org:")
	switch {
	case isOrg && snap.ValidSlug(slug):
		t.Organization = slug
	case !isOrg && strings.Contains(name, "@") && len(name) <= 320:
		t.Person = strings.ToLower(name)
	default:
		return t, snap.Usage(fmt.Sprintf("%q is neither an organization nor a person", name),
			"name an organization as org:SLUG, or a person by e-mail address")
	}
	return t, nil
}

func (a *Agent) changeTrust(change func([]Trusted) []Trusted) error {
	return a.rewrite(a.trustPath(), "the trust list", func() (any, error) {
		all, err := a.Trusts()
		if err != nil {
			return nil, err
		}
		return change(all), nil
	})
}

// trusted reports whether the user trusts the author of a snapshot.
func (a *Agent) trusted(p Provenance) (bool, error) {
	all, err := a.Trusts()
	return slices.ContainsFunc(all, func(t Trusted) bool { return t.covers(p) }), err
}

// allowPrograms decides whether the requested programs of a foreign snapshot are loaded: the author
// must be trusted already, or ask must agree.
func (a *Agent) allowPrograms(p Preflight, ask func(Preflight) error) error {
	known, err := a.trusted(p.Snapshot.From)
	switch {
	case err != nil || known:
		return err
	case ask != nil:
		return ask(p)
	}
	return Untrusted(p.Snapshot)
}

// Untrusted returns the error for a snapshot whose programs may not be loaded, with a hint on how
// to trust its author.
func Untrusted(s Snapshot) error {
	hint := "ask the snapshot's owner to share it with you through the cloud service, which reports who owns it"
	if s.From.Organization != "" {
		hint = fmt.Sprintf("if you trust it, run `snapcli trust add %s` first",
			snap.ShellWord("org:"+s.From.Organization))
	}
	return snap.Usage(fmt.Sprintf("the programs of %s were written by %s, whom you do not trust", s.Name,
		author(s.From)), hint)
}

// author returns the name of the author of a snapshot.
func author(p Provenance) string {
	switch {
	case p.Organization != "":
		return "the organization " + p.Organization
	case p.Profile != "":
		return "users of the storage profile " + p.Profile
	}
	return "an unknown author"
}
