package look

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/api"
)

// Hidden is a hidden field of a form.
type Hidden struct{ Name, Value string }

// Fields returns hidden fields. pairs holds names and values in turn.
func Fields(pairs ...string) (all []Hidden) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, Hidden{pairs[i], pairs[i+1]})
	}
	return all
}

// ShareBox is the data of the part "share-box", in which a user sees and changes the shares of a
// cloud snapshot (SPEC 4.6). Its template is parts/share.html. A program sets the fields up to
// Sequential and calls [ShareBox.Load], which sets the others.
//
// The box has these forms, with these fields:
//
//	share                  shared: true or false
//	groups                 grant or revoke: ID of a group
//	organizations          slug; schema, if the organization sees the tables and columns
//	organizations/revoke   slug; do: revoke
//	sharing (by GET)       group: words to find groups by; user: e-mail of a person
//
// The first three forms also have the fields expires and date; see [EndOf].
type ShareBox struct {
	Snapshot api.Snapshot
	Can      api.Can
	Org      string // name of the caller's organization
	Policy   api.Policy
	At       func(form string) string // path to which a form is sent
	Hidden   []Hidden                 // further fields of the forms that change something
	Search   string                   // words to find groups by
	Asked    string                   // e-mail of a person whose access is to be explained
	Typed    string                   // slug of an organization, if the share with it failed
	Problem  *snap.Error              // why that share failed
	Now      time.Time

	Sequential bool // Load sends one request after the other

	Shared   []GroupChoice // groups that the snapshot is shared with
	Others   []GroupChoice // matching groups, at most GroupsShown
	More     int           // number of further matching groups
	Total    int           // number of groups in the organization
	Orgs     []api.OrgShare
	Known    []string           // slugs of the organizations that this one has shared with before
	Members  []api.Member       // of the organization; nil unless the caller may list who can see the snapshot
	Audience *Audience          // people and keys that can see it; nil unless the caller may list them
	Verdict  *api.AccessVerdict // explains the access of the person in Asked; nil for none
	Unknown  bool               // nobody in the organization has the e-mail in Asked
	Adds     *api.Newcomers     // users whom an org-wide share would add; nil if not queried
}

// ShareSource provides the data of a share box. An [api.Client] implements it.
type ShareSource interface {
	Groups(ctx context.Context) ([]api.Group, error)
	GroupShares(ctx context.Context, id string) ([]api.GroupShare, error)
	OrgShares(ctx context.Context, id string) ([]api.OrgShare, error)
	SharedWith(ctx context.Context) ([]string, error)
	Members(ctx context.Context) ([]api.Member, error)
	Access(ctx context.Context, id, email string) (api.Access, error)
	Newcomers(ctx context.Context, id, groupID string) (api.Newcomers, error)
}

// GroupChoice is a group in the share box. On is set if the snapshot is shared with it.
type GroupChoice struct {
	api.Group
	On        bool
	Expires   *time.Time // of the share; nil means never
	ByChannel bool       // a channel made the share
	Refused   bool       // the policy forbids a share
}

// GroupsShown is the maximum number of other groups in a share box; its search finds the rest.
const GroupsShown = 40

