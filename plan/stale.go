package plan

import (
	"fmt"
	"slices"
)

// Stale holds a plan that was made before against one made now. It returns the first difference in words, or "" when what is
// new only takes work away: a part that is on the target by now.
func Stale(old, now Plan) string {
	if old.Target.Digest() != now.Target.Digest() {
		return fmt.Sprintf("the target's packages are others (%s then, %s now)", old.Target.StageName(), now.Target.StageName())
	}
	if old.Mode != now.Mode {
		return fmt.Sprintf("the mode was %s and is %s", old.Mode, now.Mode)
	}
	for _, h := range now.Hosts {
		i := slices.IndexFunc(old.Hosts, func(o Host) bool { return o.Name == h.Name })
		if i < 0 {
			return fmt.Sprintf("host %s is not in it", h.Name)
		}
		if diff := staleHost(old.Hosts[i], h, old.Target.Version); diff != "" {
			return diff
		}
	}
	for _, o := range old.Hosts {
		if !slices.ContainsFunc(now.Hosts, func(h Host) bool { return h.Name == o.Name }) {
			return fmt.Sprintf("host %s is not selected any more", o.Name)
		}
	}
	return ""
}

func staleHost(old, now Host, target string) string {
	switch {
	case old.Address != now.Address:
		return fmt.Sprintf("host %s was at %s and is at %s", now.Name, old.Address, now.Address)
	case !slices.Equal(old.Parts, now.Parts):
		return fmt.Sprintf("host %s ran %v and runs %v", now.Name, old.Parts, now.Parts)
	}
	for i, v := range now.Versions {
		if i >= len(old.Versions) || v.Version != old.Versions[i].Version && v.Version != target {
			return fmt.Sprintf("%s on host %s is %s now", v.Part, now.Name, v.Version)
		}
	}
	return ""
}
