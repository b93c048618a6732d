package host

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// ddProgram is dd with if=, of=, oflag=append, conv=notrunc,fsync and status=.
func ddProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	arg := map[string]string{}
	for _, w := range p.Args[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "if", "of", "oflag", "conv", "status", "bs", "iflag", "skip", "count":
			arg[k] = v
		default:
			m.noteUnknown("dd " + w)
			return p.Fail(1, "unrecognized operand '%s'", w)
		}
	}
	var data []byte
	var err error
	if arg["if"] != "" {
		data, err = m.fs.ReadFile(p.Cred, p.Path(arg["if"]))
	} else {
		data, err = io.ReadAll(p.Stdin)
	}
	if err != nil {
		return p.Fail(1, "failed to open '%s': %s", arg["if"], reason(err))
	}
	if data, err = ddBlocks(data, arg); err != nil {
		return p.Fail(1, "invalid number: %s", err)
	}
	if arg["of"] == "" {
		_, _ = p.Stdout.Write(data)
		return 0
	}
	flag := os.O_WRONLY | os.O_CREATE
	if strings.Contains(arg["oflag"], "append") {
		flag |= os.O_APPEND
	}
	if !strings.Contains(arg["conv"], "notrunc") {
		flag |= os.O_TRUNC
	}
	f, err := m.fs.Open(p.Cred, p.Path(arg["of"]), flag, 0o644)
	if err != nil {
		return p.Fail(1, "failed to open '%s': %s", arg["of"], reason(err))
	}
	if _, err := f.Write(data); err != nil {
		return p.Fail(1, "error writing '%s': %s", arg["of"], reason(err))
	}
	if arg["status"] != "none" {
		_, _ = fmt.Fprintf(p.Stderr, "%d bytes copied\n", len(data))
	}
	return 0
}

// ddBlocks is what skip= and count= leave of the input, in blocks of bs= bytes.
func ddBlocks(data []byte, arg map[string]string) ([]byte, error) {
	size, skip, count := 512, 0, -1
	for name, n := range map[string]*int{"bs": &size, "skip": &skip, "count": &count} {
		if arg[name] == "" {
			continue
		}
		v, err := strconv.Atoi(arg[name])
		if err != nil || v < 0 {
			return nil, fmt.Errorf("'%s'", arg[name])
		}
		*n = v
	}
	data = data[min(skip*size, len(data)):]
	if count >= 0 {
		data = data[:min(count*size, len(data))]
	}
	return data, nil
}
