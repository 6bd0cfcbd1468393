package webui

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"snap/internal/local"
	"snap/internal/look"
)

// ruleReviews holds the reviews of rules by target. Decisions stay in memory until they are saved.
type ruleReviews struct {
	mu sync.Mutex
	of map[string]*ruleReview
}

// ruleReview is a review of the columns that a target's rules do not decide on.
type ruleReview struct {
	id       string // distinguishes this review from earlier ones; forms of earlier reviews are refused
	proposed *local.ProposedRules
	groups   []ruleSet
	order    []int          // numbers of the columns, group by group
	rules    map[int]string // the decisions
	dropped  map[string]bool
	saved    string // message that the rules were saved; if it is set, the review is over
}

// ruleSet is a set of columns of one kind that are decided together.
type ruleSet struct {
	ruleSetKey
	columns []int
}

// ruleSetKey is the kind of the columns in a ruleSet.
type ruleSetKey struct {
	Subject string
	Sure    bool
	Keeps   bool // the proposal is to keep the values
}

// newRuleReview groups the proposals: first those that need a judgment, then those to mask, then
// those to keep. It takes over the decisions of an earlier review.
func newRuleReview(p *local.ProposedRules, before *ruleReview) *ruleReview {
	v := &ruleReview{id: rand.Text(), proposed: p, rules: map[int]string{}, dropped: map[string]bool{}}
	by := map[ruleSetKey][]int{}
	for i, c := range p.Columns {
		key := ruleSetKey{c.Subject, c.Sure, c.Sure && c.Rule == "keep"}
		by[key] = append(by[key], i)
	}
	for key, columns := range by {
		v.groups = append(v.groups, ruleSet{key, columns})
	}
	slices.SortFunc(v.groups, func(a, b ruleSet) int {
		return cmp.Or(a.rank()-b.rank(), len(b.columns)-len(a.columns), strings.Compare(a.Subject, b.Subject))
	})
	for _, g := range v.groups {
		v.order = append(v.order, g.columns...)
	}
	v.adopt(before)
	return v
}

func (g ruleSet) rank() int {
	switch {
	case !g.Sure:
		return 0
	case !g.Keeps:
		return 1
	}
	return 2
}

// adopt takes over the decisions of a review that was not saved.
func (v *ruleReview) adopt(before *ruleReview) {
	if before == nil || before.saved != "" {
		return
	}
	decided := map[string]string{}
	for i, rule := range before.rules {
		decided[before.proposed.Columns[i].Label()] = rule
	}
	for i, c := range v.proposed.Columns {
		if rule := decided[c.Label()]; rule != "" {
			v.rules[i] = rule
		}
		if before.dropped[c.Table] {
			v.dropped[c.Table] = true
		}
	}
}

// open reports whether a column is not decided yet.
func (v *ruleReview) open(i int) bool {
	return v.rules[i] == "" && !v.dropped[v.proposed.Columns[i].Table]
}

// left returns how many of the given columns are not decided yet.
func (v *ruleReview) left(columns []int) (n int) {
	for _, i := range columns {
		if v.open(i) {
			n++
		}
	}
	return n
}

// do carries out a decision that the form sent, such as accept-c7 for a column or keep-g2 for a
// group.
func (v *ruleReview) do(verb, on, mask string) error {
	columns, err := v.columnsOf(on)
	if err != nil {
		return err
	}
	c := v.proposed.Columns[columns[0]]
	switch verb {
	case "accept", "keep":
		for _, i := range columns {
			if v.open(i) || on[0] == 'c' {
				v.rules[i] = v.proposed.Columns[i].Rule
				if verb == "keep" {
					v.rules[i] = "keep"
				}
			}
		}
	case "mask":
		if err := v.proposed.CheckSuits(columns[0], mask); err != nil {
			return err
		}
		v.rules[columns[0]] = local.NamedMask(mask)
	case "drop":
		if c.Pattern() {
			return errNoSuchDecision()
		}
		v.dropped[c.Table] = true
	case "undo":
		for _, i := range columns {
			delete(v.rules, i)
			delete(v.dropped, v.proposed.Columns[i].Table)
		}
	default:
		return errNoSuchDecision()
	}
	return nil
}

// columnsOf returns the columns that a form names. There is at least one.
func (v *ruleReview) columnsOf(on string) ([]int, error) {
	kind, number := on[:min(1, len(on))], on[min(1, len(on)):]
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 0:
	case kind == "g" && n < len(v.groups):
		return v.groups[n].columns, nil
	case kind == "c" && n < len(v.order):
		return []int{n}, nil
	}
	return nil, errNoSuchDecision()
}

// rulesPage is the data of rules.html.
type rulesPage struct {
	look.Page
	Target string
	Saved  string // message that the rules were saved
	Review *rulesView
	Jobs   []jobView
}

// Here returns the path of the page.
func (p rulesPage) Here() string { return rulesPath(p.Target) }

// rulesPath returns the path of the page that reviews a target's rules.
func rulesPath(target string) string { return "/targets/" + url.PathEscape(target) + "/rules" }

// rulesView is one page of a review.
type rulesView struct {
	ID, Path, Snapshot string
	Here               string // path of the page
	Number, Pages      int
	Total, Left        int
	Groups             []ruleGroup
	Masks              []string
}

