package local

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/profile"
)

// Flaw is a setting that fails when it is used.
type Flaw struct {
	Key   string // such as targets.shop.sanitize
	Err   error
	Doubt bool // may be intentional, or fail only in this environment
	Tried bool // a check that connects to the database or the service reports it too
}

// Flaws returns the settings that fail when they are used, in the order of the configuration. It
// reads the files they name but makes no connections.
func (a *Agent) Flaws() []Flaw {
	c := a.Config()
	var f flaws
	if c.Cloud.URL != "" {
		_, err := api.CheckBaseURL(c.Cloud.URL)
		f.add(Flaw{Key: "cloud.url", Err: err, Tried: true})
	}
	f.add(Flaw{Key: "cloud.api_key", Err: checkKey(c.Cloud.APIKey), Tried: true})
	_, err := a.Roots()
	f.add(Flaw{Key: "cloud.ca_file", Err: err})
	for _, t := range a.Targets() {
		a.targetFlaws(t, &f)
	}
	for _, name := range slices.Sorted(maps.Keys(c.StorageProfiles)) {
		f.add(a.urlFlaw("storage_profiles."+name+".url", c.StorageProfiles[name].URL, profile.CheckURL))
	}
	_, err = a.identities(nil)
	f.add(Flaw{Key: "identities", Err: err})
	return f
}

type flaws []Flaw

// add appends a flaw unless its error is nil.
func (f *flaws) add(one Flaw) {
	if one.Err != nil {
		*f = append(*f, one)
	}
}

func (a *Agent) targetFlaws(t Target, f *flaws) {
	at := "targets." + t.Name
	if t.Source == "" && t.Destination == "" {
		f.add(Flaw{Key: at, Doubt: true, Tried: true, Err: snap.Usage("it has neither a source nor a destination",
			fmt.Sprintf("run `snapcli targets add %s --source URL`", snap.ShellWord(t.Name)))})
	}
	a.wayFlaws(at, t, f)
	for _, side := range []struct{ name, url string }{{"source", t.Source}, {"destination", t.Destination},
		{"scratch", t.Scratch}} {
		if side.url != "" {
			one := a.urlFlaw(at+"."+side.name, side.url, checkEngine)
			one.Tried = true
			f.add(one)
		}
	}
	if why := a.kindMismatch(t); why != "" {
		f.add(Flaw{Key: at + ".destination", Err: snap.Usage(why, "give the target a destination of the same kind"),
			Doubt: true, Tried: true})
	}
	if t.Jobs < 0 {
		f.add(Flaw{Key: at + ".jobs", Err: snap.Usage(fmt.Sprintf("%d is less than zero", t.Jobs),
			"use 0 for the number of cores")})
	}
	if t.Sanitize != (SanitizeSpec{}) {
		_, _, err := a.howToMask(t, SanitizeOptions{})
		f.add(Flaw{Key: at + ".sanitize", Err: err})
	}
	f.add(Flaw{Key: at + ".clones", Err: t.Clones.check()})
	a.scheduleFlaws(t, f)
	_, err := a.recipients(Encryption{}, t)
	f.add(Flaw{Key: at + ".encrypt_to", Err: err})
	f.add(Flaw{Key: at + ".subset", Err: t.Subset.check()})
	choiceFlaws(at, t, f)
	_, err = a.afterLoad(t)
	f.add(Flaw{Key: at + ".after_load", Err: err})
	if to, err := a.databaseAt(t.destination()); err == nil {
		_, err := grantsOf(t, to)
		f.add(Flaw{Key: at + ".grants", Err: err})
	}
}

// urlFlaw checks a URL after expanding its ${NAME} references. An unset variable is only doubtful,
// because it may be set elsewhere.
func (a *Agent) urlFlaw(key, raw string, check func(string) error) Flaw {
	expanded, err := expandURL(raw, a.env)
	if err != nil {
		return Flaw{Key: key, Err: err, Doubt: true}
	}
	return Flaw{Key: key, Err: check(expanded)}
}

func checkEngine(raw string) error {
	_, err := engineOf(raw)
	return err
}

var keyForm = regexp.MustCompile(`^` + snap.KeyPattern + `$`)

// checkKey reports a key that was mistyped or truncated. Only the service knows whether a key is
// valid.
func checkKey(key string) error {
	kind, _, _ := strings.Cut(key, "_")
	if key == "" || keyForm.MatchString(key) && snap.CredentialKind(kind).IsKey() {
		return nil
	}
	if strings.Contains(key, "${") {
		return snap.Usage("${NAME} has no effect here",
			"remove the key from the file and set SNAPCLI_CLOUD__API_KEY")
	}
	return snap.Usage("it does not look like an API key",
		"a key is cak_, clt_ or sak_ followed by 38 letters and digits; create one with `snapcli cloud keys create "+
			"NAME`")
}
