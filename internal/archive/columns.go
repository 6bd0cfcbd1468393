package archive

import "bytes"

// Tables are dumped row by row, but the values of a column compress better next to each other. So a
// block's text is split into lines at newlines and into fields at tabs. The first fields of all
// lines are stored together, then the second ones, and so on. Joining restores any text exactly.

// maxColumns is the maximum number of columns of a block. In a line with more fields, the last
// column holds the remaining ones.
const maxColumns = 2048

// run is a number of consecutive lines that have the same number of fields.
type run struct{ lines, fields int }

// columns is a text split into columns.
type columns struct {
	runs   []run
	fields [][]byte // the fields, each including its tab or newline
	rest   []byte   // the text after the last newline, or all of it if it was not split
}

// split splits a text. If its lines differ too much in their number of fields, all of it becomes
// c.rest. The text must not change while c is used.
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

// uneven reports whether the runs have fewer than four lines on average.
func uneven(lines int, runs []run) bool { return lines < 4*len(runs) }

// clear prepares c for the next text. It keeps the memory of the columns, unless that has grown far
// beyond the needs of one text. The memory can grow because tables have their long columns in
// different positions.
func (c *columns) clear() {
	kept := 0
	for i := range c.fields {
		kept += cap(c.fields[i])
		c.fields[i] = c.fields[i][:0]
	}
	if kept > 4*blockSize {
		c.fields = nil
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
	if column == len(c.fields) {
		c.fields = append(c.fields, nil)
	}
	c.fields[column] = append(c.fields[column], field...)
}

// width returns the largest number of fields in a line.
func width(runs []run) (most int) {
	for _, r := range runs {
		most = max(most, r.fields)
	}
	return most
}

// join appends the text to dst and consumes c. It returns false if the columns do not have the
// fields that the lines need.
func (c *columns) join(dst []byte) ([]byte, bool) {
	for _, r := range c.runs {
		for range r.lines {
			for i := range r.fields {
				mark := byte('\t')
				if i == r.fields-1 {
					mark = '\n'
				}
				end := bytes.IndexByte(c.fields[i], mark) + 1
				if end == 0 {
					return dst, false
				}
				dst = append(dst, c.fields[i][:end]...)
				c.fields[i] = c.fields[i][end:]
			}
		}
	}
	return append(dst, c.rest...), true
}
