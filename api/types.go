// Package api is the protocol between snapcli and snapcloud: the JSON shapes, the mounts and the
// typed client of the HTTP API.
//
// Times are RFC 3339 in UTC, sizes are bytes, checksums are lower-case hexadecimal SHA-256 of the
// whole file. A client ignores response fields that it does not know; the service refuses request
// fields that it does not know.
package api

import (
	"encoding/json"
	"slices"
	"time"

	"snap"
)

// The mounts of the API, below {cloud.url}. The agent mount accepts API keys; the user mount
// accepts access tokens and browser sessions. Both serve the same routes, except that the routes
// for keys and sessions exist only below the user mount.
const (
	MountAgent = "/api/v1/agents"
	MountUser  = "/api/v1"
)

// PathAuthConfig is where the login client finds the auth service (SPEC 4.3).
const PathAuthConfig = "/api/v1/auth/config"

// Limits of the API.
const (
	DefaultLimit = 50
	MaxLimit     = 200
	// MaxIDs is the maximum number of IDs in a request.
	MaxIDs = 100
)

// Snapshot is a cloud snapshot as a caller sees it (SPEC 2.1).
type Snapshot struct {
	ID           string      `json:"id" doc:"public ID" example:"snap_7h2k9m4qw8xvbn3t"`
	Target       string      `json:"target" doc:"name of the target database"`
	Name         string      `json:"name" doc:"<target>-<timestamp>"`
	Type         snap.Type   `json:"type" enum:"snapshot,sanitized"`
	Engine       snap.Engine `json:"engine" enum:"postgres,mysql,sqlite"`
	Size         int64       `json:"size" doc:"bytes of the file"`
	SHA256       string      `json:"sha256" doc:"SHA-256 of the file, lower-case hexadecimal"`
	Created      time.Time   `json:"created_at"`
	Shared       bool        `json:"shared" doc:"shared org-wide, or received from another organization"`
	Received     bool        `json:"received" doc:"another organization shared it with the caller's organization"`
	Organization string      `json:"organization" doc:"slug of the organization it belongs to"`
	Owner        string      `json:"owner,omitempty" doc:"e-mail of the pusher; empty for organization-level keys"`
	Description  string      `json:"description,omitempty" doc:"plain text; only sent within the organization"`
	Labels       []string    `json:"labels,omitempty" doc:"only sent within the organization"`
	ExpiresAt    *time.Time  `json:"expires_at,omitempty" doc:"end of the org-wide or received share, if it has one"`
	Groups       int         `json:"group_shares" doc:"live group shares; 0 for callers who may not manage them"`
	Orgs         int         `json:"org_shares" doc:"live cross-org shares; 0 for callers who may not manage them"`
	FirstGroup   string      `json:"first_group,omitempty" doc:"name of one of the groups it is shared with"`
	NextExpiry   *time.Time  `json:"next_share_expires_at,omitempty" doc:"end of the share that ends next"`
	Through      string      `json:"through_group,omitempty" doc:"the caller's group, if only a group share shows it"`
	Outside      bool        `json:"shared_outside" doc:"for its owner and admins: shared with another organization"`
	Warning      string      `json:"warning,omitempty" doc:"who can now see unmasked data; only after sharing"`
	Can          *Can        `json:"can,omitempty" doc:"what the caller may do; only for a single snapshot"`

	Certificate *CertificateState `json:"certificate,omitempty" doc:"only for a single snapshot; absent if it has none"`
}

// Can says which actions the caller may take on one snapshot.
type Can struct {
	Pull     bool `json:"pull"`
	Delete   bool `json:"delete"`
	Share    bool `json:"share" doc:"change org-wide and group shares"`
	ShareOrg bool `json:"share_org" doc:"list and change cross-org shares"`
	Explain  bool `json:"explain" doc:"explain who can see it"`
	Describe bool `json:"describe" doc:"write its description and labels"`
}

