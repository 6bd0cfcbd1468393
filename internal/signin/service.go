package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/look"
	"snap/internal/store"
)

// LocalUser is a user listed in the configuration.
type LocalUser struct {
	Email, Name string
	Password    string // plain text or a bcrypt hash
	Role        snap.Role
	Groups      []string
}

// OIDC is an organization's OpenID Connect identity provider.
type OIDC struct {
	Issuer, ClientID, ClientSecret string
	Scopes                         []string // empty means openid, profile, email
	Claims                         auth.ClaimNames
	Roles                          map[snap.Role][]string
	AllowPrivate                   bool // the issuer may be on a private or loopback address, and use plain http
}

// Organization describes how the people of one organization sign in. Exactly one of Local and OIDC
// is set.
type Organization struct {
	Slug    string
	Domains []string // e-mail domains of its people, in addition to those of Local
	Local   []LocalUser
	OIDC    *OIDC
	// Recheck is how often the identity provider is asked to confirm a user. MaxStaleness is how
	// long a user may remain unconfirmed. MaxLogin is how long after the last sign-in a session
	// ends. Zero means the default.
	Recheck, MaxStaleness, MaxLogin time.Duration
	Trust                           []Trust // rules for CI jobs; the first that accepts a job applies
}

// Options configures a [Service].
type Options struct {
	PublicURL         string // of the whole service; the issuer is {PublicURL}/auth
	ClientID          string // of the command line
	Audience          string // of the access tokens; empty means PublicURL
	Organizations     []Organization
	ListOrganizations bool             // the sign-in page shows the list of organizations to everybody
	TrustedProxies    []netip.Prefix   // proxies whose X-Forwarded-For is trusted
	Sealer            *auth.Sealer     // encrypts signing keys and refresh tokens; nil stores plain keys, no tokens
	Now               func() time.Time // nil is time.Now
	Log               *slog.Logger     // nil is slog.Default
	// Count is called with the outcome of each sign-in, refresh, token exchange and logout by the
	// provider. The method is password, provider, device, refresh, exchange or logout. The outcome
	// is ok, wrong, limited, refused, expired, reused, unavailable or failed. Count may be nil.
	Count func(method, outcome string)
}

// Service is the auth service. It is safe for concurrent use.
type Service struct {
	store   *store.Store
	issuer  string
	path    string // of the issuer, such as /auth
	root    string // path of the public URL; empty unless the service is below a path
	client  string
	orgs    []organization
	listed  bool   // the sign-in page lists the organizations
	slowest string // configured password with the slowest hash; compared for unknown users
	tokens  *auth.Tokens
	browser auth.Browser
	keys    *auth.Authenticator
	address func(*http.Request) string
	now     func() time.Time
	log     *slog.Logger
	count   func(method, outcome string)
	forms   auth.Forms
	sealer  *auth.Sealer // for the providers' refresh tokens; if nil, the tokens are not stored
	views   *look.Views
	assets  *look.Assets
	issuers issuers // of CI jobs' tokens

	timeouts timeouts       // of requests to identity providers
	checks   sync.WaitGroup // at identity providers
}

// organization is an [Organization] with its record in the store.
type organization struct {
	snap.OrgRef
	local    map[string]LocalUser // by e-mail in lower case
	domains  []string             // of e-mail addresses, in lower case
	oidc     *OIDC
	provider *auth.Provider // nil without oidc
	fresh    freshness
	asking   *atomic.Bool // set while a check that [Service.Recheck] started is running
	trust    []Trust
}

// New returns the service. It applies the local users to the store as if each had just signed in.
// It fails when an organization is not in the store.
func New(ctx context.Context, s *store.Store, o Options) (*Service, error) {
	public := strings.TrimRight(o.PublicURL, "/")
	u, err := url.Parse(public)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("public_url %q is not a URL", o.PublicURL)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Count == nil {
		o.Count = func(string, string) {}
	}
	o.Log, o.Audience = cmp.Or(o.Log, slog.Default()), cmp.Or(o.Audience, public)
	issuer, address := public+"/auth", auth.ProxiedAddress(o.TrustedProxies)
	v := &Service{
		store: s, issuer: issuer, path: u.Path + "/auth", root: u.Path, client: o.ClientID, listed: o.ListOrganizations,
		tokens:  auth.NewTokens(s, issuer, o.Audience, o.Sealer, o.Now),
		browser: auth.NewBrowser(s, public, o.Now, address),
		keys: auth.New(s, auth.Options{Issuer: issuer, Audience: o.Audience, PublicURL: public, Sealer: o.Sealer,
			Now: o.Now, Proxies: o.TrustedProxies}),
		address: address, now: o.Now, log: o.Log, count: o.Count,
		sealer: o.Sealer, timeouts: defaultTimeouts,
	}
	if err := v.tokens.Check(ctx); err != nil {
		return nil, err
	}
	if v.forms, err = auth.NewForms(ctx, s, public, v.browser); err != nil {
		return nil, err
	}
	v.assets = look.NewAssets(v.path+"/assets/", look.Files())
	if v.views, err = look.Parse(v.assets, func() time.Time { return o.Now().UTC() }, pageFiles,
		"pages/*.html"); err != nil {
		return nil, err
	}
	if err := v.applyOrganizations(ctx, o.Organizations); err != nil {
		return nil, err
	}
	v.warnUnconfirmed(ctx)
	return v, nil
}

