package cloud_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"snap"
	"snap/api"
	"snap/internal/auditlog"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// watched is a service with some lines in Acme's log and one owner who keeps its checkpoints.
type watched struct {
	*cloudtest.Cloud
	t    *testing.T
	db   *sql.DB
	seen api.AuditCheckpoint
	from func(string) (api.AuditCheckpoint, error)

	pushed string // ID of a snapshot
}

func watch(t *testing.T, o cloudtest.Options) *watched {
	t.Helper()
	w := &watched{Cloud: cloudtest.Start(t, o), t: t}
	driver, source := "pgx", o.DatabaseURL
	if source == "" {
		driver, source = "sqlite", "file:"+filepath.Join(w.Config.DataDir,
			"snapcloud.db")+"?_pragma=busy_timeout(15000)"
	}
	var err error
	w.db, err = sql.Open(driver, source)
	must(t, err)
	t.Cleanup(func() { w.db.Close() })
	w.from = func(string) (api.AuditCheckpoint, error) { return w.seen, nil }
	mia := w.As("mia@acme.test")
	for _, target := range []string{"shop", "crm"} {
		sn := w.Push(mia, target, []byte(target))
		w.pushed = sn.ID
		_, err := mia.Share(t.Context(), sn.ID)
		must(t, err)
		_, err = w.As("alice@acme.test").Pull(t.Context(), sn.ID)
		must(t, err)
	}
	return w
}

// keep verifies the log, which must be intact, and keeps its checkpoint.
func (w *watched) keep() {
	w.t.Helper()
	v, err := w.verify()
	if err != nil || !v.Sound {
		w.t.Fatalf("%+v, %v", v, err)
	}
	w.seen = *v.Now
}

func (w *watched) verify() (api.AuditVerdict, error) {
	return w.As("alice@acme.test").VerifyAudit(context.Background(), w.from)
}

// records returns the lines of Acme's log as the service lists them, or its error.
func (w *watched) records() string {
	page, err := w.As("alice@acme.test").AuditRecords(w.t.Context(), 1, api.MaxAuditRecords)
	return fmt.Sprint(page.Items, err)
}

func (w *watched) exec(text string, args ...any) {
	w.t.Helper()
	if _, err := w.db.ExecContext(w.t.Context(), text, args...); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

// acme is the identifier of Acme's row.
const acme = `(SELECT id FROM orgs WHERE slug = 'acme')`

// falsified are the ways in which somebody who can write to the database
// falsifies the log, each after a checkpoint was kept.
var falsified = map[string][]string{
	"the actor by which a line is found": {`UPDATE audit SET actor = 'nobody' WHERE seq = 3 AND org_id = ` + acme},
	"the time by which a line is found":  {`UPDATE audit SET at = at - 86400000 WHERE seq = 3 AND org_id = ` + acme},
	"the action by which a line is found": {
		`UPDATE audit SET action = 'snapshot.pulled' WHERE seq = 3 AND org_id = ` + acme},
	"the snapshot by which a line is found": {`UPDATE audit SET snapshot = 'x' WHERE seq = 3 AND org_id = ` + acme},
	"the text of a line": {
		`UPDATE audit SET body = replace(body, '"address":"', '"address":"1') WHERE seq = 3 AND org_id = ` + acme},
	"the hash of a line":   {`UPDATE audit SET hash = 'x' WHERE seq = 3 AND org_id = ` + acme},
	"a line in the middle": {`DELETE FROM audit WHERE seq = 3 AND org_id = ` + acme},
	"the newest lines":     {`DELETE FROM audit WHERE seq > 4 AND org_id = ` + acme},
	"every line":           {`DELETE FROM audit WHERE org_id = ` + acme},
	"the lines and the head": {`DELETE FROM audit WHERE org_id = ` + acme, `DELETE ` +
		`FROM audit_heads WHERE org_id = ` + acme},
	"everything there is of the log": {
		`DELETE FROM audit WHERE org_id = ` + acme, `DELETE FROM audit_heads WHERE org_id = ` + acme,
		`DELETE FROM audit_tree WHERE org_id = ` + acme},
	"the newest lines, with a head to match": {
		`DELETE FROM audit WHERE seq > 4 AND org_id = ` + acme,
		`DELETE FROM audit_tree WHERE seq > 4 AND org_id = ` + acme,
		`UPDATE audit_heads SET seq = 4, size = 0, checkpoint = '',
			hash = (SELECT hash FROM audit WHERE seq = 4 AND org_id = ` + acme + `) WHERE org_id = ` + acme,
		`DELETE FROM audit_tree WHERE org_id = ` + acme},
	"the head's checkpoint":    {`UPDATE audit_heads SET checkpoint = replace(checkpoint, 'acme', 'globex')`},
	"the size of the tree":     {`UPDATE audit_heads SET size = size - 1`},
	"the number of the newest": {`UPDATE audit_heads SET seq = seq + 1`},
	"two lines change places": {`UPDATE audit SET seq = -3 WHERE seq = 3`, `UPDATE audit SET seq = 3 WHERE seq = 4`,
		`UPDATE audit SET seq = 4 WHERE seq = -3`},
	"a line that is slipped in": {`INSERT INTO audit(org_id, seq, at, action, actor, snapshot, body, hash) ` +
		`SELECT org_id, seq + 100, at, action, actor, snapshot, body, hash FROM audit WHERE seq = 3`},
}

// Everyone who kept a checkpoint finds a log that was falsified afterwards, and sees that
// checkpoint, even after the service has written more lines.
func TestFalsifiedLogsAreFound(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		w := watch(t, o)
		w.keep()
		w.copyTables()
		for name, statements := range falsified {
			for _, text := range statements {
				w.exec(text)
			}
			for range 2 {
				v, err := w.verify()
				if snap.CodeOf(err) != snap.CodeConflict || v.Sound || v.Problem == "" || v.Seen == nil ||
					*v.Seen != w.seen {
					t.Errorf("%s: %+v, %v", name, v, err)
				}
				w.Push(w.As("mia@acme.test"), "later", []byte(name)) // everybody can continue to work
			}
			w.restore()
			if v, err := w.verify(); err != nil {
				t.Fatalf("after %s was restored: %+v, %v", name, v, err)
			}
			w.restore()
		}
	})
}

