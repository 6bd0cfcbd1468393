package archive

import "bytes"

// Tables are dumped row by row, and what compresses well stands one below the
// other. So a block's text is taken apart: lines at their ends, their fields at
// tabs, and the first fields of all lines are stored together, then the second
// ones, and so on. Put together again it is the same, whatever it was.

// maxColumns bounds the columns of a block. The rest of a line is part of its
// last field.
const maxColumns = 2048

// run is how many lines follow each other that have the same number of fields.
type run struct{ lines, fields int }

// columns is a text taken apart.
type columns struct {
	runs []run
	of   [][]byte // the fields, each with the tab or the end of line behind it
	rest []byte   // what follows the last end of line
}

// split takes a text apart. A text that is not of lines with equally many
// fields becomes all rest. The text must stay unchanged while c is used.
func (c *columns) split(text []byte) {
	c.clear()
	lines := 0
	for c.rest = text; ; lines++ {
		end := bytes.IndexByte(c.rest, '\n') + 1
		if end == 0 || len(c.runs) > 1000 && uneven(lines, c.runs) {
			break
		}
		c.line(c.rest[:end])
		c.rest = c.rest[end:]
	}
	if len(c.runs) > 16 && uneven(lines, c.runs) {
		c.clear()
		c.rest = text
	}
}

// uneven reports that lines hardly ever have as many fields as the one before.
func uneven(lines int, runs []run) bool { return lines < 4*len(runs) }

// clear makes c ready for the next text. It keeps the columns' memory, unless
// that has become much more than one text needs: tables differ in where their
// long columns are.
func (c *columns) clear() {
	kept := 0
	for i := range c.of {
		kept += cap(c.of[i])
		c.of[i] = c.of[i][:0]
	}
	if kept > 4*blockSize {
		c.of = nil
	}
	c.runs = c.runs[:0]
}

func (c *columns) line(line []byte) {
	fields := 0
	for fields+1 < maxColumns {
		tab := bytes.IndexByte(line, '\t') + 1
		if tab == 0 {
			break
		}
		c.add(fields, line[:tab])
		line = line[tab:]
		fields++
	}
	c.add(fields, line)
	fields++
	if last := len(c.runs) - 1; last >= 0 && c.runs[last].fields == fields {
		c.runs[last].lines++
	} else {
		c.runs = append(c.runs, run{1, fields})
	}
}

func (c *columns) add(column int, field []byte) {
	if column == len(c.of) {
		c.of = append(c.of, nil)
	}
	c.of[column] = append(c.of[column], field...)
}

// width is the most fields of a line.
func width(runs []run) (most int) {
	for _, r := range runs {
		most = max(most, r.fields)
	}
	return most
}

// join appends the text to dst, and uses up c. It reports false when the
// columns do not have the fields that the lines need.
func (c *columns) join(dst []byte) ([]byte, bool) {
	for _, r := range c.runs {
		for range r.lines {
			for i := range r.fields {
				mark := byte('\t')
				if i == r.fields-1 {
					mark = '\n'
				}
				end := bytes.IndexByte(c.of[i], mark) + 1
				if end == 0 {
					return dst, false
				}
				dst = append(dst, c.of[i][:end]...)
				c.of[i] = c.of[i][end:]
			}
		}
	}
	return append(dst, c.rest...), true
}
