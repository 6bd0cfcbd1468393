package signin_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/signin"
	"snap/internal/store"
)

func storeIn(h *house) store.Options { return store.Options{DataDir: h.dir, Now: h.clock.Now} }

func (h *house) member(slug, email string) (snap.Member, error) {
	h.t.Helper()
	org, err := h.store.OrgBySlug(h.t.Context(), slug)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.store.UserByEmail(h.t.Context(), org.ID, email)
}

const startAcme = "/auth/upstream/start?organization=acme&next=/auth/account"

// SPEC 5.3 rule 4: sign in at the identity provider; the account has its role
// and groups, and the device login continues from there.
func TestSignInUpstream(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 1)
	idps[0].claims = map[string]any{"groups": []string{"eng", "admins"}}
	deviceCode, userCode := h.device()
	b := h.browser()
	page := b.submit(b.get("/auth/device?user_code="+userCode), "/auth/device", "user_code", userCode)
	link := page.body[strings.Index(page.body, "/auth/upstream/start"):]
	link = strings.ReplaceAll(link[:strings.Index(link, `"`)], "&amp;", "&")
	page = b.get(link)
	if page.url.Path != "/auth/device/confirm" || !strings.Contains(page.body, "mia@acme.test, admin of Acme") {
		t.Fatalf("after the sign-in: %s %d %s", page.url, page.status, page.body)
	}
	b.submit(page, "/auth/device/confirm", "user_code", userCode, "decision", "approve")
	got := tokensOf(t, h.poll(deviceCode))
	if a := h.api(got.access); a.body != "mia@acme.test admin" {
		t.Errorf("API: %s", a.body)
	}
	m, err := h.member("acme", "mia@acme.test")
	if err != nil || len(m.Groups) != 2 || m.GroupsUnknown || !m.GroupsAsOf.Equal(h.clock.Now()) {
		t.Errorf("member %+v, %v", m, err)
	}
}

// F1: every altered response is refused, and nobody is signed in.
func TestAlteredAnswersAreRefused(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 1)
	p := idps[0]
	for name, lie := range map[string]func(*idp){
		"state":            func(p *idp) { p.answer = url.Values{"state": {"other"}} },
		"no state":         func(p *idp) { p.answer = url.Values{"state": {""}} },
		"issuer in answer": func(p *idp) { p.answer = url.Values{"iss": {"https://evil.test"}} },
		"no issuer":        func(p *idp) { p.answer = url.Values{"iss": {""}} },
		"code":             func(p *idp) { p.answer = url.Values{"code": {"other"}} },
		"error":            func(p *idp) { p.answer = url.Values{"error": {"access_denied"}, "code": {""}} },
		"nonce":            func(p *idp) { p.claims = map[string]any{"nonce": "other"} },
		"audience":         func(p *idp) { p.claims = map[string]any{"aud": "other"} },
		"issuer in token":  func(p *idp) { p.claims = map[string]any{"iss": "https://evil.test"} },
		"expired":          func(p *idp) { p.claims = map[string]any{"exp": p.clock.Now().Add(-time.Minute).Unix()} },
		"HS256":            func(p *idp) { p.header = "HS256" },
		"at_hash":          func(p *idp) { p.claims = map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"} },
		"userinfo of other": func(p *idp) {
			p.userinfo = map[string]any{"sub": "subject-2", "groups": []string{"admins"}}
		},
	} {
		p.lie(func(p *idp) {
			p.claims, p.answer, p.header, p.userinfo = nil, nil, "", map[string]any{"sub": "subject-1"}
			lie(p)
		})
		b := h.browser()
		if a := b.get(startAcme); a.status < 400 || !strings.Contains(a.body, "<h1>") {
			t.Errorf("%s: page %d at %s", name, a.status, a.url)
		}
		if a := b.get("/api/user"); a.status != http.StatusUnauthorized {
			t.Errorf("%s: signed in as %s", name, a.body)
		}
	}
	p.lie(func(p *idp) {
		p.claims, p.answer, p.header = map[string]any{"name": "a\x00"}, nil, ""
		p.userinfo = map[string]any{"sub": "subject-1"}
	})
	a := h.browser().get(startAcme)
	if a.status != http.StatusForbidden || !strings.Contains(a.body, "the claim name") {
		t.Errorf("a name that cannot be stored: %d %s", a.status, a.body)
	}
}

