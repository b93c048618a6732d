package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// metricsName is our file among those node_exporter reads.
const metricsName = "kibo-agent.prom"

// measure replaces the metrics as a whole: a reader sees the old ones or the new ones. It is asked for at a
// change only, so the file's age says nothing; systemd knows whether the daemon runs.
func (d Daemon) measure(s gate.Status) error {
	if !isDir(d.Textfile) {
		return nil
	}
	path := filepath.Join(d.Textfile, metricsName)
	err := renameio.WriteFile(path, []byte(metrics(s, d.Watcher.Now().Unix())), 0o644,
		renameio.WithTempDir(d.Textfile), renameio.WithStaticPermissions(0o644))
	if errors.Is(err, syscall.EROFS) {
		// The unit may write there only if the directory was there when it started.
		return fmt.Errorf("cannot write %s: %w; next: systemctl restart kibo-agent.service", path, err)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// forget takes the metrics away: nobody keeps them true any more.
func (d Daemon) forget() error {
	if !isDir(d.Textfile) {
		return nil
	}
	if err := os.Remove(filepath.Join(d.Textfile, metricsName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove the metrics: %w", err)
	}
	return nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return path != "" && err == nil && st.IsDir()
}

// metrics is the answer in Prometheus' text format. Its labels come from fixed lists: texts that people write
// are none of them.
func metrics(s gate.Status, now int64) string {
	var b strings.Builder
	gauge := func(name, help, labels string, value int64) {
		_, _ = fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s%s %d\n", name, help, name, name, labels, value)
	}
	open, until := int64(0), int64(0)
	if s.Open {
		open = 1
	}
	if s.Window != nil {
		until = s.Window.NotAfter
	}
	gauge("kibo_agent_gate_open", "Whether a window is open for at least one operation.", "", open)
	gauge("kibo_agent_gate_info", "Why the gate is open or closed.", fmt.Sprintf("{code=%q,version=%q}", s.Code, s.Version), 1)
	gauge("kibo_agent_window_not_after_seconds", "End of the window in the allow-file, 0 if there is none.", "", until)
	gauge("kibo_agent_held_by", "How many people and locks keep this host from being changed.", "", int64(len(s.Held())))
	gauge("kibo_agent_inhibitors", "How many locks logind lists, of every kind.", "", int64(len(s.Inhibitors)))
	gauge("kibo_agent_ungated_changes", "How many changes of packages went past the gate and are not acknowledged.", "", int64(len(s.Ungated)))
	gauge("kibo_agent_last_change_timestamp_seconds", "When one of these last changed.", "", now)
	return b.String()
}
