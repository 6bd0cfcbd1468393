package store

import (
	"fmt"
	"testing"

	"snap"
)

// TestAudienceSQL compares the SQL that reads and makes audiences with snap.Audience.
func TestAudienceSQL(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	is := map[snap.AudienceKind]string{snap.KindUser: isUser, snap.KindGroup: isGroup,
		snap.KindRecipients: isRecipients}
	made := map[snap.AudienceKind]string{
		snap.KindMembers: membersOf, snap.KindGroup: groupOf, snap.KindRecipients: recipientsOf,
	}
	for kind := snap.KindUser; kind <= snap.KindRecipients; kind++ {
		a := fmt.Sprint(int64(snap.AudienceOf(kind, 4711)))
		expect(t, s, a+kindOf, int64(kind))
		expect(t, s, a+subjectOf, 4711)
		expect(t, s, a+isUserOrGroup, flag(kind == snap.KindUser || kind == snap.KindGroup))
		expect(t, s, a+isNotRecipients, flag(kind != snap.KindRecipients))
		for other, condition := range is {
			expect(t, s, a+condition, flag(kind == other))
		}
		if expression, ok := made[kind]; ok {
			expect(t, s, "4711"+expression, int64(snap.AudienceOf(kind, 4711)))
		}
	}
}

// expect evaluates an SQL expression.
func expect[N int | int64](t *testing.T, s *Store, expression string, want N) {
	t.Helper()
	var got N
	if err := s.read.QueryRowContext(t.Context(), "SELECT "+expression).Scan(&got); err != nil || got != want {
		t.Errorf("%s is %d (%v), want %d", expression, got, err, want)
	}
}
