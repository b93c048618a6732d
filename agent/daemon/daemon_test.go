package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

func TestDaemon(t *testing.T) {
	s := newScene(t)
	s.put(t, "allow.json", window(time.Now().Add(time.Hour)))
	text := t.TempDir()
	var log strings.Builder
	d := Daemon{Watcher: s.w, Socket: filepath.Join(s.base, "run", "status.sock"), Textfile: text, Log: Log{Plain: &log},
		Status: func(ctx context.Context) (gate.Status, error) { return s.look(ctx), nil },
		Sweep: func(context.Context) (string, error) {
			return "swept", os.Remove(filepath.Join(s.dir, "allow.json"))
		}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	metric := func(want string) {
		t.Helper()
		for range 500 {
			data, _ := os.ReadFile(filepath.Join(text, metricsName))
			if strings.Contains(string(data), want) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("no metric %s", want)
	}
	metric("kibo_agent_gate_open 1")
	conn, err := net.Dial("unix", d.Socket)
	if err != nil {
		t.Fatal(err)
	}
	var got gate.Status
	if err := json.NewDecoder(conn).Decode(&got); err != nil || !got.Open {
		t.Errorf("%+v %v", got, err)
	}
	_ = conn.Close()
	if st, err := os.Stat(d.Socket); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	s.put(t, "allow.json", window(time.Now().Add(-time.Second))) // over already
	metric(`code="missing"`)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "swept") {
		t.Error(log.String())
	}
	for _, path := range []string{d.Socket, filepath.Join(text, metricsName)} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

func TestMetrics(t *testing.T) {
	got := metrics(gate.Status{Version: "1.2.3", Open: true, Code: "open", Window: &gate.AllowFile{NotAfter: 1800000000},
		Inhibitors: []gate.Inhibitor{{What: "shutdown", Mode: "block"}, {What: "shutdown", Mode: "delay"}}}, 1700000000)
	var values []string
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "#") {
			values = append(values, strings.TrimSpace(line))
		}
	}
	want := []string{"kibo_agent_gate_open 1", `kibo_agent_gate_info{code="open",version="1.2.3"} 1`,
		"kibo_agent_window_not_after_seconds 1800000000", "kibo_agent_held_by 1", "kibo_agent_inhibitors 2", "kibo_agent_ungated_changes 0",
		"kibo_agent_last_change_timestamp_seconds 1700000000"}
	if !reflect.DeepEqual(values, want) {
		t.Errorf("%q", values)
	}
}
