package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"snap"
	"snap/internal/auth"
)

// TrustType is the kind of system whose tokens a trust rule accepts. It decides which claims the
// rule must have.
type TrustType string

// The trust types.
const (
	TrustGitHub     TrustType = "github"
	TrustGitLab     TrustType = "gitlab"
	TrustKubernetes TrustType = "kubernetes"
	TrustOther      TrustType = "other"
)

// Trust is a rule that accepts the tokens of a CI system's jobs. A token matches the rule when the
// issuer signed it for the audience and each claim in Claims has one of the listed values. A job
// that may run code from a pull or merge request matches only if Claims also lists its trigger.
type Trust struct {
	Name             string
	Type             TrustType
	Issuer, Audience string
	Claims           map[string][]string // by name or dotted path
	Scopes           []snap.Scope        // the job acts as the organization, with these scopes
	User             string              // or as this user: the subject, or the e-mail of a local user
	AllowPrivate     bool                // the issuer may be on a private address, and use plain http
}

// identity names the claims with which a kind of system identifies a repository, project or account
// permanently: the system never gives the same values to another repository, project or account.
type identity struct {
	claims      []string
	pattern     *regexp.Regexp // of the claims' values
	description string         // of the pattern, in words
}

func identities() map[TrustType]identity {
	number, uid := regexp.MustCompile(`^[0-9]+$`), regexp.MustCompile(`^[0-9a-fA-F]{8}`+
		`(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	return map[TrustType]identity{
		TrustGitHub:     {[]string{"repository_id", "repository_owner_id"}, number, "a number"},
		TrustGitLab:     {[]string{"project_id", "namespace_id"}, number, "a number"},
		TrustKubernetes: {[]string{"kubernetes.io.serviceaccount.uid"}, uid, "a UID"},
		TrustOther:      {[]string{"sub"}, regexp.MustCompile(`.`), "a subject"},
	}
}

// Check returns the mistakes in a rule, for its author.
func (t Trust) Check() (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if t.Name == "" || len(t.Name) > 60 || snap.CleanText(t.Name) != t.Name {
		add("name must have 1 to 60 bytes, without control characters")
	}
	id, known := identities()[t.Type]
	if !known {
		add("type must be github, gitlab, kubernetes or other, not %q", t.Type)
	}
	if u, err := url.Parse(t.Issuer); err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && !(u.Scheme == "http" && t.AllowPrivate) {
		add("issuer %q is not an https URL", t.Issuer)
	}
	if t.Audience == "" {
		add("audience is missing; use public_url")
	}
	for _, name := range id.claims {
		if len(t.Claims[name]) == 0 {
			add("claims lack %s: a name can belong to somebody else later, so a rule must also name the ID", name)
		}
		for _, v := range t.Claims[name] {
			if !id.pattern.MatchString(v) {
				add("the claim %s must be %s, not %q", name, id.description, v)
			}
		}
	}
	wrong = append(wrong, t.checkValues()...)
	wrong = append(wrong, t.checkType()...)
	if (t.User == "") == (len(t.Scopes) == 0) {
		add("it needs either scopes, to act as the organization, or user, to act as a user")
	}
	for _, s := range t.Scopes {
		if !slices.Contains(snap.Scopes(), s) {
			add("%q is not a scope; the scopes are pull, push and private", s)
		}
	}
	return wrong
}

func (t Trust) checkValues() (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(t.Claims)) {
		if len(t.Claims[name]) == 0 {
			wrong = append(wrong, fmt.Sprintf("the claim %s has no values", name))
		}
		for _, v := range t.Claims[name] {
			if v == "" || strings.ContainsAny(v, "*?") {
				wrong = append(wrong, fmt.Sprintf("the claim %s has the value %q, but values are compared exactly: "+
					"there are no wildcards; list every value", name, v))
			}
		}
	}
	return wrong
}

// checkType refuses the type "other" for systems whose subjects are only names.
func (t Trust) checkType() (wrong []string) {
	if t.Type != TrustOther {
		return nil
	}
	u, err := url.Parse(t.Issuer)
	if err != nil {
		return nil
	}
	meant := map[string]TrustType{"token.actions.githubusercontent.com": TrustGitHub, "gitlab.com": TrustGitLab}[u.Host]
	for name := range t.Claims {
		switch {
		case strings.HasPrefix(name, "repository"):
			meant = TrustGitHub
		case strings.HasPrefix(name, "project_") || strings.HasPrefix(name, "namespace_"):
			meant = TrustGitLab
		case strings.HasPrefix(name, "kubernetes.io"):
			meant = TrustKubernetes
		}
	}
	for _, v := range t.Claims["sub"] {
		if strings.HasPrefix(v, "system:serviceaccount:") {
			meant = TrustKubernetes
		}
	}
	if meant != "" {
		wrong = append(wrong, fmt.Sprintf("the issuer's subjects are only names; use type %s and list %s in claims",
			meant, strings.Join(identities()[meant].claims, " and ")))
	}
	return wrong
}

// triggerClaim returns the claim that names a job's trigger, and a function that reports whether a
// trigger may run code that was only proposed, as in a pull request. The token of such a job
// matches only if the rule lists the trigger.
func (t Trust) triggerClaim() (claim string, isProposed func(string) bool) {
	switch t.Type {
	case TrustGitHub:
		return "event_name", func(v string) bool { return strings.HasPrefix(v, "pull_request") }
	case TrustGitLab:
		return "pipeline_source", func(v string) bool {
			// parent_pipeline hides the trigger of the parent, which may be a merge request.
			return v == "merge_request_event" || v == "external_pull_request_event" || v == "parent_pipeline"
		}
	}
	return "", nil
}

// mismatch returns a claim that does not match the rule, or "" if the token matches.
func (t Trust) mismatch(claims map[string]any) string {
	if trigger, isProposed := t.triggerClaim(); trigger != "" && len(t.Claims[trigger]) == 0 {
		if v, ok := auth.ClaimText(claims, trigger); !ok || isProposed(v) {
			return trigger
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Claims)) {
		if v, ok := auth.ClaimText(claims, name); !ok || !slices.Contains(t.Claims[name], v) {
			return name
		}
	}
	return ""
}

// fingerprint returns a hash of the rule's whole content.
func (t Trust) fingerprint() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // cannot happen: strings can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// issuers holds the CI systems of all rules. Systems that may have a private address are stored
// separately from the others.
type issuers struct {
	mu  sync.Mutex
	all map[string]*auth.Issuer
}

func (i *issuers) get(s *Service, t Trust) (*auth.Issuer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := fmt.Sprint(t.AllowPrivate, t.Issuer)
	if known := i.all[key]; known != nil {
		return known, nil
	}
	issuer, err := auth.NewIssuer(t.Issuer, t.AllowPrivate, s.now)
	if err == nil {
		if i.all == nil {
			i.all = map[string]*auth.Issuer{}
		}
		i.all[key] = issuer
	}
	return issuer, err
}

// applyTrust checks and records an organization's rules. It ends the credentials whose rule is no
// longer listed.
func (s *Service) applyTrust(ctx context.Context, org organization) error {
	var fingerprints []string
	for _, t := range org.trust {
		if wrong := t.Check(); len(wrong) > 0 {
			return fmt.Errorf("trust %s: %s", t.Name, strings.Join(wrong, "; "))
		}
		fingerprints = append(fingerprints, t.fingerprint())
	}
	return s.store.ApplyTrust(ctx, org.ID, fingerprints)
}
