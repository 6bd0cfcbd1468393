package blob

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// SignToken returns v as JSON with an HMAC-SHA-256 under secret, in a form that can be part of a
// URL: "payload.mac", both in base64url. Anyone can read v. A token is valid for its purpose only,
// so one secret can sign several kinds of tokens.
func SignToken(secret []byte, purpose string, v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // v must be a struct of strings and numbers, which always encode
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(secret, purpose, text))
}

// OpenToken decodes into v a token that [SignToken] returned, and reports whether this secret
// signed it for this purpose. The caller must check the expiry that v holds.
func OpenToken(secret []byte, purpose, token string, v any) bool {
	text, sum, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, mac(secret, purpose, text)) {
		return false
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && json.Unmarshal(body, v) == nil
}

func mac(secret []byte, purpose, text string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(purpose + "\x00" + text))
	return m.Sum(nil)
}
