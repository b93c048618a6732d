// Package view draws plans, walks, states and errors for people, and prints the same as JSON for programs. It is
// handed everything: a writer, a width, whether to colour. It decides nothing, and asks no clock and no terminal.
package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Widths in terminal cells.
const (
	usualWidth = 80 // when nobody knows: no terminal, or one that says it is 0 wide
	leastWidth = 10 // narrower is drawn as wide as this, and the terminal folds
)

// Screen is where things are drawn. The zero value with Out set draws 80 cells wide without colour.
type Screen struct {
	Out     io.Writer
	Width   int  // cells; 0 or less: 80
	Color   bool // ANSI colours; without, not one escape sequence is written
	Verbose bool // every step with its proof, every command, findings that pass
}

func (s Screen) width() int {
	switch {
	case s.Width <= 0:
		return usualWidth
	case s.Width < leastWidth:
		return leastWidth
	}
	return s.Width
}

// tone is what a piece of text means; how that looks is decided in one place.
type tone int

const (
	plain tone = iota
	strong
	faint
	good
	warn
	bad
)

// brush paints text by tone.
type brush func(t tone, text string) string

// brush returns how this screen paints: not at all without colour.
func (s Screen) brush() brush {
	if !s.Color {
		return func(_ tone, text string) string { return text }
	}
	r := lipgloss.NewRenderer(io.Discard) // told its colours below, so that it asks nobody
	r.SetColorProfile(termenv.ANSI)
	styles := map[tone]lipgloss.Style{
		plain:  r.NewStyle(),
		strong: r.NewStyle().Bold(true),
		faint:  r.NewStyle().Faint(true),
		good:   r.NewStyle().Foreground(lipgloss.Color("2")),
		warn:   r.NewStyle().Foreground(lipgloss.Color("3")),
		bad:    r.NewStyle().Foreground(lipgloss.Color("1")).Bold(true),
	}
	return func(t tone, text string) string {
		if t == plain || strings.TrimSpace(text) == "" {
			return text
		}
		return styles[t].Inline(true).Render(text)
	}
}

// page collects lines, so that a whole view is one write.
type page struct {
	bytes.Buffer
	width int
	paint brush
}

func (s Screen) page() *page { return &page{width: s.width(), paint: s.brush()} }

// line adds one line as it is, without folding.
func (p *page) line(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

// gap adds an empty line between two parts of a page.
func (p *page) gap() {
	if p.Len() > 0 {
		p.WriteByte('\n')
	}
}

// text adds a paragraph, folded to the width. Its first line starts with lead, the others are indented as far.
func (p *page) text(lead string, t tone, text string) {
	p.item(lead, plain, t, text)
}

// item is text with a lead of its own tone.
func (p *page) item(lead string, leadTone, t tone, text string) {
	room := max(p.width-cells(lead), leastWidth/2)
	margin := strings.Repeat(" ", cells(lead))
	for i, l := range fold(text, room) {
		head := margin
		if i == 0 {
			head = p.paint(leadTone, lead)
		}
		p.line("%s", strings.TrimRight(head+p.paint(t, l), " "))
	}
}

// table adds a table, indented by two cells.
func (p *page) table(t table) {
	for _, l := range t.draw(p.width-2, p.paint) {
		p.line("  %s", l)
	}
}

func (p *page) flush(w io.Writer) error {
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}
