package look

import (
	"testing"
	"time"

	"snap"
	"snap/api"
)

// The choices of an end are a duration by the service's clock, or a moment.
func TestEndOf(t *testing.T) {
	t.Parallel()
	for _, try := range []struct {
		choice, date, at string
		in               int64
	}{
		{"", "", "", 0},
		{"7d", "", "", 604800},
		{"500ms", "", "", 1}, // 0 would mean never
		{"date", "2026-12-31", "2026-12-31T23:59:59Z", 0},
		{"date", "2026-12-31T12:30", "2026-12-31T12:30:00Z", 0},
		{"date", "2026-12-31T12:30:05", "2026-12-31T12:30:05Z", 0},
		{"2026-12-31T12:30:05.25Z", "", "2026-12-31T12:30:05Z", 0},
	} {
		got, err := EndOf(try.choice, try.date)
		text := ""
		if got.ExpiresAt != nil {
			text = got.ExpiresAt.Format(time.RFC3339)
		}
		if err != nil || text != try.at || got.ExpiresIn != try.in {
			t.Errorf("%s %s: %q and %d, %v", try.choice, try.date, text, got.ExpiresIn, err)
		}
	}
	if _, err := EndOf("date", "2026-12-31T25:00"); snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("an hour that does not exist: %v", err)
	}
	if _, err := EndOf("soon", ""); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("soon: %v", err)
	}
}

// A share box lists the groups that the snapshot is shared with. Of the other groups that match the
// search, it lists a limited number and counts the rest.
func TestManyGroupsAreSearched(t *testing.T) {
	t.Parallel()
	b := ShareBox{Search: "team-1"}
	var groups []api.Group
	for i := range 2000 {
		groups = append(groups, api.Group{GroupID: "g" + time.Duration(i).String(),
			Name: "team-" + time.Duration(i).String()})
	}
	b.splitGroups(groups, []api.GroupShare{{GroupID: groups[5].GroupID, Name: groups[5].Name}})
	if len(b.Shared) != 1 || len(b.Others) != GroupsShown || b.More != 1111-GroupsShown || b.Total != 2000 {
		t.Errorf("%d shared, %d others, %d more of %d", len(b.Shared), len(b.Others), b.More, b.Total)
	}
}

// The first choice in the form for a share's end is exactly the end that the share has. No field of
// the form has a value that the form refuses to send.
func TestEndInPlaceIsExact(t *testing.T) {
	t.Parallel()
	end := at("2026-11-22T10:00:07Z").Add(25 * time.Millisecond)
	b := &ShareBox{Now: at("2026-11-21T10:00:00Z"), Policy: api.Policy{MaxCrossOrgExpiry: 7 * 24 * 3600}}
	e := b.OrgEnd(api.OrgShare{OrgSlug: "globex", ExpiresAt: &end})
	got, err := EndOf(e.Choices()[0].Value, "")
	if err != nil || got.ExpiresAt == nil || !got.ExpiresAt.Equal(end) {
		t.Errorf("the first choice ends at %v, %v; want %v", got.ExpiresAt, err, end)
	}
	if e.Moment() != "2026-11-22T10:00:07" || e.Earliest() != "2026-11-21T10:00" || e.Latest() != "2026-11-28T10:00" {
		t.Errorf("fields %s, %s, %s", e.Moment(), e.Earliest(), e.Latest())
	}
	late := at("2026-12-24T10:00:00Z")
	if e := b.OrgEnd(api.OrgShare{OrgSlug: "globex", ExpiresAt: &late}); e.Moment() != "" {
		t.Errorf("an end that the policy does not allow any more is offered: %s", e.Moment())
	}
	if e := b.GroupEnd(GroupChoice{}); e.Choices()[0].Value != "" || e.Moment() != "" || e.Latest() != "" {
		t.Errorf("no end: %v", e.Choices())
	}
}
