// Package late puts off until it is needed what would make every start of a
// program slower: compiling regular expressions. A command uses few of them,
// and each costs as much as looking up a hundred names.
package late

import (
	"regexp"
	"sync"
)

// Regexp returns the expression, compiled at the first call and kept. It
// panics there if it cannot be compiled, as [regexp.MustCompile] does, so
// every expression wants a test that uses it.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