// Everyone who kept a checkpoint finds that somebody rewrote the whole log with matching hashes, as
// the service itself would write it.
func TestRewrittenLogsAreFound(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		w := watch(t, o)
		w.keep()
		page, err := w.As("alice@acme.test").AuditRecords(t.Context(), 1, 100)
		must(t, err)
		prev := ""
		for i, record := range page.Items {
			var e snap.AuditEntry
			must(t, json.Unmarshal([]byte(record), &e))
			if i >= 2 {
				e.Address = "10.0.0.1"
			}
			e.Hash = e.Sum(prev)
			prev = e.Hash
			text, err := json.Marshal(e)
			must(t, err)
			w.exec(`UPDATE audit SET body = $1, hash = $2 `+
				`WHERE seq = $3 AND org_id = `+acme, string(text), e.Hash, e.Seq)
		}
		w.exec(`DELETE FROM audit_tree WHERE org_id = ` + acme)
		w.exec(`UPDATE audit_heads SET hash = $1, size = 0, checkpoint = '' WHERE org_id = `+acme, prev)
		v, err := w.verify()
		if snap.CodeOf(err) != snap.CodeConflict || v.Seen == nil || v.Now == nil ||
			v.Now.Checkpoint == v.Seen.Checkpoint {
			t.Errorf("%+v, %v", v, err)
		}
		// this is the limit that SECURITY.md names: without an earlier checkpoint nobody can know
		if v, err := w.As("alice@acme.test").VerifyAudit(t.Context(), nil); err != nil || !v.Sound {
			t.Errorf("somebody who never looked before: %+v, %v", v, err)
		}
	})
}

// fewEdits is the number of rounds of TestRandomEditsAreFound unless -rapid.checks sets one.
const fewEdits = 40

// After up to three random edits of the log's tables and any later writes of the service, the log
// still begins with its earlier lines, or everyone who kept a checkpoint finds the edits.
func TestRandomEditsAreFound(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		w := watch(t, o)
		w.keep()
		before := w.records()
		w.copyTables()
		found, tried, all := 0, 0, chosen("rapid.checks")
		rapid.Check(t, func(rt *rapid.T) {
			if tried >= fewEdits && !all {
				return
			}
			defer w.restore()
			var edits []string
			for range rapid.IntRange(1, 3).Draw(rt, "edits") {
				edit := randomEdit(rt)
				if _, err := w.db.ExecContext(t.Context(), edit); err == nil { // otherwise the database refuses it
					edits = append(edits, edit)
				}
			}
			if rapid.Bool().Draw(rt, "the service writes") {
				_ = w.As("mia@acme.test").Pulled(t.Context(), w.pushed, 1)
			}
			tried++
			v, err := w.verify()
			if err != nil {
				found++
				return
			}
			if now := w.records(); !strings.HasPrefix(now, strings.TrimSuffix(before, "] <nil>")) {
				rt.Errorf("after %q the log is %s and counts as sound: %+v", edits, now, v)
			}
		})
		if found < tried/8 {
			t.Errorf("%d of %d rounds were found; nothing is edited", found, tried)
		}
	})
}

