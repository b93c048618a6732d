package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// marked is what allow answers with --format marker-file.
type marked struct {
	Path       string `json:"path"`
	AllowUntil int64  `json:"allowUntil"` // Unix seconds
	Until      string `json:"until"`      // RFC 3339, UTC
}

// mark places the file that the marker_file strategy proposed for Zincati looks for (Z9). It knows an end and
// nothing else, so whatever would bind the window is refused rather than dropped.
func (f *flags) mark(h Host, file gate.AllowFile) (int, error) {
	bare := gate.AllowFile{NotAfter: file.NotAfter, Operations: []string{}, Packages: map[string]string{}}
	if file.ID+file.MachineID+file.Run+file.Plan+file.IssuedBy+file.Reason != "" || file.SingleUse || file.RenewUntil != 0 ||
		len(file.Operations)+len(file.Packages)+len(file.SHA256) > 0 {
		return 0, usageError{errors.New("a marker file holds nothing but an end: only --for or --until go with it")}
	}
	if v := gate.Decide(h.Jobs.Now(), bare, nil, gate.Request{}); !v.Open {
		return 0, fmt.Errorf("cannot place this marker file: %s", v.Reason)
	}
	if err := h.Marker.Place(file.NotAfter); err != nil {
		return 0, err
	}
	answer := marked{Path: h.Marker.Path, AllowUntil: file.NotAfter, Until: time.Unix(file.NotAfter, 0).UTC().Format(time.RFC3339)}
	return ExitOK, f.print(h, answer, h.Marker.Path+" permits until "+gate.Clock(file.NotAfter))
}

// format reads --format.
func (f *flags) format() *string { return f.set.String("format", formatAllow, "") }

const (
	formatAllow  = "allow-file"
	formatMarker = "marker-file"
)

func checkFormat(s string) error {
	if s != formatAllow && s != formatMarker {
		return usageError{fmt.Errorf("--format must be %s or %s, not %q", formatAllow, formatMarker, s)}
	}
	return nil
}

// unmark takes the marker file away.
func (f *flags) unmark(h Host, id string) (int, error) {
	if id != "" {
		return 0, usageError{errors.New("a marker file has no id")}
	}
	did, err := h.Marker.Remove()
	if err != nil {
		return 0, err
	}
	return ExitOK, f.print(h, closed{Closed: true, Reason: did}, did)
}
