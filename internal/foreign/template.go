package foreign

import (
	"regexp"
	"strconv"
	"strings"
)

// action matches an action of a Go template that reads a column of the row and uses only functions
// that the mask named template also has. Other actions are programs, which have no equivalent.
var action = regexp.MustCompile(`^-?\s*\.Get(?:Raw)?ColumnValue\s+["` + "`" + `]([^"` + "`" + `{}|]+)["` + "`" +
	`]((?:\s*\|\s*(?:lower|upper|title|trim))*)\s*-?$`)

// templateMask returns the mask for a Go template that only combines columns of the row, or "" for
// any other template.
func templateMask(text string) string {
	var out strings.Builder
	braces := strings.NewReplacer("{", "{{", "}", "}}")
	for text != "" {
		before, rest, found := strings.Cut(text, "{{")
		out.WriteString(braces.Replace(before))
		if !found {
			break
		}
		inside, after, closed := strings.Cut(rest, "}}")
		m := action.FindStringSubmatch(strings.TrimSpace(inside))
		if !closed || m == nil {
			return ""
		}
		out.WriteString("{" + m[1] + strings.Join(strings.Fields(m[2]), "") + "}")
		text = after
	}
	if out.Len() == 0 {
		return ""
	}
	return "{mask: template, template: " + strconv.Quote(out.String()) + "}"
}
