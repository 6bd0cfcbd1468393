package snap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// AuditAction names an event. The names are stable; webhooks use the same names.
type AuditAction string

// The actions that the audit log records.
const (
	AuditPushed      AuditAction = "snapshot.pushed"
	AuditPullStarted AuditAction = "snapshot.pull_started"
	AuditPulled      AuditAction = "snapshot.pulled"
	AuditShared      AuditAction = "snapshot.shared"
	AuditUnshared    AuditAction = "snapshot.unshared"
	// AuditReceipt follows a share with another organization. It holds the facts about the share
	// that the recipient is allowed to know.
	AuditReceipt      AuditAction = "snapshot.share_receipt"
	AuditShareRefused AuditAction = "snapshot.share_refused"
	// AuditDeleteRefused and AuditDeclineRefused record a refused deletion and a refused decline of
	// a received share.
	AuditDeleteRefused  AuditAction = "snapshot.delete_refused"
	AuditDeclineRefused AuditAction = "snapshot.decline_refused"
	// AuditOrgClosed, AuditOrgOpened and AuditPolicy record a changed configuration: the
	// organization is no longer in it, is in it again, or has another policy.
	AuditOrgClosed AuditAction = "organization.closed"
	AuditOrgOpened AuditAction = "organization.opened"
	AuditPolicy    AuditAction = "organization.policy_changed"
	// AuditConfigured records that other settings of the organization, or of the service, changed.
	AuditConfigured AuditAction = "organization.configuration_changed"
	// AuditAccessRequested and AuditAccessRefused record that somebody who cannot see the snapshot
	// asked for access, and that the request was refused. A granted request is recorded as a share.
	AuditAccessRequested AuditAction = "snapshot.access_requested"
	AuditAccessRefused   AuditAction = "snapshot.access_refused"
	// AuditShareExpires records that a share ends within [SoonExpiring].
	AuditShareExpires AuditAction = "snapshot.share_expires_soon"
	// AuditDescribed records that a snapshot's description or labels changed.
	AuditDescribed AuditAction = "snapshot.described"
	// AuditCardChanged records that a snapshot's card was replaced or removed, or that somebody
	// other than its pusher added one. The first card that the pusher adds is not recorded.
	AuditCardChanged AuditAction = "snapshot.card_changed"
	// AuditCertified records that a snapshot got its certificate after it was pushed.
	AuditCertified      AuditAction = "snapshot.certified"
	AuditDeclined       AuditAction = "snapshot.declined"
	AuditDeleted        AuditAction = "snapshot.deleted"
	AuditChannelCreated AuditAction = "channel.created"
	AuditChannelDeleted AuditAction = "channel.deleted"
	// AuditOverdue records that a channel's newest snapshot is older than the channel expects.
	AuditOverdue        AuditAction = "channel.overdue"
	AuditRetention      AuditAction = "retention.changed"
	AuditWebhookCreated AuditAction = "webhook.created"
	AuditWebhookDeleted AuditAction = "webhook.deleted"
	// AuditWebhookDisabled records that the service stopped sending to a webhook, because its
	// receiver is gone or accepted nothing for days.
	AuditWebhookDisabled AuditAction = "webhook.disabled"
	AuditWebhookEnabled  AuditAction = "webhook.enabled"
	AuditWebhookRotated  AuditAction = "webhook.secret_rotated"
	AuditUserChanged     AuditAction = "user.changed"
	// AuditUserLeft records that the identity provider no longer confirms the user. Their sessions
	// and keys were ended.
	AuditUserLeft AuditAction = "user.left"
	// AuditUserPruned records that the account of a user who left long ago was deleted.
	AuditUserPruned AuditAction = "user.pruned"
	AuditKeyCreated AuditAction = "key.created"
	AuditKeyRevoked AuditAction = "key.revoked"
	// AuditCertificateKeyAdded and AuditCertificateKeyRevoked record changes to the keys whose
	// certificates the organization accepts.
	AuditCertificateKeyAdded   AuditAction = "certificate_key.added"
	AuditCertificateKeyRevoked AuditAction = "certificate_key.revoked"
	AuditSessionStarted        AuditAction = "session.started"
	AuditSessionEnded          AuditAction = "session.ended"
	// AuditTokenReused records that a refresh token was used again after it had been replaced. Its
	// session was ended.
	AuditTokenReused AuditAction = "session.token_reused"
)