// SnapshotPage is one page of a listing, newest first.
type SnapshotPage struct {
	Items      []Snapshot `json:"items"`
	NextCursor string     `json:"next_cursor" doc:"empty on the last page"`
}

// ListOptions selects a page. The zero value is the first page of all snapshots that the caller may
// see.
type ListOptions struct {
	Filter      snap.Filter
	Target      string
	Type        snap.Type
	Q           string // search words, see snap.Finds
	IDPrefix    string
	IDs         []string  // only these, at most 100
	Owner       string    // e-mail of their owner, or the beginning of an e-mail or of the sending organization's slug
	Since       time.Time // pushed at this time or later
	Until       time.Time // pushed before this time
	ExpiresSoon bool      // with a share that ends within snap.SoonExpiring
	Limit       int
	Cursor      string
}

// GroupShare is a group share (SPEC 2.2).
type GroupShare struct {
	GroupID   string     `json:"group_id"`
	Name      string     `json:"name"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"absent means never"`
	SharedBy  string     `json:"shared_by,omitempty"`
	SharedAt  time.Time  `json:"shared_at"`
	Channel   string     `json:"channel,omitempty" doc:"ID of the channel that made it, if one did"`
	Warning   string     `json:"warning,omitempty" doc:"who can now see unmasked data; only after sharing"`
}

// OrgShare is a cross-organization share (SPEC 2.3).
type OrgShare struct {
	OrgSlug           string     `json:"org_slug"`
	Name              string     `json:"name"`
	ExpiresAt         *time.Time `json:"expires_at,omitempty" doc:"absent means never"`
	SharedBy          string     `json:"shared_by,omitempty"`
	SharedAt          time.Time  `json:"shared_at"`
	WithSchema        bool       `json:"with_schema" doc:"the organization sees the snapshot's card"`
	DeclinedAt        *time.Time `json:"declined_at,omitempty" doc:"when the recipient declined it, until shared again"`
	PreviousExpiresAt *time.Time `json:"previous_expires_at,omitempty" doc:"the expiry that a re-share replaced"`
	Warning           string     `json:"warning,omitempty" doc:"who can now see unmasked data; only after sharing"`
}

// GroupShareList is the body of GET group-shares.
type GroupShareList struct {
	Items []GroupShare `json:"items"`
}

// OrgShareList is the body of GET org-shares.
type OrgShareList struct {
	Items []OrgShare `json:"items"`
}

// ShareGroupRequest is the body of POST share-group.
type ShareGroupRequest struct {
	GroupID   string     `json:"group_id" minLength:"1" maxLength:"512" example:"eng" doc:"ID of an SSO group"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" example:"2099-12-31T00:00:00Z" doc:"RFC 3339; absent means never"`
	ExpiresIn int64      `json:"expires_in,omitempty" minimum:"1" maximum:"3153600000" doc:"seconds from now"`
}

// ShareOrgRequest is the body of POST share-org.
type ShareOrgRequest struct {
	OrgSlug    string     `json:"org_slug" minLength:"1" maxLength:"63" example:"globex" doc:"slug of the recipient"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty" example:"2099-12-31T00:00:00Z" doc:"RFC 3339; absent means never"`
	ExpiresIn  int64      `json:"expires_in,omitempty" minimum:"1" maximum:"3153600000" doc:"seconds from now"`
	WithSchema *bool      `json:"with_schema,omitempty" doc:"also show the card; absent keeps the setting, at first no"`
}

// SharesRequest is the body of POST shares: several recipients of one snapshot. Either all of the
// shares are made or none.
type SharesRequest struct {
	OrgWide   bool       `json:"org_wide,omitempty" doc:"share with every member of the organization"`
	GroupIDs  []string   `json:"group_ids,omitempty" maxItems:"100" doc:"IDs of SSO groups" example:"[\"eng\",\"dba\"]"`
	OrgSlugs  []string   `json:"org_slugs,omitempty" maxItems:"100" doc:"slugs of other organizations"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"when these shares end, RFC 3339; absent means never"`
	ExpiresIn int64      `json:"expires_in,omitempty" minimum:"1" maximum:"3153600000" doc:"seconds from now"`
	// WithSchema also shows the card to the other organizations.
	WithSchema *bool `json:"with_schema,omitempty" doc:"also show the card; absent keeps the setting, at first no"`
}