// Load fetches the contents of the box, with concurrent requests unless Sequential is set.
func (b *ShareBox) Load(ctx context.Context, from ShareSource) error {
	id := b.Snapshot.ID
	var groups []api.Group
	var shares []api.GroupShare
	var access api.Access
	g, ctx := errgroup.WithContext(ctx)
	if b.Sequential {
		g.SetLimit(1)
	}
	load := func(wanted bool, ask func() error) {
		if wanted && !b.Snapshot.Received {
			g.Go(ask)
		}
	}
	load(true, func() (err error) { shares, err = from.GroupShares(ctx, id); return err })
	load(b.Can.Share, func() (err error) { groups, err = from.Groups(ctx); return err })
	load(b.Can.ShareOrg, func() (err error) { b.Orgs, err = from.OrgShares(ctx, id); return err })
	load(b.Can.ShareOrg, func() (err error) { b.Known, err = from.SharedWith(ctx); return err })
	load(b.Can.Explain, func() (err error) { b.Members, err = from.Members(ctx); return err })
	load(b.Can.Explain, func() (err error) { access, err = b.explain(ctx, from); return err })
	load(b.Can.Share && !b.Snapshot.Shared, func() error {
		adds, err := from.Newcomers(ctx, id, "")
		b.Adds = &adds
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	b.splitGroups(groups, shares)
	if b.Can.Explain && !b.Snapshot.Received {
		b.Audience, b.Verdict = AudienceOf(access, b.Snapshot.Organization, b.Org), access.User
		b.namePeople(shares)
	}
	return nil
}

// explain fetches who can see the snapshot, and explains the access of the person in Asked.
func (b *ShareBox) explain(ctx context.Context, from ShareSource) (api.Access, error) {
	access, err := from.Access(ctx, b.Snapshot.ID, b.Asked)
	if b.Asked != "" && snap.CodeOf(err) == snap.CodeNotFound {
		b.Unknown = true
		return from.Access(ctx, b.Snapshot.ID, "")
	}
	return access, err
}

// splitGroups splits the groups into those that the snapshot is shared with and the others that
// match the search.
func (b *ShareBox) splitGroups(groups []api.Group, shares []api.GroupShare) {
	b.Total = len(groups)
	on := map[string]int{}
	for i, share := range shares {
		on[share.GroupID] = i
		b.Shared = append(b.Shared, GroupChoice{Group: api.Group{GroupID: share.GroupID, Name: share.Name}, On: true,
			Expires: share.ExpiresAt, ByChannel: share.Channel != ""})
	}
	for _, g := range groups {
		i, shared := on[g.GroupID]
		switch {
		case shared:
			b.Shared[i].Group = g
		case !strings.Contains(strings.ToLower(g.Name+" "+g.GroupID), strings.ToLower(b.Search)):
		case len(b.Others) == GroupsShown:
			b.More++
		default:
			b.Others = append(b.Others, GroupChoice{Group: g, Refused: b.refusesEvery()})
		}
	}
}

// refusesEvery reports whether the policy forbids every share of the snapshot, even with a group.
func (b *ShareBox) refusesEvery() bool {
	return b.Policy.UnsanitizedShares == snap.UnsanitizedRefuse && !b.Sanitized() ||
		lacksCertificate(b.Policy, b.Snapshot)
}

// namePeople names the people and the group behind each grant.
func (b *ShareBox) namePeople(shares []api.GroupShare) {
	names := map[string]string{}
	for _, share := range shares {
		names[share.GroupID] = share.Name
	}
	for i := range b.Audience.Ways {
		w := &b.Audience.Ways[i]
		w.Group = names[w.GroupID]
		var people []string
		for _, m := range b.Members {
			if w.Kind == "org_wide" || w.Kind == "admins" && m.Role.IsAdmin() ||
				w.Kind == "group" && m.InGroup(w.GroupID, w.Group) {
				people = append(people, m.Email)
			}
		}
		w.Name(people)
	}
}

// FormPath returns the path to which a form is sent.
func (b *ShareBox) FormPath(form string) string {
	if b.At == nil {
		return ""
	}
	return b.At(form)
}

// Sanitized reports whether the data is masked.
func (b *ShareBox) Sanitized() bool { return b.Snapshot.Type == snap.TypeSanitized }

// Refusal returns why the policy forbids sharing the snapshot org-wide and with other
// organizations. It is empty if the policy allows that.
func (b *ShareBox) Refusal() string { return ShareRefusal(b.Policy, b.Snapshot) }

// EndsInside returns the choices for how long a new share with groups or the whole organization
// lasts.
func (b *ShareBox) EndsInside() []Choice { return Ends() }

// EndsOutside returns the choices for when a new share with another organization ends.
func (b *ShareBox) EndsOutside() []Choice { return EndsOutside(b.longest()) }

// Limit returns the maximum lifetime of a share with another organization in words, or "".
func (b *ShareBox) Limit() string {
	if b.longest() == 0 {
		return ""
	}
	return snap.Span(b.longest())
}

func (b *ShareBox) longest() time.Duration {
	return time.Duration(b.Policy.MaxCrossOrgExpiry) * time.Second
}

// Suggested returns the members whom the box suggests when it asks for a person.
func (b *ShareBox) Suggested() []api.Member { return b.Members[:min(len(b.Members), membersSuggested)] }

// membersSuggested is the maximum number of suggested members. The e-mail addresses of other
// members can be typed.
const membersSuggested = 100

// ShareEnd is the data of the parts "share-end" and "share-date": the end of an existing share,
// which can be changed in place, or the end of a new share.
type ShareEnd struct {
	Box     *ShareBox
	ID      string // distinguishes the IDs of this form's fields on the page
	Form    string // see [ShareBox]
	Name    string // of the field that names the recipient
	Value   string
	With    string // display name of the recipient
	Expires *time.Time
	Outside bool // the share is with another organization
	Schema  bool // that organization sees the tables and columns
	Group   GroupChoice
}

// WideEnd returns the form for the end of the org-wide share.
func (b *ShareBox) WideEnd() ShareEnd {
	return ShareEnd{Box: b, ID: "wide", Form: "share", Name: "shared", Value: "true", With: "everyone in " + b.Org,
		Expires: b.Snapshot.ExpiresAt}
}

// GroupEnd returns the form for the end of a share with a group.
func (b *ShareBox) GroupEnd(c GroupChoice) ShareEnd {
	return ShareEnd{Box: b, ID: "g-" + c.GroupID, Form: "groups", Name: "grant", Value: c.GroupID, With: c.Name,
		Expires: c.Expires, Group: c}
}

// OrgEnd returns the form for the end of a share with an organization.
func (b *ShareBox) OrgEnd(o api.OrgShare) ShareEnd {
	return ShareEnd{Box: b, ID: "o-" + o.OrgSlug, Form: "organizations", Name: "slug", Value: o.OrgSlug,
		With: o.OrgSlug, Expires: o.ExpiresAt, Outside: true, Schema: o.WithSchema}
}

// NewEnd returns the fields for the end of a new share.
func (b *ShareBox) NewEnd(id string, outside bool) ShareEnd {
	return ShareEnd{Box: b, ID: id, Outside: outside}
}

// Choices returns the choices for when the share ends. For an existing share with an end, the first
// choice keeps that end.
func (e ShareEnd) Choices() []Choice {
	all := Ends()
	if e.Outside {
		all = e.Box.EndsOutside()
	}
	if e.Expires == nil {
		return all
	}
	now := Choice{e.Expires.UTC().Format(time.RFC3339Nano), "until " + Exact(e.Expires.UTC()) + " (unchanged)"}
	return append([]Choice{now}, all...)
}

// Earliest returns the first moment at which the share can end, in the format of an input field.
func (e ShareEnd) Earliest() string { return e.Box.Now.UTC().Format(minutes) }

// Latest returns the last moment at which the share can end, in the format of an input field. It
// returns "" if there is no limit.
func (e ShareEnd) Latest() string {
	if longest := e.Box.longest(); e.Outside && longest > 0 {
		return e.Box.Now.Add(longest).UTC().Format(minutes)
	}
	return ""
}

// Moment returns when the share ends, in the format of an input field. It returns "" if the policy
// no longer allows that time, because browsers do not submit a form whose field has a forbidden
// value.
func (e ShareEnd) Moment() string {
	if e.Expires == nil || e.Latest() != "" && e.Expires.UTC().Format(minutes) >= e.Latest() {
		return ""
	}
	return e.Expires.UTC().Format(seconds)
}

// Change announces that shares changed, with the form that undoes the change. It is the data of the
// part "change". The zero value announces nothing.
type Change struct {
	Text    string
	Warning string   // why the change may be a mistake, for example because the data is not masked
	Action  string   // path of the form that undoes the change
	Fields  []Hidden // of that form; none if the change cannot be undone
	Dialog  bool     // the change was made in a dialog
	Refresh bool     // the list has changed
}