// AuditActions returns all actions, in the order in which user interfaces offer them.
func AuditActions() []AuditAction {
	return []AuditAction{
		AuditPushed, AuditPullStarted, AuditPulled, AuditShared, AuditUnshared, AuditReceipt, AuditShareRefused,
		AuditShareExpires, AuditAccessRequested, AuditAccessRefused, AuditDescribed, AuditCardChanged, AuditCertified,
		AuditDeclined, AuditDeclineRefused, AuditDeleted, AuditDeleteRefused,
		AuditOrgClosed, AuditOrgOpened, AuditPolicy, AuditConfigured,
		AuditChannelCreated, AuditChannelDeleted, AuditOverdue, AuditRetention, AuditWebhookCreated,
		AuditWebhookDeleted, AuditWebhookDisabled, AuditWebhookEnabled, AuditWebhookRotated,
		AuditUserChanged, AuditUserLeft, AuditUserPruned, AuditKeyCreated, AuditKeyRevoked,
		AuditCertificateKeyAdded, AuditCertificateKeyRevoked, AuditSessionStarted, AuditSessionEnded, AuditTokenReused,
	}
}

// Historic reports whether lines with this action stay in the database when the log is archived:
// receipts, and the lines that are needed to find out who could see a snapshot at a time in the
// past.
func (a AuditAction) Historic() bool {
	switch a {
	case AuditPushed, AuditDeleted, AuditShared, AuditUnshared, AuditDeclined, AuditReceipt, AuditUserChanged,
		AuditUserLeft, AuditKeyCreated, AuditKeyRevoked, AuditOrgClosed, AuditOrgOpened, AuditPolicy:
		return true
	}
	return false
}

// AuditDetail holds fields that only some actions have.
type AuditDetail struct {
	Target       string     `json:"target,omitempty"`       // of the snapshot, channel or retention rule
	Name         string     `json:"name,omitempty"`         // the snapshot's, key's or session's
	Owner        string     `json:"owner,omitempty"`        // of a pushed or cross-org shared snapshot
	OrgWide      bool       `json:"org_wide,omitempty"`     // set for an org-wide share
	Group        string     `json:"group,omitempty"`        // ID of the group shared with
	Organization string     `json:"organization,omitempty"` // slug of the organization shared with
	WithSchema   bool       `json:"with_schema,omitempty"`  // that organization sees the schema too
	Expires      *time.Time `json:"expires_at,omitempty"`   // when the share or key expires
	Bytes        int64      `json:"bytes,omitempty"`        // size of the snapshot, or number of bytes transferred
	Code         Code       `json:"code,omitempty"`         // why the action was refused
	User         string     `json:"user,omitempty"`         // e-mail of the affected user, unless that is the actor
	Account      int64      `json:"account,omitempty"`      // ID of the affected user, or of the owner who pushed
	Key          int64      `json:"key,omitempty"`          // ID of the key
	Scopes       []Scope    `json:"scopes,omitempty"`       // scopes of the key
	Policy       string     `json:"policy,omitempty"`       // the organization's new policy, as JSON
	Role         Role       `json:"role,omitempty"`         // new role of the affected user
	Groups       []string   `json:"groups,omitempty"`       // IDs of the new groups of the affected user
	Kind         string     `json:"kind,omitempty"`         // of the key or session, or the channel's type
	Disabled     bool       `json:"disabled,omitempty"`
	Channel      int64      `json:"channel,omitempty"`   // ID of the channel; of a share, the one that made it
	KeepLast     int        `json:"keep_last,omitempty"` // of the retention rule, like KeepDays
	KeepDays     int        `json:"keep_days,omitempty"`
	PublicKey    string     `json:"public_key,omitempty"` // the key whose certificates are now accepted or refused
	URL          string     `json:"url,omitempty"`        // of the webhook
	Webhook      int64      `json:"webhook,omitempty"`    // ID of the webhook
	Reason       string     `json:"reason,omitempty"`     // why the webhook was disabled, or the channel is overdue
	Issuer       string     `json:"issuer,omitempty"`     // of the CI token that was exchanged for a key
	Subject      string     `json:"subject,omitempty"`    // of that token
	Rule         string     `json:"rule,omitempty"`       // fingerprint of the trust rule that accepted that token
	// Settings are the changed settings of the configuration, by name.
	Settings []SettingChange `json:"settings,omitempty"`
}

