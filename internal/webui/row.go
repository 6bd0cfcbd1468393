package webui

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"time"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/local"
	"snap/internal/look"
)

// row is one snapshot in the list: local, in the cloud, or both.
type row struct {
	Local *local.Snapshot
	Cloud *api.Snapshot
	Me    api.Me // the caller in the cloud; zero if unknown
	Back  string // the page to return to after a change without JavaScript
	First bool   // the first row of its target in a list grouped by target
	// Revision is set for a row that is sent alone. In a listing, the listing's revision applies.
	Revision string
}

// Place returns the badge for where the snapshot is (SPEC 4.6).
func (r row) Place() string {
	switch {
	case r.Cloud == nil:
		return "local"
	case r.Local == nil:
		return "cloud"
	}
	return "synced"
}

// ID identifies the row within the page.
func (r row) ID() string {
	if r.Cloud != nil {
		return r.Cloud.ID
	}
	sum := sha256.Sum256([]byte(r.Local.Name))
	return "local-" + hex.EncodeToString(sum[:8])
}

// either returns the cloud copy, or the corresponding fields of the local one.
func (r row) either() api.Snapshot {
	if r.Cloud != nil {
		return *r.Cloud
	}
	l := r.Local
	return api.Snapshot{Name: l.Name, Target: l.Target, Type: l.Type, Engine: l.Engine, Size: l.Size,
		SHA256: l.SHA256, Created: l.Created}
}

// Name and the following methods use the cloud copy, or else the local one.
func (r row) Name() string        { return r.either().Name }
func (r row) Target() string      { return r.either().Target }
func (r row) Type() snap.Type     { return r.either().Type }
func (r row) Engine() snap.Engine { return r.either().Engine }
func (r row) Size() int64         { return r.either().Size }

// Created returns when the snapshot was pushed, or else built.
func (r row) Created() time.Time { return r.either().Created }

// Encrypted returns the number of recipients that the local copy is encrypted to.
func (r row) Encrypted() int {
	if r.Local == nil {
		return 0
	}
	return r.Local.Encrypted
}

// Seal describes the encryption of the local copy.
func (r row) Seal() string { return encryptedTo(r.Encrypted()) }

// Subset returns a label if the local copy is a subset, or "".
func (r row) Subset() string { return subsetOf(r.Local != nil && r.Local.Subset != nil) }

// From describes where the local copy came from. It is empty for a snapshot that was built here.
func (r row) From() string {
	if r.Local == nil || r.Local.From.Origin == local.Mine {
		return ""
	}
	return r.Local.From.String()
}

// Sanitized reports whether the data is masked.
func (r row) Sanitized() bool { return r.Type() == snap.TypeSanitized }

// Owner returns the owner's name: a user or an organization. It is empty for local snapshots.
func (r row) Owner() string {
	switch {
	case r.Cloud == nil:
		return ""
	case r.Cloud.Received:
		return r.Cloud.Organization
	case r.Cloud.Owner == "":
		return ownerKey
	case r.Cloud.Owner == r.Me.Email:
		return "you"
	}
	return r.Cloud.Owner
}

// Certificate describes the certificate of the cloud copy. Only a row that was requested alone has
// it.
func (r row) Certificate() string { return card.Certificate(r.either()) }

// MayShare reports whether this caller can use the Sharing control.
func (r row) MayShare() bool { return r.Cloud != nil && may(r.Me, snap.ActShare, *r.Cloud) }

// MustAsk reports whether the organization's policy requires confirmation before original data is
// shared with the whole organization.
func (r row) MustAsk() bool {
	return r.MayShare() && !r.Cloud.Shared && !r.Sanitized() && r.Me.Policy.UnsanitizedShares == snap.UnsanitizedAsk &&
		r.Refusal() == ""
}

// Refusal returns why the organization's policy forbids sharing the snapshot org-wide and with
// other organizations. It is empty if the policy allows it.
func (r row) Refusal() string { return look.ShareRefusal(r.Me.Policy, r.either()) }

// MayDelete reports whether this caller can delete the cloud copy.
func (r row) MayDelete() bool { return r.Cloud != nil && may(r.Me, snap.ActDelete, *r.Cloud) }

// MayDecline reports whether this caller received the snapshot and can decline it.
func (r row) MayDecline() bool {
	return r.Cloud != nil && r.Cloud.Received && may(r.Me, snap.ActDecline, *r.Cloud)
}

// MayPush reports whether this caller can push the local snapshot.
func (r row) MayPush() bool {
	return r.Cloud == nil && r.Me.Organization != "" && may(r.Me, snap.ActPush, api.Snapshot{})
}

// Changed describes how much of the local copy is new. It is empty if that is not known.
func (r row) Changed() string {
	if r.Local == nil || r.Local.New == nil {
		return ""
	}
	return changedText(*r.Local.New)
}

// Pick returns the value that names the snapshot in the form for actions on several snapshots.
func (r row) Pick() string {
	var p pick
	if r.Cloud != nil {
		p.ID = r.Cloud.ID
	}
	if r.Local != nil {
		p.Name = r.Local.Name
	}
	return p.encode()
}

// OfTarget returns the address of the list of the target's snapshots.
func (r row) OfTarget() string { return query{Show: showAll, Target: r.Target()}.URL() }

// Page returns the path of the snapshot's page.
func (r row) Page() string {
	if r.Cloud != nil {
		return "/cloud/" + url.PathEscape(r.Cloud.ID)
	}
	return "/local/" + url.PathEscape(r.Local.Name)
}

// NextEnd returns when the next share of the cloud copy ends, or nil.
func (r row) NextEnd() *time.Time { return nextEnd(*r.Cloud) }

// Rules returns the path of the review of its target's rules.
func (r row) Rules() string { return rulesPath(r.Target()) }

// Action returns the path of an action on the cloud copy.
func (r row) Action(what string) string { return "/cloud/" + url.PathEscape(r.Cloud.ID) + "/" + what }

// LocalAction returns the path of an action on the local copy.
func (r row) LocalAction(what string) string {
	return "/local/" + url.PathEscape(r.Local.Name) + "/" + what
}
