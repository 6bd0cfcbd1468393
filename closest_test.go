package snap

import "testing"

// The closest candidate differs by case, begins with the typed text, or is few edits away.
func TestClosest(t *testing.T) {
	t.Parallel()
	words := []string{"shop", "billing", "Größe", "share", "unshare"}
	for typed, want := range map[string]string{
		"shp": "shop", "SHOP": "shop", "bil": "billing", "grösse": "Größe", "shar": "share", "unshar": "unshare",
		"zzzzzz": "", "": "",
	} {
		if got := Closest(typed, words); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

// Only candidates within the given number of edits are found.
func TestClosestWithin(t *testing.T) {
	t.Parallel()
	codes := []string{"k3mfq2xw", "k3mfqqxw", "zzzzzzzz"}
	for typed, want := range map[string]string{
		"k3mfq2xv": "k3mfq2xw", "K3MFQ2XW": "k3mfq2xw", "k3mfq7xw": "k3mfq2xw", "k3mfaaxw": "", "": "",
	} {
		if got := ClosestWithin(typed, codes, len(typed)/5); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}
