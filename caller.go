package snap

import (
	"slices"
	"time"
)

// Role is a user's role in their organization (SPEC 2.4).
type Role string

// The four roles, from the most to the least powerful.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
	RoleViewer Role = "viewer"
)

// Valid reports whether r is one of the four roles.
func (r Role) Valid() bool {
	return r == RoleOwner || r == RoleAdmin || r == RoleMember || r == RoleViewer
}

// IsAdmin reports whether r is owner or admin. These two roles see, pull and delete every snapshot
// of their organization (SPEC 5.3).
func (r Role) IsAdmin() bool { return r == RoleOwner || r == RoleAdmin }

// CredentialKind is the kind of credential that a request was made with.
type CredentialKind string

// The credential kinds. The first four are kinds of keys. A key begins with its kind and an
// underscore (SPEC 5.1).
const (
	UserKey     CredentialKind = "cak"     // user-scoped key: acts as its user
	PipelineKey CredentialKind = "clt"     // organization-level key for pipelines
	AgentKey    CredentialKind = "sak"     // organization-level key of a service agent
	SCIMKey     CredentialKind = "scim"    // key of an identity provider that reports people and groups
	LoginToken  CredentialKind = "login"   // access token of a device login
	Browser     CredentialKind = "browser" // session cookie of a signed-in browser
)

// The shape of a key (SPEC 5.1), as regular expressions: its kind with an underscore, and 38
// letters and digits.
const (
	KeyPrefixPattern = `(?:cak|clt|sak|scim)_`
	KeyPattern       = KeyPrefixPattern + `[0-9A-Za-z]{38}`
)

// OrgLevel reports whether a credential of this kind acts as an organization, so that its actions
// cannot be attributed to a user (SPEC 5.1).
func (k CredentialKind) OrgLevel() bool { return k == PipelineKey || k == AgentKey }

// IsKey reports whether k is one of the three API key kinds. A SCIM key is not an API key: it is
// accepted only by the SCIM routes.
func (k CredentialKind) IsKey() bool { return k == UserKey || k.OrgLevel() }

// Scope is a permission of an organization-level key. User-scoped credentials have no scopes: their
// user's role decides.
type Scope string

// The scopes of organization-level keys.
const (
	ScopePull Scope = "pull" // list and pull
	ScopePush Scope = "push"
	// ScopePrivate lets the key also see snapshots that are not shared org-wide. Only owners and
	// admins can grant it, when they create the key.
	ScopePrivate Scope = "private"
)

// IdleKey is how long a key may be unused before people are asked whether it is still needed.
const IdleKey = 90 * 24 * time.Hour

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{ScopePull, ScopePush, ScopePrivate} }

// Credential describes what a request was authenticated with. It never holds a secret.
type Credential struct {
	Kind   CredentialKind
	ID     int64  // of the key or the session in the store
	Name   string // chosen by its creator, such as "ci" or "alice's laptop"
	Scopes []Scope
}

// OrgRef identifies an organization. Slug is unique in the service.
type OrgRef struct {
	ID   int64
	Slug string
	Name string
}

// User is a person's account. It belongs to one organization and is identified by the issuer and
// subject of its identity provider, never by its e-mail.
type User struct {
	ID    int64
	Email string
	Name  string
}

// Group is an SSO group of an organization. GroupID is the identity provider's identifier, kept
// verbatim and compared case-sensitively; Name is for people.
type Group struct {
	ID      int64
	GroupID string
	Name    string
}

// Caller is the identity that a request acts for. A changed role or group takes effect at the next
// request. The zero Caller is anonymous and sees nothing.
type Caller struct {
	Org        OrgRef
	User       *User     // nil for an organization-level key
	Role       Role      // empty for an organization-level key
	Groups     []Group   // not set for the callers of requests; see store.GroupsOf
	GroupsAsOf time.Time // when the groups were last read from the identity provider
	// GroupsUnknown is set when the identity provider sent no usable groups claim at the last
	// sign-in. Group shares then give no access.
	GroupsUnknown bool
	GroupsWhy     string // why the groups are unknown and what to do, for the user; empty when they are known
	Credential    Credential
}

// Principal returns the identifier under which the store keeps the caller's audiences. For a user
// it is the user's ID. For an organization-level key it is the organization's ID, negated if the
// key has the scope private. It is 0 for the anonymous caller.
func (c Caller) Principal() int64 {
	switch {
	case c.User != nil:
		return c.User.ID
	case c.private():
		return -c.Org.ID
	}
	return c.Org.ID
}

// private reports whether the caller is an organization-level key with the scope private, or the
// service acting for the organization (store.CallerOfOrg).
func (c Caller) private() bool {
	return c.User == nil && slices.Contains(c.Credential.Scopes, ScopePrivate)
}

// IsAdmin reports whether the caller is an owner or admin acting as themselves.
// Organization-level keys are not admins.
func (c Caller) IsAdmin() bool { return c.User != nil && c.Role.IsAdmin() }