// UnshareRequest is the body of POST unshare.
type UnshareRequest struct {
	All      bool     `json:"all,omitempty" doc:"end every share; cannot be combined with the other fields"`
	OrgWide  bool     `json:"org_wide,omitempty" doc:"end the org-wide share"`
	GroupIDs []string `json:"group_ids,omitempty" maxItems:"100" doc:"IDs of SSO groups" example:"[\"eng\",\"dba\"]"`
	OrgSlugs []string `json:"org_slugs,omitempty" maxItems:"100" doc:"end the shares with these organizations"`
}

// ShareChange is one share that was made, updated or ended.
type ShareChange struct {
	Kind              string     `json:"kind" enum:"org_wide,group,organization"`
	GroupID           string     `json:"group_id,omitempty"`
	GroupName         string     `json:"group_name,omitempty"`
	OrgSlug           string     `json:"org_slug,omitempty"`
	ExpiresAt         *time.Time `json:"expires_at,omitempty" doc:"absent means never"`
	PreviousExpiresAt *time.Time `json:"previous_expires_at,omitempty" doc:"the expiry that a re-share replaced"`
	Changed           bool       `json:"changed" doc:"false if nothing changed"`
}

// ShareChanges is the response to POST shares and to POST unshare.
type ShareChanges struct {
	Changes []ShareChange `json:"changes"`
	Warning string        `json:"warning,omitempty" doc:"who can now see unmasked data; only after sharing"`
}

// Group is an SSO group of the organization.
type Group struct {
	GroupID string `json:"group_id"`
	Name    string `json:"name"`
	Members int    `json:"members" doc:"number of users in it, according to the identity provider"`
}

// GroupList is the body of GET /org/sso/groups.
type GroupList struct {
	Items []Group `json:"items"`
}

// Member is a user of the organization.
type Member struct {
	Email    string    `json:"email"`
	Name     string    `json:"name"`
	Role     snap.Role `json:"role"`
	Groups   []string  `json:"groups" doc:"names of their groups"`
	GroupIDs []string  `json:"group_ids" doc:"IDs of their groups, in the same order"`
}

// InGroup reports whether the member is in the group with this ID. Services of earlier releases
// send only names; the name then decides.
func (m Member) InGroup(id, name string) bool {
	if len(m.GroupIDs) > 0 {
		return slices.Contains(m.GroupIDs, id)
	}
	return slices.Contains(m.Groups, name) || slices.Contains(m.Groups, id)
}

// MemberList is the body of GET /org/members.
type MemberList struct {
	Items []Member `json:"items"`
}

// PushRequest begins a push.
type PushRequest struct {
	Target string      `json:"target" minLength:"1" maxLength:"100" example:"shop"`
	Name   string      `json:"name" minLength:"1" maxLength:"200" example:"shop-20260301T120000Z"`
	Type   snap.Type   `json:"type" enum:"snapshot,sanitized" example:"sanitized"`
	Engine snap.Engine `json:"engine" enum:"postgres,mysql,sqlite" example:"postgres"`
	Size   int64       `json:"size" minimum:"1" example:"1048576"`
	SHA256 string      `json:"sha256" pattern:"^[0-9a-f]{64}$" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`

	Certificate json.RawMessage `json:"certificate,omitempty" doc:"in-toto statement in a DSSE envelope, up to 32 KiB"`
}

// UploadPlan is the response to a push. It says how to upload the bytes. When Exists is set, the
// caller has already pushed this snapshot, and nothing needs to be sent.
type UploadPlan struct {
	ID       string    `json:"id" doc:"ID of the snapshot, or of the future snapshot until the push is complete"`
	Exists   bool      `json:"exists" doc:"the snapshot already exists; send nothing"`
	PartSize int64     `json:"part_size" doc:"bytes of every part but the last"`
	Parts    int       `json:"parts" doc:"how many parts there are"`
	Present  []PartRef `json:"present" doc:"parts that have arrived"`
}

