package snap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Action is something that a caller wants to do with a snapshot they may see, or with their
// organization.
type Action string

// The actions. Call [Allowed] for an action on a snapshot only if [Visible] is true.
const (
	ActView             Action = "view"              // read its record
	ActPull             Action = "pull"              // download it
	ActPush             Action = "push"              // push a new one
	ActDelete           Action = "delete"            // delete it
	ActDescribe         Action = "describe"          // write its description and labels
	ActShare            Action = "share"             // change its org-wide or group shares
	ActListGroupShares  Action = "list_group_shares" // list its group shares
	ActShareOrg         Action = "share_org"         // list or change its cross-org shares
	ActDecline          Action = "decline"           // decline a snapshot that another organization shared
	ActExplain          Action = "explain"           // ask who can see it, and why
	ActReadOrganization Action = "read_organization" // list the organization's groups, members and certificate keys
	ActAdminister       Action = "administer"        // audit log, others' keys, channels, retention, webhooks
)

// Allowed decides what a caller may do with a snapshot they can see. It returns nil, or a refusal
// with the code user_attribution_required or forbidden. For a change to a snapshot or its shares,
// the kind of key is checked before the role, so that a pipeline is advised to use another kind of
// key rather than to become an admin.
//
// For an action that does not concern one snapshot, s is the zero Snapshot.
//
// Sources: SPEC 4.2, 5.1, 5.3 and 7.
func Allowed(c Caller, do Action, s Snapshot) error {
	return hintUnknownGroups(c, allowed(c, do, s))
}

// hintUnknownGroups extends the hint of a refusal with code forbidden: it says why the caller's
// groups are unknown and what to do, because the caller's role may depend on the groups. It returns
// other errors unchanged. If the groups are known, it returns every error unchanged.
func hintUnknownGroups(c Caller, refusal error) error {
	var e *Error
	if !c.GroupsUnknown || c.GroupsWhy == "" || !errors.As(refusal, &e) || e.Code != CodeForbidden {
		return refusal
	}
	more := *e
	more.Hint = strings.TrimPrefix(e.Hint+"; your groups are unknown: "+c.GroupsWhy, "; ")
	return &more
}

func allowed(c Caller, do Action, s Snapshot) error {
	if c.Credential.Kind.OrgLevel() {
		return allowedOrgKey(c, do, s)
	}
	own := s.Org.ID == c.Org.ID
	mine, admin := own && c.owns(s), own && c.Role.IsAdmin()
	ok := false
	switch do {
	case ActView, ActPull, ActReadOrganization:
		ok = true
	case ActPush:
		ok = c.Role != RoleViewer
	case ActDelete, ActShareOrg:
		ok = admin
	case ActShare, ActDescribe:
		ok = admin || mine && c.Role != RoleViewer
	case ActListGroupShares:
		ok = own
	case ActExplain:
		ok = admin || mine
	case ActDecline:
		ok = !own && c.Role.IsAdmin()
	case ActAdminister:
		ok = c.Role.IsAdmin()
	}
	if ok {
		return nil
	}
	if detail := refusalsOfViewers()[do]; mine && detail != "" {
		return Forbidden(detail, askForMember)
	}
	return refusal(do, own)
}

// refusalsOfViewers says why a viewer who owns a snapshot may not do something with it.
func refusalsOfViewers() map[Action]string {
	return map[Action]string{
		ActShare:    "viewers cannot share snapshots, even their own",
		ActDescribe: "viewers cannot edit descriptions, even of their own snapshots",
	}
}

// allowedOrgKey is Allowed for clt_ and sak_ keys. These keys act as the organization, within their
// scopes. They never change a share and never delete a snapshot.
func allowedOrgKey(c Caller, do Action, s Snapshot) error {
	switch do {
	case ActShare, ActShareOrg, ActDelete, ActDecline, ActDescribe:
		return &Error{
			Code:   CodeUserAttributionRequired,
			Detail: "this action needs a user; an organization-level key (clt_, sak_) does not act as one",
			Hint:   "sign in with `snapcli login`, or use a user-scoped key (cak_)",
		}
	case ActView, ActPull, ActReadOrganization:
		return requireScope(c, ScopePull)
	case ActListGroupShares:
		if s.Org.ID != c.Org.ID {
			return refusal(do, false)
		}
		return requireScope(c, ScopePull)
	case ActPush:
		return requireScope(c, ScopePush)
	}
	return refusal(do, true)
}

func requireScope(c Caller, want Scope) error {
	if slices.Contains(c.Credential.Scopes, want) {
		return nil
	}
	return Forbidden("this key does not have the scope "+string(want),
		fmt.Sprintf("create one that has it: `snapcli cloud keys create NAME --kind %s --scopes %s`",
			c.Credential.Kind, want))
}

func (c Caller) owns(s Snapshot) bool {
	return c.User != nil && s.Owner != nil && s.Owner.ID == c.User.ID
}

const askForMember = "ask an owner or admin of your organization for the member role"

func refusal(do Action, own bool) error {
	if do == ActDecline && own {
		return Forbidden("this snapshot belongs to your own organization; you can decline only snapshots that "+
			"another organization shared", "")
	}
	if !own && do != ActDecline && do != ActPush && do != ActAdminister {
		return Forbidden("this snapshot belongs to another organization, which shared it with yours read-only",
			"you can pull it; ask the owning organization for anything else")
	}
	switch do {
	case ActPush:
		return Forbidden("viewers cannot push snapshots", askForMember)
	case ActShare:
		return Forbidden("only the snapshot's owner and the organization's owners and admins may change its shares",
			"ask one of them")
	case ActDescribe:
		return Forbidden("only the snapshot's owner and the organization's owners and admins may edit its description",
			"ask one of them")
	case ActExplain:
		return Forbidden("only the snapshot's owner and the organization's owners and admins may ask who can see it",
			"ask one of them")
	}
	return Forbidden("this requires the owner or admin role in the organization",
		"ask an owner or admin of your organization")
}
