package store

import (
	"context"
	"errors"
	"time"

	"snap"
)

var errNotYet = errors.New("store: not written yet")

// Org is an organization with the limits its configuration sets.
type Org struct {
	snap.OrgRef
	Policy snap.Policy
}

// SignIn is what an identity provider said about a user at a sign-in.
type SignIn struct {
	OrgID                        int64
	Issuer, Subject, Email, Name string
	Role                         snap.Role
	Groups                       []snap.Group // GroupID and Name
	GroupsUnknown                bool         // no usable groups claim
}

// GroupCount is an SSO group and how many users were in it at their last sign-in.
type GroupCount struct {
	snap.Group
	Members int
}

// Query chooses and orders a page of a listing.
type Query struct {
	Filter      snap.Filter
	Target      string
	Type        snap.Type
	Q, IDPrefix string
	Limit       int
	Cursor      string
}

// Page is one page of a listing; Next is the cursor of the following page, "" at the end.
type Page struct {
	Items []snap.Snapshot
	Next  string
}

// Upload is a push that has begun and is not complete.
type Upload struct {
	ID, Target, Name         string
	Type                     snap.Type
	Engine                   snap.Engine
	Size                     int64
	SHA256, Blob, BlobUpload string
	PartSize                 int64
	Created, Touched         time.Time
}

func (s *Store) ApplyOrg(ctx context.Context, slug, name string, p snap.Policy) (snap.OrgRef, error) {
	return snap.OrgRef{}, errNotYet
}
func (s *Store) OrgBySlug(ctx context.Context, slug string) (Org, error) { return Org{}, errNotYet }
func (s *Store) Org(ctx context.Context, id int64) (Org, error)          { return Org{}, errNotYet }
func (s *Store) Orgs(ctx context.Context) ([]Org, error)                 { return nil, errNotYet }
func (s *Store) ApplySignIn(ctx context.Context, in SignIn) (userID int64, err error) {
	return 0, errNotYet
}
func (s *Store) UserByEmail(ctx context.Context, orgID int64, email string) (snap.Member, error) {
	return snap.Member{}, errNotYet
}
func (s *Store) SetRole(ctx context.Context, userID int64, r snap.Role) error { return errNotYet }
func (s *Store) SetDisabled(ctx context.Context, userID int64, disabled bool) error {
	return errNotYet
}
func (s *Store) CallerOfUser(ctx context.Context, userID int64) (snap.Caller, error) {
	return snap.Caller{}, errNotYet
}
func (s *Store) CallerOfOrg(ctx context.Context, orgID int64) (snap.Caller, error) {
	return snap.Caller{}, errNotYet
}
func (s *Store) Groups(ctx context.Context, c snap.Caller) ([]GroupCount, error) {
	return nil, errNotYet
}
func (s *Store) Members(ctx context.Context, c snap.Caller) ([]snap.Member, error) {
	return nil, errNotYet
}
func (s *Store) Snapshots(ctx context.Context, c snap.Caller, q Query) (Page, error) {
	return Page{}, errNotYet
}
func (s *Store) Snapshot(ctx context.Context, c snap.Caller, id string) (snap.Snapshot, error) {
	return snap.Snapshot{}, errNotYet
}
func (s *Store) Object(ctx context.Context, c snap.Caller, id string) (sn snap.Snapshot, blobKey string, err error) {
	return snap.Snapshot{}, "", errNotYet
}
func (s *Store) Share(ctx context.Context, c snap.Caller, sn snap.Snapshot) error   { return errNotYet }
func (s *Store) Unshare(ctx context.Context, c snap.Caller, sn snap.Snapshot) error { return errNotYet }
func (s *Store) ShareGroup(ctx context.Context, c snap.Caller, sn snap.Snapshot, groupID string) (snap.GroupShare, error) {
	return snap.GroupShare{}, errNotYet
}
func (s *Store) UnshareGroup(ctx context.Context, c snap.Caller, sn snap.Snapshot, groupID string) error {
	return errNotYet
}
func (s *Store) GroupShares(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.GroupShare, error) {
	return nil, errNotYet
}
func (s *Store) ShareOrg(ctx context.Context, c snap.Caller, sn snap.Snapshot, slug string, expires time.Time) (share snap.OrgShare, previous *snap.OrgShare, err error) {
	return snap.OrgShare{}, nil, errNotYet
}
func (s *Store) UnshareOrg(ctx context.Context, c snap.Caller, sn snap.Snapshot, slug string) error {
	return errNotYet
}
func (s *Store) OrgShares(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.OrgShare, error) {
	return nil, errNotYet
}
func (s *Store) Delete(ctx context.Context, c snap.Caller, sn snap.Snapshot) (blobKey string, err error) {
	return "", errNotYet
}
func (s *Store) BeginUpload(ctx context.Context, c snap.Caller, u Upload) error { return errNotYet }
func (s *Store) FindPush(ctx context.Context, c snap.Caller, u Upload) (done *snap.Snapshot, begun *Upload, err error) {
	return nil, nil, errNotYet
}
func (s *Store) Upload(ctx context.Context, c snap.Caller, id string) (Upload, error) {
	return Upload{}, errNotYet
}
func (s *Store) CompleteUpload(ctx context.Context, c snap.Caller, u Upload) (snap.Snapshot, error) {
	return snap.Snapshot{}, errNotYet
}
func (s *Store) StaleUploads(ctx context.Context, before time.Time, limit int) ([]Upload, error) {
	return nil, errNotYet
}
func (s *Store) DropUpload(ctx context.Context, id string) error { return errNotYet }
func (s *Store) Secret(ctx context.Context, name string, size int) ([]byte, error) {
	return nil, errNotYet
}
