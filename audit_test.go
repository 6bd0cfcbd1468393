package snap_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// A log does not verify if a line before the last was altered, removed, moved, or forged with a
// hash of its own.
func TestAuditChainShowsEveryChange(t *testing.T) {
	t.Parallel()
	log := rapid.Custom(func(t *rapid.T) []snap.AuditEntry {
		var lines []snap.AuditEntry
		prev := ""
		for i := range rapid.IntRange(2, 8).Draw(t, "lines") {
			e := snap.AuditEntry{Seq: int64(i + 1), At: noon, Action: snap.AuditShared,
				Actor: rapid.String().Draw(t, "actor")}
			e.Hash = e.Sum(prev)
			prev = e.Hash
			lines = append(lines, e)
		}
		return lines
	})
	verify := func(lines []snap.AuditEntry) error {
		var chain snap.AuditChain
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
		bent := append([]snap.AuditEntry{}, lines...)
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
		}
		if snap.CodeOf(verify(bent)) != snap.CodeConflict {
			t.Fatal("a bent log verified")
		}
	})
}

// The list of actions has every action that is recorded, so each can be selected.
func TestAuditActionsAreAll(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("audit.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^\tAudit\w+ +AuditAction = "(.+)"$`).FindAllSubmatch(source, -1)
	if len(named) < 18 {
		t.Fatalf("%d actions are named", len(named))
	}
	for _, m := range named {
		if !slices.Contains(snap.AuditActions(), snap.AuditAction(m[1])) {
			t.Errorf("%s is missing", m[1])
		}
	}
}
