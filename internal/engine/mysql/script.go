package mysql

import "strings"

// statements splits a script as the servers' client programs do: at each delimiter outside quotes
// and comments. A DELIMITER line changes the delimiter.
func statements(text string) []string {
	var all []string
	delimiter, start := ";", 0
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case (i == 0 || text[i-1] == '\n') && isDelimiterLine(rest):
			add(text[start:i]) // usually nothing or a comment
			line, _, _ := strings.Cut(rest, "\n")
			delimiter = strings.TrimSpace(line[len("delimiter"):])
			i += len(line)
			start = i
		case strings.HasPrefix(rest, delimiter):
			add(text[start:i])
			i += len(delimiter)
			start = i
		default:
			i += tokenLength(rest)
		}
	}
	add(text[start:])
	return all
}

func isDelimiterLine(rest string) bool {
	const word = "delimiter "
	if len(rest) < len(word) || !strings.EqualFold(rest[:len(word)], word) {
		return false
	}
	line, _, _ := strings.Cut(rest[len(word):], "\n")
	return strings.TrimSpace(line) != ""
}

// hasCode reports whether a statement has more than comments.
func hasCode(statement string) bool {
	for statement != "" {
		n := commentLength(statement)
		if n == 0 && strings.TrimSpace(statement[:1]) != "" {
			return true
		}
		statement = statement[max(n, 1):]
	}
	return false
}

// commentLength returns the length of the comment that text begins with, or 0.
func commentLength(text string) (n int) {
	switch {
	case strings.HasPrefix(text, "/*"):
		n, _ = after(text, 2, "*/") // or the end of the text
	case text[0] == '#', strings.HasPrefix(text, "--") && (len(text) == 2 || text[2] <= ' '):
		n, _ = after(text, 0, "\n")
	}
	return n
}

// tokenLength returns the length of the first token of text: a quoted string, a comment, or one
// byte.
func tokenLength(text string) int {
	if n := commentLength(text); n > 0 {
		return n
	}
	switch text[0] {
	case '`':
		n, _ := after(text, 1, "`")
		return n
	case '\'', '"':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case text[0]: // a doubled quote starts the next quoted string
				return i + 1
			}
		}
		return len(text)
	}
	return 1
}
