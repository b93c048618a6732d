package remotetest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

var errRefused = errors.New("refused")

func itoa(n int) string { return strconv.Itoa(n) }

// session serves one channel: one command or one file transfer.
func (s *Server) session(n ssh.NewChannel) {
	ch, reqs, err := n.Accept()
	if err != nil {
		return
	}
	defer func() { _ = ch.Close() }()
	for r := range reqs {
		var arg struct{ Text string }
		_ = ssh.Unmarshal(r.Payload, &arg)
		switch {
		case r.Type == "exec":
			s.note(func(st *Stats) { st.Execs = append(st.Execs, arg.Text) })
			_ = r.Reply(true, nil)
			go discard(reqs)
			s.exec(ch, arg.Text)
			return
		case r.Type == "subsystem" && arg.Text == "sftp" && !s.o.NoSFTP:
			s.note(func(st *Stats) { st.Subsystems = append(st.Subsystems, arg.Text) })
			_ = r.Reply(true, nil)
			go discard(reqs)
			s.files(ch)
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func discard(reqs <-chan *ssh.Request) {
	for r := range reqs {
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

// exec runs the line in /bin/sh and, like sshd, reports the exit status at once but keeps the channel open
// until all output has ended.
func (s *Server) exec(ch ssh.Channel, line string) {
	_, _ = io.WriteString(ch, s.o.Noise)
	if s.o.LoginOutput != "" {
		_, _ = io.WriteString(ch, s.o.LoginOutput)
		exitStatus(ch, 1)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line) //nolint:gosec // a login shell
	cmd.Dir = s.o.Home
	cmd.Env = []string{"HOME=" + s.o.Home, "PATH=" + s.path(), "USER=tester", "LANG=de_DE.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, errIn := cmd.StdinPipe()
	outR, outW, errOut := os.Pipe()
	errR, errW, errErr := os.Pipe()
	if errors.Join(errIn, errOut, errErr) != nil {
		return
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	err := cmd.Start()
	_ = outW.Close()
	_ = errW.Close()
	if err != nil {
		exitStatus(ch, 127)
		return
	}
	gone := make(chan struct{})
	go func() { // input ends with the channel; a client that closes it closes the pipes, as sshd does
		_, _ = io.Copy(stdin, ch)
		_ = stdin.Close()
	}()
	var output sync.WaitGroup
	pipe := func(w io.Writer, r *os.File) {
		output.Go(func() {
			_, _ = io.Copy(w, r)
			_ = r.Close()
		})
	}
	pipe(ch, outR)
	pipe(ch.Stderr(), errR)
	go func() {
		s.endWithConnection(ch, gone, cmd)
	}()
	_ = cmd.Wait()
	exitStatus(ch, status(cmd.ProcessState))
	output.Wait()
	close(gone)
}

// endWithConnection kills what still runs long after the client is gone, so that tests end.
func (s *Server) endWithConnection(ch ssh.Channel, gone <-chan struct{}, cmd *exec.Cmd) {
	for {
		select {
		case <-gone:
			return
		case <-time.After(200 * time.Millisecond):
			if _, err := ch.SendRequest("keepalive@test", false, nil); err != nil {
				time.Sleep(200 * time.Millisecond)
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				return
			}
		}
	}
}

func (s *Server) path() string {
	if s.o.Path == "" {
		return os.Getenv("PATH")
	}
	return s.o.Path + ":" + os.Getenv("PATH")
}

func status(p *os.ProcessState) int {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.ExitCode()
}

func exitStatus(ch ssh.Channel, code int) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(code)})) //nolint:gosec // 0..255
}

func (s *Server) files(ch ssh.Channel) {
	_, _ = io.WriteString(ch, s.o.Noise+s.o.LoginOutput)
	server, err := sftp.NewServer(ch, sftp.WithServerWorkingDirectory(s.o.Home))
	if err != nil {
		return
	}
	_ = server.Serve()
	_ = server.Close()
}

// forward makes the server a jump host.
func (s *Server) forward(n ssh.NewChannel) {
	var to struct {
		Host  string
		Port  uint32
		From  string
		FPort uint32
	}
	if err := ssh.Unmarshal(n.ExtraData(), &to); err != nil {
		_ = n.Reject(ssh.ConnectionFailed, "bad request")
		return
	}
	address := net.JoinHostPort(to.Host, itoa(int(to.Port)))
	s.note(func(st *Stats) { st.Forwards = append(st.Forwards, address) })
	target, err := net.DialTimeout("tcp", address, 5*time.Second) //nolint:noctx // bounded
	if err != nil {
		_ = n.Reject(ssh.ConnectionFailed, "connect failed")
		return
	}
	defer func() { _ = target.Close() }()
	ch, reqs, err := n.Accept()
	if err != nil {
		return
	}
	go discard(reqs)
	go func() {
		_, _ = io.Copy(target, ch)
		_ = target.Close()
	}()
	_, _ = io.Copy(ch, target)
	_ = ch.Close()
}
