package load

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"snap"
)

// seed fills the SQLite database of a service: n snapshots of skewed owners and
// targets, a tenth shared org-wide, a fifth with a group, one in a thousand with
// another organization. A thousand objects are the bytes of all.
func (l *lab) seed(s site, n int) {
	for _, p := range l.serve(s, 1) { // makes organizations, users and groups
		p.stop()
	}
	objects, err := l.place(s).Blobs(l.Context())
	must(l, err)
	sums := make([]string, distinct)
	for i := range sums {
		content := fmt.Sprintf("the bytes of snapshot %8d", i)
		sum := sha256.Sum256([]byte(content))
		sums[i] = hex.EncodeToString(sum[:])
		must(l, objects.Put(l.Context(), objectKey(i), strings.NewReader(content), objectSize, sums[i]))
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, "snapcloud.db")+"?_pragma=foreign_keys(0)&_pragma=synchronous(OFF)&_pragma=cache_size(-524288)")
	must(l, err)
	defer db.Close()
	tx, err := db.BeginTx(l.Context(), nil)
	must(l, err)
	defer tx.Rollback()
	f := &filler{tb: l, tx: tx, random: rand.New(rand.NewPCG(1, 2)), sums: sums}
	f.people()
	f.fill(n)
	must(l, tx.Commit())
	_, err = db.ExecContext(l.Context(), `ANALYZE`)
	must(l, err)
}

// What objects there are, and how large.
const (
	distinct   = 1000
	objectSize = 30
)

func objectKey(i int) string { return fmt.Sprintf("object_%08d", i) }

// filler writes rows in bulk.
type filler struct {
	tb     testing.TB
	tx     *sql.Tx
	random *rand.Rand
	sums   []string

	acme, globex   int64
	users, groups  []int64
	targets        []int64
	sized, granted *sql.Stmt
}

func (f *filler) ids(text string, args ...any) (all []int64) {
	rows, err := f.tx.Query(text, args...)
	must(f.tb, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		must(f.tb, rows.Scan(&id))
		all = append(all, id)
	}
	must(f.tb, rows.Err())
	return all
}

func (f *filler) people() {
	f.acme = f.ids(`SELECT id FROM orgs WHERE slug = 'acme'`)[0]
	f.globex = f.ids(`SELECT id FROM orgs WHERE slug = 'globex'`)[0]
	f.users = f.ids(`SELECT id FROM users WHERE org_id = $1 ORDER BY id`, f.acme)
	f.groups = f.ids(`SELECT id FROM groups WHERE org_id = $1 ORDER BY id`, f.acme)
	for i := range 200 {
		name := fmt.Sprintf("target%d", i)
		f.exec(`INSERT INTO targets(name) VALUES($1)`, name)
		f.exec(`INSERT INTO org_targets(org_id, target_id, folded) SELECT $1, id, name FROM targets WHERE name = $2`, f.acme, name)
	}
	f.targets = f.ids(`SELECT id FROM targets ORDER BY id`)
}

func (f *filler) exec(text string, args ...any) {
	_, err := f.tx.Exec(text, args...)
	must(f.tb, err)
}

func (f *filler) fill(n int) {
	var err error
	f.sized, err = f.tx.Prepare(`INSERT INTO snapshots(key, id, org_id, owner_id, target_id, target, name, folded, type, engine, size, sha256, blob, widened, created_at)
		SELECT $1, $2, $3, $4, id, name, $6, $6, $7, 'sqlite', $8, $9, $10, $11, $12 FROM targets WHERE id = $5`)
	must(f.tb, err)
	f.granted, err = f.tx.Prepare(`INSERT INTO grants(audience, snapshot, target_id, type, created_at) VALUES($1, $2, $3, $4, $5)`)
	must(f.tb, err)
	owners := rand.NewZipf(f.random, 1.2, 4, uint64(len(f.users)-1))
	targets := rand.NewZipf(f.random, 1.2, 4, uint64(len(f.targets)-1))
	newest := map[int64]int64{}
	start := time.Now().UnixMilli() - int64(n)*1000
	for i := range n {
		at := start + int64(i)*1000
		key := at<<22 | int64(f.random.Uint32()&(1<<22-1))
		owner, target := f.users[owners.Uint64()], f.targets[targets.Uint64()]
		kind := string(snap.TypeSnapshot)
		if f.random.IntN(4) == 0 {
			kind = string(snap.TypeSanitized)
		}
		audiences := []snap.Audience{snap.AudienceOf(snap.KindAdmins, f.acme), snap.AudienceOf(snap.KindUser, owner)}
		if f.random.IntN(10) == 0 {
			audiences = append(audiences, snap.AudienceOf(snap.KindMembers, f.acme))
		}
		widened := 0
		if f.random.IntN(5) == 0 {
			g := f.groups[f.random.IntN(len(f.groups))]
			audiences, newest[g], widened = append(audiences, snap.AudienceOf(snap.KindGroup, g)), key, 1
		}
		if f.random.IntN(1000) == 0 {
			audiences, widened = append(audiences, snap.AudienceOf(snap.KindRecipients, f.globex)), 1
		}
		_, err := f.sized.Exec(key, fmt.Sprintf("snap_%016x", f.random.Uint64()), f.acme, owner, target, fmt.Sprintf("snapshot-%d", i), kind, objectSize, f.sums[i%distinct], objectKey(i%distinct), widened, at)
		must(f.tb, err)
		for _, a := range audiences {
			_, err := f.granted.Exec(int64(a), key, target, kind, at)
			must(f.tb, err)
		}
	}
	for g, key := range newest {
		f.exec(`UPDATE groups SET newest = $2 WHERE id = $1`, g, key)
	}
}
