package blob

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"snap"
)

// grant is the permission in a part URL: to PUT one part of one upload, of this size and checksum,
// until a time.
type grant struct {
	Upload  string `json:"u"`
	Number  int    `json:"n"`
	Size    int64  `json:"s"`
	CRC64   string `json:"c"`
	Expires int64  `json:"e"` // seconds since 1970
}

// errExpiredURL is the answer to a part URL that is forged, altered or expired. The answer does not
// distinguish these cases.
var errExpiredURL = &snap.Error{
	Code:   snap.CodeForbidden,
	Detail: "this upload URL is not valid or has expired",
	Hint:   "request another one",
}

func signGrant(secret []byte, g grant) string {
	body, _ := json.Marshal(g) // strings and numbers always encode
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(macOf(secret, text))
}

func openGrant(secret []byte, token string, now time.Time) (grant, error) {
	text, mac, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(given, macOf(secret, text)) {
		return grant{}, errExpiredURL
	}
	var g grant
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(body, &g) != nil || now.Unix() >= g.Expires {
		return grant{}, errExpiredURL
	}
	return g, nil
}

// macOf signs a part grant. A prefix keeps the signature from being valid for anything else that is
// signed with the same secret.
func macOf(secret []byte, text string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("upload part\x00" + text))
	return m.Sum(nil)
}
