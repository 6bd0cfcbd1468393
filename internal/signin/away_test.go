package signin_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"snap/internal/signin"
	"snap/internal/store"
)

// road is a connection to a database until it is closed.
type road struct {
	net.Listener
	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

func newRoad(t *testing.T, to string) *road {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{Listener: l}
	t.Cleanup(r.close)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			r.keep(in, out)
			go func() { io.Copy(out, in); out.Close() }()
			go func() { io.Copy(in, out); in.Close() }()
		}
	}()
	return r
}

// keep notes connections, which end with the road.
func (r *road) keep(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	for _, c := range conns {
		if r.closed {
			c.Close()
		}
	}
}

func (r *road) close() {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.conns {
		c.Close()
	}
}

// While the database is down, pages and the token endpoint respond with 503 and Retry-After, as the
// API does, and reveal nothing about the cause.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	way := newRoad(t, database.Host)
	database.Host = way.Addr().String()
	c := newClock()
	h := (&house{t: t, clock: c, log: &syncBuffer{}}).open(store.Options{URL: database.String(), Now: c.Now},
		[]signin.Organization{acme()})
	in := h.browser()
	page := in.get("/auth/signin")
	way.close()
	token := h.post("/token", "grant_type", "refresh_token", "client_id", "snapcli", "refresh_token", "none")
	for path, a := range map[string]answer{"/auth/token": token,
		"/auth/signin": in.submit(page, "/auth/signin", "email", "mia@acme.test", "password", "x")} {
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%s while the database is away: %d, Retry-After %q: %s", path, a.status,
				a.header.Get("Retry-After"),
				a.body)
		}
		if strings.Contains(a.body, "127.0.0.1") {
			t.Errorf("%s tells what broke: %s", path, a.body)
		}
	}
}
