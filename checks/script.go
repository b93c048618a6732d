package checks

// Names that the fixed scripts run under ($0). Their text may change, what they print may not: a simulated host can answer
// by the name.
const (
	UnitScriptName  = "kibo-unit"  // argument: a unit
	StageScriptName = "kibo-stage" // argument: a target's staging directory
)

// unitScript prints the unit's properties as `systemctl show` does, one KEY=VALUE a line, and then
//
//	Processes=N               in the unit's control group and below; "?" if control groups cannot be read
//	Exe=PATH                  what the main process runs, " (deleted)" behind it if the file was replaced; empty without one
//	ExecOverride=FILE         for each drop-in that sets ExecStart
//	Unreadable=FILE           for each drop-in that could not be looked into
//
// It counts also in the place where systemd would put the unit if systemd has let go of the group, because processes can be
// left in it. Only shell built-ins besides systemctl and readlink; no parameter ends up in a command's text.
const unitScript = `set -f
u=$1
s=$(TZ=UTC systemctl show --no-pager -p Id,LoadState,ActiveState,SubState,Result,MainPID,NRestarts,ActiveEnterTimestamp,ControlGroup,FragmentPath,DropInPaths "$u") || exit 1
printf '%s\n' "$s"
pid=0 cg= drop=
while IFS= read -r l; do
  case $l in
  MainPID=*) pid=${l#*=} ;;
  ControlGroup=*) cg=${l#*=} ;;
  DropInPaths=*) drop=${l#*=} ;;
  esac
done <<EOT
$s
EOT
[ -n "$cg" ] || cg=/system.slice/$u
n=? root=
for r in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
  if [ -d "$r/system.slice" ]; then
    n=0
    if [ -d "$r$cg" ]; then root=$r$cg; break; fi
  fi
done
if [ -n "$root" ]; then
  set +f
  for f in "$root"/cgroup.procs "$root"/*/cgroup.procs "$root"/*/*/cgroup.procs; do
    [ -r "$f" ] || continue
    while read -r p; do n=$((n+1)); done <"$f"
  done
  set -f
fi
printf 'Processes=%s\n' "$n"
exe=
[ "$pid" = 0 ] || exe=$(readlink "/proc/$pid/exe")
printf 'Exe=%s\n' "$exe"
for f in $drop; do
  if [ ! -r "$f" ]; then printf 'Unreadable=%s\n' "$f"; continue; fi
  while read -r l; do
    case $l in
    ExecStart=* | "ExecStart ="*) printf 'ExecOverride=%s\n' "$f"; break ;;
    esac
  done <"$f"
done
exit 0`

// stageScript prints what lies in a target's staging directory:
//
//	dir absent|present|other        other: a symbolic link or no directory; nothing more is printed then or if absent
//	beside NAME                     for everything else in the directory above
//	marker yes|no                   the file "complete"
//	sum SHA256 NAME                 for each *.deb; SHA256 is "-" if it could not be read
//	version PART EXIT TEXT          for each next-PART: its program's version --json on one line
const stageScript = `d=$1
for f in "${d%/*}"/*; do
  if [ "$f" != "$d" ]; then if [ -e "$f" ] || [ -L "$f" ]; then printf 'beside %s\n' "${f##*/}"; fi; fi
done
if [ -L "$d" ]; then echo 'dir other'; exit 0; fi
if [ ! -e "$d" ]; then echo 'dir absent'; exit 0; fi
if [ ! -d "$d" ]; then echo 'dir other'; exit 0; fi
echo 'dir present'
if [ -f "$d/complete" ]; then echo 'marker yes'; else echo 'marker no'; fi
for f in "$d"/*.deb; do
  [ -e "$f" ] || [ -L "$f" ] || continue
  s=$(sha256sum <"$f") || s=-
  printf 'sum %s %s\n' "${s%% *}" "${f##*/}"
done
set -f
for p in ctrl node e2b gw; do
  [ -d "$d/next-$p" ] || continue
  v=$("$d/next-$p/usr/bin/kibotos-$p" version --json 2>&1)
  r=$?
  printf 'version %s %s' "$p" "$r"
  printf ' %s' $v
  printf '\n'
done
exit 0`