// DeltaPush announces a delta that replaces the upload of a push.
type DeltaPush struct {
	Base string `json:"base" doc:"ID of a snapshot of the same target and organization" example:"snap_7h2k9m4p6r8t0v2w"`
	Size int64  `json:"size" minimum:"1" doc:"bytes of the delta" example:"48211"`
}

// DeltaUpload is the response to a [DeltaPush]. It says where to send the delta. The service
// responds to the PUT of the delta when it has rebuilt and verified the snapshot's file. The push
// can then be completed. An encrypted delta is only kept for pulls, so the whole file must still be
// uploaded.
type DeltaUpload struct {
	URL     string    `json:"url" doc:"presigned URL for a PUT of the delta"`
	Expires time.Time `json:"expires_at"`
}

// DeltaRequest asks for a delta instead of the whole file.
type DeltaRequest struct {
	Have []string `json:"have" minItems:"1" maxItems:"50" doc:"IDs of local snapshots" example:"[\"snap_7h2k9m4p6\"]"`
}

// DeltaOffer is the response to a [DeltaRequest]. If URL is empty, there is no delta, or it is not
// finished yet.
type DeltaOffer struct {
	Base    string     `json:"base,omitempty" doc:"ID of the snapshot that the delta applies to"`
	Size    int64      `json:"size,omitempty" doc:"bytes of the delta"`
	URL     string     `json:"url,omitempty" doc:"presigned URL of the delta; supports ranges"`
	Expires *time.Time `json:"expires_at,omitempty"`
	Making  bool       `json:"making" doc:"the service is still making the delta; ask again"`

	Certificate json.RawMessage `json:"certificate,omitempty" doc:"certificate of the snapshot, as its pusher sent it"`
}

// PartRef names a part that is in the object store. Numbers count from 1.
type PartRef struct {
	Number int    `json:"number"`
	Size   int64  `json:"size"`
	CRC64  string `json:"crc64nvme,omitempty" doc:"base64 of the big-endian CRC-64/NVME, if the object store knows it"`
}

// PartsRequest asks for upload URLs of parts. It may be sent again for the same parts.
type PartsRequest struct {
	Parts []PartSpec `json:"parts" maxItems:"100" doc:"parts that need upload URLs; if the list is empty, the response lists the parts that have arrived" example:"[{\"number\":1,\"crc64nvme\":\"AAAAAAAAAAA=\"}]"`
}

// PartSpec announces one part.
type PartSpec struct {
	Number int    `json:"number" minimum:"1" maximum:"10000"`
	CRC64  string `json:"crc64nvme" doc:"base64 of the big-endian CRC-64/NVME of the part"`
}

// PartsResponse holds the signed URLs or, if none were requested, the parts that are already
// stored.
type PartsResponse struct {
	URLs    []SignedURL `json:"urls"`
	Present []PartRef   `json:"present" doc:"parts that have arrived; empty if upload URLs were requested"`
}

// SignedURL is a presigned request. It is valid for one object and one method until it expires, and
// needs no credential. Headers must be sent unchanged.
type SignedURL struct {
	Number    int               `json:"number,omitempty" doc:"part number, for uploads"`
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers,omitempty"`
	ExpiresAt time.Time         `json:"expires_at"`
}

// PullResponse is the response to a pull: the snapshot's size and checksum, and where to get it.
type PullResponse struct {
	Snapshot    Snapshot        `json:"snapshot"`
	URL         string          `json:"url" doc:"presigned URL; supports ranges"`
	Expires     time.Time       `json:"expires_at"`
	Certificate json.RawMessage `json:"certificate,omitempty" doc:"as pushed; verify it with keys that you trust"`
}