// randomEdit is an UPDATE, DELETE or INSERT of a table of Acme's log.
func randomEdit(rt *rapid.T) string {
	number := func(below int) int { return rapid.IntRange(0, below-1).Draw(rt, "number") }
	pick := func(all ...string) string { return all[number(len(all))] }
	line := 1 + number(8)
	where := fmt.Sprintf(" WHERE seq "+pick("=", ">", "<=")+" %d AND org_id = "+acme, line)
	cut := fmt.Sprintf("substr(body, 1, %d) || '%c' || substr(body, %d)", number(200), rune('a'+number(26)),
		number(200))
	return pick(
		"UPDATE audit SET "+pick("actor = 'x'", "at = at + 1", "action = 'snapshot.pushed'", "snapshot = 'x'",
			"hash = 'x'",
			"body = "+cut, "seq = seq + 50", "seq = -seq",
			"org_id = (SELECT id FROM orgs WHERE slug = 'globex')")+where,
		"UPDATE audit_tree SET "+pick("hashes = (SELECT hashes FROM audit_tree b WHERE b.org_id = audit_tree.org_id "+
			"AND b.seq = 1)", "seq = seq + 50")+where,
		"INSERT INTO audit(org_id, seq, at, action, actor, snapshot, body, hash) SELECT org_id, seq + "+
			pick("8", "1000", "-9")+", at, action, actor, snapshot, body, hash FROM audit"+where,
		"DELETE FROM "+pick("audit", "audit_tree")+where,
		"UPDATE audit_heads SET "+pick("seq = seq - 1", "size = size - 1", "size = 0", "hash = 'x'", "checkpoint = ''")+
			" WHERE org_id = "+acme,
		"DELETE FROM audit_heads WHERE org_id = "+acme,
		"UPDATE audit SET body = (SELECT b.body FROM audit b WHERE b.org_id = audit.org_id AND b.seq = 1)"+where,
	)
}

// logTables are the tables that hold the log.
var logTables = []string{"audit", "audit_tree", "audit_heads", "audit_archive"}

func (w *watched) copyTables() {
	for _, table := range logTables {
		w.exec(`CREATE TABLE kept_` + table + ` AS SELECT * FROM ` + table)
	}
}

func (w *watched) restore() {
	w.exec(`DELETE FROM audit_waiting`)
	for _, table := range logTables {
		w.exec(`DELETE FROM ` + table)
		w.exec(`INSERT INTO ` + table + ` SELECT * FROM kept_` + table)
	}
}

// Lines that a service without a tree wrote are in the tree after its update. A receipt, a line and
// the growth of the log can be proved with checkpoints.
func TestProofsOfTheLog(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		w := watch(t, o)
		w.keep()
		first := w.seen
		w.exec(`DELETE FROM audit_tree`) // the state before the update
		w.exec(`UPDATE audit_heads SET size = 0, checkpoint = ''`)
		w.keep()
		if w.seen != first {
			t.Errorf("the tree of the same lines is another one:\n%s%s", first.Checkpoint, w.seen.Checkpoint)
		}
		alice := w.As("alice@acme.test")
		sn := w.Push(w.As("mia@acme.test"), "shared", []byte("x"))
		until := time.Now().Add(time.Hour)
		_, err := alice.ShareOrg(t.Context(), sn.ID, "globex", &until)
		must(t, err)
		gary := w.As("gary@globex.test")
		receipt, err := gary.Receipt(t.Context(), sn.ID)
		must(t, err)
		must(t, receipt.Verify())
		var e snap.AuditEntry
		must(t, json.Unmarshal([]byte(receipt.Record), &e))
		if e.Snapshot != sn.ID || e.Detail.Organization != "globex" || e.Detail.Expires == nil || e.ActorOrg != "acme" {
			t.Errorf("the receipt says %s", receipt.Record)
		}
		for _, private := range []string{"alice", "mia", "127.0.0.1", "cak"} {
			if strings.Contains(receipt.Record, private) {
				t.Errorf("the receipt names %s: %s", private, receipt.Record)
			}
		}
		bent := receipt
		bent.Record = strings.Replace(bent.Record, "globex", "initech", 1)
		if snap.CodeOf(bent.Verify()) != snap.CodeConflict {
			t.Error("a forged receipt is proved")
		}
		if _, err := alice.Receipt(t.Context(), sn.ID); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("the owner's own: %v", err)
		}
		line, err := alice.AuditInclusion(t.Context(), receipt.Line)
		must(t, err)
		if line.Record != receipt.Record || line.Verify() != nil {
			t.Errorf("line %d: %+v", receipt.Line, line)
		}
		if _, err := alice.AuditInclusion(t.Context(), 10_000); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("a line that is not there: %v", err)
		}
		growth(t, alice, w.seen)
	})
}

