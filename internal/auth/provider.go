package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

// ErrProviderDown means that an identity provider does not respond, or that its response is
// invalid. API keys and existing sessions keep working until the organization's max_staleness has
// passed.
var ErrProviderDown = errors.New("the identity provider does not answer")

// Provider is an OpenID Connect provider. It is discovered when it is first needed, so that the
// service can start while the provider is down. It is safe for concurrent use.
type Provider struct {
	issuer string
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	found *Discovered
	until time.Time // until then, found is used without fetching it again
}

// Discovered is the metadata that a provider publishes.
type Discovered struct {
	*oidc.Provider
	Extras
}

// Extras are members of the metadata that go-oidc does not read.
type Extras struct {
	IssInAnswer bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	Algorithms  []string `json:"id_token_signing_alg_values_supported"`
	Scopes      []string `json:"scopes_supported"`
	TokenAuth   []string `json:"token_endpoint_auth_methods_supported"`
}

// Endpoint returns the provider's endpoints. It sets how the client's secret is sent, if the
// metadata says how. Otherwise x/oauth2 tries both ways, and sends a refused request twice.
func (d *Discovered) Endpoint() oauth2.Endpoint {
	e := d.Provider.Endpoint()
	switch {
	case slices.Contains(d.TokenAuth, "client_secret_basic"):
		e.AuthStyle = oauth2.AuthStyleInHeader
	case slices.Contains(d.TokenAuth, "client_secret_post"):
		e.AuthStyle = oauth2.AuthStyleInParams
	}
	return e
}

// metadataLife is how long a provider's metadata is cached. If the provider does not respond after
// that, the metadata is used for another metadataRetry, so that not every sign-in waits for the
// provider. The provider's keys are fetched again whenever a token has an unknown key.
const (
	metadataLife  = time.Hour
	metadataRetry = time.Minute
)

// NewProvider returns the provider with this issuer. Unless private addresses are allowed, it must
// use https and have a public address.
func NewProvider(issuer string, allowPrivate bool, now func() time.Time) (*Provider, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q is not the URL of an identity provider", issuer)
	}
	if u.Scheme != "https" && !allowPrivate {
		return nil, fmt.Errorf("the identity provider %s does not use https", issuer)
	}
	return &Provider{issuer: issuer, client: guardedClient(allowPrivate), now: now}, nil
}

// Issuer returns the provider's URL.
func (p *Provider) Issuer() string { return p.issuer }

// Context returns a context in which go-oidc and oauth2 use the provider's guarded client.
func (p *Provider) Context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// Discover returns the provider's metadata, from the cache if it is recent. If the provider does
// not respond, Discover returns old metadata, or fails with ErrProviderDown if there is none.
func (p *Provider) Discover(ctx context.Context) (*Discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil && p.now().Before(p.until) {
		return p.found, nil
	}
	found, err := p.fetchMetadata(ctx)
	switch {
	case err == nil:
		p.found, p.until = found, p.now().Add(metadataLife)
	case p.found != nil:
		p.until = p.now().Add(metadataRetry)
	default:
		return nil, fmt.Errorf("%w: %w", ErrProviderDown, err)
	}
	return p.found, nil
}

func (p *Provider) fetchMetadata(ctx context.Context) (*Discovered, error) {
	found, err := oidc.NewProvider(p.Context(ctx), p.issuer)
	if err != nil {
		return nil, err
	}
	d := &Discovered{Provider: found}
	err = found.Claims(&d.Extras)
	return d, err
}

// Verify verifies a token of the provider for an audience. It accepts only asymmetric algorithms. It
// fails with ErrProviderDown if it needs the provider's keys and cannot fetch them.
func (p *Provider) Verify(ctx context.Context, d *Discovered, audience, token string) (*oidc.IDToken, error) {
	verifier := d.Verifier(&oidc.Config{ClientID: audience, SupportedSigningAlgs: asymmetric(d.Algorithms), Now: p.now})
	id, err := verifier.Verify(p.Context(ctx), token)
	// Only the text of go-oidc's error distinguishes this failure from a wrong signature.
	if err != nil && strings.HasPrefix(err.Error(), "failed to verify signature: fetching keys ") {
		return nil, fmt.Errorf("%w: %w", ErrProviderDown, err)
	}
	return id, err
}

func asymmetric(offered []string) (accepted []string) {
	for _, alg := range offered {
		if slices.Contains(AsymmetricAlgorithms(), jose.SignatureAlgorithm(alg)) {
			accepted = append(accepted, alg)
		}
	}
	if len(accepted) == 0 {
		return []string{oidc.RS256}
	}
	return accepted
}

// guardedClient returns a client that connects only to public addresses, unless private addresses
// are allowed. It checks the address that is dialed, after the name was resolved, so that a name
// cannot resolve to another address after the check. It does not follow redirects.
func guardedClient(allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport := &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
		MaxIdleConns: 10,
	}
	if allowPrivate {
		transport.Proxy = http.ProxyFromEnvironment
	} else {
		dialer.Control = refusePrivate
	}
	return &http.Client{
		Transport: transport, Timeout: 15 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !IsPublic(at.Addr()) {
		return fmt.Errorf("%s is a private address; set allow_private if the issuer really has this address", at.Addr())
	}
	return nil
}

// IsPublic reports whether an address is on the public Internet. It is false for networks that are
// reserved for other purposes (RFC 6890), and for addresses that embed another address, because it
// is unknown where they lead. It must be called with the address that is dialed, after the name was
// resolved.
func IsPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, reserved := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
		"2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10",
	} {
		if netip.MustParsePrefix(reserved).Contains(ip) {
			return false
		}
	}
	return true
}