// F1: a response counts once, and only in the browser that asked.
func TestAnswerIsBoundToTheBrowser(t *testing.T) {
	t.Parallel()
	h, _ := startWith(t, 1)
	for name, attack := range map[string]func(victim, attacker *browser, answer string) answer{
		"another browser": func(_, attacker *browser, answer string) answer {
			attacker.get("/auth/signin")
			return attacker.get(answer)
		},
		"no cookie": func(_, attacker *browser, answer string) answer { return attacker.get(answer) },
		"twice": func(victim, _ *browser, answer string) answer {
			victim.get(answer)
			return victim.get(answer)
		},
	} {
		victim, attacker := h.browser(), h.browser()
		var answer string
		victim.c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if strings.HasSuffix(r.URL.Path, "/callback") {
				answer = r.URL.RequestURI()
				return http.ErrUseLastResponse
			}
			return nil
		}
		victim.get(startAcme)
		if a := attack(victim, attacker, answer); a.status < 400 {
			t.Errorf("%s: %d", name, a.status)
		}
		if a := attacker.get("/api/user"); a.status != http.StatusUnauthorized {
			t.Errorf("%s: the attacker is signed in as %s", name, a.body)
		}
	}
}

// C1, C2, C3: the auth service offers no authorization-code grant. As a client of identity
// providers it sends an S256 challenge and one exact redirect URI, and a second response with the
// same state has no effect.
func TestAuthorizationCodeRules(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 1)
	var asked url.Values
	b := h.browser()
	b.c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), idps[0].URL) {
			asked = r.URL.Query()
		}
		return nil
	}
	b.get(startAcme)
	if asked.Get("code_challenge_method") != "S256" || len(asked.Get("code_challenge")) != 43 ||
		asked.Get("redirect_uri") != h.url+"/auth/upstream/callback" {
		t.Errorf("authorization request %v", asked)
	}
	if a := b.get("/auth/upstream/callback?code=x&state=" + asked.Get("state") + "&iss=" +
		url.QueryEscape(idps[0].URL)); a.status != http.StatusNotFound {
		t.Errorf("the same state again: %d", a.status)
	}
	for _, fields := range [][]string{{"code", "x"}, {"code", "x", "code_verifier", "y"},
		{"code", "x", "redirect_uri", "https://evil.test/"}} {
		wantError(t, h.post("/token", append(fields, "grant_type", "authorization_code", "client_id", "snapcli")...),
			"unsupported_grant_type")
	}
}

// F3: groups come from the ID token, otherwise from userinfo. Absent groups are unknown, and the
// person sees that.
func TestWhereGroupsComeFrom(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 1)
	for _, tc := range []struct {
		name         string
		id, userinfo map[string]any
		want         string
		why          string // they are unknown
	}{
		{"ID token", map[string]any{"groups": []string{"eng"}},
			map[string]any{"sub": "subject-1", "groups": []string{"dba"}}, "eng", ""},
		{"userinfo", nil, map[string]any{"sub": "subject-1", "groups": []string{"dba"}}, "dba", ""},
		{"nowhere", nil, map[string]any{"sub": "subject-1"}, "",
			`The identity provider sent no groups claim named "groups"; ask your admin`},
		{"empty", map[string]any{"groups": []string{}}, nil, "", ""},
		{"overage", map[string]any{
			"_claim_names":   map[string]string{"groups": "src1"},
			"_claim_sources": map[string]any{"src1": map[string]string{"endpoint": "https://graph.windows.net/x"}},
		}, map[string]any{"sub": "subject-1"}, "",
			"You are in more groups than the identity provider puts into a token; ask your admin"},
		{"too many", map[string]any{"groups": manyGroups(2001)}, map[string]any{"sub": "subject-1"}, "",
			"You are in more than 2000 groups, which is too many; ask your admin"},
	} {
		idps[0].lie(func(p *idp) { p.claims, p.userinfo = tc.id, tc.userinfo })
		page := h.browser().get(startAcme)
		m, err := h.member("acme", "mia@acme.test")
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, g := range m.Groups {
			ids = append(ids, g.GroupID)
		}
		if strings.Join(ids, " ") != tc.want || m.GroupsUnknown != (tc.why != "") {
			t.Errorf("%s: groups %v, unknown %v", tc.name, ids, m.GroupsUnknown)
		}
		told := strings.Contains(page.body, "you have no access through group shares")
		if told != (tc.why != "") || !strings.Contains(html.UnescapeString(page.body), tc.why) {
			t.Errorf("%s: the person saw a reason: %v, want the reason %q", tc.name, told, tc.why)
		}
	}
	if !strings.Contains(h.log.String(), "too many") {
		t.Error("the log does not say why the groups are unknown")
	}
}

