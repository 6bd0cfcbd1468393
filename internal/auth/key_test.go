package auth

import (
	"regexp"
	"strings"
	"testing"

	"snap"
)

// K1: the form of a key, and its checksum.
func TestKeyForm(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^(cak|clt|sak)_[0-9A-Za-z]{38}$`)
	seen := map[string]bool{}
	for _, kind := range []snap.CredentialKind{snap.UserKey, snap.PipelineKey, snap.AgentKey} {
		for range 2000 {
			key := randomKey(kind)
			if !form.MatchString(key) || !wellFormedKey(key) || seen[key] {
				t.Fatalf("key of kind %s: form %v, checksum %v, seen before %v", kind, form.MatchString(key),
					wellFormedKey(key),
					seen[key])
			}
			seen[key] = true
		}
	}
}

// K1: a typing error is found without the database, whether one character is wrong or two
// neighboring ones are swapped.
func TestTypingErrorsAreFound(t *testing.T) {
	t.Parallel()
	key := randomKey(snap.UserKey)
	for i := 4; i < len(key); i++ {
		for _, c := range base62 {
			if typo := key[:i] + string(c) + key[i+1:]; typo != key && wellFormedKey(typo) {
				t.Fatalf("position %d: a changed character was not found", i)
			}
		}
		if i+1 < len(key) && key[i] != key[i+1] {
			if typo := key[:i] + string(key[i+1]) + string(key[i]) + key[i+2:]; wellFormedKey(typo) {
				t.Fatalf("position %d: swapped characters were not found", i)
			}
		}
	}
	for _, bad := range []string{"", key + "0", key[:41], "xyz" + key[3:], strings.ToUpper(key), key + "\n"} {
		if wellFormedKey(bad) {
			t.Errorf("%q is taken for a key", bad)
		}
	}
}

// K7: the published pattern finds keys in text.
func TestKeyPattern(t *testing.T) {
	t.Parallel()
	key := randomKey(snap.PipelineKey)
	if got := regexp.MustCompile(`\b` + snap.KeyPattern + `\b`).FindString(`token = "` + key + `" # ci`); got != key {
		t.Errorf("found %q", got)
	}
}

// K2: the hint shows the first 8 and last 4 characters.
func TestKeyHint(t *testing.T) {
	t.Parallel()
	key := randomKey(snap.UserKey)
	if want := key[:8] + "..." + key[38:]; keyHint(key) != want {
		t.Errorf("hint %q, want %q", keyHint(key), want)
	}
}
