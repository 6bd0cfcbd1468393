package near

import "testing"

func TestClosest(t *testing.T) {
	t.Parallel()
	words := []string{"shop", "billing", "Größe", "share", "unshare"}
	for typed, want := range map[string]string{
		"shp": "shop", "SHOP": "shop", "bil": "billing", "grösse": "Größe", "shar": "share", "unshar": "unshare", "zzzzzz": "", "": "",
	} {
		if got := Closest(typed, words); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}
