package signin_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"snap/internal/servertest"
	"snap/internal/store"
)

// Many logins and refreshes at once work. The test logs their rate and the growth of the heap, and
// checks neither. SNAP_TEST_LOGINS=400 makes enough logins to measure them.
func TestManyLogins(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	logins, err := strconv.Atoi(os.Getenv("SNAP_TEST_LOGINS"))
	if err != nil {
		logins = 12
	}
	h := start(t)
	m, err := h.member("acme", "mia@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]tokens, logins)
	report := func(what string, n, requests int, began time.Time, before uint64) {
		took := time.Since(began)
		t.Logf("%d %s in %v: %.0f a second, %.0f requests a second; heap %+.1f MiB", n, what,
			took.Round(time.Millisecond),
			float64(n)/took.Seconds(), float64(requests)/took.Seconds(), (float64(heap())-float64(before))/(1<<20))
	}
	before, began := heap(), time.Now()
	spread(logins, func(i int) {
		deviceCode, userCode := h.device()
		h.browser().approve(userCode, "mia@acme.test", "mia-password")
		got[i] = tokensOf(t, h.poll(deviceCode))
	})
	const each = 9 // the device's two, and the person's seven with the redirects
	report("complete logins", logins, each*logins, began, before)
	before, began = heap(), time.Now()
	for range 3 {
		spread(logins, func(i int) { got[i] = tokensOf(t, h.refresh(got[i].refresh)) })
	}
	report("refreshes", 3*logins, 3*logins, began, before)
	sessions, err := h.store.UserSessions(t.Context(), m.ID)
	if err != nil || len(sessions) != 2*logins { // the device's and the browser's
		t.Errorf("%d sessions, %v", len(sessions), err)
	}
	if a := h.api(got[0].access); a.body != "mia@acme.test member" {
		t.Errorf("API: %s", a.body)
	}
}

// 10,000 requests from 200 addresses keep nobody from signing in, neither a person elsewhere nor
// one in a network that takes part in the flood. This holds while the flood continues from new
// addresses, however long the person takes. Nine tenths of the grants are copies in the database.
func TestLoginDuringAFlood(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	const requests, addresses = 10_000, 200
	h := start(t)
	flood := func(address string) int {
		r := httptest.NewRequest(http.MethodPost, h.url+"/auth/device_authorization",
			strings.NewReader("client_id=snapcli"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = address + ":1234"
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		return w.Code
	}
	floodFrom := func(n int) {
		spread(n, func(i int) {
			if status := flood(fmt.Sprintf("10.0.%d.1", i%addresses)); status != http.StatusOK {
				t.Errorf("request %d of the flood: %d, want 200 until it has filled all places for logins", i, status)
			}
		})
	}
	const copies = 45
	floodFrom(addresses)
	h.copyGrants(copies)
	floodFrom(requests - addresses*(1+copies))
	deviceCode, userCode := h.device() // from 127.0.0.1
	if status := flood("10.0.7.2"); status != http.StatusOK {
		t.Errorf("a neighbor in a network of the flood: %d", status)
	}
	spread(1000, func(i int) { flood(fmt.Sprintf("10.1.%d.%d", i%250, i%7)) })
	h.browser().approve(userCode, "mia@acme.test", "mia-password")
	tokensOf(t, h.poll(deviceCode))
}

// copyGrants adds this many copies of each waiting grant, as requests from the same address would.
func (h *house) copyGrants(copies int) {
	h.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(h.dir, "snapcloud.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		h.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO device_grants(hash, user_code, client_id, scope, program, host, address, site, network,
			created_at, expires_at, wait_ms, state)
		SELECT randomblob(32), hex(randomblob(8)), client_id, scope, program, host, address, site, network,
			created_at, expires_at, wait_ms, state
		FROM device_grants, n WHERE state = 'pending'`, copies); err != nil {
		h.t.Fatal(err)
	}
}

// spread runs n calls on eight workers.
func spread(n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// T9: whole flows at debug level leave no code, token, key or password in the
// log, nor in any error page.
func TestNoSecretInTheLog(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	b := h.browser()
	b.approve(userCode, "mia@acme.test", "mia-password")
	got := tokensOf(t, h.poll(deviceCode))
	next := tokensOf(t, h.refresh(got.refresh))
	page := b.submit(b.get("/auth/account"), "/auth/account/keys", "name", "ci")
	at := strings.Index(page.body, "cak_")
	secrets := map[string]string{
		"device code": deviceCode, "user code": userCode, "refresh token": got.refresh,
		"next refresh token": next.refresh,
		"access token":       got.access, "ID token": got.id, "password": "mia-password", "key": page.body[at : at+42],
	}
	for _, c := range b.c.Jar.Cookies(mustURL(t, h.url)) {
		secrets["cookie "+c.Name] = c.Value
	}
	pages := ""
	for _, fail := range []func() answer{
		func() answer { return h.poll(deviceCode) },
		func() answer { return h.refresh(got.refresh + "x") },
		func() answer { return h.post("/revoke", "client_id", "snapcli", "token", next.access) },
		func() answer { return h.api(next.access) },
		func() answer { return h.browser().signIn("mia@acme.test", "mia-passwordx") },
		func() answer { return b.get("/auth/device/confirm?user_code=" + userCode + "x") },
		func() answer { return h.get("/auth/token?refresh_token=" + got.refresh) },
		func() answer { return h.get("/api/agent?api_key=" + page.body[at:at+42]) },
	} {
		pages += fail().body
	}
	h.clock.Advance(store.RefreshGrace)
	pages += h.refresh(got.refresh).body
	for name, secret := range secrets {
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the %s is in the log", name)
		}
		if name != "user code" && strings.Contains(pages, secret) {
			t.Errorf("the %s is in an error", name)
		}
	}
	if !strings.Contains(h.log.String(), "signed in") || !strings.Contains(h.log.String(), "key created") {
		t.Error("the log does not tell what happened")
	}
}
