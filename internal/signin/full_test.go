package signin_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/signin"
	"snap/internal/store"
)

// onSmallDisk returns the options of a store on a small disk with a reserve.
func onSmallDisk(h *house) store.Options {
	h.dir = servertest.SmallDisk(h.t, 16<<20)
	return store.Options{DataDir: h.dir, Now: h.clock.Now, Reserve: 2 << 20}
}

// fillDisk fills the disk of the database, and returns the file that occupies the space.
func (h *house) fillDisk() (ballast string) {
	h.t.Helper()
	ballast = servertest.FillDisk(h.t, h.dir, 0)
	h.t.Cleanup(func() { os.Remove(ballast) })
	var err error
	for i := 0; err == nil && i < 100_000; i++ { // until the database's log has no room either
		_, err = h.store.ApplyOrg(h.t.Context(), "acme", fmt.Sprint("Acme ", i), snap.Policy{})
	}
	if snap.CodeOf(err) != snap.CodeStorageFull {
		h.t.Fatalf("the disk is not full: %v", err)
	}
	return ballast
}

// TestDeviceLoginsOnAFullDisk: a device login that began before the disk was full can be approved, so
// that its user can take access away. The error of a new one names the disk.
func TestDeviceLoginsOnAFullDisk(t *testing.T) {
	t.Parallel()
	h, _ := startSealed(t, onSmallDisk)
	deviceCode, userCode := h.device()
	b := h.browser()
	b.get(startAcme)
	h.fillDisk()
	a := h.post("/device_authorization", "client_id", "snapcli")
	if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "the service's database is full") {
		t.Errorf("a new login: %d %s", a.status, a.body)
	}
	page := b.submit(b.get("/auth/device?user_code="+userCode), "/auth/device", "user_code", userCode)
	b.submit(page, "/auth/device/confirm", "user_code", userCode, "decision", "approve")
	tokensOf(t, h.poll(deviceCode))
}

// TestChecksOnAFullDisk: the check of a user at the identity provider may use the reserve. A request
// that needs the check is therefore accepted on a full disk, so that its user can take access away,
// and a user who left is removed.
func TestChecksOnAFullDisk(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, onSmallDisk)
	got := h.loginUpstream()
	ballast := h.fillDisk()
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
