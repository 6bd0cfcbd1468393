package personal

import "strings"

// Subject returns the kind that the reason of a finding names. If the reason names none, Subject
// returns the reason up to its first semicolon or comma. Columns with the same subject can be
// judged together.
func Subject(reason string) string {
	best := ""
	for _, k := range kinds {
		if name := string(k.kind); len(name) > len(best) && containsWords(reason, name) {
			best = name
		}
	}
	if best != "" {
		return best
	}
	if at := strings.IndexAny(reason, ";,"); at >= 0 {
		reason = reason[:at]
	}
	return strings.TrimSpace(reason)
}

// containsWords reports whether text contains words as whole words.
func containsWords(text, words string) bool {
	_, after, found := strings.Cut(" "+text, " "+words)
	return found && (after == "" || strings.ContainsAny(after[:1], " ;,"))
}
