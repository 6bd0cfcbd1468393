package cloud

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/store"
)

// Replayed lists the rights that [ReplayRevocations] ended.
type Replayed struct {
	Lines  int      `json:"lines"` // exported lines that follow the end of the database's log
	Shares []string `json:"shares"`
	Users  []string `json:"users"`
	Keys   []string `json:"keys"`
}

// ReplayRevocations repeats revocations in a restored database. It ends everything that, according
// to an export of the audit log, ended after the restored moment: keys, the access of users who
// were disabled or left, and shares, including those of deleted snapshots. It never gives access.
// It calls [store.Store.DoubtRefresh], because identity providers may have replaced refresh tokens
// since that moment. It fails with code conflict, and changes nothing, unless the exported lines
// continue the organization's log.
func ReplayRevocations(ctx context.Context, st *store.Store, org snap.OrgRef, lines io.Reader) (Replayed, error) {
	caller, err := st.CallerOfOrg(ctx, org.ID)
	if err != nil {
		return Replayed{}, err
	}
	page, err := st.Audit(ctx, caller, store.AuditQuery{Limit: 1})
	if err != nil {
		return Replayed{}, err
	}
	r := &replay{st: st, caller: caller, shares: map[string]map[string]bool{}, users: map[int64]bool{},
		keys: map[int64]bool{}, out: Replayed{Shares: []string{}, Users: []string{}, Keys: []string{}}}
	if len(page.Items) > 0 {
		r.end, r.hash = page.Items[0].Seq, page.Items[0].Hash
		r.chain.Skip(r.end, r.hash)
	}
	if err := r.read(lines); err != nil {
		return Replayed{}, err
	}
	return r.out, r.apply(store.AllowReserve(ctx))
}

// replay is one run of [ReplayRevocations]. Its maps hold the last known states: true means ended.
type replay struct {
	st     *store.Store
	caller snap.Caller
	end    int64  // number of the newest line in the database
	hash   string // of that line
	chain  snap.AuditChain

	shares      map[string]map[string]bool // by snapshot and share
	users, keys map[int64]bool
	out         Replayed
}

func (r *replay) read(lines io.Reader) error {
	empty, continues := true, r.end == 0
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		empty = false
		var e snap.AuditEntry
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			return snap.Usage("a line of the export is not a line of an audit log",
				"use the output of `snapcli cloud audit export`")
		}
		line := fmt.Sprintf("line %d of the export", e.Seq)
		switch {
		case e.Seq < r.end:
			continue
		case e.Seq == r.end && e.Hash != r.hash:
			return r.refusal(line, nil)
		case e.Seq > r.end:
			if err := r.chain.Next(e); err != nil {
				return r.refusal(line, err)
			}
			r.out.Lines++
			r.note(e)
		}
		continues = true
	}
	if err := scanner.Err(); err != nil || continues || empty {
		return err
	}
	return r.refusal("the export", nil)
}

// refusal returns the error for an export, or a line of it, that does not continue the log.
func (r *replay) refusal(what string, cause error) error {
	return &snap.Error{Code: snap.CodeConflict, Cause: cause,
		Detail: fmt.Sprintf("%s does not continue the log, which ends with line %d", what, r.end),
		Hint:   "export all lines of this organization, and replay before the restored service starts"}
}

// note remembers the last state of the subject of a line.
func (r *replay) note(e snap.AuditEntry) {
	switch e.Action {
	case snap.AuditShared, snap.AuditUnshared, snap.AuditDeclined:
		if r.shares[e.Snapshot] == nil {
			r.shares[e.Snapshot] = map[string]bool{}
		}
		r.shares[e.Snapshot][shareName(e.Detail)] = e.Action != snap.AuditShared
	case snap.AuditDeleted:
		r.shares[e.Snapshot] = map[string]bool{everyShare: true}
	case snap.AuditUserChanged:
		r.users[e.Detail.Account] = e.Detail.Disabled
	case snap.AuditUserLeft:
		r.users[e.Detail.Account] = true
	case snap.AuditKeyRevoked:
		r.keys[e.Detail.Key] = true
	}
}

// Names of shares. The last two are followed by a group's ID or an organization's slug.
const (
	everyShare = "all"
	orgWide    = "org-wide"
	withGroup  = "group "
	withOrg    = "organization "
)

func shareName(d snap.AuditDetail) string {
	switch {
	case d.Group != "":
		return withGroup + d.Group
	case d.Organization != "":
		return withOrg + d.Organization
	}
	return orgWide
}

func (r *replay) apply(ctx context.Context) error {
	if err := r.st.DoubtRefresh(ctx); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.shares)) {
		sn, err := r.st.Snapshot(ctx, r.caller, id)
		if errors.Is(err, snap.ErrNotFound) || err == nil && sn.Org.ID != r.caller.Org.ID {
			continue
		}
		if err == nil {
			err = r.unshare(ctx, sn)
		}
		if err != nil {
			return err
		}
	}
	members, err := r.st.Members(ctx, r.caller)
	if err != nil {
		return err
	}
	for _, m := range members {
		if !r.users[m.ID] || m.Disabled {
			continue
		}
		if err := r.st.SetDisabled(ctx, m.ID, true); err != nil {
			return err
		}
		r.out.Users = append(r.out.Users, m.Email)
	}
	for _, id := range slices.Sorted(maps.Keys(r.keys)) {
		err := r.st.RevokeOrgKey(ctx, r.caller.Org.ID, id)
		if errors.Is(err, snap.ErrNotFound) {
			continue // made after the restored moment, or revoked before
		}
		if err != nil {
			return err
		}
		r.out.Keys = append(r.out.Keys, strconv.FormatInt(id, 10))
	}
	return nil
}

// unshare ends the shares of a snapshot that the log shows as ended.
func (r *replay) unshare(ctx context.Context, sn snap.Snapshot) error {
	ended := r.shares[sn.ID]
	if ended[everyShare] {
		groups, err := r.st.GroupShares(ctx, r.caller, sn)
		if err != nil {
			return err
		}
		orgs, err := r.st.OrgShares(ctx, r.caller, sn)
		if err != nil {
			return err
		}
		ended = map[string]bool{orgWide: true}
		for _, g := range groups {
			ended[withGroup+g.Group.GroupID] = true
		}
		for _, o := range orgs {
			ended[withOrg+o.Org.Slug] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ended)) {
		if !ended[name] {
			continue
		}
		changes, err := r.st.UnshareFrom(ctx, r.caller, sn, sharesNamed(name))
		if code := snap.CodeOf(err); code == snap.CodeGroupNotFound || code == snap.CodeOrganizationNotFound {
			continue // it did not exist at the restored moment
		}
		if err != nil {
			return err
		}
		for _, c := range changes {
			if c.Changed {
				r.out.Shares = append(r.out.Shares, sn.ID+" "+name)
			}
		}
	}
	return nil
}

func sharesNamed(name string) snap.Shares {
	if group, found := strings.CutPrefix(name, withGroup); found {
		return snap.Shares{Groups: []string{group}}
	}
	if slug, found := strings.CutPrefix(name, withOrg); found {
		return snap.Shares{Orgs: []string{slug}}
	}
	return snap.Shares{OrgWide: true}
}
