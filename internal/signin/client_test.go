package signin_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"snap/internal/clocktest"
)

// The two Go libraries that most programs use, golang.org/x/oauth2 and go-oidc, complete discovery,
// device grant, ID token, userinfo and refresh, with each way in which x/oauth2 names its client.
func TestGoClients(t *testing.T) {
	t.Parallel()
	for name, style := range map[string]oauth2.AuthStyle{
		"detected": oauth2.AuthStyleAutoDetect, "header": oauth2.AuthStyleInHeader, "body": oauth2.AuthStyleInParams,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &house{t: t, dir: t.TempDir(), clock: clocktest.New(time.Now()), log: &syncBuffer{}}
			h.open(storeIn(h), nil)
			h.goClient(t, style)
		})
	}
}

func (h *house) goClient(t *testing.T, style oauth2.AuthStyle) {
	ctx := t.Context()
	provider, err := oidc.NewProvider(ctx, h.url+"/auth")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = style
	client := oauth2.Config{ClientID: "snapcli", Endpoint: endpoint,
		Scopes: []string{"openid", "email", "offline_access"}}
	begun, err := client.DeviceAuth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h.browser().approve(begun.UserCode, "mia@acme.test", "mia-password")
	begun.Interval = 1
	first, err := client.DeviceAccessToken(ctx, begun)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := first.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: "snapcli"}).Verify(ctx, raw)
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.TokenSource(ctx, &oauth2.Token{RefreshToken: first.RefreshToken}).Token()
	if err != nil {
		t.Fatalf("refresh: %v", err)
	}
	who, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(second))
	if err != nil || who.Email != "mia@acme.test" || who.Subject != id.Subject ||
		second.RefreshToken == first.RefreshToken {
		t.Errorf("userinfo after the refresh: %+v, %v", who, err)
	}
}

// A public client has no secret. Every endpoint takes client_id in the body, a
// Basic header with an empty secret, or both when they agree.
func TestBasicHeaderOfThePublicClient(t *testing.T) {
	t.Parallel()
	h := start(t)
	basic := func(pair string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) }
	requests := map[string][]string{
		"/token device": {"grant_type", "urn:ietf:params:oauth:grant-type:device_code", "device_code",
			"unknown"},
		"/token refresh":        {"grant_type", "refresh_token", "refresh_token", "unknown"},
		"/revoke":               {"token", "unknown"},
		"/device_authorization": {"scope", "openid"},
	}
	for name, fields := range requests {
		path, _, _ := strings.Cut(name, " ")
		for _, tc := range []struct {
			header, inBody string
			known          bool
		}{
			{"", "snapcli", true},
			{basic("snapcli:"), "", true},
			{basic("snapcl%69:"), "", true},
			{basic("snapcli:"), "snapcli", true},
			{"Bearer something", "snapcli", true},
			{"", "", false},
			{"Bearer something", "", false},
			{basic("snapcli:secret"), "", false},
			{basic("snapcli:secret"), "snapcli", false},
			{basic("snapcli"), "snapcli", false},
			{basic("other:"), "snapcli", false},
			{basic("snapcli:"), "other", false},
			{"Basic %%%", "snapcli", false},
		} {
			sent := fields
			if tc.inBody != "" {
				sent = append(sent[:len(sent):len(sent)], "client_id", tc.inBody)
			}
			a := h.postWith(tc.header, path, sent...)
			var body struct{ Error string }
			_ = json.Unmarshal([]byte(a.body), &body)
			if known := body.Error != "invalid_client"; known != tc.known || !known &&
				a.status != http.StatusUnauthorized {
				t.Errorf("%s, header %q, client_id %q: %d %s", name, tc.header, tc.inBody, a.status, a.body)
			}
		}
	}
}
