package webui

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"snap"
	"snap/internal/cloudtest"
)

// L1: only loopback, unless an explicit flag allows more.
func TestListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "example.org:80"} {
		ln, err := listen(t.Context(), address, false)
		if err == nil {
			ln.Close()
		}
		if snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("listen on %s: %v, want a usage error", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		ln, err := listen(t.Context(), address, false)
		if err != nil {
			t.Errorf("listen on %s: %v", address, err)
			continue
		}
		ln.Close()
	}
	ln, err := listen(t.Context(), "0.0.0.0:0", true)
	if err != nil {
		t.Fatalf("with the flag: %v", err)
	}
	ln.Close()
}

// L1: Run refuses before anything is served.
func TestRunRefusesOtherAddresses(t *testing.T) {
	t.Parallel()
	u := startUI(t, nil, "")
	err := Run(t.Context(), Options{Agent: u.Agent, Listen: "0.0.0.0:0"})
	if snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("run on all addresses: %v, want a usage error", err)
	}
}

// TestBaseURL checks the address that Run prints.
func TestBaseURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"127.0.0.1:8484": "http://127.0.0.1:8484",
		"[::1]:8484": "http://[::1]:8484", "0.0.0.0:8484": "http://db.acme.test:8484",
		"[::]:8484": "http://db.acme.test:8484"} {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
		if got := baseURL(at, []string{"db.acme.test", "other.test"}); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestTheNextFreePortIsTaken(t *testing.T) {
	t.Parallel()
	first, err := listen(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := listen(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if first.Addr().String() == second.Addr().String() {
		t.Errorf("both listen on %s", first.Addr())
	}
	for _, at := range []string{first.Addr().String(), second.Addr().String()} {
		if !strings.HasPrefix(at, "127.0.0.1:") {
			t.Errorf("listens on %s", at)
		}
	}
}

// L2: a Host that is not ours is refused, even when the Origin matches it and the cookie is right.
func TestForeignHostsAreRefused(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "")
	port := u.URL[strings.LastIndex(u.URL, ":"):]
	for _, host := range []string{"evil.test", "evil.test" + port, "127.0.0.1", "127.0.0.1:1", "localhost.evil.test" +
		port, "192.0.2.1" + port} {
		a := u.get("/snapshots", "Host", host, "Origin", "http://"+host)
		if a.Status != http.StatusMisdirectedRequest {
			t.Errorf("Host %q answered %d, want 421", host, a.Status)
		}
	}
	for _, host := range []string{"127.0.0.1" + port, "localhost" + port, "[::1]" + port} {
		if a := u.get("/snapshots", "Host", host); a.Status == http.StatusMisdirectedRequest {
			t.Errorf("Host %q was refused", host)
		}
	}
}

// L3: without the cookie of a start link nothing is shown or done, but assets.
func TestNothingWithoutTheStartLink(t *testing.T) {
	t.Parallel()
	u := startUI(t, nil, "")
	for _, path := range []string{"/", "/snapshots", "/events", "/account", "/targets", "/jobs",
		"/cloud/snap_x/sharing",
		"/start/", "/start/wrong"} {
		u.must(u.get(path), http.StatusUnauthorized, "start link")
	}
	u.must(u.post("/cloud/snap_x/share", url.Values{"shared": {"true"}}), http.StatusUnauthorized)
	u.must(u.get(u.Server.assets.URL("app.css")), http.StatusOK)
	u.must(u.get("/snapshots", "Cookie", "snapcli_1=x"), http.StatusUnauthorized)
}

// L3: a start link works only in the browser that opens it first.
func TestAStartLinkWorksOnce(t *testing.T) {
	t.Parallel()
	u := startUI(t, nil, "")
	link := u.Server.StartPath()
	if a := u.do(http.MethodHead, link, nil); a.Status != http.StatusUnauthorized {
		t.Errorf("HEAD of the link answered %d", a.Status)
	}
	first := u.get(link)
	u.must(first, http.StatusOK)
	u.must(u.get(link), http.StatusOK) // the browser that has the cookie
	other := startUI(t, nil, "")
	u.http.Jar = other.http.Jar
	u.must(u.get(link), http.StatusUnauthorized, "already used")
}

// L3: the cookie cannot be read by script and is not sent by other sites.
func TestTheCookieIsStrict(t *testing.T) {
	t.Parallel()
	u := startUI(t, nil, "")
	u.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := u.get(u.Server.StartPath())
	cookie := a.Header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Domain") {
		t.Errorf("cookie %q names a domain", cookie)
	}
}

// L3: requests that change something, fragments and event streams must come
// from our own pages; nothing is opened to other origins.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "")
	tries := [][]string{
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"},
		{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"},
		{"Origin", "http://evil.test"},
		{"Origin", "http://localhost:1"},
	}
	for _, header := range tries {
		for _, path := range []string{"/events", "/snapshots"} {
			if a := u.get(path, header...); a.Status != http.StatusForbidden {
				t.Errorf("GET %s with %v answered %d, want 403", path, header, a.Status)
			}
		}
		if a := u.do(http.MethodPost, "/jobs/1/cancel", url.Values{}, header...); a.Status != http.StatusForbidden {
			t.Errorf("POST with %v answered %d, want 403", header, a.Status)
		}
	}
	a := u.get("/snapshots")
	if got := a.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("opened to the origin %q", got)
	}
	if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") ||
		strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
}

