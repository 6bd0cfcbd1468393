package blob

import (
	"testing"
	"time"
)

// During a rolling upgrade, replicas of the previous release sign and open the same URLs. The
// expected text was computed outside this program.
func TestTokensKeepTheirFormat(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef0123456789abcdef")
	const earlier = "eyJ1IjoidXAiLCJuIjoxLCJzIjo1LCJjIjoieCIsImUiOjE4MDAwMDAwNjB9" +
		".1ozPsmIeMg8oSAZwfxsFFvw6mFBHANQxOBl1bRTHkgQ"
	want := partTicket{Upload: "up", Number: 1, Size: 5, CRC64: "x", Expires: 1_800_000_060}
	if got := SignToken(secret, uploadPart, want); got != earlier {
		t.Errorf("the token is %s", got)
	}
	if got, err := openPartTicket(secret, earlier, time.Unix(1_800_000_000, 0)); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if OpenToken(secret, "download", earlier, &partTicket{}) {
		t.Error("a token is valid for another purpose")
	}
}
