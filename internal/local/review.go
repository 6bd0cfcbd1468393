package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"snap/internal/disk"
	"snap/internal/sanitize"
)

// RulesReview is a review of a rules file. Each decision is saved immediately.
type RulesReview struct {
	*sanitize.Review
	path string
}

// ReviewGroup is a group of columns that are decided together.
type ReviewGroup = sanitize.Group

// Undecided is the mask of columns that a person must decide on.
const Undecided = sanitize.Undecided

// ReviewRules begins a review of a rules file.
func ReviewRules(path string) (RulesReview, error) {
	v, err := sanitize.ReadReview(path)
	return RulesReview{v, path}, err
}

// Save records the decision for a group and writes the file immediately.
func (v RulesReview) Save(g ReviewGroup, rule string) error {
	v.Decide(g, rule)
	text, err := v.Text()
	if err != nil {
		return err
	}
	info, err := os.Stat(v.path)
	if err != nil {
		return fmt.Errorf("write the rules file: %w", err)
	}
	return diskError(disk.Replace(v.path, text, info.Mode().Perm()), "write "+v.path)
}

// RulesPath returns the path of a target's rules file: the given one, otherwise the configured one,
// otherwise a file next to the config file.
func (a *Agent) RulesPath(t Target, given string) (string, error) {
	switch {
	case given != "":
		return filepath.Abs(given)
	case t.Sanitize.Rules != "":
		return a.relativeToConfig(t.Sanitize.Rules), nil
	}
	return a.relativeToConfig(t.Name + ".rules.yaml"), nil
}

// UseRules sets a target's rules file in the configuration, unless one is set already.
func (a *Agent) UseRules(t Target, path string) error {
	if t.Sanitize.Rules != "" {
		return nil
	}
	return a.ChangeTarget(t.Name, func(t *Target) { t.Sanitize.Rules = path })
}

// OpenColumns holds columns that rules do not decide on.
type OpenColumns = sanitize.OpenColumns

// OpenColumn is a column that rules do not decide on.
type OpenColumn = sanitize.OpenColumn

// PlainMasks returns the masks that need no settings.
func PlainMasks() []string { return sanitize.PlainMasks() }

// NamedMask returns the rule that applies a mask without settings, as written in a rules file.
func NamedMask(mask string) string { return sanitize.RuleText(mask) }

// ProposedRules are proposals for the columns that a target's rules do not decide on.
type ProposedRules struct {
	*OpenColumns
	Target   string
	Path     string // of the rules file, which need not exist yet
	Snapshot string // name of the snapshot that has these columns
}

// ProposeRules proposes a rule for every column of a target's newest original that its rules file
// does not decide on. It changes nothing. No data leaves this machine.
func (a *Agent) ProposeRules(ctx context.Context, target string, p Progress) (*ProposedRules, error) {
	t, err := a.Target(target)
	if err != nil {
		return nil, err
	}
	path, err := a.RulesPath(t, "")
	if err != nil {
		return nil, err
	}
	original, err := a.original(t.Name, "")
	if err != nil {
		return nil, err
	}
	contents, err := a.inspect(ctx, original, nil, p)
	if err != nil {
		return nil, err
	}
	open, err := sanitize.ReadOpenColumns(path, contents)
	return &ProposedRules{open, t.Name, path, original.Name}, err
}

// SaveRules writes decisions to the rules file. If the target has no rules file in the
// configuration, SaveRules also sets it there. It fails with code conflict if the file was changed
// after the rules were proposed.
func (a *Agent) SaveRules(p *ProposedRules, rules map[int]string, drop map[string]bool) error {
	t, err := a.Target(p.Target)
	if err != nil {
		return err
	}
	text, err := p.Text(rules, drop)
	if err != nil {
		return err
	}
	if err := p.CheckUnchanged(); err != nil {
		return err
	}
	if err := disk.Replace(p.Path, text, 0o644); err != nil {
		return diskError(err, "write "+p.Path)
	}
	return a.UseRules(t, p.Path)
}
