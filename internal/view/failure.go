package view

import "strings"

// Error prints what went wrong and the next thing to type. The next line is left out where there is none. Neither is
// folded: a log is searched by line, and next is there to be pasted.
func (s Screen) Error(err error, next string) error {
	g := s.page()
	g.failure(err.Error(), next)
	return g.flush(s.Out)
}

func (p *page) failure(text, next string) {
	p.labelled("error: ", bad, text)
	if next != "" {
		p.labelled("next: ", strong, next)
	}
}

// labelled prints text after a label, its further lines below the first.
func (p *page) labelled(label string, t tone, text string) {
	for i, l := range strings.Split(strings.TrimRight(Safe(text), "\n"), "\n") {
		if i == 0 {
			p.line("%s%s", p.paint(t, label), l)
			continue
		}
		p.line("%s%s", strings.Repeat(" ", len(label)), l)
	}
}
