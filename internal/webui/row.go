package webui

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"time"

	"snap"
	"snap/api"
	"snap/internal/local"
)

// row is one snapshot of the list: on this machine, in the cloud, or both.
type row struct {
	Local *local.Snapshot
	Cloud *api.Snapshot
	Me    api.Me // the caller in the cloud; zero when not known
	Back  string // the page to return to after a change without script
	// Revision is set for a row that is sent alone; in a listing the listing's holds.
	Revision string
}

// Place is the badge: where the snapshot is (SPEC 4.6).
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

// either is the cloud copy, or else what the local one has of it.
func (r row) either() api.Snapshot {
	if r.Cloud != nil {
		return *r.Cloud
	}
	l := r.Local
	return api.Snapshot{Name: l.Name, Target: l.Target, Type: l.Type, Engine: l.Engine, Size: l.Size,
		Created: l.Created}
}

// Name and the following are those of the cloud copy, or else the local one.
func (r row) Name() string        { return r.either().Name }
func (r row) Target() string      { return r.either().Target }
func (r row) Type() snap.Type     { return r.either().Type }
func (r row) Engine() snap.Engine { return r.either().Engine }
func (r row) Size() int64         { return r.either().Size }

// Created is when it was pushed, or else built.
func (r row) Created() time.Time { return r.either().Created }

// Encrypted is to how many recipients the copy on this machine is encrypted.
func (r row) Encrypted() int {
	if r.Local == nil {
		return 0
	}
	return r.Local.Encrypted
}

// Seal says so, for people.
func (r row) Seal() string { return encryptedTo(r.Encrypted()) }

// Subset says that the copy on this machine does not hold every row, if so.
func (r row) Subset() string { return subsetOf(r.Local != nil && r.Local.Subset != nil) }

// From says where the copy on this machine is from; nothing for one that was
// built here.
func (r row) From() string {
	if r.Local == nil || r.Local.From.Origin == local.Mine {
		return ""
	}
	return r.Local.From.String()
}

// Sanitized reports whether the data is masked.
func (r row) Sanitized() bool { return r.Type() == snap.TypeSanitized }

// Owner says whose it is: a person, an organization, or nobody for local ones.
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

// MayShare reports whether the Sharing control is a button for this caller.
func (r row) MayShare() bool { return r.Cloud != nil && may(r.Me, snap.ActShare, *r.Cloud) }

// MustAsk reports whether the Sharing control asks before it shares original
// data with the whole organization, as the organization's policy wants.
func (r row) MustAsk() bool {
	return r.MayShare() && !r.Cloud.Shared && !r.Sanitized() && r.Me.Policy.UnsanitizedShares == snap.UnsanitizedAsk
}

// Refusal says why the organization's policy forbids to share the snapshot
// org-wide and with other organizations; it is empty when the policy allows it.
func (r row) Refusal() string {
	types := r.Me.Policy.ShareTypes
	switch {
	case r.refusedUnmasked():
		return textUnmaskedRefused
	case len(types) > 0 && !slices.Contains(types, r.Type()):
		return textTypeRefused(r.Type())
	}
	return ""
}

// refusedUnmasked reports whether the policy forbids every share of the snapshot.
func (r row) refusedUnmasked() bool {
	return r.Me.Policy.UnsanitizedShares == snap.UnsanitizedRefuse && !r.Sanitized()
}

// MayDelete reports whether the cloud copy can be deleted by this caller.
func (r row) MayDelete() bool { return r.Cloud != nil && may(r.Me, snap.ActDelete, *r.Cloud) }

// MayDecline reports whether it was received, and this caller can send it back.
func (r row) MayDecline() bool {
	return r.Cloud != nil && r.Cloud.Received && may(r.Me, snap.ActDecline, *r.Cloud)
}

// MayPush reports whether this local snapshot can be pushed by this caller.
func (r row) MayPush() bool {
	return r.Cloud == nil && r.Me.Organization != "" && may(r.Me, snap.ActPush, api.Snapshot{})
}

// Action returns the path of something to do with the cloud copy.
func (r row) Action(what string) string { return "/cloud/" + url.PathEscape(r.Cloud.ID) + "/" + what }

// LocalAction is Action for the local copy.
func (r row) LocalAction(what string) string {
	return "/local/" + url.PathEscape(r.Local.Name) + "/" + what
}
