package command_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/remote/command"
)

func frames(parts ...string) string {
	var s strings.Builder
	for _, p := range parts {
		if rest, ok := strings.CutPrefix(p, "@"); ok {
			s.WriteString("\n" + nonce + " " + rest + "\n")
		} else {
			s.WriteString(p)
		}
	}
	return s.String()
}

// proves ssh-bashrc-noise
func TestNoiseIsIgnored(t *testing.T) {
	out := frames("== PROD == authorised use only\n", "@b 0", "value\n", "@e 0 0", "late text of a child", "@z")
	errs := frames("mesg: ttyname failed\n", "@b 0", "@e 0 0", "@z")
	got, err := command.ParseBatch(nonce, 1, []byte(out), []byte(errs))
	if err != nil || len(got) != 1 || string(got[0].Stdout) != "value\n" || len(got[0].Stderr) != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestBadOutput(t *testing.T) {
	whole := frames("@b 0", "@e 0 0", "@z")
	for name, c := range map[string]struct {
		out, err   string
		results    int
		incomplete bool
	}{
		"nothing":            {"", "", 0, true},
		"only noise":         {"This account is currently not available.\n", "", 0, true},
		"cut in a command":   {frames("@b 0", "half"), frames("@b 0"), 0, true},
		"cut after one":      {frames("@b 0", "@e 0 3", "@b 1"), frames("@b 0", "@e 0 3"), 1, true},
		"one stream missing": {whole, "", 0, true},
		"index out of order": {frames("@b 1"), whole, 0, false},
		"too many":           {frames("@b 0", "@e 0 0", "@b 1", "@e 1 0", "@b 2"), whole, 1, false},
		"exit out of range":  {frames("@b 0", "@e 0 256", "@z"), whole, 0, false},
		"exit not a number":  {frames("@b 0", "@e 0 x", "@z"), whole, 0, false},
		"end before begin":   {frames("@e 0 0"), whole, 0, false},
		"after the last":     {whole + frames("@z"), whole, 1, false},
		"unknown":            {frames("@q"), whole, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := command.ParseBatch(nonce, 2, []byte(c.out), []byte(c.err))
			if err == nil || len(got) != c.results || errors.Is(err, command.ErrIncomplete) != c.incomplete {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// proves that frames are found wherever the stream is cut into pieces, that output is bounded and timed
func TestCollectorPieces(t *testing.T) {
	big := strings.Repeat("x", 50)
	out := frames("noise", "@b 0", big, "@e 0 0", "@b 1", "\n"+nonce+"\n"+nonce+"x ", "@e 1 5", "@z")
	errs := frames("@b 0", "@e 0 0", "@b 1", "e", "@e 1 5", "@z")
	for size := 1; size <= len(out); size++ {
		now := time.Unix(0, 0)
		c := command.NewCollector(2, nonce, command.CollectorOptions{Limit: 40, Now: func() time.Time {
			now = now.Add(time.Second)
			return now
		}})
		for at := 0; at < len(out); at += size {
			_, _ = c.Stdout().Write([]byte(out[at:min(at+size, len(out))]))
		}
		_, _ = c.Stderr().Write([]byte(errs))
		got, err := c.Results()
		if err != nil || len(got) != 2 {
			t.Fatalf("pieces of %d: %+v, %v", size, got, err)
		}
		if string(got[0].Stdout) != big[:40] || !got[0].Truncated || got[0].Elapsed <= 0 {
			t.Errorf("pieces of %d: first %+v", size, got[0])
		}
		if got[1].Exit != 5 || string(got[1].Stderr) != "e" {
			t.Errorf("pieces of %d: second %+v", size, got[1])
		}
		if i, complete := c.Running(); i != 1 || !complete || c.Noise() != "noise" {
			t.Errorf("pieces of %d: running %d %v, noise %q", size, i, complete, c.Noise())
		}
	}
}

func FuzzParseBatch(f *testing.F) {
	f.Add(frames("@b 0", "out", "@e 0 0", "@z"), frames("@b 0", "@e 0 0", "@z"), 1)
	f.Add(frames("@b 0", "out", "@e 0 0", "@b 1"), "", 2)
	f.Add(frames("@b"), frames("@e -1 "), 0)
	f.Fuzz(func(t *testing.T, stdout, stderr string, total int) {
		total = min(max(total, 0), 8)
		got, err := command.ParseBatch(nonce, total, []byte(stdout), []byte(stderr))
		if len(got) > total {
			t.Fatalf("%d results for %d commands", len(got), total)
		}
		kept := 0
		for _, r := range got {
			kept += len(r.Stdout) + len(r.Stderr)
			if r.Exit < 0 || r.Exit > 255 {
				t.Fatalf("exit %d", r.Exit)
			}
		}
		if kept > len(stdout)+len(stderr) {
			t.Fatalf("%d bytes kept of %d (%v)", kept, len(stdout)+len(stderr), err)
		}
	})
}
