// Package peers compares the speed of the access rule with that of OpenFGA on the same data in one
// run. It is a module of its own, so that the product's go.mod does not mention OpenFGA:
//
//	go test -C tools/peers -bench . -benchtime 1x
//
// OpenFGA runs in this process over its in-memory store, without a database. Our store runs on
// SQLite with every write synced. OpenFGA cannot order or page by time, so a correct answer to "the
// newest 50" is its whole list, sorted here.
package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	fga "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"github.com/openfga/openfga/pkg/server"
	"github.com/openfga/openfga/pkg/storage/memory"

	"snap"
	"snap/internal/store"
)

const (
	snapshots = 5_000
	groups    = 200
)

const model = `model
  schema 1.1
type user
type group
  relations
    define member: [user]
type organization
  relations
    define admin: [user]
    define member: [user] or admin
type snapshot
  relations
    define organization: [organization]
    define owner: [user]
    define shared: [organization#member, group#member]
    define viewer: owner or shared or admin from organization
`

func BenchmarkPeers(b *testing.B) {
	p := newPair(b)
	defer p.fga.Close()
	fmt.Printf("\n%d snapshots, microseconds (times ours)%19s%24s%24s\n", snapshots, "ours", "OpenFGA",
		"OpenFGA, all sorted")
	for _, who := range []string{"admin", "none", "five"} {
		c := p.callers[who]
		ours := median(func() error { _, err := p.store.Snapshots(p.ctx, c, store.Query{}); return err }, b)
		first := median(func() error { _, err := p.list(p.short, who); return err }, b)
		all := median(func() error {
			ids, err := p.list(p.fga, who)
			slices.SortFunc(ids, func(x, y string) int { return cmp.Compare(p.keys[y], p.keys[x]) })
			return err
		}, b)
		fmt.Printf("%-39s%19.0f%14.0f (%7.1f)%14.0f (%7.1f)\n", "newest 50, "+label[who], ours, first, first/ours, all,
			all/ours)
	}
	for _, who := range []string{"admin", "five"} {
		c, i := p.callers[who], 0
		next := func() string { i = (i + 7919) % len(p.ids); return p.ids[i] }
		ours := median(func() error {
			_, err := p.store.Bytes(p.ctx, c, next())
			if errors.Is(err, snap.ErrNotFound) {
				return nil
			}
			return err
		}, b)
		theirs := median(func() error { _, err := p.check(who, next()); return err }, b)
		fmt.Printf("%-39s%19.0f%14.0f (%7.1f)\n", "check of one, "+label[who], ours, theirs, theirs/ours)
	}
	for b.Loop() { // the table is the result
	}
}

var label = map[string]string{"admin": "admin", "none": "member without groups", "five": "member of 5 groups"}