// SettingChange is one changed setting. An empty value means that the setting is missing.
type SettingChange struct {
	Name   string `json:"name" example:"sign_in.issuer"`
	Before string `json:"before,omitempty"`
	Now    string `json:"now,omitempty"`
	Secret bool   `json:"secret,omitempty" doc:"the values are secret and not recorded"`
}

// String returns the change in a few words.
func (c SettingChange) String() string {
	switch {
	case c.Secret:
		return c.Name + " changed"
	case c.Now == "":
		return c.Name + " removed, was " + c.Before
	case c.Before == "":
		return c.Name + " set to " + c.Now
	}
	return c.Name + " changed from " + c.Before + " to " + c.Now
}

// AuditEntry is one line of an organization's audit log. Lines are only ever added. The hash of a
// line covers the hash of the line before it, so a line that was changed, removed or inserted later
// is detected.
type AuditEntry struct {
	Seq        int64       `json:"seq" doc:"counts from 1 within the organization, without gaps"`
	At         time.Time   `json:"at"`
	Action     AuditAction `json:"action" example:"snapshot.shared"`
	Actor      string      `json:"actor" doc:"e-mail of the actor; empty unless a person acted"`
	ActorOrg   string      `json:"actor_organization" doc:"slug of the actor's organization; empty for the operator"`
	Credential string      `json:"credential" doc:"kind and name; empty for the operator"`
	Address    string      `json:"address" doc:"network address that the request came from"`
	RequestID  string      `json:"request_id"`
	Snapshot   string      `json:"snapshot,omitempty" doc:"public ID of the snapshot that the line is about"`
	Detail     AuditDetail `json:"detail"`
	Hash       string      `json:"hash" doc:"SHA-256 of the previous hash and this line, hexadecimal"`
}

// Sum returns the hash of the entry when prev is the hash of the entry before it (empty for the
// first): SHA-256 of prev, a line feed, and the entry's JSON with an empty hash.
func (e AuditEntry) Sum(prev string) string {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // cannot happen: strings, numbers and times always encode
	}
	return AuditHash(prev, string(text))
}

// AuditHash returns the hash of a line when prev is the hash of the line before it. line is its
// JSON with an empty hash.
func AuditHash(prev, line string) string {
	sum := sha256.Sum256([]byte(prev + "\n" + line))
	return hex.EncodeToString(sum[:])
}

// AuditChain checks an organization's log, entry by entry from the first one. The zero value is
// ready to check the first entry.
type AuditChain struct {
	seq  int64
	hash string
}

// Skip continues the check after the entry with this number and hash, without checking that entry.
func (c *AuditChain) Skip(seq int64, hash string) { c.seq, c.hash = seq, hash }

// Next checks the next entry. It fails with code conflict when the entry's number or hash does not
// follow from the previous entry.
func (c *AuditChain) Next(e AuditEntry) error {
	switch {
	case e.Seq != c.seq+1:
		return &Error{Code: CodeConflict,
			Detail: fmt.Sprintf("the audit log has entry %d after entry %d", e.Seq, c.seq),
			Hint:   "entries were removed or added; compare with a backup"}
	case e.Hash != e.Sum(c.hash):
		return &Error{Code: CodeConflict,
			Detail: fmt.Sprintf("entry %d of the audit log does not match its hash", e.Seq),
			Hint:   "it or an earlier entry was changed; compare with a backup"}
	}
	c.seq, c.hash = e.Seq, e.Hash
	return nil
}

// Origin describes, for the audit log, where a request came from.
type Origin struct {
	Address   string
	RequestID string
	Caller    Caller // the authenticated caller, or the actor that [ActingAs] set; zero if there is none
}

type originKey struct{}

// WithOrigin returns a context that carries the origin of a request.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin that ctx carries, or the zero Origin outside a request.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
