package snap_test

import (
	"slices"
	"testing"

	"snap"
)

// A text is split into lower-case words; a date and time counts as two words.
func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"shop-20261122T211134Z":    {"shop", "20261122", "211134"},
		"shop-20261122T2111":       {"shop", "20261122", "2111"},
		"Shop_EU shop":             {"shop", "eu"},
		"Mia.Smith@acme.test":      {"mia", "smith", "acme", "test"},
		"ÉCLAIR straße 日本":         {"éclair", "straße", "日本"},
		"20261122t2111345":         {"20261122t2111345"},
		" - % _ ":                  nil,
		"v2 2026-11-22 T211134Z x": {"v2", "2026", "11", "22", "t211134z", "x"},
	} {
		if got := snap.Words(text); !slices.Equal(got, want) {
			t.Errorf("%q has the words %q, want %q", text, got, want)
		}
	}
}

// A search matches the beginnings of words.
func TestFinds(t *testing.T) {
	t.Parallel()
	const id, name, owner = "snap_7h2k9m4cq8w1x5yz", "shop_eu-20261122T211134Z", "Alice Example alice@acme.test"
	for q, want := range map[string]bool{
		"": true, " ": true, "shop": true, "SHO": true, "eu": true, "hop": false, "20261122": true, "211134": true,
		"20261122T2111": true, "alice": true, "example": true, "alice@acme.test": true, "eu ali 2026": true,
		"eu bob": false, "snap_7h2k": true, "7h2k9": true, "7h2k": false, "SNAP_7H2K9M4CQ8W1X5YZ": true,
		"snap_8": false, "-": false,
	} {
		if got := snap.Finds(q, id, name, "shop_eu", owner); got != want {
			t.Errorf("%q: %v", q, got)
		}
	}
}
