package mysql

import "testing"

// TestLocated checks that a URL with a socket is located on this machine.
func TestLocated(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"mysql://u:p@other/shop":                "other:3306",
		"mysql://u:p@other:3307/shop":           "other:3307",
		"mysql://u:p@other/shop?socket=/run/db": "127.0.0.1:3306",
		"mysql://u:p@/shop?socket=/run/db":      "127.0.0.1:3306",
	} {
		located, err := Engine{}.Located(url)
		if err != nil || len(located) != 1 || located[0].Host != want || located[0].Database != "shop" {
			t.Errorf("%s: %+v, %v", url, located, err)
		}
	}
}
