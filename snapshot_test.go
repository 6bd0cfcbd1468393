package snap

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSnapshotIDs(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^snap_[0-9a-hjkmnp-tv-z]{16}$`)
	seen := map[string]bool{}
	for range 10_000 {
		id := NewSnapshotID()
		if !form.MatchString(id) {
			t.Fatalf("%q is not snap_ and 16 characters of Crockford base32", id)
		}
		if seen[id] {
			t.Fatalf("%q came twice", id)
		}
		seen[id] = true
		for _, typed := range []string{id, strings.ToUpper(id), " " + id[5:9] + " "} {
			if clean, ok := CleanIDPrefix(typed); !ok || !strings.HasPrefix(id, clean) {
				t.Fatalf("%q typed as %q was read as %q", id, typed, clean)
			}
		}
	}
	for _, typed := range []string{"", "snap_", "snap_ilou", "snap_0%", "../x", id17()} {
		if clean, ok := CleanIDPrefix(typed); ok {
			t.Errorf("%q was read as %q", typed, clean)
		}
	}
}

func id17() string { return "snap_" + strings.Repeat("0", 17) }

// SPEC 2.1: a name is <target>-<timestamp>.
func TestSnapshotName(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 13, 4, 5, 0, time.FixedZone("CET", 3600))
	if got := SnapshotName("shop db", at); got != "shop db-20260301T120405Z" {
		t.Errorf("got %q", got)
	}
}

func TestCleanTarget(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"shop": "shop", "  shop ": "shop", "Größe & Maß": "Größe & Maß", "Gro\u0308ße": "Größe", "店 舗": "店 舗", "a.b_c-d": "a.b_c-d",
	} {
		if got, err := CleanTarget(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "  ", ".", "..", ".hidden", "-flag", "a/b", `a\b`, "a\x00b", "a\nb", "a\u202eb", "x:y", "what?", strings.Repeat("x", 101), "\xff"} {
		if got, err := CleanTarget(bad); CodeOf(err) != CodeInvalid {
			t.Errorf("%q was taken as %q (%v)", bad, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		once, err := CleanTarget(rapid.String().Draw(t, "name"))
		if err != nil {
			return
		}
		if twice, err := CleanTarget(once); err != nil || twice != once {
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
		if got, err := ParseDuration(given); err != nil || got != want {
			t.Errorf("%q: got %v, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "x", "0", "0s", "0d", "-1h", "1d-1h", "1d-2d", "7", "d", "1e9w", "99999999w", "1h7d", "NaNd"} {
		if got, err := ParseDuration(bad); CodeOf(err) != CodeUsage {
			t.Errorf("%q was read as %v (%v)", bad, got, err)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1w2d3h")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDuration(s); err == nil && d <= 0 {
			t.Fatalf("%q gave %v", s, d)
		}
	})
}

func TestErrorTable(t *testing.T) {
	t.Parallel()
	seen := map[Code]bool{}
	for _, row := range Codes() {
		if seen[row.Code] || row.Title == "" || row.Exit < 1 {
			t.Errorf("row %v is there twice or not complete", row)
		}
		seen[row.Code] = true
	}
	if got := Code("unheard of").Info().Code; got != CodeInternal {
		t.Errorf("an unknown code has the row of %q", got)
	}
	wrapped := fmt.Errorf("look up: %w", &Error{Code: CodeNotFound, Detail: "no such file"})
	if !errors.Is(wrapped, ErrNotFound) || errors.Is(wrapped, ErrUnauthenticated) || CodeOf(wrapped) != CodeNotFound {
		t.Error("errors are the same when their code is")
	}
	if CodeOf(nil) != "" || CodeOf(errors.New("x")) != CodeInternal {
		t.Error("CodeOf without an *Error")
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	p := Policy{ShareTypes: []Type{TypeSanitized}, MaxCrossOrgExpiry: time.Hour}
	if p.CheckType(TypeSanitized) != nil || CodeOf(p.CheckType(TypeSnapshot)) != CodePolicy || (Policy{}).CheckType(TypeSnapshot) != nil {
		t.Error("share_types")
	}
	if p.CheckExpiry(noon.Add(time.Hour), noon) != nil || CodeOf(p.CheckExpiry(noon.Add(time.Hour+1), noon)) != CodePolicy ||
		CodeOf(p.CheckExpiry(time.Time{}, noon)) != CodePolicy || (Policy{}).CheckExpiry(time.Time{}, noon) != nil {
		t.Error("max_cross_org_expiry")
	}
}
