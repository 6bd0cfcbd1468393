package cli

import (
	"strings"
	"testing"

	"snap"
	"snap/api"
)

// TestChooseGroup: an ID wins over a name, and a name that fits two groups is
// an error that lists both IDs (SPEC 4.4, DESIGN 3).
func TestChooseGroup(t *testing.T) {
	t.Parallel()
	groups := []api.Group{
		{GroupID: "g1", Name: "Engineering"}, {GroupID: "g2", Name: "Data"}, {GroupID: "g3", Name: "Data"},
		{GroupID: "Engineering", Name: "trap"}, {GroupID: "g5", Name: "Ops"},
	}
	for _, c := range []struct {
		typed, id string
		code      snap.Code
		says      string
	}{
		{typed: "g2", id: "g2"},
		{typed: "Engineering", id: "Engineering"}, // the ID, not the name of g1
		{typed: "ops", id: "g5"},
		{typed: "Data", code: snap.CodeUsage, says: "g2, g3"},
		{typed: "G1", code: snap.CodeGroupNotFound, says: "did you mean g1?"},
		{typed: "Enginering", code: snap.CodeGroupNotFound, says: "did you mean Engineering?"},
		{typed: "marketing", code: snap.CodeGroupNotFound, says: "snapcli cloud groups"},
	} {
		g, err := chooseGroup(groups, c.typed)
		if g.GroupID != c.id || snap.CodeOf(err) != c.code {
			t.Errorf("%s: got %q, %v", c.typed, g.GroupID, err)
		}
		if err != nil && !strings.Contains(err.Error()+" "+asError(err).Hint, c.says) {
			t.Errorf("%s: %q does not say %q", c.typed, asError(err), c.says)
		}
	}
}
