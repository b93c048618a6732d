package checks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/remote/command"
)

const packageFormat = `${Package}\t${Version}\t${db:Status-Status}\t${db:Status-Want}\n`

// parsePackages reads dpkg-query's table. Exit 1 only says that some package is not known to dpkg.
func parsePackages(res command.Result) ([]Package, error) {
	if res.Exit != 0 && res.Exit != 1 {
		return nil, succeeded(res)
	}
	asked := packages()
	var out []Package
	for line := range strings.Lines(string(res.Stdout)) {
		line = strings.TrimSuffix(line, "\n")
		if len(out) > len(asked) {
			return nil, errors.New("more packages than were asked after")
		}
		col := strings.Split(line, "\t")
		if len(col) != 4 || !slices.Contains(asked, col[0]) {
			return nil, fmt.Errorf("not a line of dpkg-query: %q", printable(line))
		}
		p := Package{Name: col[0], Version: col[1], State: col[2], Held: col[3] == "hold"}
		if p.State == "not-installed" {
			continue
		}
		if !word(p.State, 32) || !word(p.Version, 128) {
			return nil, fmt.Errorf("not a line of dpkg-query: %q", printable(line))
		}
		if slices.ContainsFunc(out, func(q Package) bool { return q.Name == p.Name }) {
			return nil, fmt.Errorf("package %s is there twice", p.Name)
		}
		out = append(out, p)
	}
	return out, nil
}
