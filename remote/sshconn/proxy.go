package sshconn

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"
)

// proxyConn is a connection made of the streams of a local command.
type proxyConn struct {
	io.Reader
	io.WriteCloser
	cmd  *exec.Cmd
	said *tail // its standard error
	once sync.Once
}

// proxyGrace is how long a proxy command may take to end by itself, and to say why.
const proxyGrace = 200 * time.Millisecond

// startProxy runs a ProxyCommand, as ssh does: through the shell, since that is what the operator wrote it for.
func startProxy(line string) (net.Conn, error) {
	cmd := exec.Command("/bin/sh", "-c", "exec "+line) //nolint:gosec,noctx // ssh_config's own semantics; ends with the connection
	said := &tail{}
	cmd.Stderr, cmd.WaitDelay = said, time.Second // what it started may live on and keep its streams open
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start proxy command: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start proxy command: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start proxy command: %w", err)
	}
	return &proxyConn{Reader: out, WriteCloser: in, cmd: cmd, said: said}, nil
}

func (p *proxyConn) Close() error {
	p.once.Do(func() {
		_ = p.WriteCloser.Close()
		kill := time.AfterFunc(proxyGrace, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait()
		kill.Stop()
	})
	return nil
}

func (p *proxyConn) LocalAddr() net.Addr              { return proxyAddr{} }
func (p *proxyConn) RemoteAddr() net.Addr             { return proxyAddr{} }
func (p *proxyConn) SetDeadline(time.Time) error      { return nil }
func (p *proxyConn) SetReadDeadline(time.Time) error  { return nil }
func (p *proxyConn) SetWriteDeadline(time.Time) error { return nil }

type proxyAddr struct{}

func (proxyAddr) Network() string { return "proxy" }
func (proxyAddr) String() string  { return "proxy command" }
