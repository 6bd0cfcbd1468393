package engine

import (
	"fmt"
	"strings"

	"snap"
)

// Granter is an engine whose databases have users with privileges.
type Granter interface {
	// CheckGrant returns an error unless statement is a single statement that grants rights.
	CheckGrant(statement string) error
}

// NotGrant returns the error for text that is not a single GRANT statement.
func NotGrant(text string) error {
	return snap.Usage(fmt.Sprintf("%q is not a single GRANT statement", Shortened(text)),
		"write each of the target's grants like this: GRANT SELECT ON ALL TABLES IN SCHEMA public TO reporting")
}

// Shortened returns at most 80 characters of the first line of text.
func Shortened(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if r := []rune(line); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return line
}
