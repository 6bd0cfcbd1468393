package snap_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
)

func TestSnapshotIDs(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^snap_[0-9a-hjkmnp-tv-z]{16}$`)
	seen := map[string]bool{}
	for range 10_000 {
		id := snap.NewSnapshotID()
		if !form.MatchString(id) {
			t.Fatalf("%q is not snap_ and 16 characters of Crockford base32", id)
		}
		if seen[id] {
			t.Fatalf("%q came twice", id)
		}
		seen[id] = true
		for _, typed := range []string{id, strings.ToUpper(id), " " + id[5:9] + " "} {
			if clean, ok := snap.CleanIDPrefix(typed); !ok || !strings.HasPrefix(id, clean) {
				t.Fatalf("%q typed as %q was read as %q", id, typed, clean)
			}
		}
	}
	for _, typed := range []string{"", "snap_", "snap_ilou", "snap_0%", "../x", id17()} {
		if clean, ok := snap.CleanIDPrefix(typed); ok {
			t.Errorf("%q was read as %q", typed, clean)
		}
	}
}

func id17() string { return "snap_" + strings.Repeat("0", 17) }

// SPEC 2.1: a name is <target>-<timestamp>.
func TestSnapshotName(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 13, 4, 5, 0, time.FixedZone("CET", 3600))
	if got := snap.SnapshotName("shop db", at); got != "shop db-20260301T120405Z" {
		t.Errorf("got %q", got)
	}
}

func TestCleanTarget(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"shop": "shop", "  shop ": "shop", "Größe & Maß": "Größe & Maß", "Gro\u0308ße": "Größe", "店 舗": "店 舗", "a.b_c-d": "a.b_c-d",
	} {
		if got, err := snap.CleanTarget(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "  ", ".", "..", ".hidden", "-flag", "a/b", `a\b`, "a\x00b", "a\nb", "a\u202eb", "x:y", "what?", strings.Repeat("x", 101), "\xff"} {
		if got, err := snap.CleanTarget(bad); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%q was taken as %q (%v)", bad, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		once, err := snap.CleanTarget(rapid.String().Draw(t, "name"))
		if err != nil {
			return
		}
		if twice, err := snap.CleanTarget(once); err != nil || twice != once {
			t.Fatalf("%q is not clean: %q, %v", once, twice, err)
		}
	})
}

// SPEC 4.4 and the design: Go durations, days and weeks; never zero or less.
func TestParseDuration(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]time.Duration{
		"36h": 36 * time.Hour, "90m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "2w": 14 * 24 * time.Hour,
		"1w2d3h": (9*24 + 3) * time.Hour, "1.5d": 36 * time.Hour, " 1h ": time.Hour,
	} {
		if got, err := snap.ParseDuration(given); err != nil || got != want {
			t.Errorf("%q: got %v, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "x", "0", "0s", "0d", "-1h", "1d-1h", "1d-2d", "7", "d", "1e9w", "99999999w", "1h7d", "NaNd"} {
		if got, err := snap.ParseDuration(bad); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%q was read as %v (%v)", bad, got, err)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1w2d3h")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := snap.ParseDuration(s); err == nil && d <= 0 {
			t.Fatalf("%q gave %v", s, d)
		}
	})
}

func TestErrorTable(t *testing.T) {
	t.Parallel()
	seen := map[snap.Code]bool{}
	for _, row := range snap.Codes() {
		if seen[row.Code] || row.Title == "" || row.Exit < 1 {
			t.Errorf("row %v is there twice or not complete", row)
		}
		seen[row.Code] = true
	}
	if got := snap.Code("unheard of").Info().Code; got != snap.CodeInternal {
		t.Errorf("an unknown code has the row of %q", got)
	}
	wrapped := fmt.Errorf("look up: %w", &snap.Error{Code: snap.CodeNotFound, Detail: "no such file"})
	if !errors.Is(wrapped, snap.ErrNotFound) || errors.Is(wrapped, snap.ErrUnauthenticated) || snap.CodeOf(wrapped) != snap.CodeNotFound {
		t.Error("errors are the same when their code is")
	}
	if snap.CodeOf(nil) != "" || snap.CodeOf(errors.New("x")) != snap.CodeInternal {
		t.Error("CodeOf without an *Error")
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	p := snap.Policy{ShareTypes: []snap.Type{snap.TypeSanitized}, MaxCrossOrgExpiry: time.Hour}
	if p.CheckType(snap.TypeSanitized) != nil || snap.CodeOf(p.CheckType(snap.TypeSnapshot)) != snap.CodePolicy || (snap.Policy{}).CheckType(snap.TypeSnapshot) != nil {
		t.Error("share_types")
	}
	if p.CheckExpiry(noon.Add(time.Hour), noon) != nil || snap.CodeOf(p.CheckExpiry(noon.Add(time.Hour+1), noon)) != snap.CodePolicy ||
		snap.CodeOf(p.CheckExpiry(time.Time{}, noon)) != snap.CodePolicy || (snap.Policy{}).CheckExpiry(time.Time{}, noon) != nil {
		t.Error("max_cross_org_expiry")
	}
}
