package store

import "slices"

// Tables returns the names of all tables, in the order in which they are copied.
func Tables() (all []string) {
	for _, t := range tables() {
		all = append(all, t.name)
	}
	return all
}

// Identities returns the columns whose values the database generates, in order.
func Identities() (all []string) {
	for _, t := range tables() {
		if t.identity != "" {
			all = append(all, t.name+"."+t.identity)
		}
	}
	slices.Sort(all)
	return all
}