// Me describes the caller.
type Me struct {
	Organization     string           `json:"organization" doc:"slug"`
	OrganizationName string           `json:"organization_name"`
	Email            string           `json:"email,omitempty" doc:"absent for organization-level keys"`
	Name             string           `json:"name,omitempty"`
	Role             snap.Role        `json:"role,omitempty"`
	Groups           []MyGroup        `json:"groups"`
	GroupsAsOf       *time.Time       `json:"groups_as_of,omitempty" doc:"when the identity provider sent the groups"`
	GroupsUnknown    bool             `json:"groups_unknown" doc:"without usable groups, group shares give no access"`
	GroupsWhy        string           `json:"groups_unknown_because,omitempty" doc:"reason and advice, as text"`
	Credential       MeCredential     `json:"credential"`
	Policy           Policy           `json:"policy"`
	Notices          []Notice         `json:"notices" doc:"events of the caller's snapshots and sessions; at most 20"`
	Usage            *Usage           `json:"usage,omitempty" doc:"of the caller, or of all organization-level keys"`
	OrgUsage         *Usage           `json:"organization_usage,omitempty" doc:"organization's; for owners and admins"`
	SignInDue        *time.Time       `json:"sign_in_due_at,omitempty" doc:"when the user has to sign in again"`
	Confirmed        *time.Time       `json:"confirmed_at,omitempty" doc:"when the provider last confirmed the user"`
	IdleKeys         int              `json:"idle_keys,omitempty" doc:"the user's API keys that are idle for 90 days"`
	OrgIdleKeys      int              `json:"organization_idle_keys,omitempty" doc:"for owners and admins"`
	Audit            *AuditCheckpoint `json:"audit,omitempty" doc:"newest audit checkpoint; for owners and admins"`
}

// Policy holds the organization's limits on sharing and on API keys.
type Policy struct {
	ShareTypes        []snap.Type            `json:"share_types" doc:"shareable types; empty means every type"`
	UnsanitizedShares snap.UnsanitizedShares `json:"unsanitized_shares" enum:"allow,ask,refuse" doc:"for unmasked data"`
	ShareRequires     snap.ShareRequirement  `json:"share_requires,omitempty" enum:"certificate" doc:"needed to share"`
	MaxCrossOrgExpiry int64                  `json:"max_cross_org_expiry,omitempty" doc:"seconds; absent: no limit"`
	MaxKeyAge         int64                  `json:"max_key_age,omitempty" doc:"seconds; absent means no limit"`
}

// Notice informs a user of an event that concerns one of their snapshots or sessions.
type Notice struct {
	At       time.Time        `json:"at"`
	Action   snap.AuditAction `json:"action" enum:"snapshot.shared,snapshot.share_expires_soon,snapshot.access_requested,session.token_reused"`
	Snapshot string           `json:"snapshot,omitempty" doc:"public ID of the snapshot"`
	Target   string           `json:"target,omitempty" doc:"target of the snapshot"`
	Actor    string           `json:"actor,omitempty" doc:"e-mail of the actor"`
	Text     string           `json:"text" doc:"description of the event"`
}

// Usage is how much a user or organization stores in the service, and the limits.
type Usage struct {
	Snapshots  int   `json:"snapshots"`
	Bytes      int64 `json:"bytes" doc:"of the snapshots"`
	BytesMax   int64 `json:"bytes_max,omitempty" doc:"allowed bytes; absent if there is no limit"`
	Uploads    int   `json:"uploads" doc:"unfinished uploads"`
	UploadsMax int   `json:"uploads_max,omitempty" doc:"allowed unfinished uploads; absent if there is no limit"`
}

// Upload is a push that has begun and is not complete.
type Upload struct {
	ID        string      `json:"id" doc:"ID of the future snapshot"`
	Target    string      `json:"target"`
	Name      string      `json:"name"`
	Type      snap.Type   `json:"type" enum:"snapshot,sanitized"`
	Engine    snap.Engine `json:"engine" enum:"postgres,mysql,sqlite"`
	Size      int64       `json:"size" doc:"bytes that were announced"`
	CreatedAt time.Time   `json:"created_at"`
	TouchedAt time.Time   `json:"touched_at" doc:"time of the last progress; two days later the upload is removed"`
}

