package plan

// Remaining lists the blocks with a goal that does not hold by what was seen: the work that is left.
func (p Plan) Remaining(s Seen) []Block {
	var out []Block
	for _, b := range p.Blocks {
		if b.Goal != nil && b.Goal.Judge(s).Answer != Yes {
			out = append(out, b)
		}
	}
	return out
}

// Done lists the hosts that have no block left to do.
func (p Plan) Done(s Seen) map[string]bool {
	done := map[string]bool{}
	for _, h := range p.Hosts {
		done[h.Name] = true
	}
	for _, b := range p.Remaining(s) {
		done[b.Host] = false
	}
	return done
}
