package view

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cells is how wide text is on a terminal: wide characters count two.
func cells(s string) int { return ansi.StringWidth(s) }

// fold breaks text into lines of at most width cells: at spaces, else inside a word. Never at hyphens: names and
// options have them. Nothing is dropped but the spaces at the breaks. At least one line; width below 2 counts as 2,
// since a wide character needs as much.
func fold(text string, width int) []string {
	width = max(width, 2)
	var out []string
	for _, para := range strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n") {
		out = append(out, foldLine(para, width)...)
	}
	return out
}

func foldLine(text string, width int) []string {
	if cells(text) <= width {
		return []string{text}
	}
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case cells(line)+1+cells(word) <= width:
			line += " " + word
			continue
		default:
			out, line = append(out, line), word
		}
		for cells(line) > width {
			head := ansi.Truncate(line, width, "")
			if head == "" { // one grapheme wider than the room
				break
			}
			out, line = append(out, head), line[len(head):]
		}
	}
	return append(out, line)
}

// pad fills text with spaces up to width cells.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-cells(text), 0))
}
