package cloud_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/loadcontrol"
	"snap/internal/servertest"
	"snap/internal/store"
)

// startLimited starts a process of the service with these limits, and returns
// it with a key of alice.
func startLimited(t *testing.T, database, dir, limits string) (r *replica, key string) {
	t.Helper()
	servertest.RequireServers(t, "processes of the service")
	address := servertest.Address(t)
	r = &replica{t: t, url: "http://" + address, config: filepath.Join(t.TempDir(), "snapcloud.yaml")}
	must(t, os.WriteFile(r.config, fmt.Appendf(nil, `
listen: %s
data_dir: %s
database: {url: %q}
limits: {%s}
organizations:
  - slug: acme
    sign_in: {type: local}
    users: [{email: alice@acme.test, password: x, role: owner}]
`, address, dir, database, limits), 0o600))
	r.start()
	t.Cleanup(r.kill)
	return r, newKey(t, store.Options{URL: database, DataDir: dir})
}

// newKey makes a key of alice next to the running service.
func newKey(t *testing.T, o store.Options) string {
	t.Helper()
	s, err := store.Open(t.Context(), o)
	must(t, err)
	defer s.Close()
	org, err := s.OrgBySlug(t.Context(), "acme")
	must(t, err)
	alice, err := s.UserByEmail(t.Context(), org.ID, "alice@acme.test")
	must(t, err)
	key, _, err := auth.New(s, auth.Options{}).NewKey(t.Context(),
		auth.KeySpec{OrgID: org.ID, UserID: alice.ID, Kind: snap.UserKey, Name: "test"})
	must(t, err)
	return key
}

// reply is the response to a request.
type reply struct {
	status int
	after  string // Retry-After
	code   snap.Code
}

// ask sends a request with a key, if there is one.
func ask(ctx context.Context, client *http.Client, method, url, key string) (a reply, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return a, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a = reply{status: res.StatusCode, after: res.Header.Get("Retry-After")}
	var p api.Problem
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 400 {
		err = json.Unmarshal(text, &p)
	}
	a.code = p.Code
	return a, err
}

func mustAsk(t *testing.T, method, url, key string) reply {
	t.Helper()
	a, err := ask(t.Context(), http.DefaultClient, method, url, key)
	must(t, err)
	return a
}

// waits checks that a response says when to retry.
func (a reply) waits(t *testing.T, most int) {
	t.Helper()
	if s, err := strconv.Atoi(a.after); err != nil || s < 1 || s > most {
		t.Errorf("status %d has the Retry-After %q, want 1 to %d", a.status, a.after, most)
	}
}

// An export of the audit log takes as long as its client needs, like a download. A page has a time
// limit.
func TestExportsHaveNoTimeLimit(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	for path, limited := range map[string]bool{"/console/audit/export": false, "/console/audit": true} {
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		c.Service.Wrapped(c.Service.Limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, bounded := r.Context().Deadline(); bounded != limited || w.write.IsZero() == limited {
				t.Errorf("%s: the request has a time limit: %v, and the response ends at %v", path, bounded, w.write)
			}
		}))).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if control := w.Header().Get("Cache-Control"); control != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, control)
		}
	}
}

// deadlineRecorder records the write deadline of a response.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	write time.Time
}

// SetWriteDeadline implements the method that [http.ResponseController] looks for.
func (w *deadlineRecorder) SetWriteDeadline(t time.Time) error {
	w.write = t
	return nil
}

