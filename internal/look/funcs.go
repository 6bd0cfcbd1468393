package look

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"snap"
	"snap/api"
	"snap/internal/card"
)

// funcs returns the template functions. Times are in the clock's zone. The functions "moment" and
// "since" return whole elements, because a long table has one in every row, and calling a template
// for each would be slow.
func funcs(a *Assets, now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"asset":  a.URL,
		"icon":   iconFunc(),
		"bytes":  Bytes,
		"count":  func(n int) string { return humanize.Comma(int64(n)) },
		"plural": plural,
		"ago":    func(t time.Time) string { return snap.Distance(now(), t) },
		"ends":   func(t time.Time) string { return ends(now(), t) },
		"moment": func(t time.Time, class ...string) template.HTML {
			return moment(t.In(now().Location()), strings.Join(class, " "))
		},
		"since":   func(t time.Time) template.HTML { return since(now(), t) },
		"exact":   func(t time.Time) string { return Exact(t.In(now().Location())) },
		"clock":   func(t time.Time) string { return t.In(now().Location()).Format("15:04:05 MST") },
		"shortid": shortID,
		"rfc3339": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"prose":   prose,
		"words":   func(text string) []string { return strings.Split(text, " ") },
		"people":  People,
		"partial": func(s api.Snapshot) string { return card.Partial(s, now()) },
	}
}

// Bytes formats a size for people, such as "12 MB".
func Bytes(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// Exact formats a time to the minute, with its zone.
func Exact(t time.Time) string { return t.Format("2 Jan 2006, 15:04 MST") }

// moment shows a time to the minute. class names the styles of its element.
func moment(t time.Time, class string) template.HTML {
	if class != "" {
		class = ` class="` + template.HTMLEscapeString(class) + `"`
	}
	return template.HTML(`<time` + class + ` datetime="` + t.UTC().Format(time.RFC3339) + `">` +
		template.HTMLEscapeString(Exact(t)) + `</time>`)
}

// since shows roughly how far a time is from now. Its tooltip has the time to the minute.
func since(now, t time.Time) template.HTML {
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="` +
		template.HTMLEscapeString(Exact(t.In(now.Location()))) + `">` + snap.About(now, t) + `</time>`)
}

// People formats a number of people, such as "1 person" or "2 people".
func People(n int) string { return Plural(n, "person", "people") }

// plural is [Plural] for templates, where most nouns need only an s.
func plural(n int, one string, more ...string) string {
	return Plural(n, one, cmp.Or(strings.Join(more, ""), one+"s"))
}

// Plural formats a count with its noun, such as "1 key" or "2 keys".
func Plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + more
}

// Range describes a page's part of a list of snapshots, such as "51 to 100 of 294". before is the
// number of rows on the previous pages. all is the total number of rows, or -1 if it is not known.
// more means that there are further rows, which were not counted.
func Range(before, rows, all int, more bool) string {
	if before == 0 && !more && all >= 0 && all <= rows {
		return Plural(rows, "snapshot", "snapshots")
	}
	text := fmt.Sprintf("%d to %d", before+1, before+rows)
	if all >= 0 {
		text += fmt.Sprintf(" of %d", all)
	}
	if more {
		text += "+"
	}
	return text
}

// ends describes when something ends, such as "ends in 3 days".
func ends(now, t time.Time) string {
	if !now.Before(t) {
		return "ended"
	}
	return "ends " + snap.Distance(now, t)
}

// shortID returns the first 8 characters of a snapshot's ID after snap_. Commands accept this
// abbreviation.
func shortID(id string) string {
	id = strings.TrimPrefix(id, "snap_")
	return id[:min(len(id), 8)]
}

// prose turns an error's detail or hint, which have no capital and no period, into sentences. It
// marks text in backquotes as code.
func prose(text string) template.HTML {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	if word, _, _ := strings.Cut(text, " "); !strings.ContainsAny(word, "./:_`\"=") {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	var out strings.Builder
	for i, piece := range strings.Split(text, "`") {
		escaped := template.HTMLEscapeString(piece)
		if i%2 == 1 {
			escaped = "<code>" + escaped + "</code>"
		}
		out.WriteString(escaped)
	}
	return template.HTML(out.String())
}
