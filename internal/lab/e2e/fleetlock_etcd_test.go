//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/fleetlock"
)

// startEtcd runs Debian's etcd until the test ends and returns its URL.
func startEtcd(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatalf("%v\nnext: apt-get install -y etcd-server", err)
	}
	at, peer := "http://"+unusedAddress(t), "http://"+unusedAddress(t)
	etcd := exec.Command(path, "--data-dir", filepath.Join(t.TempDir(), "etcd"), "--listen-client-urls", at, "--advertise-client-urls", at,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	var log bytes.Buffer
	etcd.Stdout, etcd.Stderr = &log, &log
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = etcd.Process.Kill()
		_ = etcd.Wait()
	})
	for range 200 {
		if answer, err := http.Get(at + "/health"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return at
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("etcd does not come up")
	return ""
}

// slots is a FleetLock service that keeps its semaphores as airlock does: in etcd, under airlock's keys, changed by
// compare-and-set, with airlock's kinds and codes.
type slots struct {
	etcd   string
	groups map[string]uint64
	count  int // requests
}

func (s *slots) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.count++
	var body struct {
		Params fleetlock.Identity `json:"client_params"`
	}
	fail := func(code int, kind, value string) {
		data, _ := json.Marshal(fleetlock.Error{Kind: kind, Value: value})
		http.Error(w, string(data), code)
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || r.Header.Get("fleet-lock-protocol") != "true" || body.Params.ID == "" {
		fail(400, "invalid_client_identity", "cannot tell who asks")
		return
	}
	total, known := s.groups[body.Params.Group]
	if !known {
		fail(400, "unknown_group", fmt.Sprintf("unknown group %q", body.Params.Group))
		return
	}
	if err := s.change(r.Context(), body.Params, total, strings.HasSuffix(r.URL.Path, fleetlock.PreReboot)); err != nil {
		fail(500, "failed_lock", err.Error())
	}
}

// change takes or gives back the slot of one id.
func (s *slots) change(ctx context.Context, who fleetlock.Identity, total uint64, lock bool) error {
	key := []byte(fleetlock.SemaphoreKey(who.Group))
	now, err := fleetlock.ReadSemaphore(ctx, http.DefaultClient, s.etcd, who.Group)
	if err != nil {
		return err
	}
	before, err := json.Marshal(now)
	if err != nil {
		return err
	}
	compare := map[string]any{"key": key, "target": "VALUE", "result": "EQUAL", "value": before}
	if now.Slots == 0 {
		compare = map[string]any{"key": key, "target": "VERSION", "result": "EQUAL", "version": 0}
		now.Slots = total
	}
	at, holds := slices.BinarySearch(now.Holders, who.ID)
	switch {
	case lock == holds:
		return nil
	case !lock:
		now.Holders = slices.Delete(now.Holders, at, at+1)
	case uint64(len(now.Holders)) >= now.Slots:
		return fmt.Errorf("all %d semaphore slots currently locked", now.Slots)
	default:
		now.Holders = slices.Insert(now.Holders, at, who.ID)
	}
	after, err := json.Marshal(now)
	if err != nil {
		return err
	}
	ask, err := json.Marshal(map[string]any{"compare": []any{compare},
		"success": []any{map[string]any{"request_put": map[string][]byte{"key": key, "value": after}}}})
	if err != nil {
		return err
	}
	answer, err := http.Post(s.etcd+"/v3/kv/txn", "application/json", bytes.NewReader(ask))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(data, []byte(`"succeeded":true`)) {
		return fmt.Errorf("conflict on semaphore detected, aborting: %s %w", data, err)
	}
	return nil
}