func manyGroups(n int) (groups []string) {
	for i := range n {
		groups = append(groups, fmt.Sprint("g", i))
	}
	return groups
}

// F4: issuer and subject identify an account. The same e-mail from two providers is two accounts,
// and an e-mail links nobody.
func TestAccountsAreIssuerAndSubject(t *testing.T) {
	t.Parallel()
	h, _ := startWith(t, 2)
	ids := map[int64]bool{}
	for _, slug := range []string{"acme", "globex"} {
		if page := h.browser().get("/auth/upstream/start?organization=" + slug); page.url.Path != "/auth/account" {
			t.Fatalf("%s: %d %s", slug, page.status, page.body)
		}
		m, err := h.member(slug, "mia@acme.test")
		if err != nil {
			t.Fatal(err)
		}
		ids[m.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("%d accounts, want 2", len(ids))
	}
}

// F4: the same provider and subject with another e-mail is the same account; another subject is
// another account.
func TestEmailLinksNobody(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 1)
	account := func(subject, email string) (id int64) {
		idps[0].lie(func(p *idp) {
			p.claims = map[string]any{"sub": subject, "email": email, "groups": []string{}}
			p.userinfo = map[string]any{"sub": subject}
		})
		b := h.browser()
		b.get(startAcme)
		m, err := h.member("acme", email)
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	first := account("subject-1", "mia@acme.test")
	renamed := account("subject-1", "mia.new@acme.test")
	if first != renamed {
		t.Errorf("a new e-mail made a new account: %d, %d", first, renamed)
	}
	h.clock.Advance(time.Millisecond) // so that the newest account with the e-mail is the next one
	if other := account("subject-2", "mia.new@acme.test"); other == first {
		t.Errorf("two subjects are one account: %d", first)
	}
}

// F6: while the provider is down, sign-in responds with 502, and keys and sessions keep working;
// the service also starts.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 1)
	idps[0].lie(func(p *idp) { p.claims = map[string]any{"groups": []string{}} })
	in := h.browser()
	in.get(startAcme)
	idps[0].lie(func(p *idp) { p.down = true })
	if a := in.get("/api/user"); a.status != http.StatusOK {
		t.Errorf("a running session while the provider is down: %d", a.status)
	}
	if a := in.submit(in.get("/auth/account"), "/auth/account/keys", "name", "ci"); a.status != http.StatusCreated {
		t.Errorf("a new key while the provider is down: %d", a.status)
	}
	restarted := start(t, idps[0].organization("acme"))
	page := restarted.browser().get(startAcme)
	if page.status != http.StatusBadGateway || !strings.Contains(page.body, "does not answer") {
		t.Errorf("sign-in while the provider is down: %d %s", page.status, page.body)
	}
	idps[0].lie(func(p *idp) { p.down = false })
	restarted.clock.Advance(h.clock.Now().Sub(restarted.clock.Now()))
	if page := restarted.browser().get(startAcme); page.url.Path != "/auth/account" {
		t.Errorf("sign-in after it came back: %d %s", page.status, page.body)
	}
	idps[0].lie(func(p *idp) { p.metadata = map[string]any{"jwks_uri": p.URL + "/nothing"} })
	h.serve([]signin.Organization{idps[0].organization("acme")}) // again, so that nothing is cached
	if page := h.browser().get(startAcme); page.status != http.StatusBadGateway ||
		!strings.Contains(page.body, "does not answer") {
		t.Errorf("sign-in without the provider's keys: %d %s", page.status, page.body)
	}
}

