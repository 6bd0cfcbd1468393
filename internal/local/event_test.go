package local

import "testing"

// An estimate that was too low does not lead to progress of more than 100 percent.
func TestProgressIsAtMostTheTotal(t *testing.T) {
	t.Parallel()
	var got []Event
	count := Progress(func(e Event) { got = append(got, e) }).bytes("mask")
	count(40, 50)
	count(60, 50)
	count(60, 0)
	for i, total := range []int64{50, 60, 0} {
		if got[i].Total != total {
			t.Errorf("%d of %d bytes, want a total of %d", got[i].Done, got[i].Total, total)
		}
	}
}
