package certificate

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"snap"
)

const (
	digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	other  = "0000000000000000000000000000000000000000000000000000000000000000"
)

func made(t *testing.T, key Private) []byte {
	t.Helper()
	text, err := Make(key, Subject{"shop-1", Digest{digest}}, Sanitization{Rules: "abc", Masked: 3, Tool: "v1",
		Made: time.Unix(0, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A certificate is valid only for its own file and statement, with a key that is known and not
// revoked.
func TestCheck(t *testing.T) {
	t.Parallel()
	key, stranger := New(), New()
	text := made(t, key)
	known := []KnownKey{{Public: stranger.PublicKey(), Name: "b"}, {Public: key.PublicKey(), Name: "a"}}
	s, by, err := Check(text, digest, known)
	if err != nil || by.Name != "a" || s.Predicate.Masked != 3 || s.Predicate.Rules != "abc" {
		t.Fatalf("%+v by %q, %v", s, by.Name, err)
	}
	altered := func(change func(map[string]any)) []byte {
		var e map[string]any
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		change(e)
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	payload := func(e map[string]any) string {
		b, err := base64.StdEncoding.DecodeString(e["payload"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		text  []byte
		sum   string
		known []KnownKey
		want  string
	}{
		"another file":    {text, other, known, "belongs to another file"},
		"an unknown key":  {text, digest, known[:1], "which is not known here"},
		"no key at all":   {text, digest, nil, "which is not known here"},
		"a revoked key":   {text, digest, []KnownKey{{Public: key.PublicKey(), Revoked: true}}, "is revoked"},
		"no certificate":  {[]byte("{}"), digest, known, "cannot be read"},
		"a long one":      {[]byte(`{"a":"` + strings.Repeat("a", MaxSize) + `"}`), digest, known, "be read"},
		"no signature":    {altered(func(e map[string]any) { e["signatures"] = []any{} }), digest, known, "be read"},
		"an unknown type": {altered(func(e map[string]any) { e["payloadType"] = "x" }), digest, known, "be read"},
		"other rules": {altered(func(e map[string]any) {
			e["payload"] = base64.StdEncoding.EncodeToString([]byte(strings.Replace(payload(e), "abc", "abd", 1)))
		}), digest, known, "was altered"},
		"relabelled": {altered(func(e map[string]any) {
			e["payload"] = base64.StdEncoding.EncodeToString([]byte(strings.Replace(payload(e), digest, other, 1)))
		}), other, known, "was altered"},
	} {
		_, _, err := Check(c.text, c.sum, c.known)
		if snap.CodeOf(err) != snap.CodePolicy || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A written key reads as the same key, and other strings are refused.
func TestKeysAsText(t *testing.T) {
	t.Parallel()
	key := New()
	again, err := ParsePrivate(key.String() + "\n")
	if err != nil || again.String() != key.String() {
		t.Errorf("%v", err)
	}
	public, err := ParsePublic(key.PublicKey().String())
	if err != nil || public.ID() != key.PublicKey().ID() || len(public.ID()) != idLength {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "snapkey-", "snapkey-AAAA", key.String(), key.PublicKey().String() + "A"} {
		if _, err := ParsePublic(bad); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("public %q: %v", bad, err)
		}
	}
	if _, err := ParsePrivate(public.String()); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("a public key as a private one: %v", err)
	}
}
