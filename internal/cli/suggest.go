package cli

import "snap"

// didYouMean returns a hint that names the candidate closest to a mistyped word. If no candidate is
// close, it returns the argument otherwise.
func didYouMean(typed string, candidates []string, otherwise string) string {
	if c := snap.Closest(typed, candidates); c != "" {
		return "did you mean " + c + "?"
	}
	return otherwise
}
