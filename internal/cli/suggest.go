package cli

import "snap"

// didYouMean is a hint for a mistyped word, or the other hint.
func didYouMean(typed string, candidates []string, otherwise string) string {
	if c := snap.Closest(typed, candidates); c != "" {
		return "did you mean " + c + "?"
	}
	return otherwise
}
