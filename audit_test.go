package snap

import (
	"testing"

	"pgregory.net/rapid"
)

// A log that was changed anywhere does not verify: a line altered, removed,
// put elsewhere or slipped in.
func TestAuditChainShowsEveryChange(t *testing.T) {
	t.Parallel()
	log := rapid.Custom(func(t *rapid.T) []AuditEntry {
		var lines []AuditEntry
		prev := ""
		for i := range rapid.IntRange(2, 8).Draw(t, "lines") {
			e := AuditEntry{Seq: int64(i + 1), At: noon, Action: AuditShared, Actor: rapid.String().Draw(t, "actor")}
			e.Hash = e.Sum(prev)
			prev = e.Hash
			lines = append(lines, e)
		}
		return lines
	})
	verify := func(lines []AuditEntry) error {
		var chain AuditChain
		for _, e := range lines {
			if err := chain.Next(e); err != nil {
				return err
			}
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		lines := log.Draw(t, "log")
		if err := verify(lines); err != nil {
			t.Fatalf("a log as written: %v", err)
		}
		i := rapid.IntRange(0, len(lines)-2).Draw(t, "at")
		bent := append([]AuditEntry{}, lines...)
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			bent[i].Actor += "x"
		case 1:
			bent = append(bent[:i], bent[i+1:]...)
		case 2:
			bent[i], bent[i+1] = bent[i+1], bent[i]
		case 3:
			forged := bent[i]
			forged.Actor += "x"
			forged.Hash = forged.Sum("")
			bent[i] = forged
			if i == 0 { // then the next line shows it
				break
			}
		}
		if CodeOf(verify(bent)) != CodeConflict {
			t.Fatal("a bent log verified")
		}
	})
}