// Three processes over one PostgreSQL together let a credential, and an address, do as much as the
// limit says.
func TestRatesAreSharedByReplicas(t *testing.T) {
	t.Parallel()
	const perKey, perAddress = 200, 60
	database, dir := cloudtest.Postgres(t), t.TempDir()
	limits := fmt.Sprintf("requests_per_credential: %d, sign_in_requests_per_address: %d", perKey, perAddress)
	var all []*replica
	var key string
	for range 3 {
		r, k := startLimited(t, database, dir, limits)
		all, key = append(all, r), k
	}
	for name, tt := range map[string]struct {
		path, key string
		limit     int
	}{
		"credential": {api.MountAgent + "/snapshots?limit=1", key, perKey},
		"address":    {api.PathAuthConfig, "", perAddress},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var mu sync.Mutex
			var wg sync.WaitGroup
			through, tries := 0, 3*tt.limit
			for worker := range 9 {
				wg.Go(func() {
					for range tries / 9 {
						a, err := ask(t.Context(), http.DefaultClient, http.MethodGet, all[worker%3].url+tt.path,
							tt.key)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						switch a.status {
						case http.StatusOK:
							through++
						case http.StatusTooManyRequests:
							if a.waits(t, 60); a.code != snap.CodeRateLimited {
								t.Errorf("code %s", a.code)
							}
						default:
							t.Errorf("status %d", a.status)
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			earned := int(float64(tt.limit) * time.Since(began).Minutes())
			if share := 3 * tt.limit / 20; through < tt.limit-share || through > tt.limit+share+earned+1 {
				t.Errorf("%d of %d requests were let through, want %d, give or take %d, and %d that were earned "+
					"meanwhile",
					through, tries, tt.limit, share, earned)
			}
		})
	}
	if a := mustAsk(t, http.MethodGet, all[0].url+api.MountAgent+"/snapshots",
		newKey(t, store.Options{URL: database, DataDir: dir})); a.status != http.StatusOK {
		t.Errorf("another credential got status %d", a.status)
	}
}

// With too much work, the service asks clients to retry later, continues its running requests,
// answers health checks and sign-ins, and recovers at once.
func TestOverloadShedsAndRecovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, key := startLimited(t, "", dir,
		"concurrent_requests: 2, queued_requests: 3, queue_wait: 300ms, connections: 2000")
	list := r.url + api.MountAgent + "/snapshots?limit=1"
	if a := mustAsk(t, http.MethodGet, list, key); a.status != http.StatusOK {
		t.Fatalf("status %d before", a.status)
	}
	s, err := store.Open(t.Context(), store.Options{DataDir: dir})
	must(t, err)
	defer s.Close()
	froze := time.Now()
	frozen, err := s.Freeze(t.Context())
	must(t, err)
	// The stuck requests give up after 15 s, and a slow machine may need that long for this test.
	gaveUp := func() bool { return time.Since(froze) > 14*time.Second }

	stuck := make(chan reply, 2) // they need to write, and cannot
	for range 2 {
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+api.MountAgent+"/channels",
				strings.NewReader(`{"target":"shop","type":"sanitized"}`))
			req.Header.Set("Authorization", "Bearer "+key)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				stuck <- reply{}
				return
			}
			res.Body.Close()
			stuck <- reply{status: res.StatusCode}
		}()
	}
	for { // until both requests are being served
		a := mustAsk(t, http.MethodGet, list, key)
		if a.status == http.StatusServiceUnavailable {
			if a.waits(t, 3); a.code != snap.CodeUnavailable {
				t.Errorf("code %s", a.code)
			}
			break
		}
	}
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 500}}
	for range 500 {
		wg.Go(func() {
			a, err := ask(t.Context(), client, http.MethodGet, list, key)
			if free := a.status == http.StatusOK && gaveUp(); err != nil ||
				a.status != http.StatusServiceUnavailable && !free {
				t.Errorf("in the middle of it: %+v, %v", a, err)
			}
		})
	}
	wg.Wait()
	for _, path := range []string{"/healthz", "/readyz", api.PathAuthConfig, "/auth/signin"} {
		if a := mustAsk(t, http.MethodGet, r.url+path, ""); a.status != http.StatusOK {
			t.Errorf("%s answers %d", path, a.status)
		}
	}
	must(t, frozen.Release())
	late := gaveUp()
	for range 2 {
		if a := <-stuck; a.status != http.StatusOK && a.status != http.StatusConflict && !late {
			t.Errorf("a request that was running before the overload got status %d", a.status)
		}
	}
	for range 20 {
		if a := mustAsk(t, http.MethodGet, list, key); a.status != http.StatusOK {
			t.Errorf("afterwards: status %d", a.status)
		}
	}
	r.within(500 << 20) // with the race detector; a third of it without
}

// within checks the peak memory of the process.
func (r *replica) within(most int64) {
	r.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		r.t.Log("the process's memory is not known here")
		return
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	must(r.t, err)
	if kb<<10 > most {
		r.t.Errorf("the process had %d MiB, want at most %d", kb>>10, most>>20)
	}
}