// L3: a request that changes something needs POST.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	u := openUI(t, nil, "")
	for _, path := range []string{"/cloud/snap_x/groups", "/cloud/snap_x/pull", "/local/x/push", "/targets/x/build",
		"/jobs/1/cancel"} {
		if a := u.get(path); a.Status != http.StatusMethodNotAllowed && a.Status != http.StatusNotFound {
			t.Errorf("GET %s answered %d", path, a.Status)
		}
	}
}

// L4: no response contains the cloud credential.
func TestTheCloudTokenStaysHere(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	key := c.Key("alice@acme.test")
	client := c.Client(key)
	item := c.Push(client, "shop", []byte("bytes"))
	u := openUI(t, client,
		"cloud: {url: \""+c.URL+"\", api_key: \""+key+"\"}\ntargets: {shop: {source: "+
			"\"postgres://u:s3cret-password@h/shop\"}}\n")
	var all []answer
	for _, path := range []string{"/snapshots", "/snapshots?show=cloud", "/targets", "/jobs", "/account",
		"/cloud/" + item.ID + "/sharing", "/cloud/" + item.ID + "/delete", "/cloud/snap_0000000000000000/sharing",
		"/nothing"} {
		all = append(all, u.get(path), u.get(path, "Fragment", "1"))
	}
	all = append(all, u.post("/cloud/"+item.ID+"/share", url.Values{"shared": {"true"}}))
	for _, a := range all {
		var head strings.Builder
		if err := a.Header.Write(&head); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{key, key[4:20], "s3cret-password"} {
			if strings.Contains(a.Body+head.String(), secret) {
				t.Errorf("%s holds a secret", a.URL)
			}
		}
	}
}

// TestRunEndsWithItsContext checks that Run ends, and that the link that it prints works even if it
// listens on all addresses.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	u := startUI(t, nil, "")
	ctx, stop := context.WithCancel(t.Context())
	out := &lockedBuffer{}
	done := make(chan error, 1)
	opened := make(chan string, 1)
	go func() {
		done <- Run(ctx, Options{Agent: u.Agent, Listen: "0.0.0.0:0", AllowRemote: true, Out: out, Open: true,
			Browse: func(link string) error {
				opened <- link
				return nil
			}})
	}()
	var link string
	select {
	case link = <-opened:
	case err := <-done:
		t.Fatalf("run: %v", err)
	}
	res, err := u.http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the link answered %d", res.StatusCode)
	}
	events, err := u.http.Get(strings.Split(link, "/start/")[0] + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	if snap.IsLoopback(res.Request.URL.Hostname()) && ownAddress(true) != defaultHost {
		t.Errorf("the link %s does not work on another machine", link)
	}
	if !strings.Contains(out.String(), link) || !strings.Contains(out.String(), "another browser") {
		t.Errorf("told:\n%s", out.String())
	}
}
