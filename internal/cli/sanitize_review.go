package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"snap"
	"snap/internal/local"
)

// reviewRules goes through the proposals of a target's rules file on the terminal. Columns with the
// same mask and reason are one group, decided with one key. Each decision is saved immediately.
func (a *app) reviewRules(ctx context.Context, agent *local.Agent, target, given string) error {
	if !a.canAsk() || a.flags.json {
		return snap.Usage("a review needs a terminal", "edit the rules file instead")
	}
	t, err := agent.Target(target)
	if err != nil {
		return err
	}
	path, err := agent.RulesPath(t, given)
	if err != nil {
		return err
	}
	v, err := local.ReviewRules(path)
	if err != nil {
		return err
	}
	return a.review(ctx, path, v)
}

// review asks about the groups of a rules file: first the undecided columns, then those with the
// mask keep.
func (a *app) review(ctx context.Context, path string, v local.RulesReview) error {
	r := reviewSession{app: a, path: path, rules: v}
	a.say("%s", r.summary())
	for _, g := range append(v.Groups(local.Undecided), v.Groups("keep")...) {
		if err := r.decide(ctx, g); err != nil || r.quit {
			return r.end(err)
		}
	}
	return r.end(nil)
}

// reviewSession is the state of a review.
type reviewSession struct {
	app   *app
	path  string
	rules local.RulesReview
	quit  bool // the person wants to stop
}

// summary counts the proposals by mask, the most frequent mask first.
func (r *reviewSession) summary() string {
	counts := r.rules.Counts()
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return "Proposals: " + strings.Join(parts, ", ")
}

// shownColumns is how many column names of a group are printed.
const shownColumns = 12

// decide asks about one group. The answer "each column" asks about its columns one by one.
func (r *reviewSession) decide(ctx context.Context, g local.ReviewGroup) error {
	a := r.app
	names := g.Columns[:min(shownColumns, len(g.Columns))]
	more := ""
	if len(g.Columns) > len(names) {
		more = fmt.Sprintf(" and %d more", len(g.Columns)-len(names))
	}
	a.say("\n%s: %s (%s)\n  %s%s", snap.Plural(len(g.Columns), "column", "columns"), g.Reason, g.Mask,
		strings.Join(names, ", "), more)
	rule := g.Suggestion
	if rule == "" {
		rule = "redact"
	}
	keys := fmt.Sprintf("m %s, n null, k keep, s skip", rule)
	if g.Mask == "keep" {
		keys = "k keep, m mask with redact, d decide later"
		rule = "redact"
	}
	if len(g.Columns) > 1 {
		keys += ", e each column"
	}
	for {
		a.write(keys + ", q save and quit: ")
		key, err := a.key(ctx)
		if err != nil {
			return err
		}
		a.write(string(key) + "\n")
		switch {
		case key == 'q':
			r.quit = true
			return nil
		case key == 's', key == 'k' && g.Mask == "keep":
			return nil
		case key == 'e' && len(g.Columns) > 1:
			return r.each(ctx, g)
		}
		if chosen := ruleOf(key, g, rule); chosen != "" {
			return r.rules.Save(g, chosen)
		}
	}
}

// each asks about each column of a group.
func (r *reviewSession) each(ctx context.Context, g local.ReviewGroup) error {
	for i := range g.Columns {
		if err := r.decide(ctx, g.One(i)); err != nil || r.quit {
			return err
		}
	}
	return nil
}

// ruleOf returns the rule that a key selects, or "". mask is the rule of the key m.
func ruleOf(key byte, g local.ReviewGroup, mask string) string {
	switch {
	case key == 'm':
		return mask
	case key == 'd' && g.Mask == "keep":
		return local.Undecided
	case key == 'k' && g.Mask != "keep":
		return "keep"
	case key == 'n' && g.Mask != "keep":
		return `"null"`
	}
	return ""
}

// end reports the columns that are left to decide.
func (r *reviewSession) end(err error) error {
	if err != nil {
		return err
	}
	if open := r.rules.Counts()[local.Undecided]; open > 0 {
		r.app.note("%s still to decide in %s", snap.Plural(open, "column", "columns"), r.path)
		return nil
	}
	r.app.done(r.path, "every column in %s has a decision", r.path)
	return nil
}

// interrupt is Ctrl-C on a terminal that delivers it as a character.
const interrupt = 3

// key reads one key, without Enter if the terminal allows it.
func (a *app) key(ctx context.Context) (byte, error) {
	if f, ok := a.io.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		old, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return 0, fmt.Errorf("read a key: %w", err)
		}
		defer func() { _ = term.Restore(int(f.Fd()), old) }() // also if ctx ends before a key is pressed
	}
	var pressed [1]byte
	err := a.interruptible(func(context.Context) error {
		_, err := io.ReadFull(a.io.In, pressed[:])
		return err
	})(ctx)
	if err != nil || pressed[0] == interrupt {
		return 0, &snap.Error{Code: snap.CodeInterrupted, Detail: "the review was stopped; earlier decisions are saved",
			Cause: err}
	}
	return pressed[0], nil
}
