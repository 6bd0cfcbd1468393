package store_test

import (
	"testing"

	"snap"
	"snap/internal/store"
)

// F3: why groups are unknown is kept until a sign-in at which they are known.
func TestWhyGroupsAreUnknown(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		in := store.SignIn{OrgID: w.acme.ID, Issuer: "https://idp.test", Subject: "mia", Email: "mia@acme.test",
			Role: snap.RoleMember}
		for _, step := range []struct {
			why     string
			unknown bool
			want    string
		}{
			{"no claim", true, "no claim"},
			{"too many", true, "too many"},
			{"left over from before", false, ""},
		} {
			in.GroupsWhy, in.GroupsUnknown = step.why, step.unknown
			id, err := w.ApplySignIn(w.ctx, in)
			w.ok(err)
			if c := w.caller(id); c.GroupsWhy != step.want || c.GroupsUnknown != step.unknown {
				t.Errorf("after %q: unknown %v because %q", step.why, c.GroupsUnknown, c.GroupsWhy)
			}
		}
	})
}
