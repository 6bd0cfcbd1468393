package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"snap"
	"snap/api"
)

func client(t *testing.T, url string, token api.TokenSource) *api.Client {
	t.Helper()
	c, err := api.New(api.Options{BaseURL: url, Mount: api.MountUser, Token: token, UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

// AUTH A2: https except on loopback; no credentials, query or fragment in the URL.
func TestCheckBaseURL(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://cloud.example": "https://cloud.example", "https://cloud.example/snap/": "https://cloud.example/snap",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "http://localhost:8080/": "http://localhost:8080",
		"http://[::1]:80": "http://[::1]:80",
	} {
		if got, err := api.CheckBaseURL(given); err != nil || got != want {
			t.Errorf("%s: got %q, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "cloud.example", "http://cloud.example", "http://127.0.0.1.evil.test", "ftp://x",
		"https://user:pw@cloud.example", "https://cloud.example?x=1", "https://cloud.example#x", "https://",
		"https://cloud.example/api/v1", "https://cloud.example/snap/api/v1/users/"} {
		if _, err := api.CheckBaseURL(bad); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%q was accepted: %v", bad, err)
		}
	}
}

// AUTH U17: a refused token is replaced once, and the request repeated once.
func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	var seen []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer fresh" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"code":"unauthenticated","detail":"expired"}`)
			return
		}
		fmt.Fprint(w, `{"email":"mia@acme.test"}`)
	})
	me, err := client(t, url, func(_ context.Context, refused string) (string, error) {
		if refused == "" {
			return "stale", nil
		}
		return "fresh", nil
	}).Me(t.Context())
	if err != nil || me.Email != "mia@acme.test" || len(seen) != 2 {
		t.Errorf("got %+v, %v after %v", me, err, seen)
	}
	seen = nil
	_, err = client(t, url, api.StaticToken("wrong")).Me(t.Context())
	if !errors.Is(err, snap.ErrUnauthenticated) || len(seen) != 1 {
		t.Errorf("a key that cannot be replaced: %v after %v", err, seen)
	}
	if _, err := client(t, url, nil).Me(t.Context()); snap.CodeOf(err) != snap.CodeNotSignedIn {
		t.Errorf("without a token: %v", err)
	}
}

// AUTH A2: a redirect would carry the token elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the token %q went elsewhere", r.Header.Get("Authorization"))
	})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	if _, err := client(t, url, api.StaticToken("secret")).Me(t.Context()); snap.CodeOf(err) != snap.CodeUnreachable {
		t.Errorf("a redirect: %v", err)
	}
}

// The client rebuilds errors from the code, never from the status, and strips characters that could
// control a terminal (AUTH A4).
func TestErrorsAreRebuiltFromTheirCode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]snap.Code{
		`{"code":"user_attribution_required","detail":"no","status":500}`: snap.CodeUserAttributionRequired,
		`{"code":"policy_refused","detail":"a\u001b[31mb"}`:               snap.CodePolicy,
		`<html>proxy</html>`: snap.CodeUnreachable,
		`{}`:                 snap.CodeUnreachable,
		``:                   snap.CodeUnreachable,
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, body)
		})
		_, err := client(t, url, api.StaticToken("x")).Me(t.Context())
		if snap.CodeOf(err) != want || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%s: %v", body, err)
		}
	}
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "not JSON") })
	if _, err := client(t, url, api.StaticToken("x")).Me(t.Context()); snap.CodeOf(err) != snap.CodeUnreachable {
		t.Errorf("a good status without JSON: %v", err)
	}
}

// DESIGN 3: a prefix of an ID is resolved among the snapshots that the caller may see.
func TestResolve(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		prefix := r.URL.Query().Get("id_prefix")
		var items []string
		for _, id := range []string{"snap_0000000000000001", "snap_0000000000000002", "snap_1000000000000000"} {
			if strings.HasPrefix(id, prefix) {
				items = append(items, `{"id":"`+id+`"}`)
			}
		}
		fmt.Fprintf(w, `{"items":[%s],"next_cursor":""}`, strings.Join(items, ","))
	})
	c := client(t, url, api.StaticToken("x"))
	if s, err := c.Resolve(t.Context(), " SNAP_1 "); err != nil || s.ID != "snap_1000000000000000" {
		t.Errorf("a unique prefix: %v, %v", s.ID, err)
	}
	if _, err := c.Resolve(t.Context(), "0"); snap.CodeOf(err) != snap.CodeUsage ||
		!strings.Contains(err.Error(), "snap_0000000000000002") {
		t.Errorf("an ambiguous prefix: %v", err)
	}
	for _, typed := range []string{"2", "", "../x", "ilou"} {
		if _, err := c.Resolve(t.Context(), typed); !errors.Is(err, snap.ErrNotFound) {
			t.Errorf("%q: %v", typed, err)
		}
	}
}

// A typed name that could also be the start of an ID is recognized as a name.
func TestResolveSuggestsASnapshotByItsName(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		items := ""
		if r.URL.Query().Get("id_prefix") == "" {
			items = `{"id":"snap_0000000000000001","name":"weekend"}`
		}
		fmt.Fprintf(w, `{"items":[%s],"next_cursor":""}`, items)
	})
	_, err := client(t, url, api.StaticToken("x")).Resolve(t.Context(), "weekend")
	if e, ok := errors.AsType[*snap.Error](err); !ok || !strings.Contains(e.Hint, "snap_0000000000000001") {
		t.Errorf("%v", err)
	}
}

// The error for an unreachable service names the service; an interruption stays an interruption.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	c := client(t, "http://127.0.0.1:1", api.StaticToken("x"))
	if _, err := c.Me(t.Context()); snap.CodeOf(err) != snap.CodeUnreachable ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("nothing listens: %v", err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.Me(gone); snap.CodeOf(err) != snap.CodeInterrupted {
		t.Errorf("interrupted: %v", err)
	}
}

// A push to a service that does not support certificates is repeated without one. Any other refusal
// stands.
func TestPushWithoutCertificatesToAnOldService(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]int{"certificate": 2, "target": 1} {
		var bodies []string
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(text))
			if !strings.Contains(string(text), "certificate") {
				fmt.Fprint(w, `{"id":"snap_x"}`)
				return
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"code":"invalid","errors":[{"field":%q,"detail":"unexpected property"}]}`, field)
		})
		plan, err := client(t, url, api.StaticToken("key")).Push(t.Context(),
			api.PushRequest{Target: "shop", Certificate: json.RawMessage(`{}`)})
		if len(bodies) != want || (plan.ID == "snap_x") != (want == 2) || (err == nil) != (want == 2) {
			t.Errorf("%s is refused: %q, %+v, %v", field, bodies, plan, err)
		}
	}
}
