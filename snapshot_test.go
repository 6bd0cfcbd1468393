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

// Public IDs have one form and are unique. Typed IDs and their beginnings are normalized; other
// text is refused.
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

// A target's name is normalized. Names that cannot be a folder's name everywhere are refused.
func TestCleanTarget(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"shop": "shop", "  shop ": "shop", "Größe & Maß": "Größe & Maß", "Gro\u0308ße": "Größe", "店 舗": "店 舗",
		"a.b_c-d": "a.b_c-d",
	} {
		if got, err := snap.CleanTarget(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "  ", ".", "..", ".hidden", "-flag", "a/b",
		`a\b`, "a\x00b", "a\nb", "a\u202eb", "x:y", "what?", strings.Repeat("x", 101), "\xff"} {
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
		"1w2d3h": (9*24 + 3) * time.Hour, "1.5d": 36 * time.Hour, "1d0h": 24 * time.Hour, " 1h ": time.Hour,
	} {
		if got, err := snap.ParseDuration(given); err != nil || got != want {
			t.Errorf("%q: got %v, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "x", "0", "0s", "0d", "-1h", "1d-1h", "1d-2d", "7", "d", "1e9w", "99999999w",
		"1h7d",
		"NaNd"} {
		if got, err := snap.ParseDuration(bad); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%q was read as %v (%v)", bad, got, err)
		}
	}
}

// FuzzParseDuration checks that every accepted duration is greater than zero.
func FuzzParseDuration(f *testing.F) {
	f.Add("1w2d3h")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := snap.ParseDuration(s); err == nil && d <= 0 {
			t.Fatalf("%q gave %v", s, d)
		}
	})
}

// Every code has one complete row of the error table, and errors are compared by their codes.
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
	if !errors.Is(wrapped, snap.ErrNotFound) || errors.Is(wrapped, snap.ErrUnauthenticated) ||
		snap.CodeOf(wrapped) != snap.CodeNotFound {
		t.Error("errors are not compared by their codes")
	}
	if snap.CodeOf(nil) != "" || snap.CodeOf(errors.New("x")) != snap.CodeInternal {
		t.Error("CodeOf without an *Error")
	}
}

// DESIGN 5: an organization's policy limits shares by type, by lifetime and by confirmation.
func TestPolicy(t *testing.T) {
	t.Parallel()
	wide, group := snap.Shares{OrgWide: true}, snap.Shares{Groups: []string{"eng"}}
	until := func(at time.Time) snap.Shares { return snap.Shares{Orgs: []string{"globex"}, Expires: at} }
	masked := snap.Policy{ShareTypes: []snap.Type{snap.TypeSanitized}}
	month := snap.Policy{MaxCrossOrgExpiry: 30 * 24 * time.Hour}
	ask, refuse := snap.Policy{Unsanitized: snap.UnsanitizedAsk}, snap.Policy{Unsanitized: snap.UnsanitizedRefuse}
	for _, tt := range []struct {
		name      string
		policy    snap.Policy
		typ       snap.Type
		with      snap.Shares
		confirmed bool
		want      snap.Code
		says      string
	}{
		{"no limits", snap.Policy{}, snap.TypeSnapshot, wide, false, "", ""},
		{"type allowed", masked, snap.TypeSanitized, wide, false, "", ""},
		{"type refused org-wide", masked, snap.TypeSnapshot, wide, false, snap.CodePolicy, "share_types"},
		{"type refused across organizations", masked, snap.TypeSnapshot, until(noon), false, snap.CodePolicy,
			"share_types"},
		{"groups have any type", masked, snap.TypeSnapshot, group, false, "", ""},
		{"longest share", month, snap.TypeSanitized, until(noon.Add(720 * time.Hour)), false, "", ""},
		{"too long", month, snap.TypeSanitized, until(noon.Add(720*time.Hour + 1)), false, snap.CodePolicy,
			"to 30 days"},
		{"without end", month, snap.TypeSanitized, until(time.Time{}), false, snap.CodePolicy, "to 30 days"},
		{"org-wide shares may be endless", month, snap.TypeSanitized, wide, false, "", ""},
		{"ask", ask, snap.TypeSnapshot, group, false, snap.CodeConfirm, "not sanitized"},
		{"ask, confirmed", ask, snap.TypeSnapshot, group, true, "", ""},
		{"ask, sanitized", ask, snap.TypeSanitized, wide, false, "", ""},
		{"refuse", refuse, snap.TypeSnapshot, group, true, snap.CodePolicy, "unsanitized_shares"},
		{"refuse, sanitized", refuse, snap.TypeSanitized, wide, false, "", ""},
	} {
		err := tt.policy.CheckShares(tt.typ, tt.with, tt.confirmed, noon)
		if snap.CodeOf(err) != tt.want || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q with %q", tt.name, err, tt.want, tt.says)
		}
	}
}
