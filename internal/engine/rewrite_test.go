package engine

import (
	"fmt"
	"strings"
	"testing"
)

// A column has enough samples if their number is the limit, or if they are large.
func TestEnoughSamples(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{10: 200, 300 << 10: 4, 8 << 20: 1} {
		var samples []string
		for i := range 300 {
			samples = AddSample(samples, fmt.Sprintf("%3d", i)+strings.Repeat("x", size), 200)
		}
		if len(samples) != want || !EnoughSamples(samples, 200) {
			t.Errorf("%d samples of %d bytes, want %d", len(samples), size, want)
		}
	}
}
