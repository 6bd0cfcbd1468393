package sanitize

import (
	"strings"

	"snap/internal/personal"
)

// lists returns the word lists with which sampled values are compared.
func lists() personal.Lists {
	set := func(words []string) map[string]bool {
		all := make(map[string]bool, len(words))
		for _, w := range words {
			all[strings.ToLower(w)] = true
		}
		return all
	}
	return personal.Lists{Given: set(firstNames[:]), Family: set(lastNames[:]), Cities: set(cities[:])}
}