// ExchangeURL returns the URL at which CI jobs exchange their tokens. It returns "" if no
// organization trusts CI jobs.
func (s *Service) ExchangeURL() string {
	if slices.ContainsFunc(s.orgs, func(o organization) bool { return len(o.trust) > 0 }) {
		return s.issuer + "/token"
	}
	return ""
}

// Forms returns the CSRF protection that all pages of the service share.
func (s *Service) Forms() auth.Forms { return s.forms }

// Issuer returns {public_url}/auth.
func (s *Service) Issuer() string { return s.issuer }

func (s *Service) applyOrganizations(ctx context.Context, all []Organization) error {
	for _, o := range all {
		found, err := s.store.OrgBySlug(ctx, o.Slug)
		if err != nil {
			return fmt.Errorf("organization %s: %w", o.Slug, err)
		}
		if (o.OIDC == nil) == (o.Local == nil) {
			return fmt.Errorf("organization %s: sign_in needs either local users or an identity provider", o.Slug)
		}
		org := organization{OrgRef: found.OrgRef, oidc: o.OIDC, local: map[string]LocalUser{}, domains: domainsOf(o),
			fresh: freshnessOf(o), asking: new(atomic.Bool), trust: o.Trust}
		if o.OIDC != nil {
			if org.provider, err = auth.NewProvider(o.OIDC.Issuer, o.OIDC.AllowPrivate, s.now); err != nil {
				return fmt.Errorf("organization %s: %w", o.Slug, err)
			}
		}
		for _, u := range o.Local {
			if err := s.applyLocalUser(ctx, &org, u); err != nil {
				return fmt.Errorf("organization %s, user %s: %w", o.Slug, u.Email, err)
			}
		}
		if err := s.syncLocalUsers(ctx, org); err != nil {
			return fmt.Errorf("organization %s: %w", o.Slug, err)
		}
		if err := s.applyTrust(ctx, org); err != nil {
			return fmt.Errorf("organization %s: %w", o.Slug, err)
		}
		s.orgs = append(s.orgs, org)
	}
	return nil
}

// domainsOf returns the domains of the e-mail addresses of an organization's people, in lower case.
func domainsOf(o Organization) (all []string) {
	for _, domain := range o.Domains {
		all = append(all, strings.ToLower(domain))
	}
	for _, u := range o.Local {
		_, domain, _ := strings.Cut(strings.ToLower(u.Email), "@")
		if domain != "" && !slices.Contains(all, domain) {
			all = append(all, domain)
		}
	}
	return all
}

// syncLocalUsers disables the local users that the configuration no longer lists, and enables the
// users that it lists again. The keys and sessions of a disabled user are refused. A user whom the
// operator disabled stays disabled.
func (s *Service) syncLocalUsers(ctx context.Context, org organization) error {
	accounts, err := s.store.Accounts(ctx, org.ID, localIssuer)
	if err != nil {
		return err
	}
	for subject, m := range accounts {
		_, listed := org.local[subject]
		if listed != m.Disabled {
			continue
		}
		changed, err := s.store.SetListed(ctx, m.ID, listed)
		if err != nil {
			return err
		}
		message := "a user is no longer listed and was disabled"
		switch {
		case !changed:
			message = "a listed user is disabled; enable them with `snapcloud user enable`"
		case listed:
			message = "a user is listed again and was enabled"
		}
		s.log.WarnContext(ctx, message, "organization", org.Slug, "user", m.Email)
	}
	return nil
}

// outcome converts an error to the outcome that Count of [Options] is called with.
func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errTooMany):
		return "limited"
	}
	switch snap.CodeOf(err) {
	case snap.CodeUnauthenticated:
		return "wrong"
	case snap.CodeForbidden, snap.CodePolicy, snap.CodeNotFound, snap.CodeInvalid:
		return "refused"
	case snap.CodeUnavailable:
		return "unavailable"
	}
	return "failed"
}

// localIssuer is the issuer of local users' accounts.
const localIssuer = "local"

func (s *Service) applyLocalUser(ctx context.Context, org *organization, u LocalUser) error {
	email := strings.ToLower(strings.TrimSpace(u.Email))
	if email == "" || u.Password == "" {
		return errors.New("a local user needs an e-mail address and a password")
	}
	if _, twice := org.local[email]; twice {
		return errors.New("listed twice")
	}
	org.local[email] = u
	if bcryptCost(u.Password) > bcryptCost(s.slowest) {
		s.slowest = u.Password
	}
	_, err := s.applyLocalSettings(ctx, *org, u)
	return err
}

// applyLocalSettings stores a local user with the role and groups of the configuration.
func (s *Service) applyLocalSettings(ctx context.Context, org organization, u LocalUser) (userID int64, err error) {
	role := cmp.Or(u.Role, snap.RoleMember)
	if !role.Valid() {
		return 0, fmt.Errorf("%q is not a role", role)
	}
	var groups []snap.Group
	for _, g := range u.Groups {
		groups = append(groups, snap.Group{GroupID: g, Name: g})
	}
	return s.store.ApplySignIn(ctx, store.SignIn{
		OrgID: org.ID, Issuer: localIssuer, Subject: strings.ToLower(strings.TrimSpace(u.Email)),
		Email: u.Email, Name: u.Name, Role: role, Groups: groups,
	})
}

func (s *Service) organization(slug string) (organization, bool) {
	for _, o := range s.orgs {
		if o.Slug == slug {
			return o, true
		}
	}
	return organization{}, false
}

func (s *Service) organizationByID(id int64) (organization, bool) {
	for _, o := range s.orgs {
		if o.ID == id {
			return o, true
		}
	}
	return organization{}, false
}
