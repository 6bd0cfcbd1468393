package cli

import "testing"

// The beginning of an ID is completed with or without the prefix snap_. A beginning of snap_
// selects every ID.
func TestIDPrefix(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"": "", "s": "", "sna": "", "snap_": "", "snap_0a": "snap_0a",
		"0a": "snap_0a"} {
		if prefix, ok := idPrefix(typed); !ok || prefix != want {
			t.Errorf("%q: %q, %v", typed, prefix, ok)
		}
	}
	if prefix, ok := idPrefix("shop-1"); ok {
		t.Errorf("shop-1: %q", prefix)
	}
}