// growth proves that the log grew from a checkpoint.
func growth(t *testing.T, alice *api.Client, seen api.AuditCheckpoint) {
	t.Helper()
	old, err := auditlog.Open(seen.Checkpoint, "acme", seen.Key)
	must(t, err)
	grown, err := alice.AuditGrowth(t.Context(), old.Size)
	must(t, err)
	now, err := auditlog.Open(grown.Checkpoint, "acme", seen.Key)
	must(t, err)
	proof, err := auditlog.ParseProof(grown.Proof)
	must(t, err)
	if now.Size <= old.Size || tlog.CheckTree(proof, now.Size, now.Root, old.Size, old.Root) != nil {
		t.Errorf("from %d to %d lines is not proved", old.Size, now.Size)
	}
	if _, err := alice.AuditGrowth(t.Context(), now.Size+1); snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("from more lines than there are: %v", err)
	}
}

// Admins get the checkpoint in the response of /me and in webhooks. Nobody else gets it.
func TestOnlyAdminsGetCheckpoints(t *testing.T) {
	t.Parallel()
	events := make(chan api.WebhookEvent, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e api.WebhookEvent
		_ = json.NewDecoder(r.Body).Decode(&e)
		events <- e
	}))
	t.Cleanup(receiver.Close)
	w := watch(t, cloudtest.Options{Config: allowPrivate})
	alice := w.As("alice@acme.test")
	_, err := alice.AddWebhook(t.Context(), api.WebhookRequest{URL: receiver.URL,
		Events: []snap.AuditAction{snap.AuditPushed}})
	must(t, err)
	w.Push(alice, "shop", []byte("for the webhook"))
	_, err = w.Service.Deliver(t.Context())
	must(t, err)
	me, err := alice.Me(t.Context())
	must(t, err)
	e := <-events
	if me.Audit == nil || e.Log == nil || e.Log.Checkpoint != me.Audit.Checkpoint {
		t.Fatalf("whoami has %+v, and the webhook %+v", me.Audit, e.Log)
	}
	signed, err := auditlog.Open(e.Log.Checkpoint, "acme", me.Audit.Key)
	if err != nil || e.Log.Line < 1 || e.Log.Line > signed.Size {
		t.Errorf("line %d of %+v, %v", e.Log.Line, signed, err)
	}
	for _, who := range []string{"mia@acme.test", "vic@acme.test"} {
		me, err := w.As(who).Me(t.Context())
		must(t, err)
		_, refused := w.As(who).AuditCheckpoint(t.Context())
		if me.Audit != nil || snap.CodeOf(refused) != snap.CodeForbidden {
			t.Errorf("%s is given %+v, %v", who, me.Audit, refused)
		}
	}
}

// Lines that several requests write at once are numbered once each, without gaps. A line that was
// written after another one was acknowledged follows that one.
func TestLinesAreNumberedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		w := watch(t, o)
		mia := w.As("mia@acme.test")
		sn := w.Push(mia, "order", []byte("x"))
		const writers, each = 6, 10
		done := make(chan error, writers+1)
		for n := range writers {
			go func() {
				for i := range each {
					if err := mia.Pulled(t.Context(), sn.ID, int64(n*each+i+1)); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range writers {
			must(t, w.Service.Sequence(t.Context()))
			must(t, <-done)
		}
		w.keep()
		var numbers []int64
		last := map[int64]int64{}
		for e, err := range w.As("alice@acme.test").AllAudit(t.Context(),
			api.AuditOptions{Action: snap.AuditPulled, OldestFirst: true}) {
			must(t, err)
			numbers = append(numbers, e.Detail.Bytes)
			writer := (e.Detail.Bytes - 1) / each
			if e.Detail.Bytes <= last[writer] {
				t.Errorf("%d of a writer comes after %d", e.Detail.Bytes, last[writer])
			}
			last[writer] = e.Detail.Bytes
		}
		slices.Sort(numbers)
		if len(slices.Compact(numbers)) != writers*each {
			t.Errorf("%d lines of %d", len(numbers), writers*each)
		}
	})
}

func onDatabases(t *testing.T, test func(t *testing.T, o cloudtest.Options)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, cloudtest.Options{})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, cloudtest.Options{DatabaseURL: cloudtest.Postgres(t)})
	})
}
