package checks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// parseStaged reads what stageScript prints.
func parseStaged(dir string) func(command.Result) (Staged, error) {
	return text(func(out string) (Staged, error) {
		s := Staged{
			Dir: dir, Debs: map[string]string{},
			Version: map[release.Part]string{}, Failed: map[release.Part]string{},
		}
		state := ""
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			key, rest, _ := strings.Cut(line, " ")
			if key == "dir" {
				state = rest
				continue
			}
			if err := s.add(key, rest); err != nil {
				return Staged{}, err
			}
		}
		switch state {
		case "present":
			s.Exists = true
		case "absent":
		case "other":
			return Staged{}, fmt.Errorf("%s is not a directory, or a symbolic link", dir)
		default:
			return Staged{}, errors.New("no word on whether the directory is there")
		}
		return s, nil
	})
}

// add takes in one line.
func (s *Staged) add(key, rest string) error {
	switch key {
	case "beside":
		if len(s.Others) < 1000 {
			s.Others = append(s.Others, printable(rest))
		}
		return nil
	case "marker":
		s.Marker = rest == "yes"
		return nil
	case "sum":
		sum, name, ok := strings.Cut(rest, " ")
		if !ok || (sum != "-" && (len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "")) {
			break
		}
		if _, twice := s.Debs[name]; twice {
			break
		}
		s.Debs[name] = sum
		return nil
	case "version":
		field := strings.SplitN(rest, " ", 3)
		if len(field) < 2 {
			break
		}
		p := release.Part(field[0])
		exit, err := strconv.Atoi(field[1])
		if err != nil || !p.Valid() {
			break
		}
		said := command.Result{Exit: exit, Stdout: []byte(strings.Join(field[2:], ""))}
		b, err := ParseBuild(p, said)
		if err != nil {
			s.Failed[p] = err.Error()
			return nil
		}
		s.Version[p] = b.Version
		return nil
	}
	return fmt.Errorf("not a line on a staging directory: %q", printable(key+" "+rest))
}