// UploadList is the body of GET /uploads.
type UploadList struct {
	Items []Upload `json:"items"`
}

// MyGroup is one of the caller's groups.
type MyGroup struct {
	GroupID string `json:"group_id"`
	Name    string `json:"name"`
}

// MeCredential describes the credential that the caller used.
type MeCredential struct {
	Kind   snap.CredentialKind `json:"kind" enum:"cak,clt,sak,login,browser"`
	Name   string              `json:"name"`
	Scopes []snap.Scope        `json:"scopes,omitempty"`
}

// AuthConfig tells a client where to sign in, and with which client ID (SPEC 4.3).
type AuthConfig struct {
	AuthURL  string   `json:"auth_url" doc:"issuer of the auth service"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes"`
	// ExchangeURL is where a CI job exchanges its token for a credential (RFC 8693).
	ExchangeURL string `json:"exchange_url,omitempty" doc:"where CI jobs exchange tokens; absent if none is trusted"`
}

// Problem is the body of every error (RFC 9457, application/problem+json).
type Problem struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Code      snap.Code         `json:"code"`
	Hint      string            `json:"hint,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
	Errors    []snap.FieldError `json:"errors,omitempty"`
}

// Key is an API key without its secret.
type Key struct {
	ID        string              `json:"id"`
	Kind      snap.CredentialKind `json:"kind" enum:"cak,clt,sak,scim"`
	Name      string              `json:"name"`
	Hint      string              `json:"hint" doc:"first 8 and last 4 characters"`
	User      string              `json:"user,omitempty" doc:"e-mail of the user it acts as"`
	Scopes    []snap.Scope        `json:"scopes,omitempty"`
	From      []string            `json:"from,omitempty" doc:"networks that it may be used from; absent means any"`
	CreatedAt time.Time           `json:"created_at"`
	CreatedBy string              `json:"created_by,omitempty"`
	ExpiresAt *time.Time          `json:"expires_at,omitempty"`
	LastUsed  *time.Time          `json:"last_used_at,omitempty"`
}

// KeyList is the body of GET /keys.
type KeyList struct {
	Items []Key `json:"items"`
}

// KeyRequest creates a key.
type KeyRequest struct {
	Kind      snap.CredentialKind `json:"kind" enum:"cak,clt,sak"`
	Name      string              `json:"name" minLength:"1" maxLength:"100"`
	Scopes    []snap.Scope        `json:"scopes,omitempty"`
	ExpiresAt *time.Time          `json:"expires_at,omitempty" doc:"RFC 3339; absent means never"`
	ExpiresIn int64               `json:"expires_in,omitempty" minimum:"1" maximum:"3153600000" doc:"seconds from now"`
	From      []string            `json:"from,omitempty" maxItems:"100" doc:"such as 10.0.0.0/8; absent means any"`
}

// KeyFilter selects the keys of a listing.
type KeyFilter struct {
	All  bool          // owners and admins: every key of the organization instead of the caller's own
	Idle time.Duration // only keys that were not used for at least this long; 0 means every key
}

// NewKey is a key with its secret, which is shown only once.
type NewKey struct {
	Key
	Secret string `json:"secret"`
}

// Session is a signed-in device or browser: one of the caller's or, in [Client.AllSessions], of any
// member.
type Session struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind" enum:"login,browser"`
	Name      string    `json:"name" doc:"the program and host that signed in"`
	Address   string    `json:"address"`
	CreatedAt time.Time `json:"created_at"`
	LastUsed  time.Time `json:"last_used_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Current   bool      `json:"current"`
	User      string    `json:"user,omitempty" doc:"e-mail of the person; only in a list of everybody's sessions"`
}

// SessionList is the body of GET /sessions.
type SessionList struct {
	Items []Session `json:"items"`
}
