package cli

import "snap"

// cleanArgs applies snap.CleanText to every string and every error among the arguments of a format.
func cleanArgs(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			out[i] = snap.CleanText(v)
		case error:
			out[i] = snap.CleanText(v.Error())
		default:
			out[i] = arg
		}
	}
	return out
}
