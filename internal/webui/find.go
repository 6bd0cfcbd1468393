package webui

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/text/cases"

	"snap/api"
	"snap/internal/look"
)

// findPage is the data of find.html, which finds snapshots, targets and actions by words. Without
// JavaScript, it is a page of its own.
type findPage struct {
	look.Page
	Q       string
	Actions []finding
	Targets []finding
	Rows    []row
	Problem *problem // why the cloud's snapshots are missing
}

// finding is a link or, if Post is set, a form that starts a job.
type finding struct {
	Text, Icon, URL string
	Post            bool
}

// The maximum numbers of results.
const (
	snapshotsFound = 8
	targetsFound   = 5
	actionsFound   = 6
)

// Empty reports whether nothing matches.
func (p findPage) Empty() bool { return len(p.Actions)+len(p.Targets)+len(p.Rows) == 0 }

// find lists what matches the words.
func (s *Server) find(w http.ResponseWriter, r *http.Request) error {
	page := findPage{Page: s.page(titleFind, ""), Q: strings.TrimSpace(r.URL.Query().Get("find"))}
	page.Narrow = true
	list, _, _, err := s.rows(r.Context(), query{Show: showAll, Q: page.Q})
	if err != nil {
		return err
	}
	page.Rows, page.Problem = list.Rows[:min(len(list.Rows), snapshotsFound)], problemOf(list.Problem)
	page.Targets, page.Actions = s.findTargets(list, page.Q), s.findActions(list.Me, page.Q)
	return s.show(w, r, "find.html", "dialog", page)
}

// findTargets returns links to the snapshot lists of the targets that match.
func (s *Server) findTargets(list listing, q string) (found []finding) {
	for _, name := range s.targetNames(list) {
		if hasWords(name, q) && len(found) < targetsFound {
			found = append(found, finding{Text: name, Icon: "target",
				URL: query{Show: showAll, Target: name, Sort: byTarget}.URL()})
		}
	}
	return found
}

// findActions returns the actions that match.
func (s *Server) findActions(me api.Me, q string) (found []finding) {
	var all []finding
	for _, t := range s.o.Agent.Targets() {
		if t.Source != "" {
			all = append(all, finding{Text: jobBuild(t.Name), Icon: "camera", URL: targetView{Target: t}.Build(),
				Post: true})
		}
	}
	for _, l := range s.page("", "").Nav {
		all = append(all, finding{Text: goTo(l.Text), Icon: l.Icon, URL: l.URL})
	}
	all = append(all, s.actions(me)...)
	for _, f := range all {
		if hasWords(f.Text, q) && len(found) < actionsFound {
			found = append(found, f)
		}
	}
	return found
}

// actions returns the actions that do not depend on a target. Those about the cloud are offered
// only to a person who is signed in.
func (s *Server) actions(me api.Me) []finding {
	all := []finding{{Text: titleNewTarget, Icon: "plus", URL: "/targets/new"}}
	if me.Organization != "" {
		mine, ending := query{Show: showAll}, query{Show: showCloud}
		mine.Only, ending.Only = onlyMine, onlyEnding
		all = append(all, finding{Text: textMine, Icon: "person", URL: mine.URL()},
			finding{Text: textEnding, Icon: "clock", URL: ending.URL()})
	}
	return all
}

// hasWords reports whether each word of q begins a word of the text.
func hasWords(text, q string) bool {
	fold := cases.Fold()
	words := strings.Fields(fold.String(text))
	return !slices.ContainsFunc(strings.Fields(fold.String(q)), func(asked string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, asked) })
	})
}
