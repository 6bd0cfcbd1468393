package sanitize

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"snap"
)

// Review is a rules file whose proposals a person reviews. It changes only the mask names that the
// person decides, so that comments and the order of the file remain. It contains names, rules and
// reasons, and no values.
type Review struct {
	path  string
	lines []string
	all   []proposedRule
}

// proposedRule is a rule that consists of a mask's name, and its position in the file.
type proposedRule struct {
	Column, Mask, Reason string
	table, name          string // the parts of Column
	line, column         int    // of the mask's name, counted from zero
}

// Group is a group of columns with the same mask and the same reason.
type Group struct {
	Mask, Reason string
	Columns      []string
	Suggestion   string // a rule that suits all of them, according to --init; "" if unknown
	at           []int
}

// ReadReview reads a rules file for a review.
func ReadReview(path string) (*Review, error) {
	if _, err := ReadRules(path); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the rules file: %w", err)
	}
	return parseReview(path, text)
}

func parseReview(path string, text []byte) (*Review, error) {
	v := &Review{path: path, lines: strings.SplitAfter(string(text), "\n")}
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return nil, snap.Invalid(path+" is not a rules file", "draft one with `snapcli sanitize TARGET --init`")
	}
	eachRule(file.Docs[0].Body, func(table, column string, _ ast.MapKeyNode, value ast.Node) {
		s, ok := value.(*ast.StringNode)
		if !ok || s.Token == nil || s.Token.Position == nil {
			return
		}
		p := proposedRule{Column: table + "." + column, table: table, name: column, Mask: s.Value,
			line: s.Token.Position.Line - 1, column: s.Token.Position.Column - 1}
		if p.line >= len(v.lines) || !strings.HasPrefix(runesFrom(v.lines[p.line], p.column), s.Value) {
			return // a quoted or otherwise unusual rule
		}
		_, comment, _ := strings.Cut(runesFrom(v.lines[p.line], p.column), "# ")
		p.Reason = strings.TrimSpace(comment)
		v.all = append(v.all, p)
	})
	return v, nil
}

// runesFrom returns a line from a position, which the parser counts in runes.
func runesFrom(line string, at int) string {
	r := []rune(line)
	return string(r[min(at, len(r)):])
}

// Groups returns the columns with a mask, grouped by reason, with the largest groups first.
func (v *Review) Groups(mask string) []Group {
	by := map[string]*Group{}
	for i, p := range v.all {
		if p.Mask != mask {
			continue
		}
		g := by[p.Reason]
		if g == nil {
			reason, rule := splitReason(p.Reason)
			g = &Group{Mask: mask, Reason: reason, Suggestion: rule}
			by[p.Reason] = g
		}
		g.Columns, g.at = append(g.Columns, p.Column), append(g.at, i)
	}
	var all []Group
	for _, reason := range sortedKeys(by) {
		all = append(all, *by[reason])
	}
	slices.SortStableFunc(all, func(a, b Group) int { return cmp.Compare(len(b.Columns), len(a.Columns)) })
	return all
}

// wouldWork ends the reason of an undecided column if a rule is known that can be used for it.
const wouldWork = " would work"

// splitReason splits the comment of an undecided column into the reason and the rule that can be used
// for the column. rule is "" if unknown.
func splitReason(comment string) (reason, rule string) {
	if before, ok := strings.CutSuffix(comment, wouldWork); ok {
		if at := strings.LastIndex(before, "; "); at >= 0 {
			return before[:at], before[at+2:]
		}
	}
	return comment, ""
}

// Counts returns the number of columns of each mask.
func (v *Review) Counts() map[string]int {
	all := map[string]int{}
	for _, p := range v.all {
		all[p.Mask]++
	}
	return all
}

// One returns a group with only column i of g.
func (g Group) One(i int) Group {
	g.Columns, g.at = g.Columns[i:i+1], g.at[i:i+1]
	return g
}

// Decide gives the columns of a group a rule, in the form of a rules file. The comments keep the
// reasons, without the rule that would work.
func (v *Review) Decide(g Group, rule string) {
	for _, at := range g.at {
		p := &v.all[at]
		r := []rune(v.lines[p.line])
		tail := string(r[p.column+len([]rune(p.Mask)):])
		if _, would := splitReason(p.Reason); would != "" && rule != Undecided {
			tail = strings.Replace(tail, "; "+would+wouldWork, "", 1)
		}
		pad := len([]rune(p.Mask)) - len([]rune(rule))
		for ; pad < 0 && strings.HasPrefix(tail, "  "); pad++ {
			tail = tail[1:]
		}
		v.lines[p.line] = string(r[:p.column]) + rule + strings.Repeat(" ", max(0, pad)) + tail
		p.Mask = strings.Trim(rule, `"`)
	}
}

// Text returns the file with the decisions. It fails if the result is not a valid rules file.
func (v *Review) Text() ([]byte, error) {
	text := []byte(strings.Join(v.lines, ""))
	return text, CheckRules(v.path, text)
}
