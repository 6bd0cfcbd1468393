package look

import (
	"fmt"
	"html/template"
	"strings"
)

// Plot is a series of values over time, drawn as bars. The part "plot" shows the bars, and a table
// of the same values for people who cannot see the bars and for exact figures.
type Plot struct {
	Title  string // such as "Pulls per day"
	Of     string // column heading of the values, such as "Pulls"
	When   string // column heading of the times; empty means "Day"
	Total  string // a figure to show next to the title, such as "1,204 in 30 days"
	Points []Point
}

// Point is one value of a [Plot].
type Point struct {
	When  string // such as "21 Nov"
	Value int64
	Text  string // the value for people, such as "12 MB"
}

// The size of a drawing, in units of its own. The stylesheet decides how large it is shown.
const (
	plotWidth  = 600
	plotHeight = 120
)

// Bars returns the drawing: one bar for each point. The highest bar fills the height. Values must
// not be negative.
func (p Plot) Bars() template.HTML {
	var highest int64 = 1
	for _, v := range p.Points {
		highest = max(highest, v.Value)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true" `+
		`focusable="false">`, plotWidth, plotHeight)
	step := float64(plotWidth) / float64(max(len(p.Points), 1))
	for i, v := range p.Points {
		height := float64(v.Value) / float64(highest) * (plotHeight - 2)
		if v.Value > 0 {
			height = max(height, 2)
		}
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
			float64(i)*step+step*0.1, plotHeight-height, step*0.8, height)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// Highest returns the point with the highest value, or the last of several. Without points it
// returns the zero Point.
func (p Plot) Highest() (best Point) {
	for _, v := range p.Points {
		if v.Value >= best.Value {
			best = v
		}
	}
	return best
}

// First returns the first point, or the zero Point.
func (p Plot) First() (first Point) {
	if len(p.Points) > 0 {
		first = p.Points[0]
	}
	return first
}

// Last returns the last point, or the zero Point.
func (p Plot) Last() (last Point) {
	if len(p.Points) > 0 {
		last = p.Points[len(p.Points)-1]
	}
	return last
}
