package local

import (
	"context"
	"fmt"

	"snap"
	"snap/internal/sanitize"
)

// RulesCheck is the result of [Agent.CheckRules].
type RulesCheck struct {
	Snapshot string // name of the snapshot that was checked
	Unknown  []sanitize.Unknown
}

// CheckRules compares a target's rules with the columns of its newest original, or of the snapshot
// that the options name. It returns the columns that the rules do not decide on. If there are none,
// it fails where [Agent.Sanitize] would fail: if a rule matches no column or does not fit its
// column.
func (a *Agent) CheckRules(ctx context.Context, target string, o SanitizeOptions, p Progress) (RulesCheck, error) {
	t, err := a.Target(target)
	if err != nil {
		return RulesCheck{}, err
	}
	rules, _, err := a.howToMask(t, o)
	if err != nil {
		return RulesCheck{}, err
	}
	if rules == nil {
		return RulesCheck{}, snap.Usage(fmt.Sprintf("the target %q is masked by SQL alone, which has no rules to check",
			t.Name), fmt.Sprintf("draft rules with `snapcli sanitize %s --init`", snap.ShellWord(t.Name)))
	}
	original, err := a.original(t.Name, o.Snapshot)
	if err != nil {
		return RulesCheck{}, err
	}
	contents, err := a.inspect(ctx, original, o.Identity, p)
	if err != nil {
		return RulesCheck{}, err
	}
	found := RulesCheck{Snapshot: original.Name, Unknown: rules.Unknown(contents)}
	if len(found.Unknown) > 0 {
		return found, nil
	}
	key, err := a.maskKey(rules)
	if err == nil {
		_, err = rules.Prepare(contents, key)
	}
	return found, err
}
