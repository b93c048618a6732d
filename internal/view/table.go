package view

import (
	"slices"
	"strings"
)

// cell is one field of a table: one line of safe text and what it means.
type cell struct {
	text string
	tone tone
}

// table is rows under heads. Columns without any text are left out.
type table struct {
	heads []string
	rows  [][]cell
}

const (
	columnGap   = 2
	columnFloor = 12 // a column that has to give way keeps this much
)

func (t *table) add(row ...cell) { t.rows = append(t.rows, row) }

// draw lays the table out in width cells. Columns that are too wide fold; where even that does not fit, every row becomes
// a short list of its fields. No text is ever cut off.
func (t table) draw(width int, paint brush) []string {
	t = t.withoutEmptyColumns()
	widths, fits := t.fit(width)
	if !fits {
		return t.lists(width, paint)
	}
	heads := make([]cell, len(t.heads))
	for i, h := range t.heads {
		heads[i] = cell{h, faint}
	}
	out := drawRow(heads, widths, paint)
	for _, r := range t.rows {
		out = append(out, drawRow(r, widths, paint)...)
	}
	return out
}

func (t table) withoutEmptyColumns() table {
	var out table
	out.rows = make([][]cell, len(t.rows))
	for i, h := range t.heads {
		if !slices.ContainsFunc(t.rows, func(r []cell) bool { return r[i].text != "" }) {
			continue
		}
		out.heads = append(out.heads, h)
		for j, r := range t.rows {
			out.rows[j] = append(out.rows[j], r[i])
		}
	}
	return out
}

// fit finds the columns' widths: as wide as their text, the widest giving way first.
func (t table) fit(width int) ([]int, bool) {
	widths, floors := make([]int, len(t.heads)), make([]int, len(t.heads))
	total := columnGap * max(len(t.heads)-1, 0)
	for i, h := range t.heads {
		widths[i] = cells(h)
		for _, r := range t.rows {
			widths[i] = max(widths[i], cells(r[i].text))
		}
		floors[i] = min(widths[i], max(cells(h), columnFloor))
		total += widths[i]
	}
	for ; total > width; total-- {
		widest := -1
		for i := range widths {
			if widths[i] > floors[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return nil, false
		}
		widths[widest]--
	}
	return widths, true
}

func drawRow(row []cell, widths []int, paint brush) []string {
	columns, height := make([][]string, len(row)), 1
	for i, c := range row {
		columns[i] = fold(c.text, widths[i])
		height = max(height, len(columns[i]))
	}
	out := make([]string, height)
	for n := range out {
		var b strings.Builder
		room := 0
		for i, lines := range columns {
			if n < len(lines) && lines[n] != "" {
				b.WriteString(strings.Repeat(" ", room))
				b.WriteString(paint(row[i].tone, lines[n]))
				room = widths[i] - cells(lines[n])
			} else {
				room += widths[i]
			}
			room += columnGap
		}
		out[n] = b.String()
	}
	return out
}

// lists draws each row as its first field and, below, the others with their heads.
func (t table) lists(width int, paint brush) []string {
	heads := 0
	for _, h := range t.heads[1:] {
		heads = max(heads, cells(h))
	}
	beside := width-heads-4 >= columnFloor
	var out []string
	for _, r := range t.rows {
		for _, l := range fold(r[0].text, width) {
			out = append(out, paint(strong, l))
		}
		for i, c := range r[1:] {
			if c.text == "" {
				continue
			}
			lead, room := "  "+pad(t.heads[i+1], heads)+"  ", width-heads-4
			if !beside {
				for _, l := range fold(t.heads[i+1], width-2) {
					out = append(out, "  "+paint(faint, l))
				}
				lead, room = "    ", width-4
			}
			for n, l := range fold(c.text, room) {
				if n > 0 {
					lead = strings.Repeat(" ", cells(lead))
				}
				out = append(out, paint(faint, lead)+paint(c.tone, l))
			}
		}
	}
	return out
}
