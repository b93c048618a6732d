package run

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Record is an unfinished or finished run as its plan and journal tell it.
type Record struct {
	Plan   plan.Plan
	Events []Event
	Cut    int // lines of the journal that could not be read and were left out
}

// Finished reports whether the run came to its end.
func (r Record) Finished() bool {
	return len(r.Events) > 0 && r.Events[len(r.Events)-1].Kind == RunDone
}

// Bounds of what is read from a host.
const (
	readBlock = 512 << 10 // bytes a command
	maxRecord = 1 << 30   // bytes of a journal
	maxPlan   = 4 << 30   // bytes of an unpacked plan
	maxPacked = 256 << 20 // bytes of a packed one
)

func packPlan(p plan.Plan) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(p); err != nil {
		return nil, fmt.Errorf("cannot pack the plan: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack the plan: %w", err)
	}
	return b.Bytes(), nil
}

func unpackPlan(data []byte) (plan.Plan, error) {
	var p plan.Plan
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return p, fmt.Errorf("cannot read the plan: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(z, maxPlan)).Decode(&p); err != nil {
		return p, fmt.Errorf("cannot read the plan: %w", err)
	}
	if p.ID == "" || p.Schema != plan.Schema {
		return p, fmt.Errorf("cannot read the plan: its form is %d, this program's is %d", p.Schema, plan.Schema)
	}
	return p, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// DecodeEvents reads a journal. Lines that cannot be read are left out and counted, lines that are there twice count once: the hosts
// tell what is true, the journal only where to look.
func DecodeEvents(data []byte) (events []Event, cut int) {
	seen := map[int]bool{}
	for text := range bytes.Lines(data) {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(text, &e); err != nil || e.Seq <= 0 || e.Kind == "" {
			cut++
			continue
		}
		if !seen[e.Seq] {
			seen[e.Seq] = true
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return events, cut
}

// ReadRecord reads the record of a run: the copy on the ctrl host and the file on this machine, whichever knows more.
func ReadRecord(ctx context.Context, fleet Fleet, host, dir, id, local string) (Record, error) {
	there, errThere := readThere(ctx, fleet, host, dir, id)
	here, errHere := readHere(local, id)
	switch {
	case errThere != nil && errHere != nil:
		return Record{}, fmt.Errorf("cannot read the record of run %s: on host %s: %w; on this machine: %w", id, host, errThere, errHere)
	case errThere != nil, errHere == nil && last(here) >= last(there):
		return here, nil
	}
	return there, nil
}

func last(r Record) int {
	if len(r.Events) == 0 {
		return 0
	}
	return r.Events[len(r.Events)-1].Seq
}

func readHere(dir, id string) (Record, error) {
	at := filepath.Join(dir, "runs", id)
	packed, err := os.ReadFile(filepath.Join(at, planFile))
	if err != nil {
		return Record{}, err
	}
	lines, err := os.ReadFile(filepath.Join(at, journalFile))
	if err != nil {
		return Record{}, err
	}
	return record(packed, lines)
}

func readThere(ctx context.Context, fleet Fleet, host, dir, id string) (Record, error) {
	packed, err := readFile(ctx, fleet, host, recordFile(dir, id, planFile), maxPacked)
	if err != nil {
		return Record{}, err
	}
	lines, err := readFile(ctx, fleet, host, recordFile(dir, id, journalFile), maxRecord)
	if err != nil {
		return Record{}, err
	}
	return record(packed, lines)
}

func record(packed, lines []byte) (Record, error) {
	p, err := unpackPlan(packed)
	if err != nil {
		return Record{}, err
	}
	r := Record{Plan: p}
	r.Events, r.Cut = DecodeEvents(lines)
	return r, nil
}

// readFile reads a file of a host in blocks that fit into what is kept of a command's output.
func readFile(ctx context.Context, fleet Fleet, host, file string, most int) ([]byte, error) {
	conn, err := fleet.Conn(ctx, host)
	if err != nil {
		return nil, err
	}
	var out []byte
	for n := 0; len(out) <= most; n++ {
		res, err := conn.Run(ctx, command.Command{
			Argv: []string{"dd", "if=" + file, fmt.Sprintf("bs=%d", readBlock), fmt.Sprintf("skip=%d", n), "count=1", "status=none"},
			As:   command.Root, Effect: command.Reads,
		})
		if err != nil {
			return nil, err
		}
		if res.Exit != 0 || res.Truncated {
			return nil, fmt.Errorf("cannot read %s: exit status %d: %.200q", file, res.Exit, res.Stderr)
		}
		out = append(out, res.Stdout...)
		if len(res.Stdout) < readBlock {
			return out, nil
		}
	}
	return nil, fmt.Errorf("cannot read %s: it is larger than %d bytes", file, most)
}
