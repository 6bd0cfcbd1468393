package cli

import (
	"context"

	"snap/internal/local"
)

// checkRules prints the columns that the rules of a target do not decide on.
func (a *app) checkRules(ctx context.Context, agent *local.Agent, target string, o local.SanitizeOptions) error {
	report, end := a.progress()
	c, err := agent.CheckRules(ctx, target, o, report)
	end()
	if err == nil {
		err = a.printRulesCheck(target, c)
	}
	return a.reportComparison(ctx, len(c.Unknown) == 0, err)
}

// rulesCheckView is the JSON output of sanitize --check.
type rulesCheckView struct {
	Target   string        `json:"target"`
	Snapshot string        `json:"snapshot" doc:"name of the snapshot whose columns were checked"`
	Unknown  []unknownView `json:"unknown" doc:"columns that the rules do not decide on"`
}

type unknownView struct {
	Table     string `json:"table" doc:"with its schema, if it has one"`
	Column    string `json:"column"`
	Type      string `json:"type,omitempty" doc:"as the database writes it"`
	Undecided bool   `json:"undecided" doc:"true if its rule has the mask decide; false if no rule covers it"`
}

func (a *app) printRulesCheck(target string, c local.RulesCheck) error {
	v := rulesCheckView{Target: target, Snapshot: c.Snapshot, Unknown: []unknownView{}}
	for _, u := range c.Unknown {
		v.Unknown = append(v.Unknown, unknownView{u.Table, u.Column, u.Type, u.Undecided})
	}
	if a.flags.json {
		return a.printJSON(v)
	}
	if len(v.Unknown) == 0 {
		a.note("the rules decide on every column of %s", c.Snapshot)
		return nil
	}
	t := a.newTable(column{title: "Column", least: 12, weight: 1}, column{title: "Type", least: 8},
		column{title: "Rule"})
	for _, u := range v.Unknown {
		rule := "none"
		if u.Undecided {
			rule = "decide"
		}
		t.row(u.Table+"."+u.Column, u.Type, rule)
	}
	return t.flush()
}
