// Command openfga measures who-may-see-what side by side with OpenFGA on the
// same data: the listing of a page and the check of one snapshot. It stands in
// a module of its own, so that nothing of OpenFGA is in the product's go.mod.
//
// OpenFGA runs in this process on its in-memory datastore, its fastest one; ours
// is the embedded SQLite database on disk, with every write synced. OpenFGA
// lists at most 1,000 objects, in no order and without pages, so what it
// returns is less than what a listing needs; the table says so.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	parser "github.com/openfga/language/pkg/go/transformer"
	"github.com/openfga/openfga/pkg/server"
	"github.com/openfga/openfga/pkg/storage/memory"

	"snap"
	"snap/internal/store"
)

func main() {
	snapshots := 5000
	if text := os.Getenv("SNAP_BENCH_OPENFGA"); text != "" {
		snapshots, _ = strconv.Atoi(text)
	}
	if err := run(context.Background(), snapshots); err != nil {
		fmt.Fprintln(os.Stderr, "openfga:", err)
		os.Exit(1)
	}
}

// groups is how many groups the organization has; the callers are in some.
const groups = 200

type world struct {
	ours    *store.Store
	fga     *server.Server
	storeID string
	modelID string
	callers map[string]snap.Caller
	ids     []string // public IDs in the order of the pushes
}

const model = `model
  schema 1.1
type user
type org
  relations
    define member: [user]
    define admin: [user]
type group
  relations
    define member: [user]
type snapshot
  relations
    define viewer: [user, org#admin, org#member, group#member]
`

func run(ctx context.Context, n int) error {
	dir, err := os.MkdirTemp("", "snap-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := &world{callers: map[string]snap.Caller{}}
	if w.ours, err = store.Open(ctx, store.Options{DataDir: dir}); err != nil {
		return err
	}
	defer w.ours.Close()
	w.fga = server.MustNewServerWithOpts(server.WithDatastore(memory.New()), server.WithListObjectsDeadline(time.Minute), server.WithListObjectsMaxResults(1000))
	defer w.fga.Close()
	if err := w.seed(ctx, n); err != nil {
		return err
	}
	return w.measure(ctx, n)
}

// seed pushes n snapshots by one owner, shares one in ten org-wide and each
// with one group, in both systems.
func (w *world) seed(ctx context.Context, n int) error {
	org, err := w.ours.ApplyOrg(ctx, "acme", "Acme", snap.Policy{})
	if err != nil {
		return err
	}
	owner, err := w.user(ctx, org, "owner", snap.RoleMember, groups)
	if err != nil {
		return err
	}
	for name, in := range map[string]int{"no groups": 0, "5 groups": 5, "100 groups": 100} {
		if _, err := w.user(ctx, org, name, snap.RoleMember, in); err != nil {
			return err
		}
	}
	if _, err := w.user(ctx, org, "admin", snap.RoleAdmin, 0); err != nil {
		return err
	}
	if err := w.openFGA(ctx); err != nil {
		return err
	}
	var tuples []*openfgav1.TupleKey
	for name, c := range w.callers {
		tuples = append(tuples, tuple("user:"+slug(name), "member", "org:acme"))
		if c.Role.IsAdmin() {
			tuples = append(tuples, tuple("user:"+slug(name), "admin", "org:acme"))
		}
		for _, g := range c.Groups {
			tuples = append(tuples, tuple("user:"+slug(name), "member", "group:"+g.GroupID))
		}
	}
	for i := range n {
		id, err := w.push(ctx, owner, i)
		if err != nil {
			return err
		}
		w.ids = append(w.ids, id)
		tuples = append(tuples, tuple("user:owner", "viewer", "snapshot:"+id), tuple("org:acme#admin", "viewer", "snapshot:"+id),
			tuple("group:"+groupID(i%groups)+"#member", "viewer", "snapshot:"+id))
		if i%10 == 0 {
			tuples = append(tuples, tuple("org:acme#member", "viewer", "snapshot:"+id))
		}
	}
	for part := range slices.Chunk(tuples, 100) {
		_, err := w.fga.Write(ctx, &openfgav1.WriteRequest{StoreId: w.storeID, AuthorizationModelId: w.modelID, Writes: &openfgav1.WriteRequestWrites{TupleKeys: part}})
		if err != nil {
			return err
		}
	}
	return nil
}

func slug(name string) string { return string(slices.DeleteFunc([]byte(name), func(b byte) bool { return b == ' ' })) }

func groupID(i int) string { return fmt.Sprintf("g%03d", i) }

func tuple(user, relation, object string) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{User: user, Relation: relation, Object: object}
}

