//go:build linux

package soak

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A seed always results in the same schedule, and the short schedule has every sort of fault.
func TestSchedule(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rounds := schedule(seed, shortRounds, time.Second)
		if again := schedule(seed, shortRounds, time.Second); fmt.Sprint(again) != fmt.Sprint(rounds) {
			t.Fatalf("seed %d makes two schedules", seed)
		}
		had := map[string]bool{}
		for _, round := range rounds {
			for _, f := range round {
				sort, _, _ := strings.Cut(f.kind, " ")
				had[sort], had["at "+f.target] = true, true
			}
		}
		for _, want := range []string{
			"kill", "stop", "freeze", "away", "crash", "cut", "reset", "hole", "lost", "mute", "slow",
			"at leader", "at 0", "at 1", "at 2", "at database", "at storage",
		} {
			if !had[want] {
				t.Errorf("seed %d has no %s: %v", seed, want, rounds)
			}
		}
	}
}
