package cloud

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/internal/signin"
)

// Trust accepts the tokens of a CI system's jobs; see signin.Trust. Each claim is one value or a
// list.
type Trust struct {
	Name         string           `yaml:"name"`
	Type         signin.TrustType `yaml:"type"`
	Issuer       string           `yaml:"issuer"`
	Audience     string           `yaml:"audience"` // empty means public_url
	Claims       map[string]any   `yaml:"claims"`
	Scopes       []snap.Scope     `yaml:"scopes"`
	User         string           `yaml:"user"`
	AllowPrivate bool             `yaml:"allow_private"`
}

// The issuers of well-known CI systems, so that the configuration need not state them.
const (
	issuerGitHub = "https://token.actions.githubusercontent.com"
	issuerGitLab = "https://gitlab.com"
)

// rule converts t to a rule of package signin. A claim that claimValues cannot read gets no values;
// checkTrust reports it.
func (t Trust) rule(publicURL string) signin.Trust {
	usual := map[signin.TrustType]string{signin.TrustGitHub: issuerGitHub, signin.TrustGitLab: issuerGitLab}[t.Type]
	out := signin.Trust{Name: t.Name, Type: t.Type, Issuer: cmp.Or(t.Issuer, usual),
		Audience: cmp.Or(t.Audience, publicURL), Claims: map[string][]string{}, Scopes: t.Scopes, User: t.User,
		AllowPrivate: t.AllowPrivate}
	for name, value := range t.Claims {
		out.Claims[name], _ = claimValues(value)
	}
	return out
}

// claimValues reads the values of a claim: a string, a whole number, true or false, or a list of
// these.
func claimValues(value any) (values []string, ok bool) {
	switch v := value.(type) {
	case string:
		return []string{v}, true
	case int, int64, uint64, bool:
		return []string{fmt.Sprint(v)}, true
	case []any:
		for _, entry := range v {
			one, ok := claimValues(entry)
			if _, nested := entry.([]any); nested || !ok {
				return nil, false
			}
			values = append(values, one[0])
		}
		return values, true
	}
	return nil, false
}

func (o Organization) checkTrust() (wrong []string) {
	names := map[string]bool{}
	for _, t := range o.Trust {
		at := fmt.Sprintf("trust %q: ", t.Name)
		if names[t.Name] {
			wrong = append(wrong, at+"the name is used twice")
		}
		names[t.Name] = true
		for _, name := range slices.Sorted(maps.Keys(t.Claims)) {
			if _, ok := claimValues(t.Claims[name]); !ok {
				wrong = append(wrong, at+"the claim "+name+
					" must be text, a whole number, true or false, or a list of these")
			}
		}
		rule := t.rule("https://cloud.invalid") // the public URL is checked elsewhere
		for _, problem := range rule.Check() {
			wrong = append(wrong, at+problem)
		}
		if rule.Issuer == o.SignIn.Issuer && rule.Audience == o.SignIn.ClientID {
			wrong = append(wrong, at+"issuer and audience are those of sign_in, so tokens of people could match; "+
				"use public_url as the audience")
		}
	}
	return wrong
}

// String describes the rule in one line, for the audit log.
func (t Trust) String() string {
	rule := t.rule("public_url")
	parts := []string{"type " + string(rule.Type), "issuer " + rule.Issuer, "audience " + rule.Audience}
	if t.AllowPrivate {
		parts = append(parts, "allow_private")
	}
	for _, name := range slices.Sorted(maps.Keys(rule.Claims)) {
		parts = append(parts, name+" "+strings.Join(rule.Claims[name], " or "))
	}
	if rule.User != "" {
		return strings.Join(append(parts, "acts as "+rule.User), ", ")
	}
	scopes := each(rule.Scopes, func(s snap.Scope) string { return string(s) })
	return strings.Join(append(parts, "scopes "+strings.Join(scopes, " ")), ", ")
}
