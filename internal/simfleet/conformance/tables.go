package conformance

import "regexp"

// facts are the commands that only look.
func (f Fleet) facts() []step {
	query := []string{"dpkg-query", "-W", "-f", `${Package}\t${Version}\t${db:Status-Status}\t${db:Status-Want}\n`}
	from := regexp.QuoteMeta(f.From)
	return []step{
		{name: "clock", on: "node", argv: []string{"date", "-u", "+%s"}, out: `[0-9]{10}\n`},
		{name: "boot id", on: "node", argv: []string{"cat", "/proc/sys/kernel/random/boot_id"}, out: `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n`},
		{name: "machine id", on: "node", argv: []string{"cat", "/etc/machine-id"}, out: `[0-9a-f]{32}\n`},
		{name: "system", on: "node", argv: []string{"cat", "/etc/os-release"}, out: `(.*\n)?PRETTY_NAME="Debian GNU/Linux [0-9]+ \([a-z]+\)"\n.*`},
		{name: "architecture", on: "node", argv: []string{"dpkg", "--print-architecture"}, out: `amd64\n`},
		{name: "machine", on: "node", argv: []string{"uname", "-m"}, out: `x86_64\n`},
		{name: "sudo", on: "node", argv: sudo("true")},
		{name: "root", on: "node", argv: sudo("id", "-u"), out: `0\n`},
		{name: "other user", on: "ctrl", argv: []string{"sudo", "-n", "-u", "kibotos-ctrl", "--", "id", "-un"}, out: `kibotos-ctrl\n`},
		{name: "no such user", on: "ctrl", argv: []string{"sudo", "-n", "-u", "nobody-here", "--", "true"}, exit: 1, err: `.*unknown user.*`},
		{name: "audit", on: "node", argv: []string{"dpkg", "--audit"}, out: ``},
		{name: "packages", on: "node", argv: append(query, "kibotos-ctrl", "kibotos-node", "kibo-agent"), exit: 1,
			out: `(kibotos-node\t` + from + `\tinstalled\tinstall\n|kibo-agent\t[^\t\n]+\tinstalled\tinstall\n){2}`,
			err: `dpkg-query: no packages found matching kibotos-ctrl\n`},
		{name: "version", on: "node", argv: []string{"/usr/bin/kibotos-node", "version", "--json"},
			out: `\{"name":"kibotos-node","version":"` + from + `","revision":"[0-9a-f]+","standIn":true\}\n`},
		{name: "unit", on: "node", argv: []string{"systemctl", "show", "--no-pager", "-p", "Id,LoadState,ActiveState,SubState,MainPID,Result", "kibotos-node.service"},
			out: `(MainPID=[1-9][0-9]*\n|Result=success\n|Id=kibotos-node.service\n|LoadState=loaded\n|ActiveState=active\n|SubState=running\n){6}`},
		{name: "unit that is not there", on: "node", argv: []string{"systemctl", "show", "-p", "LoadState,ActiveState", "kibotos-nothing.service"},
			out: `(LoadState=not-found\n|ActiveState=inactive\n){2}`},
		{name: "value", on: "node", argv: []string{"systemctl", "show", "-p", "ActiveState", "--value", "kibotos-node.service"}, out: `active\n`},
		{name: "is active", on: "node", argv: []string{"systemctl", "is-active", "kibotos-node.service"}, out: `active\n`},
		{name: "is not active", on: "node", argv: []string{"systemctl", "is-active", "kibotos-ctrl.service"}, exit: 3, also: 4, out: `inactive\n`},
		{name: "no vm", on: "gw", argv: []string{"systemctl", "show", "-p", "Id,ActiveState,MainPID,ExecMainStartTimestampMonotonic", "kibotos-vmm-*.service"}, out: ``},
		{name: "vms", on: "node", argv: []string{"systemctl", "show", "-p", "Id,ActiveState,MainPID,ExecMainStartTimestampMonotonic", "kibotos-vmm-*.service"},
			out: `((MainPID=[1-9][0-9]*\n|ExecMainStartTimestampMonotonic=[1-9][0-9]*\n|Id=kibotos-vmm-.*\.service\n|ActiveState=active\n){4}\n?)+`},
		{name: "runtime", on: "node", argv: []string{"cat", "/var/lib/dpkg/info/kibotos-node.md5sums"}, out: `(.*\n)?[0-9a-f]{32}  usr/lib/kibotos/node/runtime.json\n.*`},
		{name: "space", on: "node", argv: []string{"df", "-B1", "--output=target,avail,itotal,iavail", "/var/lib", "/usr"},
			out: `Mounted on +Avail +Inodes +IFree\n(/[^ ]* +[0-9]+ +[0-9]+ +[0-9]+\n){2}`},
		{name: "space of nothing", on: "node", argv: []string{"df", "-B1", "--output=target,avail", "/no/such/place"}, exit: 1, err: `df: /no/such/place: No such file or directory\n`},
		{name: "nodes", on: "ctrl", argv: []string{"kibo", "node", "list"}, out: `NAME +STATE +RELEASE +INSTANCES +COMMANDS +TRANSFERS\n.*` + f.NodeName + ` +READY +` + from + ` .*`},
		{name: "agent", on: "node", argv: sudo("kibo-agent", "status", "--output", "json"), out: `\{.*"open":false.*"code":"missing".*\}\n`},
		{name: "unknown command", on: "node", argv: []string{"no-such-program-here"}, exit: 127, err: `.*no-such-program-here: (command )?not found\n`},
		{name: "unknown command as root", on: "node", argv: sudo("no-such-program-here"), exit: 1, err: `sudo: no-such-program-here: command not found\n`},
		{name: "preview", on: "node", argv: sudo("/usr/bin/kibotos-node", "check-upgrade", "--preview", "--config", "/etc/kibotos/node/config.toml", "--runtime-dir", "/usr/lib/kibotos/node"),
			out: `.*summary: 0 blocker\(s\)\n`},
		{name: "full check of a running node", on: "node", argv: sudo("/usr/bin/kibotos-node", "check-upgrade", "--config", "/etc/kibotos/node/config.toml", "--runtime-dir", "/usr/lib/kibotos/node"), exit: 1,
			out: `.*\[blocker\] lock: .*`},
	}
}

