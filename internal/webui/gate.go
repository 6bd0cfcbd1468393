package webui

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"snap"
)

// This file decides who may use the web UI, before any handler runs:
//
//	L1  the web UI listens on loopback only, unless configured otherwise (listen.go)
//	L2  the Host header must name the address at which the connection arrived:
//	    a foreign page whose host name resolves to 127.0.0.1 is refused
//	L3  a browser must have the cookie from a one-time start link;
//	    requests that change something must come from our own pages, and so
//	    must event streams; no other origin has access
//	L4  this process makes every page itself; the cloud client and its token
//	    never leave it

// gate keeps hashes of the unused start links, and of the cookies of the browsers that used a link.
type gate struct {
	hosts []string
	cross *http.CrossOriginProtection
	used  func() // called after a link was used; may be nil

	mu       sync.Mutex
	links    map[[sha256.Size]byte]bool
	browsers map[[sha256.Size]byte]bool
}

func newGate(hosts []string) *gate {
	return &gate{
		hosts: hosts, cross: http.NewCrossOriginProtection(),
		links: map[[sha256.Size]byte]bool{}, browsers: map[[sha256.Size]byte]bool{},
	}
}

const startPrefix = "/start/"

// link creates a start link that works once.
func (g *gate) link() string {
	token := rand.Text()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.links[sha256.Sum256([]byte(token))] = true
	return startPrefix + token
}

// redeem invalidates a link and returns the cookie's value. ok is false if the link does not exist
// or was used before.
func (g *gate) redeem(token string) (cookie string, ok bool) {
	sum := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.links[sum] {
		return "", false
	}
	delete(g.links, sum)
	cookie = rand.Text() + rand.Text()
	g.browsers[sha256.Sum256([]byte(cookie))] = true
	return cookie, true
}

func (g *gate) knows(r *http.Request) bool {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.browsers[sha256.Sum256([]byte(c.Value))]
}

// protect wraps the handlers. problem writes the response to a refused request.
func (g *gate) protect(next http.Handler, problem func(http.ResponseWriter, *http.Request, int, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !g.hostAllowed(r):
			problem(w, r, http.StatusMisdirectedRequest, errOtherAddress())
		case strings.HasPrefix(r.URL.Path, "/assets/"):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, startPrefix):
			g.start(w, r, problem)
		case !g.knows(r):
			problem(w, r, http.StatusUnauthorized, errNoStartLink())
		case g.cross.Check(r) != nil || foreign(r):
			problem(w, r, http.StatusForbidden, errOtherSite())
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (g *gate) start(w http.ResponseWriter, r *http.Request,
	problem func(http.ResponseWriter, *http.Request, int, error)) {
	if g.knows(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	value, ok := g.redeem(strings.TrimPrefix(r.URL.Path, startPrefix))
	if !ok {
		problem(w, r, http.StatusUnauthorized, errStartLinkUsed())
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: value, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
	if g.used != nil {
		g.used()
	}
}

// hostAllowed implements L2. It allows loopback, by name or address, and the local address of the
// connection, both only with the connection's port. It allows a configured host name with any port,
// because a proxy in front may use another port.
func (g *gate) hostAllowed(r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.Trim(r.Host, "[]"), "80"
	}
	if slices.ContainsFunc(g.hosts, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	at, ok := localAddr(r)
	if !ok || port != strconv.Itoa(int(at.Port())) {
		return false
	}
	if snap.IsLoopback(host) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap() == at.Addr().Unmap()
}

func localAddr(r *http.Request) (netip.AddrPort, bool) {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	return addr.AddrPort(), true
}

// cookieName returns a name that contains the port, because browsers share cookies between ports.
func cookieName(r *http.Request) string {
	at, _ := localAddr(r)
	return "snapcli_" + strconv.Itoa(int(at.Port()))
}

// foreign reports whether the Origin or Sec-Fetch headers say that a page of another origin sent
// the request. Opening a link on another site is not foreign.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
		return true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "" || site == "same-origin" || site == "none" {
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