// median returns the median duration of 21 calls, in microseconds.
func median(f func() error, b *testing.B) float64 {
	b.Helper()
	var all []float64
	for range 21 {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		all = append(all, float64(time.Since(start).Nanoseconds())/1000)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// pair holds the same data in our store and in OpenFGA.
type pair struct {
	b          *testing.B
	ctx        context.Context
	store      *store.Store
	fga, short *server.Server // without and with OpenFGA's default limit of a listing
	id, model  string         // of OpenFGA's store
	callers    map[string]snap.Caller
	ids        []string
	keys       map[string]int64
	tuples     []*fga.TupleKey
}

func newPair(b *testing.B) *pair {
	p := &pair{b: b, ctx: context.Background(), callers: map[string]snap.Caller{}, keys: map[string]int64{}}
	now := time.Now()
	var err error
	p.store, err = store.Open(p.ctx, store.Options{DataDir: b.TempDir(),
		Now: func() time.Time { now = now.Add(time.Millisecond); return now }})
	p.ok(err)
	b.Cleanup(func() { p.store.Close() })
	db := memory.New()
	p.fga = server.MustNewServerWithOpts(server.WithDatastore(db), server.WithListObjectsMaxResults(0),
		server.WithListObjectsDeadline(time.Minute))
	p.short = server.MustNewServerWithOpts(server.WithDatastore(db))
	p.makeModel()
	p.fill()
	p.write()
	p.same()
	return p
}

func (p *pair) ok(err error) {
	p.b.Helper()
	if err != nil {
		p.b.Fatal(err)
	}
}

func (p *pair) makeModel() {
	made, err := p.fga.CreateStore(p.ctx, &fga.CreateStoreRequest{Name: "peers"})
	p.ok(err)
	p.id = made.GetId()
	text, err := transformer.TransformDSLToProto(model)
	p.ok(err)
	written, err := p.fga.WriteAuthorizationModel(p.ctx,
		&fga.WriteAuthorizationModelRequest{StoreId: p.id, SchemaVersion: text.GetSchemaVersion(),
			TypeDefinitions: text.GetTypeDefinitions()})
	p.ok(err)
	p.model = written.GetAuthorizationModelId()
}

func (p *pair) say(user, relation, object string) {
	p.tuples = append(p.tuples, &fga.TupleKey{User: user, Relation: relation, Object: object})
}

// fill pushes snapshots and shares about every tenth org-wide and every fifth with a group.
func (p *pair) fill() {
	r := rand.New(rand.NewPCG(1, 2))
	org, err := p.store.ApplyOrg(p.ctx, "acme", "Acme", snap.Policy{})
	p.ok(err)
	var all []string
	for i := range groups {
		all = append(all, fmt.Sprint("g", i))
	}
	p.signIn(org, "admin", snap.RoleAdmin, nil)
	p.signIn(org, "none", snap.RoleMember, nil)
	p.signIn(org, "five", snap.RoleMember, []string{all[0], all[1], all[7], all[50], all[120]})
	pusher := p.signIn(org, "keeper", snap.RoleMember, all)
	zipf := rand.NewZipf(r, 1.1, 4, groups-1)
	for i := range snapshots {
		u := store.Upload{ID: snap.NewSnapshotID(), Target: "shop", Name: fmt.Sprint("shop-", i),
			Type:   snap.TypeSnapshot,
			Engine: snap.SQLite,
			Size:   1, SHA256: fmt.Sprint(i), Blob: fmt.Sprint(i), BlobUpload: "u", PartSize: 1}
		p.ok(p.store.BeginUpload(p.ctx, pusher, u))
		sn, err := p.store.CompleteUpload(p.ctx, pusher, u)
		p.ok(err)
		p.ids, p.keys[sn.ID] = append(p.ids, sn.ID), sn.Key
		p.say("user:keeper", "owner", "snapshot:"+sn.ID)
		p.say("organization:acme", "organization", "snapshot:"+sn.ID)
		if r.IntN(10) == 0 {
			p.ok(p.store.Share(p.ctx, pusher, sn))
			p.say("organization:acme#member", "shared", "snapshot:"+sn.ID)
		}
		if r.IntN(5) == 0 {
			g := all[zipf.Uint64()]
			_, err := p.store.ShareGroup(p.ctx, pusher, sn, g)
			p.ok(err)
			p.say("group:"+g+"#member", "shared", "snapshot:"+sn.ID)
		}
	}
}

func (p *pair) signIn(org snap.OrgRef, name string, role snap.Role, in []string) snap.Caller {
	s := store.SignIn{OrgID: org.ID, Issuer: "i", Subject: name, Email: name, Role: role}
	relation := "member"
	if role.IsAdmin() {
		relation = "admin"
	}
	p.say("user:"+name, relation, "organization:acme")
	for _, g := range in {
		s.Groups = append(s.Groups, snap.Group{GroupID: g})
		p.say("user:"+name, "member", "group:"+g)
	}
	id, err := p.store.ApplySignIn(p.ctx, s)
	p.ok(err)
	c, err := p.store.CallerOfUser(p.ctx, id)
	p.ok(err)
	p.callers[name] = c
	return c
}

func (p *pair) write() {
	for part := range slices.Chunk(p.tuples, 100) {
		_, err := p.fga.Write(p.ctx, &fga.WriteRequest{StoreId: p.id, AuthorizationModelId: p.model,
			Writes: &fga.WriteRequestWrites{TupleKeys: part}})
		p.ok(err)
	}
}

func (p *pair) list(s *server.Server, who string) (ids []string, err error) {
	res, err := s.ListObjects(p.ctx, &fga.ListObjectsRequest{StoreId: p.id, AuthorizationModelId: p.model,
		Type: "snapshot", Relation: "viewer", User: "user:" + who})
	for _, o := range res.GetObjects() {
		ids = append(ids, strings.TrimPrefix(o, "snapshot:"))
	}
	return ids, err
}

func (p *pair) check(who, id string) (bool, error) {
	res, err := p.fga.Check(p.ctx, &fga.CheckRequest{StoreId: p.id, AuthorizationModelId: p.model,
		TupleKey: &fga.CheckRequestTupleKey{User: "user:" + who, Relation: "viewer", Object: "snapshot:" + id}})
	return res.GetAllowed(), err
}

// same fails if a caller sees different snapshots in the two stores, because the comparison would
// then be meaningless.
func (p *pair) same() {
	for who, c := range p.callers {
		var ours []string
		for q := (store.Query{Limit: 200}); ; {
			page, err := p.store.Snapshots(p.ctx, c, q)
			p.ok(err)
			for _, sn := range page.Items {
				ours = append(ours, sn.ID)
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		theirs, err := p.list(p.fga, who)
		p.ok(err)
		slices.Sort(ours)
		slices.Sort(theirs)
		if !slices.Equal(ours, theirs) {
			p.b.Fatalf("%s does not see the same snapshots: %d in our store, %d in OpenFGA", who, len(ours),
				len(theirs))
		}
	}
}