// files are the commands that staging is made of.
func files() []step {
	const dir = "/var/lib/kibo-rollout/conformance"
	return []step{
		{name: "parents", on: "node", argv: sudo("mkdir", "-p", "-m", "0755", dir)},
		{name: "parents again", on: "node", argv: sudo("mkdir", "-p", "-m", "0755", dir)},
		{name: "directory is there", on: "node", argv: sudo("mkdir", "-m", "0755", dir), exit: 1, err: `mkdir: cannot create directory .*: File exists\n`},
		{name: "not as the login user", on: "node", argv: []string{"mkdir", "-m", "0755", dir + "/mine"}, exit: 1, err: `mkdir: cannot create directory .*: Permission denied\n`},
		{name: "upload", on: "node", argv: []string{"dd", "of=/tmp/conformance-upload", "conv=fsync", "status=none"}, stdin: "hello\n"},
		{name: "install", on: "node", argv: sudo("install", "-o", "root", "-g", "root", "-m", "0644", "/tmp/conformance-upload", dir+"/file")},
		{name: "owner and mode", on: "node", argv: []string{"stat", "-c", "%U:%G %a", dir + "/file"}, out: `root:root 644\n`},
		{name: "checksum", on: "node", argv: []string{"sha256sum", dir + "/file"}, out: `5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03  ` + dir + `/file\n`},
		{name: "checksum of nothing", on: "node", argv: []string{"sha256sum", dir + "/nothing"}, exit: 1, err: `sha256sum: .*/nothing: No such file or directory\n`},
		{name: "touch", on: "node", argv: sudo("touch", dir+"/complete")},
		{name: "there", on: "node", argv: sudo("test", "-e", dir+"/complete")},
		{name: "not there", on: "node", argv: sudo("test", "-e", dir+"/nothing"), exit: 1},
		{name: "copy", on: "node", argv: sudo("cp", "-p", dir+"/file", dir+"/copy")},
		{name: "content", on: "node", argv: []string{"cat", dir + "/copy"}, out: `hello\n`},
		{name: "content of nothing", on: "node", argv: []string{"cat", dir + "/nothing"}, exit: 1, err: `cat: .*/nothing: No such file or directory\n`},
		{name: "move", on: "node", argv: sudo("mv", "-f", dir+"/copy", dir+"/moved")},
		{name: "remove", on: "node", argv: sudo("rm", "-f", dir+"/moved")},
		{name: "remove nothing", on: "node", argv: sudo("rm", "-f", dir+"/moved")},
		{name: "not a directory", on: "node", argv: sudo("rm", "-f", dir), exit: 1, err: `rm: cannot remove .*: Is a directory\n`},
		{name: "remove tree", on: "node", argv: sudo("rm", "-rf", "--", dir)},
		{name: "gone", on: "node", argv: sudo("test", "-e", dir), exit: 1},
		{name: "remove upload", on: "node", argv: []string{"rm", "-f", "/tmp/conformance-upload"}},
		{name: "script", on: "node", argv: []string{"/bin/sh", "-s", "--", "a b", "c"}, stdin: "for w; do printf '<%s>' \"$w\"; done\nread x\nrest\necho \"$x\"\nexit 3\n", exit: 3},
		{name: "text", on: "node", argv: []string{"sh", "-c", `printf '%s|' "$0" "$@"`, "name", "it's", "*"}, out: `name\|it's\|\*\|`},
	}
}

