package cli

import (
	"strings"
	"testing"
	"time"

	"snap/api"
)

// TestDoctorReportsAccess: doctor shows when the next sign-in is due. It warns about keys that were
// not used for 90 days: the caller's own or, for owners and admins, everybody's.
func TestDoctorReportsAccess(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 12, 20, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		me   api.Me
		want string
	}{
		{api.Me{}, ""},
		{api.Me{IdleKeys: 1}, "1 key has not been used for 90 days list them with `snapcli cloud keys --idle 90d`"},
		{api.Me{IdleKeys: 1, OrgIdleKeys: 3},
			"3 keys have not been used for 90 days list them with `snapcli cloud keys --all --idle 90d`"},
		{api.Me{SignInDue: &due}, "the next one is due by 2026-12-20"},
	} {
		a := &app{now: func() time.Time { return due.Add(-time.Hour) }, env: func(string) string { return "" }}
		a.flags.utc = true
		x := &examination{app: a}
		x.signInAndKeys(test.me)
		var said strings.Builder
		for _, f := range x.findings {
			said.WriteString(f.Text + " " + f.Hint)
		}
		if got := said.String(); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", test.me, got, test.want)
		}
	}
}
