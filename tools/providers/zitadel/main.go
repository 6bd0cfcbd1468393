// Command zitadel is the OpenID provider of zitadel/oidc with its example pages and storage, for
// the tests. The accounts and their claims are in the environment variable CLAIMS, and the password
// of each account is its name. It prints its issuer and knows the clients snapcloud and snapcli
// (public, device grant).
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/text/language"
)

// users are the accounts, by name, which is also their ID.
type users map[string]*storage.User

func (u users) GetUserByID(id string) *storage.User         { return u[id] }
func (u users) GetUserByUsername(name string) *storage.User { return u[name] }
func (u users) ExampleClientID() string                     { return "none" }

// provider is the example storage, with claims, an audience and JWT access tokens.
type provider struct {
	*storage.Storage
	claims    map[string]map[string]any
	audience  string
	inIDToken bool
}

func (p provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := p.Storage.GetClientByClientID(ctx, id)
	return client{c, p.inIDToken}, err
}

func (p provider) SetUserinfoFromRequest(ctx context.Context, u *oidc.UserInfo, r op.IDTokenRequest,
	scopes []string) error {
	if slices.Contains(scopes, oidc.ScopeProfile) {
		p.add(u, r.GetSubject())
	}
	return p.Storage.SetUserinfoFromRequest(ctx, u, r, scopes)
}

func (p provider) SetUserinfoFromToken(ctx context.Context, u *oidc.UserInfo, id, subject, origin string) error {
	p.add(u, subject)
	return p.Storage.SetUserinfoFromToken(ctx, u, id, subject, origin)
}

func (p provider) add(u *oidc.UserInfo, subject string) {
	for name, value := range p.claims[subject] {
		u.AppendClaims(name, value)
	}
}

func (p provider) GetPrivateClaimsFromScopes(_ context.Context, user, _ string, _ []string) (map[string]any, error) {
	all := map[string]any{"email": user + "@acme.test", "email_verified": true}
	maps.Copy(all, p.claims[user])
	return all, nil
}

func (p provider) GetDeviceAuthorizatonState(ctx context.Context, client, code string) (*op.DeviceAuthorizationState,
	error) {
	s, err := p.Storage.GetDeviceAuthorizatonState(ctx, client, code)
	if err != nil {
		return nil, err
	}
	known := *s
	known.Audience = []string{p.audience}
	return &known, nil
}

// CreateAccessAndRefreshTokens keeps the client of a device grant. The example storage loses it,
// and without the client no refresh succeeds.
func (p provider) CreateAccessAndRefreshTokens(ctx context.Context, r op.TokenRequest, current string) (string, string,
	time.Time, error) {
	if d, ok := r.(*op.DeviceAuthorizationState); ok {
		r = storage.RefreshTokenRequestFromBusiness(&storage.RefreshToken{
			AuthTime: d.AuthTime, AMR: d.AMR, Audience: d.Audience, UserID: d.Subject, ApplicationID: d.ClientID,
			Scopes: d.Scopes,
		})
	}
	return p.Storage.CreateAccessAndRefreshTokens(ctx, r, current)
}

type client struct {
	op.Client
	inIDToken bool
}

func (c client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeJWT }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.inIDToken }
func (c client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}

func main() {
	p := provider{audience: os.Getenv("AUDIENCE"), inIDToken: os.Getenv("IN_ID_TOKEN") == "yes"}
	if err := json.Unmarshal([]byte(os.Getenv("CLAIMS")), &p.claims); err != nil {
		log.Fatal(err)
	}
	all := users{}
	for name := range p.claims {
		all[name] = &storage.User{
			ID: name, Username: name, Password: name, FirstName: name, LastName: "Test",
			Email: name + "@acme.test", EmailVerified: true, PreferredLanguage: language.English,
		}
	}
	storage.RegisterClients(storage.NativeClient("snapcli"),
		storage.WebClient("snapcloud", os.Getenv("SECRET"), os.Getenv("REDIRECT")))
	p.Storage = storage.NewStorage(all)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	issuer := "http://" + listener.Addr().String()
	io.WriteString(os.Stdout, issuer+"\n")
	log.Fatal(http.Serve(listener, exampleop.SetupServer(issuer, p, slog.New(slog.NewTextHandler(os.Stderr, nil)),
		false)))
}
