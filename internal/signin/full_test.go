package signin_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/signin"
	"snap/internal/store"
)

// TestChecksOnAFullDisk: the check of a user at the identity provider may use the reserve. A request
// that needs the check is therefore accepted on a full disk, so that its user can take access away,
// and a user who left is removed.
func TestChecksOnAFullDisk(t *testing.T) {
	t.Parallel()
	var small string
	h, p := startSealed(t, func(h *house) store.Options {
		small = servertest.SmallDisk(t, 16<<20)
		h.dir = small
		return store.Options{DataDir: small, Now: h.clock.Now, Reserve: 2 << 20}
	})
	got := h.loginUpstream()
	ballast := servertest.FillDisk(t, small, 0)
	t.Cleanup(func() { os.Remove(ballast) })
	var err error
	for i := 0; err == nil && i < 100_000; i++ { // until the database's log has no room either
		_, err = h.store.ApplyOrg(t.Context(), "acme", fmt.Sprint("Acme ", i), snap.Policy{})
	}
	if snap.CodeOf(err) != snap.CodeStorageFull {
		t.Fatalf("the disk is not full: %v", err)
	}
	p.lie(func(p *idp) { p.down = true })
	h.clock.Advance(signin.DefaultRecheck)
	got = h.renewed(got)
	p.lie(func(p *idp) { p.down = false })
	h.clock.Advance(2 * time.Minute)
	if a := h.api(got.access); a.status != http.StatusOK {
		t.Errorf("a user who must be checked: %d %s", a.status, a.body)
	}
	p.lie(func(p *idp) { p.left = true })
	h.clock.Advance(signin.DefaultRecheck)
	wantError(t, h.refresh(got.refresh), "invalid_grant")
	m, err := h.member("acme", "mia@acme.test")
	if err != nil || !m.Disabled {
		t.Errorf("the user who left: %+v, %v", m, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	h.hasAudit(snap.AuditUserLeft, "mia@acme.test")
}
