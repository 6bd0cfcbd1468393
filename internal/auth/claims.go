package auth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"snap"
	"snap/internal/store"
)

// Limits on the data that is accepted from an identity provider.
const (
	maxGroups      = 2000
	maxGroupLength = 512
)

// The advice for a person whose groups are unknown.
const (
	askForFewer = "ask your admin to configure the identity provider to send only the groups assigned to this " +
		"application"
	askForOther = "ask your admin to configure the identity provider to send the names or identifiers of your groups " +
		"there, or to name another claim in groups_claim"
)

// GroupClaim is an identity provider's report about a user's groups.
type GroupClaim struct {
	Groups []snap.Group // GroupID and Name
	Known  bool         // false if there was no usable claim, which is not the same as no groups
	Why    string       // why the claim was not usable and what to do, for the user and the log
}

// GroupsFromClaims reads the groups from claims, in every shape that providers are known to send: a
// list of strings or of objects with an id and a name, one string, a comma-separated list, JSON in
// a string, or Keycloak's paths. The claim is looked up by its literal name first (Auth0's names
// are URLs), then as a dotted path.
//
// Identifiers are kept verbatim. Groups are unknown if the claim is absent or has another shape, if
// it only reports that there are too many groups to list (Microsoft Entra above 200), or if it has
// more than maxGroups entries: an incomplete list could grant too little or, through roles, too
// much.
func GroupsFromClaims(claims map[string]any, name string) GroupClaim {
	if name == "" {
		name = "groups"
	}
	value, ok := lookUp(claims, name)
	if !ok || value == nil {
		if tooManyToList(claims, name) {
			return GroupClaim{Why: "you are in more groups than the identity provider puts into a token; " +
				askForFewer}
		}
		return GroupClaim{Why: fmt.Sprintf("the identity provider sent no groups claim named %q; ask your admin to "+
			"configure it to send one to this application, or to correct the name in groups_claim", name)}
	}
	entries, ok := groupEntries(value)
	if !ok {
		return GroupClaim{Why: fmt.Sprintf("the identity provider sent something other than a list of groups in the "+
			"claim %q; ", name) + askForOther}
	}
	return collectGroups(entries, name)
}

func lookUp(claims map[string]any, name string) (any, bool) {
	if value, ok := claims[name]; ok {
		return value, true
	}
	for i, r := range name {
		if r != '.' {
			continue
		}
		if inner, ok := claims[name[:i]].(map[string]any); ok {
			if value, ok := lookUp(inner, name[i+1:]); ok {
				return value, true
			}
		}
	}
	return nil, false
}

// ClaimText returns a claim that is a string, number or boolean, as a string. name is the claim's
// literal name or a dotted path. A name in the path may itself contain dots, such as kubernetes.io
// in kubernetes.io.serviceaccount.uid.
func ClaimText(claims map[string]any, name string) (text string, ok bool) {
	switch v, _ := lookUp(claims, name); v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// tooManyToList reports whether the claims say that the provider left out the groups because there
// are too many.
func tooManyToList(claims map[string]any, name string) bool {
	if names, ok := claims["_claim_names"].(map[string]any); ok && names[name] != nil {
		return true
	}
	return claims["hasgroups"] == true || claims["hasgroups"] == "true"
}

// groupEntries turns a claim's value into a list.
func groupEntries(value any) ([]any, bool) {
	switch v := value.(type) {
	case []any:
		return v, true
	case map[string]any:
		return []any{v}, true
	case string:
		text := strings.TrimSpace(v)
		var parsed any
		if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &parsed) == nil {
			return groupEntries(parsed)
		}
		var entries []any
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				entries = append(entries, part)
			}
		}
		return entries, true
	}
	return nil, false
}

// collectGroups reads the entries of the groups claim with this name.
func collectGroups(entries []any, name string) GroupClaim {
	seen := map[string]bool{}
	c := GroupClaim{Known: true, Groups: []snap.Group{}}
	for _, entry := range entries {
		g, ok := groupOf(entry)
		if !ok {
			return GroupClaim{Why: fmt.Sprintf("the identity provider sent something in the claim %q that is not a "+
				"group; ", name) + askForOther}
		}
		if seen[g.GroupID] || g.GroupID == "" {
			continue
		}
		if seen[g.GroupID] = true; len(seen) > maxGroups {
			return GroupClaim{Why: fmt.Sprintf("you are in more than %d groups, which is too many; ", maxGroups) +
				askForFewer}
		}
		c.Groups = append(c.Groups, g)
	}
	return c
}

// groupOf reads one entry. If it is a path, as Keycloak sends it, its last part is the name.
func groupOf(entry any) (snap.Group, bool) {
	switch v := entry.(type) {
	case string:
		if len(v) > maxGroupLength || !snap.Storable(v) {
			return snap.Group{}, false
		}
		name := v
		if strings.HasPrefix(v, "/") && len(v) > 1 {
			name = v[strings.LastIndex(v, "/")+1:]
		}
		return snap.Group{GroupID: v, Name: name}, true
	case map[string]any:
		id := text(v, "id", "value", "name", "display")
		name := text(v, "name", "displayName", "display", "id", "value")
		usable := len(id) <= maxGroupLength && len(name) <= maxGroupLength && snap.Storable(id) && snap.Storable(name)
		return snap.Group{GroupID: id, Name: name}, id != "" && usable
	}
	return snap.Group{}, false
}