// staging is the preparation of a target by its package file (K10, K12).
func (f Fleet) staging() []step {
	const dir = "/var/lib/kibo-rollout/conformance-stage"
	deb := string(f.Debs["node"])
	return []step{
		{name: "directory", on: "node", argv: sudo("mkdir", "-p", "-m", "0755", dir)},
		{name: "upload", on: "node", argv: sudo("dd", "of="+dir+"/node.deb", "conv=fsync", "status=none"), stdin: deb},
		{name: "control data", on: "node", argv: []string{"dpkg-deb", "-f", dir + "/node.deb", "Package", "Version", "Architecture"},
			out: `Package: kibotos-node\nVersion: ` + regexp.QuoteMeta(f.To) + `\nArchitecture: amd64\n`},
		{name: "unpack", on: "node", argv: sudo("dpkg-deb", "-x", dir+"/node.deb", dir+"/next-node")},
		{name: "version", on: "node", argv: []string{dir + "/next-node/usr/bin/kibotos-node", "version", "--json"},
			out: `\{"name":"kibotos-node","version":"` + regexp.QuoteMeta(f.To) + `".*`},
		{name: "preview", on: "node", argv: sudo(dir+"/next-node/usr/bin/kibotos-node", "check-upgrade", "--preview", "--config", "/etc/kibotos/node/config.toml",
			"--runtime-dir", dir+"/next-node/usr/lib/kibotos/node"), out: `.*summary: 0 blocker\(s\)\n`},
		{name: "cut off", on: "node", argv: sudo("dd", "of="+dir+"/cut.deb", "conv=fsync", "status=none"), stdin: deb[:len(deb)*2/3]},
		{name: "unpack what was cut off", on: "node", argv: sudo("dpkg-deb", "-x", dir+"/cut.deb", dir+"/next-cut"), exit: 2},
		{name: "unpack what is no package", on: "node", argv: sudo("dpkg-deb", "-x", "/etc/machine-id", dir+"/next-no"), exit: 2},
		{name: "remove", on: "node", argv: sudo("rm", "-rf", "--", dir)},
	}
}

// journal is what a run leaves on the ctrl host, and the fleet's lock.
func journal() []step {
	const dir = "/var/lib/kibo-rollout/runs/conformance"
	line := func(name, text string) step {
		return step{name: name, on: "ctrl", argv: sudo("dd", "of="+dir+"/journal.jsonl", "oflag=append", "conv=notrunc,fsync", "status=none"), stdin: text}
	}
	lock := []string{"flock", "--nonblock", "--conflict-exit-code", "7", "/var/lib/kibo-rollout/conformance.lock"}
	return []step{
		{name: "directory", on: "ctrl", argv: sudo("mkdir", "-p", "-m", "0755", dir)},
		line("first line", "{\"a\":1}\n"),
		line("second line", "{\"b\":2}\n"),
		{name: "read", on: "ctrl", argv: []string{"cat", dir + "/journal.jsonl"}, out: `\{"a":1\}\n\{"b":2\}\n`},
		{name: "remove", on: "ctrl", argv: sudo("rm", "-f", dir+"/journal.jsonl")},
		{name: "lock", on: "ctrl", argv: sudo(append(lock, "-c", "echo held; cat > /dev/null")...), stdin: "x", out: `held\n`},
		{name: "lock with words", on: "ctrl", argv: sudo(append(lock, "sh", "-c", `echo "$1"; cat > /dev/null`, "kibo-lock", "by me")...), out: `by me\n`},
		{name: "lock that is held", on: "ctrl", exit: 7,
			argv: sudo(append(lock, append([]string{"sh", "-c", `"$@"`, "kibo-lock"}, append(lock, "true")...)...)...)},
	}
}
