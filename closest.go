package snap

import "strings"

// Closest returns the candidate that a person most likely meant by typed: one that differs only in
// case, begins with typed (if that has at least two bytes), or is a few edits away. It returns ""
// when none is close.
func Closest(typed string, candidates []string) string {
	return nearest(typed, candidates, 1+len([]rune(typed))/3, func(typed, c string) int {
		if len(typed) >= 2 && strings.HasPrefix(c, typed) {
			return min(1, edits(typed, c))
		}
		return edits(typed, c)
	})
}

// ClosestWithin returns the candidate that is the fewest edits away from typed, ignoring case. Of
// several such candidates it returns the first. It returns "" if that candidate is more than limit
// edits away.
func ClosestWithin(typed string, candidates []string, limit int) string {
	return nearest(typed, candidates, limit, edits)
}

// nearest returns the first candidate at the least distance from typed, ignoring case. It returns
// "" if that distance is greater than limit.
func nearest(typed string, candidates []string, limit int, distance func(typed, candidate string) int) string {
	best, least := "", limit+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(typed), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// edits returns the Levenshtein distance between a and b.
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
