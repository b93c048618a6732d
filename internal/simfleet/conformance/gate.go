package conformance

import "regexp"

// gate is kibo-agent: what it answers while closed, how windows open and close, that jobs are run once, and how a
// person holds a host.
func (f Fleet) gate() []step {
	job := func(key string, argv ...string) []string {
		return sudo(append([]string{"kibo-agent", "run", "--key", key, "--operation", "config", "--output", "json", "--"}, argv...)...)
	}
	allow := func(more ...string) []string {
		return sudo(append([]string{"kibo-agent", "allow", "--for", "10m", "--id", "conformance", "--output", "json"}, more...)...)
	}
	return []step{
		{name: "version", on: "node", argv: []string{"kibo-agent", "version", "--json"}, out: `\{"name":"kibo-agent","version":"[^"]+".*\}\n`},
		{name: "closed", on: "node", argv: sudo("kibo-agent", "check", "--operation", "install", "--output", "json"), exit: 4, out: `\{.*"code":"missing".*\}\n`},
		{name: "job is denied", on: "node", argv: job("conf-denied", "true"), exit: 4, out: `\{.*"state":"denied".*"code":"missing".*\}\n`},
		{name: "no such job", on: "node", argv: sudo("kibo-agent", "wait", "--key", "conf-nothing", "--output", "json"), exit: 1, out: `\{.*"state":"unknown".*\}\n`},
		{name: "install is denied", on: "node", argv: sudo("kibo-agent", "run", "--key", "conf-install", "--operation", "install", "--package", "kibotos-node="+f.To,
			"--output", "json", "--", "true"), exit: 4},
		{name: "open", on: "node", argv: allow("--operation", "config")},
		{name: "file", on: "node", argv: []string{"stat", "-c", "%U:%G %a", "/var/lib/kibo-agent/allow.json"}, out: `root:root 644\n`},
		{name: "is open", on: "node", argv: sudo("kibo-agent", "check", "--operation", "config")},
		{name: "not for others", on: "node", argv: sudo("kibo-agent", "check", "--operation", "stop", "--output", "json"), exit: 4, out: `\{.*"code":"other-operation".*\}\n`},
		{name: "job", on: "node", argv: job("conf-1", "sh", "-c", "echo done >> /var/lib/kibo-rollout/conformance-jobs; exit 3"), exit: 1,
			out: `\{.*"state":"finished".*"exit":3.*\}\n`},
		{name: "job again", on: "node", argv: job("conf-1", "sh", "-c", "echo done >> /var/lib/kibo-rollout/conformance-jobs; exit 3"), exit: 1,
			out: `\{.*"state":"finished".*"exit":3.*\}\n`},
		{name: "ran once", on: "node", argv: []string{"cat", "/var/lib/kibo-rollout/conformance-jobs"}, out: `done\n`},
		{name: "wait", on: "node", argv: sudo("kibo-agent", "wait", "--key", "conf-1", "--output", "json"), exit: 1, out: `\{.*"exit":3.*\}\n`},
		{name: "someone else's window", on: "node", argv: sudo("kibo-agent", "close", "--id", "other")},
		{name: "is still open", on: "node", argv: sudo("kibo-agent", "check", "--operation", "config")},
		{name: "close", on: "node", argv: sudo("kibo-agent", "close", "--id", "conformance")},
		{name: "close again", on: "node", argv: sudo("kibo-agent", "close")},
		{name: "file is gone", on: "node", argv: []string{"test", "-e", "/var/lib/kibo-agent/allow.json"}, exit: 1},
		{name: "once", on: "node", argv: allow("--operation", "config", "--once")},
		{name: "first", on: "node", argv: job("conf-2", "true"), out: `\{.*"state":"finished".*\}\n`},
		{name: "second", on: "node", argv: job("conf-3", "true"), exit: 4, out: `\{.*"state":"denied".*\}\n`},
		{name: "hold", on: "node", argv: sudo("kibo-agent", "hold", "--why", "disk swap", "--id", "conf", "--by", "ann", "--output", "json"),
			out: `\{"id":"conf","who":"ann","why":"disk swap","since":"[^"]+Z"\}\n`},
		{name: "open while held", on: "node", argv: allow(), out: `\{"open":false,"code":"held".*"path":.*"window":\{.*\}\}\n`},
		{name: "held", on: "node", argv: sudo("kibo-agent", "check", "--operation", "stop", "--output", "json"), exit: 4, out: `\{.*"code":"held".*\}\n`},
		{name: "held job", on: "node", argv: job("conf-4", "true"), exit: 4, out: `\{.*"state":"denied".*"code":"held".*\}\n`},
		{name: "held, but may start", on: "node", argv: sudo("kibo-agent", "check", "--operation", "start")},
		{name: "who holds", on: "node", argv: sudo("kibo-agent", "status", "--output", "json"), out: `\{.*"code":"held".*"holds":\[\{"id":"conf","who":"ann".*\n`},
		{name: "release another", on: "node", argv: sudo("kibo-agent", "release", "--id", "other", "--output", "json"), out: `\{.*"released":\[\].*\}\n`},
		{name: "release", on: "node", argv: sudo("kibo-agent", "release", "--output", "json"), out: `\{.*"released":\[\{"id":"conf".*\}\n`},
		{name: "released", on: "node", argv: sudo("kibo-agent", "check", "--operation", "stop")},
		{name: "no lease", on: "node", argv: sudo("kibo-agent", "renew", "--id", "conformance", "--for", "3m", "--output", "json"), exit: 4, out: `\{.*"code":"no-lease".*\}\n`},
		{name: "lease", on: "node", argv: allow("--lease", "--max", "1h", "--run", "r1"), out: `\{"open":true.*"renewUntil":[0-9]+.*\}\n`},
		{name: "renew another", on: "node", argv: sudo("kibo-agent", "renew", "--id", "other", "--for", "3m", "--output", "json"), exit: 4, out: `\{.*"code":"other-window".*\}\n`},
		{name: "renew", on: "node", argv: sudo("kibo-agent", "renew", "--id", "conformance", "--for", "20m", "--output", "json"), out: `\{"open":true.*\}\n`},
		{name: "another run", on: "node", argv: job("conf-5", "true"), exit: 4, out: `\{.*"code":"other-run".*\}\n`},
		{name: "close the lease", on: "node", argv: sudo("kibo-agent", "close", "--id", "conformance")},
		{name: "nothing to acknowledge", on: "node", argv: sudo("kibo-agent", "acknowledge", "--output", "json"), out: `\{"acknowledged":\[\]\}\n`},
		{name: "not as the login user", on: "node", argv: []string{"kibo-agent", "close"}, exit: 1},
		{name: "remove", on: "node", argv: sudo("rm", "-f", "/var/lib/kibo-rollout/conformance-jobs")},
		{name: "package is unchanged", on: "node", argv: []string{"dpkg-query", "-W", "-f", "${Version}", "kibotos-node"}, out: regexp.QuoteMeta(f.From)},
	}
}
