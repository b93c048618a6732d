package sshconn

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Upload implements remote.Conn. A file that is there already, with the right checksum, is not sent again.
func (c *Conn) Upload(ctx context.Context, u remote.Upload) error {
	want, err := hex.DecodeString(u.SHA256)
	if err != nil || len(want) != 32 {
		return c.fail(remote.BadTransfer, "", "cannot upload %s: no valid checksum to verify it with", u.Path)
	}
	if sum, err := c.checksum(ctx, u.Path); err != nil {
		return err
	} else if sum == strings.ToLower(u.SHA256) {
		if err := c.expect(ctx, "chmod", fmt.Sprintf("%04o", u.Mode), "--", u.Path); err != nil {
			return err
		}
		progress(u, u.Size)
		return nil
	}
	part := u.Path + "." + newNonce() + ".part"
	if err := c.place(ctx, u, part); err != nil {
		c.discard(ctx, part)
		return err
	}
	return nil
}

// place sends, verifies and renames.
func (c *Conn) place(ctx context.Context, u remote.Upload, part string) error {
	if err := c.send(ctx, u, part); err != nil {
		return err
	}
	sum, err := c.checksum(ctx, part)
	if err != nil {
		return err
	}
	if sum != strings.ToLower(u.SHA256) {
		return c.fail(remote.BadTransfer, "", "cannot upload %s: checksum on the host is %q, not %s", u.Path, sum, u.SHA256)
	}
	batch := command.Batch{StopOnFailure: true, Commands: []command.Command{
		stage("chmod", fmt.Sprintf("%04o", u.Mode), "--", part),
		stage("mv", "-fT", "--", part, u.Path), // one rename(2): over an old file too
	}}
	results, err := c.RunBatch(ctx, batch)
	if err != nil {
		return err
	}
	return c.allZero(batch, results)
}

// stallLimit is how long an upload may make no progress: a host that answers keepalives can hang all the same.
const stallLimit = time.Minute

var errStalled = fmt.Errorf("the upload made no progress for %s", stallLimit)

// send writes the bytes one way or the other.
func (c *Conn) send(ctx context.Context, u remote.Upload, part string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stallLimit, func() { cancel(errStalled) })
	defer timer.Stop()
	told := u.Progress
	u.Progress = func(sent, size int64) {
		timer.Reset(stallLimit)
		if told != nil {
			told(sent, size)
		}
	}
	err := c.sendSFTP(ctx, u, part)
	if errors.Is(err, errNoSFTP) {
		err = c.sendShell(ctx, u, part)
	}
	return err
}

func stage(argv ...string) command.Command {
	return command.Command{Argv: argv, Effect: command.Stages}
}

func (c *Conn) expect(ctx context.Context, argv ...string) error {
	batch := command.Batch{Commands: []command.Command{stage(argv...)}}
	results, err := c.RunBatch(ctx, batch)
	if err != nil {
		return err
	}
	return c.allZero(batch, results)
}

func (c *Conn) allZero(b command.Batch, results []command.Result) error {
	for i, r := range results {
		if r.Exit != 0 {
			return c.fail(remote.BadTransfer, "", "%q: exit %d: %s", b.Commands[i], r.Exit, oneLine(string(r.Stderr)))
		}
	}
	return nil
}

// checksum is the hex SHA-256 of a file on the host, empty if there is no such file.
func (c *Conn) checksum(ctx context.Context, path string) (string, error) {
	r, err := c.Run(ctx, command.Command{Argv: []string{"sha256sum", "--", path}, Effect: command.Reads})
	if err != nil || r.Exit != 0 {
		return "", err
	}
	sum, _, _ := bytes.Cut(bytes.TrimPrefix(r.Stdout, []byte(`\`)), []byte(" "))
	return string(sum), nil
}

// discard removes what a failed upload left, with a time of its own: the caller's may be over.
func (c *Conn) discard(ctx context.Context, part string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*releaseLimit)
	defer cancel()
	_, _ = c.Run(ctx, stage("rm", "-f", "--", part))
}

// errNoSFTP says that the host has no usable file transfer; there is another way.
var errNoSFTP = errors.New("no sftp")

// sendSFTP writes with many requests under way at a time.
func (c *Conn) sendSFTP(ctx context.Context, u remote.Upload, part string) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	ok, err := s.request(ctx, "subsystem", "sftp")
	switch {
	case ctx.Err() != nil:
		return c.ended(ctx)
	case errors.Is(err, errNoAnswer):
		return c.fail(remote.TimedOut, "", "cannot start sftp: %w", err)
	case err != nil || !ok:
		return c.orLost(errNoSFTP)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	// Start-up files that print something and subsystems that do not exist break the handshake alike.
	client, err := sftp.NewClientPipe(s.Channel, s.Channel, sftp.UseConcurrentWrites(true))
	if err != nil {
		if ctx.Err() != nil {
			return c.ended(ctx)
		}
		return c.orLost(errNoSFTP)
	}
	defer func() { _ = client.Close() }()
	err = writeSFTP(client, u, part)
	switch {
	case err == nil:
		return nil
	case c.isLost():
		return c.lostError()
	case ctx.Err() != nil:
		return c.ended(ctx)
	}
	return c.fail(remote.BadTransfer, "", "cannot upload %s: %w", u.Path, err)
}

func writeSFTP(client *sftp.Client, u remote.Upload, part string) error {
	f, err := client.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.ReadFromWithConcurrency(newCounted(u), 0)
	return errors.Join(err, f.Close())
}

// receiveScript is fixed; its parameter is the file to write. noclobber keeps it off files of others.
const receiveScript = `set -C; umask 077; exec cat > "$1"`

// sendShell writes through a command, for hosts without file transfer.
func (c *Conn) sendShell(ctx context.Context, u remote.Upload, part string) error {
	h, err := c.startHeld(ctx, stage("sh", "-c", receiveScript, "sh", part))
	var ended *remote.ExitError
	if errors.As(err, &ended) {
		return c.fail(remote.BadTransfer, "", "cannot upload %s: %w", u.Path, ended)
	}
	if err != nil {
		return err
	}
	defer h.s.close()
	stop := context.AfterFunc(ctx, func() { _ = h.s.Close() })
	defer stop()
	_, err = io.Copy(h.s.Channel, newCounted(u))
	if err == nil {
		err = h.s.CloseWrite()
	}
	if err == nil {
		select {
		case <-h.ended:
		case <-h.s.exited:
		case <-ctx.Done():
		}
		h.s.settle(grace)
	}
	switch {
	case c.isLost():
		return c.lostError()
	case ctx.Err() != nil:
		return c.ended(ctx)
	case err != nil || h.s.exit() != 0:
		return c.fail(remote.BadTransfer, "", "cannot upload %s: exit %d: %s", u.Path, h.s.exit(), oneLine(h.said()))
	}
	return nil
}

// counted reads the source and reports how far it got.
type counted struct {
	u    remote.Upload
	r    io.Reader
	mu   sync.Mutex
	sent int64
}

func newCounted(u remote.Upload) *counted {
	return &counted{u: u, r: io.NewSectionReader(u.Source, 0, u.Size)}
}

// Size lets the sftp client choose its concurrency.
func (c *counted) Size() int64 { return c.u.Size }

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.mu.Lock()
	c.sent += int64(n)
	sent := c.sent
	c.mu.Unlock()
	progress(c.u, sent)
	return n, err
}

func progress(u remote.Upload, sent int64) {
	if u.Progress != nil {
		u.Progress(sent, u.Size)
	}
}
