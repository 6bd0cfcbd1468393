package snap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// AuditAction names what happened. The names are stable; webhooks carry the
// same ones.
type AuditAction string

// The actions that the audit log records.
const (
	AuditPushed      AuditAction = "snapshot.pushed"
	AuditPullStarted AuditAction = "snapshot.pull_started"
	AuditPulled      AuditAction = "snapshot.pulled"
	AuditShared      AuditAction = "snapshot.shared"
	AuditUnshared    AuditAction = "snapshot.unshared"
	// follows a share with another organization: what that organization may know of it
	AuditReceipt      AuditAction = "snapshot.share_receipt"
	AuditShareRefused AuditAction = "snapshot.share_refused"
	// a deletion, or sending back what another organization shared, that was refused
	AuditDeleteRefused  AuditAction = "snapshot.delete_refused"
	AuditDeclineRefused AuditAction = "snapshot.decline_refused"
	// the configuration no longer lists the organization, lists it again, or gives it another policy
	AuditOrgClosed   AuditAction = "organization.closed"
	AuditOrgOpened   AuditAction = "organization.opened"
	AuditPolicy      AuditAction = "organization.policy_changed"
	AuditDeclined    AuditAction = "snapshot.declined"
	AuditDeleted     AuditAction = "snapshot.deleted"
	AuditChannelMade AuditAction = "channel.created"
	AuditChannelGone AuditAction = "channel.deleted"
	AuditRetention   AuditAction = "retention.changed"
	AuditWebhookMade AuditAction = "webhook.created"
	AuditWebhookGone AuditAction = "webhook.deleted"
	AuditUserChanged AuditAction = "user.changed"
	// the identity provider no longer confirms the user; their sessions and keys were ended
	AuditUserLeft     AuditAction = "user.left"
	AuditKeyMade      AuditAction = "key.created"
	AuditKeyRevoked   AuditAction = "key.revoked"
	AuditSessionBegan AuditAction = "session.started"
	AuditSessionEnded AuditAction = "session.ended"
	// a refresh token came back after it was replaced; the session was ended
	AuditTokenReused AuditAction = "session.token_reused"
)

// AuditActions are all of these, in the order in which one chooses among them.
func AuditActions() []AuditAction {
	return []AuditAction{
		AuditPushed, AuditPullStarted, AuditPulled, AuditShared, AuditUnshared, AuditReceipt, AuditShareRefused,
		AuditDeclined, AuditDeclineRefused, AuditDeleted, AuditDeleteRefused,
		AuditOrgClosed, AuditOrgOpened, AuditPolicy,
		AuditChannelMade, AuditChannelGone, AuditRetention, AuditWebhookMade, AuditWebhookGone,
		AuditUserChanged, AuditUserLeft, AuditKeyMade, AuditKeyRevoked, AuditSessionBegan, AuditSessionEnded,
		AuditTokenReused,
	}
}

// AuditDetail holds what belongs to some actions only.
type AuditDetail struct {
	Target       string     `json:"target,omitempty"`       // of the snapshot
	Name         string     `json:"name,omitempty"`         // of the snapshot, key or session
	Owner        string     `json:"owner,omitempty"`        // of the snapshot, when pushed or shared with another organization
	OrgWide      bool       `json:"org_wide,omitempty"`     // which share
	Group        string     `json:"group,omitempty"`        // which share: the group's ID
	Organization string     `json:"organization,omitempty"` // which share: the recipient's slug
	Expires      *time.Time `json:"expires_at,omitempty"`   // of the share or key
	Bytes        int64      `json:"bytes,omitempty"`        // moved
	Code         Code       `json:"code,omitempty"`         // why it was refused
	User         string     `json:"user,omitempty"`         // whom it concerns, when not the actor
	Account      int64      `json:"account,omitempty"`      // of that user, or of the owner who pushed
	Key          int64      `json:"key,omitempty"`          // which key
	Scopes       []Scope    `json:"scopes,omitempty"`       // of the key
	Policy       string     `json:"policy,omitempty"`       // of the organization from then on, as JSON
	Role         Role       `json:"role,omitempty"`         // of that user from then on
	Groups       []string   `json:"groups,omitempty"`       // of that user from then on, by ID
	Kind         string     `json:"kind,omitempty"`         // of the key or session
	Disabled     bool       `json:"disabled,omitempty"`
	Channel      int64      `json:"channel,omitempty"`   // the standing rule that shared
	KeepLast     int        `json:"keep_last,omitempty"` // of a retention rule
	KeepDays     int        `json:"keep_days,omitempty"`
	URL          string     `json:"url,omitempty"` // of a webhook
}

// AuditEntry is one line of an organization's audit log. Lines are only ever
// added, and each holds the hash of the one before, so that a line that was
// changed, removed or slipped in later shows.
type AuditEntry struct {
	Seq        int64       `json:"seq" doc:"counts from 1 within the organization, without gaps"`
	At         time.Time   `json:"at"`
	Action     AuditAction `json:"action" example:"snapshot.shared"`
	Actor      string      `json:"actor" doc:"e-mail of who did it; empty for organization-level keys and the operator"`
	ActorOrg   string      `json:"actor_organization" doc:"slug of the actor's organization; empty for the operator"`
	Credential string      `json:"credential" doc:"kind and name of the credential; empty for the operator"`
	Address    string      `json:"address" doc:"network address the request came from"`
	RequestID  string      `json:"request_id"`
	Snapshot   string      `json:"snapshot,omitempty" doc:"public ID of the snapshot it concerns"`
	Detail     AuditDetail `json:"detail"`
	Hash       string      `json:"hash" doc:"SHA-256 over the hash before and this line, hexadecimal"`
}

// Sum returns the hash the entry must have after one with the hash prev (empty
// for the first): SHA-256 of prev, a line feed, and the entry's JSON with an
// empty hash.
func (e AuditEntry) Sum(prev string) string {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings, numbers and times always encode
	}
	return AuditHash(prev, string(text))
}

// AuditHash is the hash of a line after one with the hash prev; line is its
// JSON with an empty hash.
func AuditHash(prev, line string) string {
	sum := sha256.Sum256([]byte(prev + "\n" + line))
	return hex.EncodeToString(sum[:])
}

// AuditChain checks an organization's log, entry by entry from the first one.
// The zero chain is at the beginning.
type AuditChain struct {
	seq  int64
	hash string
}

// Next reports, as an error of code conflict, an entry that does not follow the
// one before.
func (c *AuditChain) Next(e AuditEntry) error {
	switch {
	case e.Seq != c.seq+1:
		return &Error{Code: CodeConflict, Detail: fmt.Sprintf("the audit log has entry %d after entry %d", e.Seq,
			c.seq),
			Hint: "entries were removed or added; compare with a backup"}
	case e.Hash != e.Sum(c.hash):
		return &Error{Code: CodeConflict,
			Detail: fmt.Sprintf("entry %d of the audit log does not match its hash", e.Seq),
			Hint:   "it or an earlier entry was changed; compare with a backup"}
	}
	c.seq, c.hash = e.Seq, e.Hash
	return nil
}

// Origin is where a request came from, for the audit log.
type Origin struct {
	Address   string
	RequestID string
	Caller    Caller // who was authenticated; zero before, and on the sign-in pages
}

type originKey struct{}

// WithOrigin returns a context that carries where its request came from.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns where the context's request came from; the zero Origin when
// it is not a request.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