// Thousands of clients that connect and then send nothing, or only half of a header, a body or a
// form, do not keep the service from answering other clients.
func TestSlowAndIdleClientsDoNoHarm(t *testing.T) {
	t.Parallel()
	for name, sends := range map[string]string{
		"nothing":       "",
		"half a header": "GET /api/v1/agents/snapshots HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"half a body": "POST /api/v1/agents/snapshots HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
			"KEY\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
		"half a form": "POST /auth/token HTTP/1.1\r\nHost: x\r\nContent-Type: " +
			"application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\na=",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, key := startLimited(t, "", t.TempDir(),
				"connections: 4000, concurrent_requests: 4, concurrent_sign_ins: 4, queue_wait: 10s")
			sends := strings.ReplaceAll(sends, "KEY", key)
			address := strings.TrimPrefix(r.url, "http://")
			for range 2100 {
				c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
				must(t, err)
				defer c.Close()
				_, err = io.WriteString(c, sends)
				must(t, err)
			}
			for range 20 {
				for _, path := range []string{"/healthz", "/auth/signin", api.MountAgent + "/snapshots"} {
					if a := mustAsk(t, http.MethodGet, r.url+path,
						map[bool]string{true: key}[strings.HasPrefix(path,
							api.MountAgent)]); a.status != http.StatusOK {
						t.Fatalf("%s answers %d", path, a.status)
					}
				}
			}
			r.within(500 << 20) // with the race detector; a third of it without
		})
	}
}

// The number of connections never exceeds the limit: the connection that has waited longest makes
// room for a new one, and every request is answered.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 100
	r, _ := startLimited(t, "", t.TempDir(), fmt.Sprintf("connections: %d", most))
	address := strings.TrimPrefix(r.url, "http://")
	var idle []net.Conn
	for range 5 * most {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		must(t, err)
		defer c.Close()
		idle = append(idle, c)
	}
	for range 50 {
		if a := mustAsk(t, http.MethodGet, r.url+"/healthz", ""); a.status != http.StatusOK {
			t.Fatalf("status %d", a.status)
		}
	}
	for _, c := range idle[:4*most-1] { // they were closed in favor of others
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("an idle connection got an answer")
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid))
	if err == nil && len(files) > most+60 {
		t.Errorf("the process has %d open files", len(files))
	}
}

// Headers and bodies have a size beyond which nothing is read.
func TestFloodsOfBytesAreRefused(t *testing.T) {
	t.Parallel()
	r, key := startLimited(t, "", t.TempDir(), "")
	address := strings.TrimPrefix(r.url, "http://")
	big := strings.Repeat("x", 2<<20)
	for name, tt := range map[string]struct {
		request string
		status  int
	}{
		"one long header": {"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + big[:200<<10] + "\r\n\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		"many headers": {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: b\r\n", 20<<10) + "\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		"a long URL": {"GET /" + big[:200<<10] + " HTTP/1.1\r\nHost: x\r\n\r\n",
			http.StatusRequestHeaderFieldsTooLarge},
		"an announced body": {"POST /api/v1/agents/snapshots HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key +
			"\r\nContent-Length: 99999999999\r\n\r\n", http.StatusRequestEntityTooLarge},
		"a chunked body": {"POST /api/v1/agents/snapshots HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key +
			"\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(big), big), http.StatusRequestEntityTooLarge},
		"a form": {"POST /auth/token HTTP/1.1\r\nHost: x\r\nContent-Type: " +
			"application/x-www-form-urlencoded\r\nContent-Length: 9999999\r\n\r\n", http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
			must(t, err)
			defer c.Close()
			go io.WriteString(c, tt.request) // it ends when the service closes the connection
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			must(t, err)
			res.Body.Close()
			if res.StatusCode != tt.status {
				t.Errorf("status %d, want %d", res.StatusCode, tt.status)
			}
		})
	}
}

// RFC 9112 section 6.3: after a request with both Content-Length and
// Transfer-Encoding, which may be an attempt to smuggle another one in, the
// connection is closed.
func TestTwoLengthsCloseTheConnection(t *testing.T) {
	t.Parallel()
	r, _ := startLimited(t, "", t.TempDir(), "")
	const next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for headers, closes := range map[string]bool{
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n": true,
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n": true,
		"Content-Length: 5\r\n":                               false,
	} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
		must(t, err)
		defer c.Close()
		go io.WriteString(c, "POST /auth/token HTTP/1.1\r\nHost: x\r\n"+headers+"\r\n0\r\n\r\n"+next)
		in := bufio.NewReader(c)
		res, err := http.ReadResponse(in, nil)
		must(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		must(t, err)
		_, err = http.ReadResponse(in, nil)
		if res.Close != closes || (err != nil) != closes {
			t.Errorf("%q: closed %v, and the next request: %v", headers, res.Close, err)
		}
	}
}

// A download may take any time while its bytes move; a stalled one is ended. The test runs in a
// bubble of testing/synctest, where time passes only while all goroutines wait.
func TestDownloadsMoveOrEnd(t *testing.T) {
	t.Parallel()
	const size, stall = 8 << 20, time.Minute
	for name, tt := range map[string]struct {
		pause time.Duration // before every half of a MiB
		whole bool
	}{"slow": {stall / 4, true}, "still": {2 * stall, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, ended := download(t, size, stall)
				_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				must(t, err)
				res, err := http.ReadResponse(bufio.NewReader(client), nil)
				must(t, err)
				for err == nil {
					<-time.After(tt.pause)
					_, err = io.CopyN(io.Discard, res.Body, 512<<10)
				}
				if err := <-ended; (err == nil) != tt.whole {
					t.Errorf("sending ended with %v; want all of it sent: %v", err, tt.whole)
				}
			})
		})
	}
}

