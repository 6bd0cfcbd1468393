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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"snap"
)

// seed fills the database of a service: n snapshots of skewed owners and targets, a tenth shared
// org-wide, a fifth with a group, one in a thousand with another organization. All snapshots share
// the bytes of a thousand objects.
func (l *lab) seed(s site, n int) {
	began := time.Now()
	for _, p := range l.serve(s, 1) { // makes organizations, users and groups
		p.stop()
	}
	f := &filler{random: rand.New(rand.NewPCG(1, 2)), bulk: open(l, s)}
	defer f.conn.Close()
	before := f.size(s)
	objects := l.blobs(s)
	for i := range distinct {
		content := fmt.Sprintf("the bytes of snapshot %8d", i)
		sum := sha256.Sum256([]byte(content))
		f.sums = append(f.sums, hex.EncodeToString(sum[:]))
		must(l, objects.Put(l.Context(), objectKey(i), strings.NewReader(content), objectSize, f.sums[i]))
	}
	f.exec(`BEGIN`)
	f.people()
	f.crowd(n / perSnapshots)
	f.fill(n)
	f.exec(`INSERT INTO webhooks(org_id, url, secret, events, created_at) VALUES($1, $2, $3, $4, $5)`,
		f.tenants[0].org, l.receiver, []byte("secret"),
		string(snap.AuditShared)+" "+string(snap.AuditUnshared), time.Now().UnixMilli())
	f.exec(`COMMIT`)
	f.exec(map[bool]string{true: `VACUUM ANALYZE`, false: `ANALYZE`}[f.pg])
	grants := f.ids(`SELECT count(*) FROM grants`)[0]
	fmt.Printf("\n%d snapshots and their %d grants take %d bytes in %s, written in %s\n", n, grants, f.size(s)-before,
		f.name(), time.Since(began).Round(time.Second))
}

// The number and sizes of the objects.
const (
	distinct   = 1000
	objectSize = 30
)

func objectKey(i int) string { return fmt.Sprintf("object_%08d", i) }

// bulk is a connection that writes many rows at a time, without the service's precautions.
type bulk struct {
	tb   testing.TB
	conn *sql.Conn
	pg   bool
}

func open(l *lab, s site) bulk {
	b := bulk{tb: l, pg: s.database != ""}
	driver, name := "sqlite", "file:"+filepath.Join(s.dir,
		"snapcloud.db")+"?_pragma=foreign_keys(0)&_pragma=synchronous(OFF)&_pragma=cache_size(-524288)"
	if b.pg {
		driver, name = "pgx", s.database
	}
	db, err := sql.Open(driver, name)
	must(l, err)
	l.Cleanup(func() { db.Close() })
	b.conn, err = db.Conn(l.Context())
	must(l, err)
	if b.pg {
		b.exec(`SET session_replication_role = replica`) // foreign keys are not checked
	}
	return b
}

func (b bulk) name() string { return map[bool]string{true: "PostgreSQL", false: "SQLite"}[b.pg] }

func (b bulk) exec(text string, args ...any) {
	b.tb.Helper()
	_, err := b.conn.ExecContext(b.tb.Context(), text, args...)
	must(b.tb, err)
}

func (b bulk) ids(text string, args ...any) (all []int64) {
	b.tb.Helper()
	rows, err := b.conn.QueryContext(b.tb.Context(), text, args...)
	must(b.tb, err)
	defer rows.Close()
	for rows.Next() {
		var id int64
		must(b.tb, rows.Scan(&id))
		all = append(all, id)
	}
	must(b.tb, rows.Err())
	return all
}

// size returns the bytes of the database.
func (b bulk) size(s site) int64 {
	if b.pg {
		return b.ids(`SELECT pg_database_size(current_database())`)[0]
	}
	b.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	return b.ids(`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`)[0]
}

// write appends rows to a table.
func (b bulk) write(table string, columns []string, rows [][]any) {
	b.tb.Helper()
	if b.pg {
		must(b.tb, b.conn.Raw(func(c any) error {
			_, err := c.(*stdlib.Conn).Conn().CopyFrom(b.tb.Context(), pgx.Identifier{table}, columns,
				pgx.CopyFromRows(rows))
			return err
		}))
		return
	}
	const batchSize = 100
	for len(rows) > 0 {
		some := rows[:min(batchSize, len(rows))]
		rows = rows[len(some):]
		tuple := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
		var args []any
		for _, row := range some {
			args = append(args, row...)
		}
		b.exec("INSERT INTO "+table+"("+strings.Join(columns, ", ")+") VALUES "+tuple+strings.Repeat(", "+tuple,
			len(some)-1), args...)
	}
}

// sayAudit reports the size of a line of the audit log, with its indexes.
func (l *lab) sayAudit(s site) {
	b := open(l, s)
	defer b.conn.Close()
	lines := b.ids(`SELECT count(*) FROM audit`)[0]
	of := func(table string) int64 { return b.ids(`SELECT pg_total_relation_size($1)`, table)[0] / max(lines, 1) }
	fmt.Printf("%d lines of the audit log take %d bytes each in PostgreSQL, and %d in the tree; %d messages of "+
		"the webhook are kept, %d of them are not sent, and %d shares expire\n", lines, of("audit"), of("audit_tree"),
		b.ids(`SELECT count(*) FROM deliveries`)[0],
		b.ids(`SELECT count(*) FROM deliveries WHERE due_at IS NOT NULL`)[0],
		b.ids(`SELECT count(*) FROM grants WHERE expires_at IS NOT NULL`)[0])
}

// tenant is an organization with snapshots.
type tenant struct {
	org           int64
	users, groups []int64
	owners        *rand.Zipf
}