// ruleGroup is a group of columns. Columns holds those that are on the page.
type ruleGroup struct {
	ruleSet
	Number      int
	Count, Left int
	Columns     []ruleColumn
}

// Title returns the kind as a heading.
func (g ruleGroup) Title() string { return titleOfSubject(g.Subject) }

// ruleColumn is a column on the page.
type ruleColumn struct {
	local.OpenColumn
	Number  int
	Chosen  string // the rule that was decided; empty if none was
	Dropped bool   // the rows of its table are dropped
	Masks   []string
}

// Open reports whether the column is not decided yet.
func (c ruleColumn) Open() bool { return c.Chosen == "" && !c.Dropped }

// rulesShown is the maximum number of columns on a page.
const rulesShown = 50

// view returns a page of the review. Page numbers begin with 1.
func (v *ruleReview) view(number int) *rulesView {
	all := len(v.order)
	w := &rulesView{ID: v.id, Path: v.proposed.Path, Snapshot: v.proposed.Snapshot, Here: rulesPath(v.proposed.Target),
		Pages: max(1, (all+rulesShown-1)/rulesShown), Total: all, Left: v.left(v.order), Masks: local.PlainMasks()}
	w.Number = min(max(number, 1), w.Pages)
	from, to, at := (w.Number-1)*rulesShown, w.Number*rulesShown, 0
	for n, set := range v.groups {
		begin, end := max(from, at), min(to, at+len(set.columns))
		if begin < end {
			g := ruleGroup{ruleSet: set, Number: n, Count: len(set.columns), Left: v.left(set.columns)}
			for _, i := range set.columns[begin-at : end-at] {
				c := v.proposed.Columns[i]
				g.Columns = append(g.Columns, ruleColumn{c, i, v.rules[i], v.dropped[c.Table], w.Masks})
			}
			w.Groups = append(w.Groups, g)
		}
		at += len(set.columns)
	}
	return w
}

// Previous returns the address of the page before this one, or "" on the first page.
func (w rulesView) Previous() string { return w.turn(-1) }

// Next returns the address of the page after this one, or "" on the last page.
func (w rulesView) Next() string { return w.turn(1) }

func (w rulesView) turn(by int) string {
	if to := w.Number + by; to >= 1 && to <= w.Pages {
		return w.At(to)
	}
	return ""
}

// At returns the address of a page.
func (w rulesView) At(number int) string { return w.Here + "?page=" + strconv.Itoa(number) }

// rulesPage returns the data of the page.
func (s *Server) rulesPage(target string, number int) rulesPage {
	p := rulesPage{Page: s.page(titleRules, "/targets"), Target: target, Jobs: s.dock()}
	p.Scripts = append(p.Scripts, "rules.js")
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	if v := s.rules.of[target]; v != nil && v.saved != "" {
		p.Saved = v.saved
	} else if v != nil {
		p.Review = v.view(number)
	}
	return p
}

// reviewRules shows the review of a target's rules.
func (s *Server) reviewRules(w http.ResponseWriter, r *http.Request) error {
	t, err := s.o.Agent.Target(r.PathValue("name"))
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(r.URL.Query().Get("page")) // an invalid number shows the first page
	return s.show(w, r, "rules.html", "review", s.rulesPage(t.Name, number))
}

// proposeRules proposes rules for a target, as a job.
func (s *Server) proposeRules(w http.ResponseWriter, r *http.Request) error {
	t, err := s.o.Agent.Target(r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.begin(w, r, "rules", t.Name, jobRules(t.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			proposed, err := s.o.Agent.ProposeRules(ctx, t.Name, p)
			if err != nil {
				return outcome{}, err
			}
			s.rules.mu.Lock()
			s.rules.of[t.Name] = newRuleReview(proposed, s.rules.of[t.Name])
			s.rules.mu.Unlock()
			s.jobs.announce("rules")
			return outcome{text: endRules(len(proposed.Columns))}, nil
		})
}

// decideRules carries out one decision of a review, or saves or discards all decisions.
func (s *Server) decideRules(w http.ResponseWriter, r *http.Request) error {
	t, err := s.o.Agent.Target(r.PathValue("name"))
	if err != nil {
		return err
	}
	verb, on, _ := strings.Cut(r.PostFormValue("do"), "-")
	if err := s.decideRule(t.Name, r.PostFormValue("review"), verb, on, r.PostFormValue("mask-"+on)); err != nil {
		return err
	}
	number, _ := strconv.Atoi(r.PostFormValue("page"))
	return s.done(w, r, "rules.html", "review", s.rulesPage(t.Name, number))
}

func (s *Server) decideRule(target, id, verb, on, mask string) error {
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	v := s.rules.of[target]
	switch {
	case v == nil || v.id != id || v.saved != "":
		return errOtherReview()
	case verb == "discard":
		delete(s.rules.of, target)
		return nil
	case verb == "save":
		if err := s.o.Agent.SaveRules(v.proposed, maps.Clone(v.rules), maps.Clone(v.dropped)); err != nil {
			return err
		}
		s.rules.of[target] = &ruleReview{saved: rulesSaved(v.proposed.Path, v.left(v.order))}
		return nil
	}
	return v.do(verb, on, mask)
}