func (w *world) user(ctx context.Context, org snap.OrgRef, name string, role snap.Role, in int) (snap.Caller, error) {
	s := store.SignIn{OrgID: org.ID, Issuer: "bench", Subject: name, Email: name, Name: name, Role: role}
	for i := range in {
		s.Groups = append(s.Groups, snap.Group{GroupID: groupID(i), Name: groupID(i)})
	}
	id, err := w.ours.ApplySignIn(ctx, s)
	if err != nil {
		return snap.Caller{}, err
	}
	w.callers[name], err = w.ours.CallerOfUser(ctx, id)
	return w.callers[name], err
}

func (w *world) push(ctx context.Context, owner snap.Caller, i int) (string, error) {
	u := store.Upload{ID: snap.NewSnapshotID(), Target: "shop", Name: fmt.Sprint("shop-", i), Type: snap.TypeSanitized, Engine: snap.SQLite, Size: 1, SHA256: fmt.Sprintf("%064d", i), Blob: fmt.Sprint(i), BlobUpload: "x", PartSize: 1}
	if err := w.ours.BeginUpload(ctx, owner, u); err != nil {
		return "", err
	}
	sn, err := w.ours.CompleteUpload(ctx, owner, u)
	if err != nil {
		return "", err
	}
	if _, err := w.ours.ShareGroup(ctx, owner, sn, groupID(i%groups)); err != nil {
		return "", err
	}
	if i%10 == 0 {
		err = w.ours.Share(ctx, owner, sn)
	}
	return sn.ID, err
}

func (w *world) openFGA(ctx context.Context) error {
	made, err := w.fga.CreateStore(ctx, &openfgav1.CreateStoreRequest{Name: "bench"})
	if err != nil {
		return err
	}
	w.storeID = made.GetId()
	m := parser.MustTransformDSLToProto(model)
	written, err := w.fga.WriteAuthorizationModel(ctx, &openfgav1.WriteAuthorizationModelRequest{
		StoreId: w.storeID, SchemaVersion: m.GetSchemaVersion(), TypeDefinitions: m.GetTypeDefinitions(), Conditions: m.GetConditions(),
	})
	w.modelID = written.GetAuthorizationModelId()
	return err
}

// measure prints medians, taken turn by turn in this one run.
func (w *world) measure(ctx context.Context, n int) error {
	fmt.Printf("who may see what, %d snapshots, %d groups; medians in microseconds, and OpenFGA as a multiple of ours\n", n, groups)
	fmt.Printf("%-34s%12s%12s%10s  %s\n", "", "ours", "OpenFGA", "times", "what OpenFGA returned")
	for _, who := range []string{"admin", "no groups", "5 groups", "100 groups"} {
		c := w.callers[who]
		returned := 0
		ours, theirs, err := turns(20, func() error {
			_, err := w.ours.Snapshots(ctx, c, store.Query{Limit: 50})
			return err
		}, func() error {
			res, err := w.fga.ListObjects(ctx, &openfgav1.ListObjectsRequest{StoreId: w.storeID, AuthorizationModelId: w.modelID, Type: "snapshot", Relation: "viewer", User: "user:" + slug(who)})
			returned = len(res.GetObjects())
			return err
		})
		if err != nil {
			return err
		}
		row("list newest 50: "+who, ours, theirs, fmt.Sprintf("%d, unordered, no pages", returned))
	}
	for _, who := range []string{"admin", "5 groups"} {
		for name, id := range map[string]string{"visible": w.ids[0], "hidden": w.ids[len(w.ids)-1]} {
			c := w.callers[who]
			ours, theirs, err := turns(300, func() error {
				_, err := w.ours.Snapshot(ctx, c, id)
				if snap.CodeOf(err) == snap.CodeNotFound {
					err = nil
				}
				return err
			}, func() error {
				_, err := w.fga.Check(ctx, &openfgav1.CheckRequest{StoreId: w.storeID, AuthorizationModelId: w.modelID,
					TupleKey: &openfgav1.CheckRequestTupleKey{User: "user:" + slug(who), Relation: "viewer", Object: "snapshot:" + id}})
				return err
			})
			if err != nil {
				return err
			}
			row("check one: "+who+", "+name, ours, theirs, "yes or no; ours also returns the record")
		}
	}
	return nil
}

func row(name string, ours, theirs time.Duration, note string) {
	fmt.Printf("%-34s%12.0f%12.0f%10.1f  %s\n", name, micros(ours), micros(theirs), float64(theirs)/float64(ours), note)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// turns runs both n times, one after the other, and returns the medians.
func turns(n int, a, b func() error) (ours, theirs time.Duration, err error) {
	var as, bs []time.Duration
	for range n {
		for _, one := range []struct {
			f   func() error
			all *[]time.Duration
		}{{a, &as}, {b, &bs}} {
			began := time.Now()
			if err := one.f(); err != nil {
				return 0, 0, err
			}
			*one.all = append(*one.all, time.Since(began))
		}
	}
	return median(as), median(bs), nil
}

func median(all []time.Duration) time.Duration {
	slices.SortFunc(all, cmp.Compare[time.Duration])
	return all[len(all)/2]
}
