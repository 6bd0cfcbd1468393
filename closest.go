package snap

import "strings"

// Closest returns the candidate that a person most likely meant by typed: one
// that differs by case, begins with it, or is few edits away. It returns ""
// when none is near.
func Closest(typed string, candidates []string) string {
	return nearest(typed, candidates, 1+len([]rune(typed))/3, func(typed, c string) int {
		if len(typed) >= 2 && strings.HasPrefix(c, typed) {
			return min(1, edits(typed, c))
		}
		return edits(typed, c)
	})
}

// ClosestWithin returns the first of the candidates that are fewest edits away from
// typed, whatever the case, if those are no more than most; else "".
func ClosestWithin(typed string, candidates []string, most int) string {
	return nearest(typed, candidates, most, edits)
}

// nearest returns the first of the candidates at the least distance, whatever
// the case, if that is no more than most; else "".
func nearest(typed string, candidates []string, most int, distance func(typed, candidate string) int) string {
	best, least := "", most+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(typed), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(y)]
}
