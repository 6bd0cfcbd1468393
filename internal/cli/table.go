package cli

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/mattn/go-runewidth"

	"snap"
)

// column is one column of a table.
type column struct {
	title string
	right bool // aligned to the right, as for numbers
	// least is the minimum width, in cells, when the table does not fit; 0 means never truncated.
	least int
	// weight orders truncation: columns with the lowest weight are truncated first.
	weight int
	// optional columns are omitted if the table does not fit even with them at their least width.
	optional bool
	cut      func(cell string, room int) string // nil truncates the end
	paint    func(cell string) lipgloss.Style   // nil means no style
}

// table writes rows in columns that fit a width. Width zero means no limit.
//
// The first flush sets the column widths, so a long list can be written page by page.
type table struct {
	out     io.Writer
	columns []column
	width   int
	color   bool
	widths  []int // set by the first flush
	gap     int
	rows    [][]string
}

// newTable returns a table that writes to standard output.
func (a *app) newTable(columns ...column) *table {
	return &table{out: a.io.Out, columns: columns, width: a.tableWidth(), color: a.color(a.io.OutTerminal), gap: 2}
}

// tableWidth returns the value of --width, otherwise the terminal's width. A pipe has no limit.
func (a *app) tableWidth() int {
	switch {
	case a.flags.width > 0:
		return a.flags.width
	case a.io.OutTerminal && a.io.Width != nil:
		return a.io.Width()
	}
	return 0
}

// row adds one row. It removes the characters that could control the terminal.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = snap.CleanText(c)
	}
	t.rows = append(t.rows, cells)
}

// flush writes the rows added since the last flush, preceded by the header the first time.
func (t *table) flush() error {
	var b strings.Builder
	if t.widths == nil {
		t.chooseWidths()
		b.WriteString(t.line(t.titles(), func(int, string) lipgloss.Style { return bold }))
	}
	for _, row := range t.rows {
		b.WriteString(t.line(row, t.painter))
	}
	t.rows = nil
	if _, err := io.WriteString(t.out, b.String()); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func (t *table) titles() []string {
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	return titles
}

func (t *table) painter(i int, cell string) lipgloss.Style {
	if paint := t.columns[i].paint; paint != nil {
		return paint(cell)
	}
	return lipgloss.NewStyle()
}

// chooseWidths sets the column widths to those of the cells, reduced to fit the table's width.
func (t *table) chooseWidths() {
	t.widths = make([]int, len(t.columns))
	for _, row := range append([][]string{t.titles()}, t.rows...) {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], runewidth.StringWidth(cell))
		}
	}
	if t.width <= 0 {
		return
	}
	t.cut()
	if t.excess() > 0 {
		t.gap = 1
	}
}

// fits reports whether the rows so far fit the table's width with no column narrower than its least
// width.
func (t *table) fits() bool {
	t.chooseWidths()
	fits := t.width <= 0 || t.excess() <= 0 && t.gap > 1
	t.widths, t.gap = nil, 2
	return fits
}

// cut narrows or omits columns until the table fits, the least important first.
func (t *table) cut() {
	for weight := 0; weight <= maxWeight && t.excess() > 0; weight++ {
		for i, c := range t.columns {
			if c.weight == weight && c.least > 0 {
				t.widths[i] = min(t.widths[i], max(c.least, t.widths[i]-max(0, t.excess())))
			}
			if c.weight == weight && c.optional && t.excess() > 0 {
				t.widths[i] = leftOut
			}
		}
	}
}

const maxWeight = 4

// leftOut is the width of a column that is not shown.
const leftOut = -1

// excess returns by how many cells the table is too wide.
func (t *table) excess() int {
	total := -t.gap
	for _, w := range t.widths {
		if w != leftOut {
			total += w + t.gap
		}
	}
	return total - t.width
}

// line formats one row: truncated, padded, styled, without trailing spaces.
func (t *table) line(cells []string, paint func(int, string) lipgloss.Style) string {
	var b strings.Builder
	pending := 0 // spaces before the next word
	used := 0
	for i, cell := range cells {
		if t.widths[i] == leftOut {
			continue
		}
		cell = t.fit(cell, i, used+pending)
		space := max(0, t.widths[i]-runewidth.StringWidth(cell))
		if t.columns[i].right {
			pending += t.limitPadding(space, used+pending+runewidth.StringWidth(cell))
			space = 0
		}
		if cell != "" {
			b.WriteString(strings.Repeat(" ", pending))
			used += pending + runewidth.StringWidth(cell)
			pending = 0
			if t.color {
				b.WriteString(paint(i, cell).Render(cell))
			} else {
				b.WriteString(cell)
			}
		}
		pending += space + t.gap
	}
	return b.String() + "\n"
}

// limitPadding limits padding to the rest of the line.
func (t *table) limitPadding(space, used int) int {
	if t.width <= 0 {
		return space
	}
	return max(0, min(space, t.width-used))
}

// fit truncates a cell to its column and to the rest of the line. Without a width limit it
// truncates nothing, even if later rows are then misaligned.
func (t *table) fit(cell string, i, used int) string {
	if t.width <= 0 {
		return cell
	}
	room := min(t.widths[i], t.width-used)
	switch {
	case runewidth.StringWidth(cell) <= room:
		return cell
	case room <= 0:
		return ""
	}
	if cut := t.columns[i].cut; cut != nil {
		cell = cut(cell, room)
	}
	return runewidth.Truncate(cell, room, "…")
}

// keepEnd truncates the beginning of a snapshot's name, which is the target; the end is more
// specific.
func keepEnd(cell string, room int) string {
	if room < 2 {
		return cell
	}
	return runewidth.TruncateLeft(cell, runewidth.StringWidth(cell)-room+1, "…")
}

// momentColumn returns a column of times, which are truncated no further than to their date.
func momentColumn(title string, weight int) column {
	return column{title: title, least: len("2006-01-02"), weight: weight, cut: keepMoment}
}

// keepMoment truncates a time: first it drops the distance from now, then everything but the date.
// It never shows a time of day without its zone.
func keepMoment(cell string, room int) string {
	for _, end := range []string{" (", " "} {
		if begin, _, found := strings.Cut(cell, end); found && runewidth.StringWidth(begin) <= room {
			return begin
		}
	}
	return cell
}