// filler makes rows of snapshots, the same ones in every database.
type filler struct {
	bulk
	random  *rand.Rand
	sums    []string
	tenants []tenant // acme is the first
	globex  int64
	targets []int64
	newest  map[int64]int64 // by group

	snapshots, grants [][]any
}

func (f *filler) people() {
	for _, slug := range append([]string{"acme"}, slugs()...) {
		t := tenant{org: f.ids(`SELECT id FROM orgs WHERE slug = $1`, slug)[0]}
		t.users = f.ids(`SELECT id FROM users WHERE org_id = $1 ORDER BY id`, t.org)
		t.groups = f.ids(`SELECT id FROM groups WHERE org_id = $1 ORDER BY id`, t.org)
		t.owners = rand.NewZipf(f.random, 1.2, 4, uint64(len(t.users)-1))
		f.tenants = append(f.tenants, t)
	}
	f.globex = f.ids(`SELECT id FROM orgs WHERE slug = 'globex'`)[0]
	for i := range 200 {
		f.exec(`INSERT INTO targets(name) VALUES($1)`, targetName(i))
	}
	f.exec(`INSERT INTO org_targets(org_id, target_id, folded) SELECT o.id, t.id, t.name ` +
		`FROM orgs o CROSS JOIN targets t`)
	f.targets = f.ids(`SELECT id FROM targets ORDER BY id`)
}

// crowd adds users of an identity provider who never send requests. Half of them belong to the hot
// organization.
func (f *filler) crowd(n int) {
	const first = 1 << 30 // beyond the identifiers that the service assigned
	var principals, users, membership [][]any
	for i := range n {
		t := f.tenants[0]
		if i%2 == 1 {
			t = f.tenants[1+i/2%singles]
		}
		id, email := int64(first+i), fmt.Sprintf("crowd%d@crowd.test", i)
		principals = append(principals, []any{id, "user"})
		users = append(users, []any{id, t.org, "https://idp.test", email, email, email, email, string(snap.RoleMember),
			int64(0)})
		audiences := []snap.Audience{snap.AudienceOf(snap.KindUser, id), snap.AudienceOf(snap.KindMembers, t.org),
			snap.AudienceOf(snap.KindRecipients, t.org), snap.AudienceOf(snap.KindGroup, t.groups[i%len(t.groups)])}
		for _, a := range audiences {
			membership = append(membership, []any{id, int64(a.Kind()), int64(a)})
		}
	}
	f.write("principals", []string{"id", "kind"}, principals)
	f.write("users", []string{"id", "org_id", "issuer", "subject", "email", "email_folded", "name", "role",
		"created_at"}, users)
	f.write("membership", []string{"principal", "kind", "audience"}, membership)
}

func slugs() (all []string) {
	for _, p := range strangers() {
		all = append(all, p.Org)
	}
	return all
}

func targetName(i int) string { return fmt.Sprintf("target%d", i) }

func (f *filler) fill(n int) {
	const batchSize = 10_000
	targets := rand.NewZipf(f.random, 1.2, 4, uint64(len(f.targets)-1))
	f.newest = map[int64]int64{}
	start := time.Now().UnixMilli() - int64(n)*1000
	for i := range n {
		t := f.tenants[0]
		if i%2 == 1 {
			t = f.tenants[1+f.random.IntN(singles)]
		}
		f.snapshot(i, t, int(targets.Uint64()), start+int64(i)*1000)
		if len(f.snapshots) == batchSize || i == n-1 {
			f.flush()
		}
	}
	for g, key := range f.newest {
		f.exec(`UPDATE groups SET newest = $2 WHERE id = $1`, g, key)
	}
}

func (f *filler) flush() {
	f.write("snapshots", []string{"key", "id", "org_id", "owner_id", "target_id", "target", "name", "folded", "type",
		"engine", "size", "sha256", "blob", "widened", "created_at"}, f.snapshots)
	f.write("grants", []string{"audience", "snapshot", "target_id", "type", "created_at"}, f.grants)
	f.snapshots, f.grants = f.snapshots[:0], f.grants[:0]
}

func (f *filler) snapshot(i int, t tenant, target int, at int64) {
	key := at<<22 | int64(f.random.Uint32()&(1<<22-1))
	owner, kind := t.users[t.owners.Uint64()], string(snap.TypeSnapshot)
	if f.random.IntN(4) == 0 {
		kind = string(snap.TypeSanitized)
	}
	audiences := []snap.Audience{snap.AudienceOf(snap.KindAdmins, t.org), snap.AudienceOf(snap.KindUser, owner)}
	if f.random.IntN(10) == 0 {
		audiences = append(audiences, snap.AudienceOf(snap.KindMembers, t.org))
	}
	widened := int64(0)
	if f.random.IntN(5) == 0 {
		g := t.groups[f.random.IntN(len(t.groups))]
		audiences, f.newest[g], widened = append(audiences, snap.AudienceOf(snap.KindGroup, g)), key, 1
	}
	if f.random.IntN(1000) == 0 {
		audiences, widened = append(audiences, snap.AudienceOf(snap.KindRecipients, f.globex)), 1
	}
	name := fmt.Sprintf("snapshot-%d", i)
	f.snapshots = append(f.snapshots, []any{key, fmt.Sprintf("snap_%016x", f.random.Uint64()), t.org, owner,
		f.targets[target], targetName(target), name, name,
		kind, "sqlite", int64(objectSize), f.sums[i%distinct], objectKey(i % distinct), widened, at})
	for _, a := range audiences {
		f.grants = append(f.grants, []any{int64(a), key, f.targets[target], kind, at})
	}
}
