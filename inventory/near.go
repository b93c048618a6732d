package inventory

import "fmt"

// nearest returns the name closest to a misspelt one, or "" if none is close.
func nearest(name string, names []string) string {
	best, at := "", len(name)/3+1
	for _, n := range names {
		if d := distance(name, n); d <= at && d < len(n) {
			if d < at || best == "" {
				best, at = n, d
			}
		}
	}
	return best
}

// meant is nearest as a hint.
func meant(name string, names []string) string {
	if n := nearest(name, names); n != "" {
		return fmt.Sprintf("did you mean %s?", n)
	}
	return ""
}

// distance counts the single-character edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost = min(left, row[j], row[j+1]) + 1
			}
			left, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
