package cli

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/kibotos/kibo-rollout/internal/release"
)

const agentPackage = "kibo-agent"

// agentDebs reads the agent's packages: the newest for each architecture among those that were said, else among those in the
// first of the usual places that has any. None is no error: hosts may have the agent already.
func (w World) agentDebs(said, usual []string) ([]release.Deb, error) {
	places := [][]string{said}
	if len(said) == 0 {
		places = nil
		for _, p := range usual {
			places = append(places, []string{p})
		}
	}
	for _, place := range places {
		files := agentFiles(place)
		if len(files) > 0 {
			return readAgents(files)
		}
	}
	if len(said) > 0 {
		return nil, fail(exitUsage, "", "no %s_*.deb among %v", agentPackage, said)
	}
	return nil, nil
}

// agentFiles lists files as they are named, and what in a directory looks like the agent's package.
func agentFiles(paths []string) []string {
	var out []string
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil && st.IsDir() {
			found, err := filepath.Glob(filepath.Join(p, agentPackage+"_*.deb"))
			if err == nil {
				out = append(out, found...)
			}
			continue
		}
		if ok, err := filepath.Match(agentPackage+"_*.deb", filepath.Base(p)); err == nil && ok {
			out = append(out, p)
		}
	}
	return out
}

func readAgents(files []string) ([]release.Deb, error) {
	var out []release.Deb
	for _, file := range files {
		d, err := release.ReadDebFile(file)
		if err != nil {
			return nil, fail(exitUsage, "", "cannot read the agent's package: %w", err)
		}
		if d.Package != agentPackage {
			return nil, fail(exitUsage, "", "%s is package %s, not %s", file, d.Package, agentPackage)
		}
		i := slices.IndexFunc(out, func(o release.Deb) bool { return o.Architecture == d.Architecture })
		if i < 0 {
			out = append(out, d)
			continue
		}
		if n, err := release.CompareDebian(d.Version, out[i].Version); err == nil && n > 0 {
			out[i] = d
		}
	}
	return out, nil
}
