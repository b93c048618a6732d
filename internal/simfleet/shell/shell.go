package shell

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// Exit statuses that a shell gives by itself.
const (
	exitUsage    = 2
	exitNotFound = 127
)

// passed marks words that the interpreter must hand to the host although they name one of its builtins.
const passed = "\x00host"

// Main is the program sh: `sh -c TEXT [NAME [ARG...]]`, `sh [-s] [ARG...]`, `sh FILE [ARG...]`; -e, -u and -x as usual.
func Main(ctx context.Context, h Host, p *Proc) int {
	var opts []string
	args := p.Args[1:]
	text, stdin := false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		for _, c := range arg[1:] {
			switch c {
			case 'c':
				text = true
			case 's':
				stdin = true
			case 'e', 'u', 'f':
				opts = append(opts, "-"+string(c))
			default:
				return p.Fail(exitUsage, "0: Illegal option -%c", c)
			}
		}
	}
	switch {
	case text && len(args) == 0:
		return p.Fail(exitUsage, "0: -c requires an argument")
	case text:
		name, rest := "sh", args[1:]
		if len(rest) > 0 {
			name, rest = rest[0], rest[1:]
		}
		return Text(ctx, h, p, name, args[0], append(append(opts, "--"), rest...)...)
	case stdin || len(args) == 0:
		return read(ctx, h, p, append(append(opts, "--"), args...))
	}
	body, err := h.FS().ReadFile(p.Cred, p.Path(args[0]))
	if err != nil {
		return p.Fail(exitUsage, "0: cannot open %s: No such file", args[0])
	}
	return Text(ctx, h, p, args[0], string(body), append(append(opts, "--"), args[1:]...)...)
}

// Text runs a shell text under a name ($0). params are options of the shell, "--", and the positional parameters.
func Text(ctx context.Context, h Host, p *Proc, name, text string, params ...string) int {
	r, err := newRunner(h, p, params)
	if err != nil {
		return p.Fail(exitUsage, "%v", err)
	}
	file, err := newParser().Parse(strings.NewReader(text), name)
	if err != nil {
		return p.Fail(exitUsage, "Syntax error: %v", err)
	}
	status, err := code(r.Run(ctx, file))
	if err != nil {
		return p.Fail(exitUsage, "%v", err)
	}
	return status
}

func newParser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangPOSIX)) }

// read interprets statements as they are read, so that commands can read what follows them in the same input.
func read(ctx context.Context, h Host, p *Proc, params []string) int {
	r, err := newRunner(h, p, params)
	if err != nil {
		return p.Fail(exitUsage, "%v", err)
	}
	src := &lineReader{r: p.Stdin}
	parser := newParser()
	status := 0
	// The parser goes on after the loop was left, and panics; so the loop is never left, its input ends instead.
	for stmts, err := range parser.InteractiveSeq(src) {
		switch {
		case src.ended:
		case err != nil:
			status, src.ended = p.Fail(exitUsage, "Syntax error: %v", err), true
		case !parser.Incomplete():
			status, src.ended = statements(ctx, p, r, stmts, status)
		}
	}
	if !r.Exited() {
		// An empty file at the end runs a trap on EXIT.
		_, _ = code(r.Run(ctx, &syntax.File{}))
	}
	return status
}

// statements runs those of one line and reports whether the shell ends with them.
func statements(ctx context.Context, p *Proc, r *interp.Runner, stmts []*syntax.Stmt, status int) (int, bool) {
	for _, s := range stmts {
		var err error
		status, err = code(r.Run(ctx, s))
		if err != nil {
			return p.Fail(exitUsage, "%v", err), true
		}
		if r.Exited() {
			return status, true
		}
	}
	return status, false
}

func code(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	var s interp.ExitStatus
	if errors.As(err, &s) {
		return int(s), nil
	}
	return exitUsage, err
}