// A delta that is sent too slowly ends, so that its client does not keep a slot. The lowest rate is
// 16 KiB a second.
func TestDeltasArriveOrEnd(t *testing.T) {
	t.Parallel()
	const size, stall = 4 << 20, time.Minute
	for name, tt := range map[string]struct {
		pause time.Duration // before every piece
		piece int
		whole bool
	}{"slow": {time.Second, 16 << 10, true}, "still": {2 * stall, 1 << 10, false}, "bytes": {stall / 2, 1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, ended := serveOne(t, func(w http.ResponseWriter, r *http.Request) error {
					n, err := io.Copy(io.Discard, cloud.Steady(w, r, stall))
					if err == nil && n != size {
						err = io.ErrUnexpectedEOF
					}
					return err
				})
				_, err := fmt.Fprintf(client, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size)
				must(t, err)
				var sending sync.WaitGroup
				sending.Go(func() {
					for sent := 0; sent < size && err == nil; sent += tt.piece {
						<-time.After(tt.pause)
						_, err = client.Write(make([]byte, tt.piece))
					}
				})
				if err := <-ended; (err == nil) != tt.whole {
					t.Errorf("receiving ended with %v; want all of it received: %v", err, tt.whole)
				}
				client.Close()
				sending.Wait()
				<-time.After(time.Minute) // until the server has closed the connection
			})
		})
	}
}

// download serves one connection, with a file of this size, and returns its
// other end and how it ended.
func download(t *testing.T, size int64, stall time.Duration) (client net.Conn, ended chan error) {
	return serveOne(t, func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(loadcontrol.WithStallTimeout(w, r, stall), io.LimitReader(zeros{}, size))
		return err
	})
}

// serveOne serves one connection, and returns its other end and the result of its first request.
func serveOne(t *testing.T, serve func(http.ResponseWriter, *http.Request) error) (client net.Conn, ended chan error) {
	client, service := net.Pipe()
	ended = make(chan error, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ended <- serve(w, r)
	})}
	l := &oneConnection{conns: make(chan net.Conn, 1)}
	l.conns <- service
	go server.Serve(l)
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, ended
}

// oneConnection is a listener that accepts only the given connections.
type oneConnection struct {
	conns chan net.Conn
	once  sync.Once
}

// Accept implements [net.Listener].
func (l *oneConnection) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Addr implements [net.Listener].
func (l *oneConnection) Addr() net.Addr { return &net.TCPAddr{} }

// Close implements [net.Listener].
func (l *oneConnection) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A handler that sets a deadline for reading a body that has already arrived ends neither its own
// request nor later ones on the connection.
func TestArrivedBodiesHaveNoDeadline(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	server := httptest.NewServer(c.Service.Limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Millisecond))
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusServiceUnavailable)
		case <-time.After(100 * time.Millisecond):
			io.Copy(w, r.Body)
		}
	})))
	defer server.Close()
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("body"))
		must(t, err)
		res, err := server.Client().Do(req)
		must(t, err)
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || string(text) != "body" {
			t.Errorf("status %d, %q, %v", res.StatusCode, text, err)
		}
	}
}
