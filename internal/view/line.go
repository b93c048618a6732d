package view

// Line prints one line of text, made safe.
func (s Screen) Line(text string) error {
	g := s.page()
	g.line("%s", Safe(text))
	return g.flush(s.Out)
}

// Next prints the next thing to type.
func (s Screen) Next(text string) error {
	g := s.page()
	g.labelled("next: ", strong, text)
	return g.flush(s.Out)
}

// Gates draws what each host's gate permits, and the hosts that did not answer.
func (s Screen) Gates(st Status) error {
	g := s.page()
	g.statusGates(st)
	g.notReached(st)
	return g.flush(s.Out)
}
