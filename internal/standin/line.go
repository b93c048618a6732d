package standin

import (
	"fmt"
	"regexp"

	"github.com/Masterminds/semver/v3"
)

var candidate = regexp.MustCompile(`^rc\.[0-9]+$`)

// Line returns the release line of a version, "0.1", and whether it is on any (K1, K2).
func Line(version string) (string, bool) {
	v, err := semver.StrictNewVersion(version)
	if err != nil || v.Metadata() != "" {
		return "", false
	}
	if v.Major() == 0 && v.Minor() == 0 {
		return "", false
	}
	if v.Prerelease() != "" && !candidate.MatchString(v.Prerelease()) {
		return "", false
	}
	return fmt.Sprintf("%d.%d", v.Major(), v.Minor()), true
}

// Accepts tells why ctrl refuses a node of another build, or nil: both on one line in any order,
// or both of the identical source revision (K1-K4).
func Accepts(ctrl, node Release) error {
	if ctrl.Revision == node.Revision && ctrl.Version == node.Version {
		return nil
	}
	ctrlLine, ctrlOn := Line(ctrl.Version)
	nodeLine, nodeOn := Line(node.Version)
	switch {
	case !ctrlOn || !nodeOn:
		return fmt.Errorf("cannot accept node %s (revision %s): ctrl is %s (revision %s) and builds outside of a release line must be of one revision",
			node.Version, node.Revision, ctrl.Version, ctrl.Revision)
	case ctrlLine != nodeLine:
		return fmt.Errorf("cannot accept node %s: it is on line %s and ctrl %s is on line %s", node.Version, nodeLine, ctrl.Version, ctrlLine)
	}
	return nil
}
