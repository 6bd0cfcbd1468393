package signin

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// FuzzLocalPath checks that the browser stays at this service, whichever page a link names as its
// destination (RFC 9700 section 4.11: no open redirector).
func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/auth/account", "/auth//evil.example", "//evil.example", "/auth/\\evil",
		"https://evil.example", "/auth/..//x", "/auth/%2f%2fevil", "/auth/device?user_code=A", "/auth/\tx",
		"/auth/..;/x", "/console/members", "/blobs/x", "/%2f/evil.example"} {
		f.Add(seed)
	}
	ours := regexp.MustCompile(`^/(auth/|(console|snapshots|requests)(/|$))`)
	s := &Service{path: "/auth"}
	base, err := url.Parse("https://cloud.example/auth/signin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, next string) {
		path := s.localPath(next)
		to, err := base.Parse(path)
		if err != nil || to.Host != "cloud.example" || to.Scheme != "https" || !ours.MatchString(to.Path) ||
			strings.ContainsAny(path, "\\\r\n\t") {
			t.Fatalf("%q leads to %q, %v", next, path, err)
		}
	})
}

// FuzzUserCode checks that an accepted code has its eight letters, however it was typed.
func FuzzUserCode(f *testing.F) {
	for _, seed := range []string{"BCDF-GHJK", "bcdf ghjk", "BCDFGHJ", "BCDF–GHJK", "%", "ＢCDFGHJK", "bcdf_ghjk\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		code, ok := cleanUserCode(typed)
		if ok && (len(code) != userCodeLength || strings.Trim(code, userCodeLetters) != "") {
			t.Fatalf("%q became %q", typed, code)
		}
		if again, still := cleanUserCode(formatUserCode(code)); ok && (!still || again != code) {
			t.Fatalf("%q became %q, shown and typed again %q", typed, code, again)
		}
	})
}

// FuzzBasicClient: a Basic header names our client only with the client's own
// ID and an empty secret.
func FuzzBasicClient(f *testing.F) {
	for _, seed := range []string{"snapcli:", "snapcli", "snapcli:secret", ":snapcli", "snap%63li:", "%zz:",
		"snapcli: ",
		"\x00:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pair string) {
		r := &http.Request{Header: http.Header{"Authorization": {"Basic " +
			base64.StdEncoding.EncodeToString([]byte(pair))}}}
		id, ok := basicClient(r)
		decoded, err := url.QueryUnescape(strings.TrimSuffix(pair, ":"))
		if ok && (!strings.HasSuffix(pair, ":") || strings.Count(pair, ":") != 1 || err != nil || id != decoded) {
			t.Fatalf("%q names %q", pair, id)
		}
	})
}
