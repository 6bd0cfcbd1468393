package cloud_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// After a restore to an earlier moment, an export of the later log ends the shares, users and keys
// that had ended, and nothing else. An export of another log changes nothing.
func TestRevocationsAreReplayedAfterARestore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	ended, kept := c.Push(mia, "shop", []byte("ended")), c.Push(mia, "shop", []byte("kept"))
	deleted := c.Push(mia, "shop", []byte("deleted"))
	for _, sn := range []api.Snapshot{ended, kept, deleted} {
		_, err := mia.Share(ctx, sn.ID)
		must(t, err)
		_, err = mia.ShareGroup(ctx, sn.ID, "dba")
		must(t, err)
	}
	_, err := c.As("gus@acme.test").Me(ctx)
	must(t, err)
	must(t, c.Service.Sequence(ctx))
	restored, err := alice.AuditRecords(ctx, 1, api.MaxAuditRecords)
	must(t, err)
	dir := t.TempDir()
	must(t, store.BackUp(ctx, c.Config.DataDir, filepath.Join(dir, "snapcloud.db"))) // the restored moment
	must(t, mia.Unshare(ctx, ended.ID))
	must(t, mia.Unshare(ctx, kept.ID))
	_, err = mia.Share(ctx, kept.ID)
	must(t, err)
	must(t, alice.Delete(ctx, deleted.ID))
	must(t, disable(c, "max@acme.test"))
	acme, err := c.Store.OrgBySlug(ctx, "acme")
	must(t, err)
	keys, err := c.Store.OrgKeys(ctx, acme.ID, 0)
	must(t, err)
	for _, k := range keys {
		if k.User == "gus@acme.test" {
			must(t, c.Store.RevokeOrgKey(ctx, acme.ID, k.ID))
		}
	}
	page, err := alice.AuditRecords(ctx, 1, api.MaxAuditRecords)
	must(t, err)

	st, err := store.Open(ctx, store.Options{DataDir: dir})
	must(t, err)
	defer st.Close()
	org, err := st.OrgBySlug(ctx, "acme")
	must(t, err)
	person, err := st.UserByEmail(ctx, org.ID, "mia@acme.test")
	must(t, err)
	must(t, st.RecordSignIn(ctx, store.InteractiveSignIn{UserID: person.ID, Refresh: []byte("replaced since then")}))
	other := strings.Replace(strings.Join(page.Items, "\n"), "unshared", "unshareD", 1)
	_, err = cloud.ReplayRevocations(ctx, st, org.OrgRef, strings.NewReader(other))
	if snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("an altered export: %v", err)
	}
	last := len(restored.Items) - 1
	for name, export := range map[string]string{
		"that ends before the log":        strings.Join(restored.Items[:last], "\n"),
		"of a log with another last line": strings.Replace(restored.Items[last], `"hash":"`, `"hash":"0`, 1),
	} {
		_, err = cloud.ReplayRevocations(ctx, st, org.OrgRef, strings.NewReader(export))
		if snap.CodeOf(err) != snap.CodeConflict {
			t.Errorf("an export %s: %v", name, err)
		}
	}
	if r, err := cloud.ReplayRevocations(ctx, st, org.OrgRef, strings.NewReader("")); err != nil || r.Lines != 0 {
		t.Errorf("an empty export: %d lines, %v", r.Lines, err)
	}
	for _, want := range []string{
		fmt.Sprintf("[%s org-wide %s group dba %s org-wide] [max@acme.test] 1", ended.ID, deleted.ID, deleted.ID),
		"[] [] 0",
	} {
		r, err := cloud.ReplayRevocations(ctx, st, org.OrgRef, strings.NewReader(strings.Join(page.Items, "\n")))
		must(t, err)
		if len(r.Shares) == 3 && r.Shares[0] != ended.ID+" org-wide" { // the order is that of the IDs
			r.Shares = []string{r.Shares[2], r.Shares[0], r.Shares[1]}
		}
		if got := fmt.Sprint(r.Shares, r.Users, len(r.Keys)); got != want || r.Lines < 6 {
			t.Errorf("revoked %s after %d lines, want %s", got, r.Lines, want)
		}
	}
	standing, err := st.StandingOf(ctx, person.ID)
	must(t, err)
	if doubts, err := st.ClaimCheck(ctx, standing, time.Minute); err != nil || doubts != 2 {
		t.Errorf("the refresh token counts as the newest one: %d, %v", doubts, err)
	}
}
