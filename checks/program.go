package checks

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// askBuild asks an installed program for its version and revision.
func askBuild(i int, p release.Part, argv []string) ask {
	set := func(f *Facts, b release.Build, err error) {
		if err != nil {
			f.Parts[i].Version, f.Parts[i].Revision = Unknown[string](err), Unknown[string](err)
			return
		}
		f.Parts[i].Version, f.Parts[i].Revision = Known(b.Version), Known(b.Revision)
	}
	return ask{
		command: command.Command{Argv: argv, As: command.Login},
		read: func(f *Facts, res command.Result) {
			b, err := ParseBuild(p, res)
			set(f, b, err)
		},
		fail: func(f *Facts, err error) { set(f, release.Build{}, err) },
	}
}

// ParseBuild reads what a part's program answered to `version --json` (K6). The program must be the part's own. The error is
// ErrNotInstalled if there is no such program.
func ParseBuild(p release.Part, res command.Result) (release.Build, error) {
	switch {
	case res.Exit == 127:
		return release.Build{}, ErrNotInstalled
	case res.Exit == 126:
		return release.Build{}, errors.New("the program cannot be executed" + said(res) + " (wrong architecture, or a file system mounted noexec)")
	}
	if err := succeeded(res); err != nil {
		return release.Build{}, err
	}
	var v struct{ Name, Version, Revision string }
	if err := json.Unmarshal(res.Stdout, &v); err != nil {
		return release.Build{}, fmt.Errorf("cannot read its version: %w", err)
	}
	if v.Name != p.Package() {
		return release.Build{}, fmt.Errorf("the program calls itself %q, not %s", printable(v.Name), p.Package())
	}
	version, err := release.Normal(v.Version)
	if err != nil {
		return release.Build{}, errors.New(printable(err.Error()))
	}
	return release.Build{Version: version, Revision: printable(v.Revision)}, nil
}
