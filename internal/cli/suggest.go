package cli

import "snap"

// didYouMean returns a hint with the candidate closest to a mistyped word, or the hint otherwise if
// no candidate is close.
func didYouMean(typed string, candidates []string, otherwise string) string {
	if c := snap.Closest(typed, candidates); c != "" {
		return "did you mean " + c + "?"
	}
	return otherwise
}
