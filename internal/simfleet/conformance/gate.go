package conformance

import "regexp"

// gate is kibo-agent: what it answers while closed, how windows open and close, and that jobs are run once.
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
		{name: "not as the login user", on: "node", argv: []string{"kibo-agent", "close"}, exit: 1},
		{name: "remove", on: "node", argv: sudo("rm", "-f", "/var/lib/kibo-rollout/conformance-jobs")},
		{name: "package is unchanged", on: "node", argv: []string{"dpkg-query", "-W", "-f", "${Version}", "kibotos-node"}, out: regexp.QuoteMeta(f.From)},
	}
}