// A role that depends on groups stays the last known one when the provider
// sends none; at a first sign-in it is the least that it can be.
func TestRoleWithoutGroups(t *testing.T) {
	t.Parallel()
	clock := newClock()
	p := newIDP(t, clock)
	org := p.organization("acme")
	org.OIDC.Roles = map[snap.Role][]string{snap.RoleAdmin: {"admins"}, snap.RoleViewer: {"contractors"}}
	h := (&house{t: t, dir: t.TempDir(), clock: clock, log: &syncBuffer{}}).begin([]signin.Organization{org})
	for _, tc := range []struct {
		name, subject string
		groups        []string
		want          snap.Role
	}{
		{"first, unknown", "subject-9", nil, snap.RoleViewer},
		{"member", "subject-1", []string{"eng"}, snap.RoleMember},
		{"unknown", "subject-1", nil, snap.RoleMember},
		{"admin", "subject-1", []string{"admins"}, snap.RoleAdmin},
		{"unknown again", "subject-1", nil, snap.RoleAdmin},
		{"contractor", "subject-1", []string{"contractors"}, snap.RoleViewer},
		{"still unknown", "subject-1", nil, snap.RoleViewer},
	} {
		email := tc.subject + "@acme.test"
		claims := map[string]any{"sub": tc.subject, "email": email, "email_verified": true}
		if tc.groups != nil {
			claims["groups"] = tc.groups
		}
		p.lie(func(p *idp) { p.claims, p.userinfo = claims, map[string]any{"sub": tc.subject} })
		page := h.browser().get(startAcme)
		m, err := h.member("acme", email)
		if err != nil {
			t.Fatalf("%s: %v, %s", tc.name, err, page.body)
		}
		if m.Role != tc.want || m.GroupsUnknown != (tc.groups == nil) {
			t.Errorf("%s: role %s, want %s", tc.name, m.Role, tc.want)
		}
		if says := "until then your role stays " + string(tc.want); strings.Contains(page.body,
			says) != (tc.groups == nil) {
			t.Errorf("%s: the page should say %q: %s", tc.name, says, page.body)
		}
	}
}

// One organization's provider cannot get the code of another's by forwarding a sign-in to it (RFC
// 9700 section 4.4). Providers that do not name themselves in their responses have a redirect URI
// for each organization.
func TestProvidersAreNotMixedUp(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 2)
	acme, globex := idps[0], idps[1]
	codes := 0
	for _, p := range idps {
		p.lie(func(p *idp) {
			p.metadata = map[string]any{"authorization_response_iss_parameter_supported": false}
			p.answer = url.Values{"iss": {""}}
		})
	}
	globex.lie(func(p *idp) { p.during = func() { codes++ } })
	asked := func(b *browser, slug string, p *idp) url.Values {
		var q url.Values
		b.c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.String(), p.URL) {
				q = r.URL.Query()
				return http.ErrUseLastResponse
			}
			return nil
		}
		b.get("/auth/upstream/start?organization=" + slug)
		b.c.CheckRedirect = nil
		return q
	}
	for _, path := range []string{"", "/acme"} { // the URIs that acme's provider may know
		mallory, mia := h.browser(), h.browser()
		q := asked(mallory, "acme", acme)
		q.Set("state", asked(mia, "globex", globex).Get("state"))
		q.Set("redirect_uri", h.url+"/auth/upstream/callback"+path)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, acme.URL+"/authorize?"+q.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := h.do(mia.c, r); a.status != http.StatusForbidden || codes != 0 {
			t.Errorf("a response to %q: %d, and the other provider got %d codes: %s", path, a.status, codes, a.body)
		}
	}
	for slug, p := range map[string]*idp{"acme": acme, "globex": globex} {
		b := h.browser()
		if q := asked(b, slug, p); q.Get("redirect_uri") != h.url+"/auth/upstream/callback/"+slug {
			t.Errorf("%s: the redirect URI is %s", slug, q.Get("redirect_uri"))
		}
		if a := b.get("/auth/upstream/start?organization=" + slug); a.status != http.StatusOK {
			t.Errorf("%s: an honest sign-in: %d %s", slug, a.status, a.body)
		}
	}
}
