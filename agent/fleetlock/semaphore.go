package fleetlock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Semaphore is what airlock keeps of a group in etcd: FleetLock itself has no request that shows who holds a slot.
type Semaphore struct {
	Slots   uint64   `json:"total_slots"`
	Holders []string `json:"holders"` // ids
}

// SemaphoreKey is airlock's key for a group.
func SemaphoreKey(group string) string {
	return "com.coreos.airlock/groups/" + url.QueryEscape(group) + "/v1/semaphore"
}

// ReadSemaphore reads a group's semaphore from the etcd that airlock uses, by etcd's JSON gateway, without changing
// it. A group that nobody has asked for yet has no slots and no holders.
func ReadSemaphore(ctx context.Context, web *http.Client, etcd, group string) (Semaphore, error) {
	at, err := endpoint(etcd, "v3/kv/range")
	if err != nil {
		return Semaphore{}, err
	}
	// Keys and values are bytes: base64 in JSON, as Go does by itself.
	ask, err := json.Marshal(map[string][]byte{"key": []byte(SemaphoreKey(group))})
	if err != nil {
		return Semaphore{}, fmt.Errorf("cannot encode the question: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(ask))
	if err != nil {
		return Semaphore{}, fmt.Errorf("cannot make the question: %w", err)
	}
	answer, err := web.Do(req)
	if err != nil {
		return Semaphore{}, fmt.Errorf("cannot read the semaphore of group %s: %w", group, err)
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d: %s", answer.StatusCode, clip(printable(string(data))))
	}
	if err != nil {
		return Semaphore{}, fmt.Errorf("cannot read the semaphore of group %s: %w", group, err)
	}
	return parseSemaphore(data)
}

func parseSemaphore(data []byte) (Semaphore, error) {
	var found struct {
		KVs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return Semaphore{}, fmt.Errorf("cannot read etcd's answer: %w", err)
	}
	var s Semaphore
	if len(found.KVs) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(found.KVs[0].Value, &s); err != nil {
		return Semaphore{}, fmt.Errorf("cannot read the semaphore: %w", err)
	}
	for i, id := range s.Holders {
		s.Holders[i] = clip(printable(id))
	}
	return s, nil
}