func text(m map[string]any, names ...string) string {
	for _, name := range names {
		if s, ok := m[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// Person is an identity provider's report about the person who signed in.
type Person struct {
	Issuer, Subject string
	Email           string // for display and, if Verified, for the role; never to find an account
	Verified        bool   // the provider vouches for Email
	Name            string
	Groups          GroupClaim
	ExternalID      string // the person's externalId in SCIM; empty if no claim has it
	Session         string // the sid of the provider's session; empty if the provider names none
	// Issued is when the provider issued the token with the claims; zero if they are not from a
	// token.
	Issued time.Time

	unusable string // the name of a claim whose text cannot be stored; empty if there is none
}

// ClaimNames are the names of claims that differ between providers. A name may be a dotted path.
type ClaimNames struct {
	Groups     string // if empty, the claim "groups"
	ExternalID string // of the external ID in SCIM; if empty, the claim "sub"
}

// PersonFromClaims reads a person from claims. If there is no e-mail, or the provider reports it as
// unverified, Email is the subject.
func PersonFromClaims(issuer, subject string, claims map[string]any, names ClaimNames) Person {
	p := Person{Issuer: issuer, Subject: subject, Groups: GroupsFromClaims(claims, names.Groups), ExternalID: subject}
	if names.ExternalID != "" && names.ExternalID != "sub" {
		value, _ := lookUp(claims, names.ExternalID)
		p.ExternalID, _ = value.(string)
	}
	p.Name, p.Session = clip(text(claims, "name", "preferred_username")), text(claims, "sid")
	verified, present := claims["email_verified"]
	p.Verified = verified == true || verified == "true"
	p.Email = clip(text(claims, "email"))
	if p.Email == "" || present && !p.Verified {
		p.Email, p.Verified = clip(subject), false
	}
	p.unusable = unusableClaim(p, claims, cmp.Or(names.ExternalID, "sub"))
	return p
}

// unusableClaim returns the name of a claim of a person that cannot be stored, or "". external is
// the claim of the external ID.
func unusableClaim(p Person, claims map[string]any, external string) string {
	for _, id := range [][2]string{{"sub", p.Subject}, {external, p.ExternalID}, {"sid", p.Session}} {
		if !usableID(id[1]) {
			return id[0]
		}
	}
	for _, name := range []string{"email", "name", "preferred_username", "client_id", "azp"} {
		if !snap.Storable(text(claims, name)) {
			return name
		}
	}
	return ""
}

// usableID reports whether an identifier in a provider's token can be stored unchanged. JSON
// decoders turn invalid UTF-8 into U+FFFD, which could make different identifiers equal.
func usableID(id string) bool { return snap.Storable(id) && !strings.ContainsRune(id, utf8.RuneError) }

// errUnusable returns the error for a claim whose text cannot be stored.
func errUnusable(claim string) error {
	return fmt.Errorf("the claim %s has a NUL character or is not UTF-8", claim)
}

// SignIn returns the sign-in of a person to an organization whose configuration gives these roles.
// It fails with code forbidden if a claim cannot be stored.
func (p Person) SignIn(orgID int64, roles map[snap.Role][]string) (store.SignIn, error) {
	if p.unusable != "" {
		return store.SignIn{}, snap.Forbidden("the identity provider sent text that cannot be stored: "+
			errUnusable(p.unusable).Error(), "ask your administrator to correct it at the identity provider")
	}
	role, known := RoleOf(p, roles)
	return store.SignIn{
		OrgID: orgID, Issuer: p.Issuer, Subject: p.Subject, Email: p.Email, Verified: p.Verified, Name: p.Name,
		ExternalID: p.ExternalID, Role: role, RoleUnknown: !known, Groups: p.Groups.Groups,
		GroupsUnknown: !p.Groups.Known, GroupsWhy: p.Groups.Why, AsOf: p.Issued,
		RoleOf: func(groups []snap.Group) snap.Role { return RoleWith(p.Email, p.Verified, groups, roles) },
	}, nil
}

// RoleWith returns the role that the configuration gives a person with exactly these groups.
func RoleWith(email string, verified bool, groups []snap.Group, roles map[snap.Role][]string) snap.Role {
	role, _ := RoleOf(Person{Email: email, Verified: verified, Groups: GroupClaim{Known: true, Groups: groups}}, roles)
	return role
}

// clip shortens a text to 200 characters.
func clip(s string) string {
	if runes := []rune(s); len(runes) > 200 {
		return string(runes[:200])
	}
	return s
}

// RoleOf returns the role that the configuration gives a person: the most powerful role that lists
// one of their groups by ID, or their e-mail if the provider vouches for it; otherwise member. If
// the groups are unknown and the role depends on them, known is false and role is viewer.
func RoleOf(p Person, roles map[snap.Role][]string) (role snap.Role, known bool) {
	has := func(entry string) bool {
		if strings.Contains(entry, "@") && p.Verified && strings.EqualFold(entry, p.Email) {
			return true
		}
		return p.Groups.Known && slices.ContainsFunc(p.Groups.Groups,
			func(g snap.Group) bool { return g.GroupID == entry })
	}
	byGroup := func(entry string) bool { return !strings.Contains(entry, "@") }
	for _, role := range []snap.Role{snap.RoleOwner, snap.RoleAdmin, snap.RoleMember, snap.RoleViewer} {
		if slices.ContainsFunc(roles[role], has) {
			return role, true
		}
		if !p.Groups.Known && slices.ContainsFunc(roles[role], byGroup) {
			return snap.RoleViewer, false
		}
	}
	return snap.RoleMember, true
}
