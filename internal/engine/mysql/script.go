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

// tokenLength returns the length of the first token of text: a quoted string, a comment, or one
// byte.
func tokenLength(text string) int {
	end := func(from int, mark string) int {
		at, _ := after(text, from, mark) // or the end of the text
		return at
	}
	switch {
	case strings.HasPrefix(text, "/*"):
		return end(2, "*/")
	case text[0] == '#', strings.HasPrefix(text, "-- "), strings.HasPrefix(text, "--\t"),
		strings.HasPrefix(text, "--\n"):
		return end(0, "\n")
	case text[0] == '`':
		return end(1, "`")
	case text[0] == '\'' || text[0] == '"':
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
