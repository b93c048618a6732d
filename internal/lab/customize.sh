#!/bin/sh
# Makes a fresh Debian root file system ($1) into a base for lab hosts. Part of the cache key.
set -eu
root=$1

# Everything that must differ between hosts is made a host at a time.
: >"$root/etc/machine-id"
rm -f "$root"/etc/ssh/ssh_host_* "$root/var/lib/dbus/machine-id"

# Hosts install local files only: no test may depend on a mirror.
rm -f "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/*

for user in ops ops-pw; do
	chroot "$root" useradd --create-home --shell /bin/sh "$user"
	install -d -o "$(stat -c %u "$root/home/$user")" -g "$(stat -c %g "$root/home/$user")" -m 0700 "$root/home/$user/.ssh"
done
echo 'ops-pw:kibo-lab-pw1' | chroot "$root" chpasswd
printf 'ops ALL=(ALL:ALL) NOPASSWD: ALL\nops-pw ALL=(ALL:ALL) ALL\n' >"$root/etc/sudoers.d/kibo-lab"
chmod 0440 "$root/etc/sudoers.d/kibo-lab"

# Nothing may start by itself in the middle of a test, and a container has no console to log in at.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
	systemd-tmpfiles-clean.timer console-getty.service getty.target e2scrub_reap.service; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
# From systemd 256 on this generator would open more doors for ssh than the one a host shall have.
mkdir -p "$root/etc/systemd/system-generators"
ln -sf /dev/null "$root/etc/systemd/system-generators/systemd-ssh-generator"
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n' >"$root/etc/systemd/journald.conf.d/kibo-lab.conf"