func newRunner(h Host, p *Proc, params []string) (*interp.Runner, error) {
	g := &glue{h: h, p: p}
	r, err := interp.New(
		interp.Env(expand.ListEnviron(p.Env...)),
		interp.Params(params...),
		interp.CallHandler(g.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return g.exec }),
		interp.OpenHandler(g.open),
		interp.StatHandler(g.stat),
		interp.ReadDirHandler2(g.readDir),
		interp.AccessHandler(g.access),
	)
	if err != nil {
		return nil, err
	}
	// Standard input stays nil in the interpreter, which would otherwise copy all of it into a pipe:
	// programs get the process's own (see exec). `read` needs one, and gets it through readLine.
	if err := interp.StdIO(nil, p.Stdout, p.Stderr)(r); err != nil {
		return nil, err
	}
	r.Dir = p.Dir
	return r, nil
}

// glue connects one interpreter to its host.
type glue struct {
	h Host
	p *Proc
}

// call sends to the host those builtins that would otherwise look at the real machine.
func (g *glue) call(ctx context.Context, args []string) ([]string, error) {
	switch args[0] {
	case "read":
		if hc := interp.HandlerCtx(ctx); hc.Stdin == nil {
			return readLine(g.p.Stdin, args[1:]), nil
		}
	case "umask", "ulimit", "kill", "hash":
		return append([]string{passed}, args...), nil
	case "command":
		if len(args) > 1 && args[1] == "-v" {
			return append([]string{passed}, args...), nil
		}
	case "type":
		return append([]string{passed}, args...), nil
	}
	return args, nil
}

func (g *glue) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	if args[0] == passed {
		return status(g.builtin(hc, args[1:]))
	}
	q := *g.p
	q.Args, q.Dir, q.Stdout, q.Stderr = args, hc.Dir, hc.Stdout, hc.Stderr
	if hc.Stdin != nil {
		q.Stdin = hc.Stdin
	}
	q.Env = nil
	hc.Env.Each(func(name string, v expand.Variable) bool {
		if v.Exported && v.Kind == expand.String {
			q.Env = append(q.Env, name+"="+v.Str)
		}
		return true
	})
	return status(g.h.Exec(ctx, &q))
}

func (g *glue) builtin(hc interp.HandlerContext, args []string) int {
	switch args[0] {
	case "command", "type":
		code := 0
		for _, name := range args[1:] {
			if strings.HasPrefix(name, "-") {
				continue
			}
			at, ok := g.h.Lookup(name)
			if !ok && interp.IsBuiltin(name) {
				at, ok = name, true
			}
			if !ok {
				code = exitNotFound
				continue
			}
			_, _ = io.WriteString(hc.Stdout, at+"\n")
		}
		return code
	case "umask":
		if len(args) == 1 {
			_, _ = io.WriteString(hc.Stdout, "0022\n")
		}
	}
	return 0
}

func status(code int) error {
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(code & 0xff)
}

func (g *glue) open(ctx context.Context, name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	if name == "/dev/null" {
		// The interpreter copies any other reader through a pipe.
		return os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	f, err := g.h.FS().Open(g.p.Cred, (&Proc{Dir: hc.Dir}).Path(name), flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "cannot open", Path: name, Err: errno(err)}
	}
	return f, nil
}

func errno(err error) error {
	var n syscall.Errno
	if errors.As(err, &n) {
		return n
	}
	return err
}

func (g *glue) stat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	at := (&Proc{Dir: interp.HandlerCtx(ctx).Dir}).Path(name)
	if follow {
		i, err := g.h.FS().Stat(g.p.Cred, at)
		return i, err
	}
	i, err := g.h.FS().Lstat(g.p.Cred, at)
	return i, err
}

func (g *glue) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	infos, err := g.h.FS().ReadDir(g.p.Cred, (&Proc{Dir: interp.HandlerCtx(ctx).Dir}).Path(name))
	out := make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		out[i] = info
	}
	return out, err
}

func (g *glue) access(ctx context.Context, name string, mode interp.AccessMode) error {
	at := (&Proc{Dir: interp.HandlerCtx(ctx).Dir}).Path(name)
	return g.h.FS().Access(g.p.Cred, at, fs.FileMode(mode&0x7)) // the same bits: 4 read, 2 write, 1 execute
}

// Compile-time check that a memory file can be a redirection.
var _ io.ReadWriteCloser = (*memfs.File)(nil)
