# Runs one host's container, and again when the host asked for a reboot (nspawn then ends with 133).
# $1 and $2: control groups of this loop and of the container. The rest: nspawn and its arguments.
echo $$ >"$1/cgroup.procs" || exit 1
group=$2
shift 2
while :; do
	/bin/sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' kibo-lab-host "$group" "$@"
	[ $? -eq 133 ] || exit 0
done
