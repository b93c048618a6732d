// Package standin is a stand-in for Kibotos: small programs that obey the rules of a Kibotos
// upgrade (K1-K64), so that upgrades can be tried without the real thing. A result with the
// stand-in is never a result with Kibotos.
//
// The logic here knows its surroundings only as an [Env]; hostenv runs it as real processes on a
// Debian host, memenv runs it in memory for a simulated fleet. Entry points are [Main] for
// commands that end, and [CtrlStart], [NodeStart] and [GatewayStart] for services.
//
// # Commands
//
// Beside the documented commands (version [--json], check-upgrade, check-maintenance, migrate, kibo node
// list|drain|cancel-drain) there are some that only a stand-in needs:
//
//	kibotos-ctrl standin-seed [--config F] [--workspaces N]  there are N Workspaces with a Launch
//	kibotos-node standin-seed [--config F] [--instances N]   there are N Instances, each a VMM in its own unit
//	kibotos-node standin-stop [--config F] --instance I      the Workspace of Instance I is stopped by its operator
//	kibotos-node end-dataplane [--config F]                  ends the data plane; the package script's at a removal
//	kibo standin-session NODE                                where a new data-plane connection to NODE goes (K34)
//
// # Switches
//
// A file <state>/switches/<name> makes something go wrong. <state> is state_dir of the part's
// configuration, /var/lib/kibotos/ctrl or /var/lib/kibotos/node by default. An empty file is on for
// every version; otherwise the first word decides: a SemVer limits it to the program of that
// version, a number is a count. A second and third word "until UNIXSECONDS" switch it off at that
// time by the host's clock.
//
//	part  name                  effect
//	ctrl  database-dirty        migration state is dirty (K28)
//	ctrl  database-newer        database is newer than the target (K28)
//	ctrl  database-older        database is older than the target's starting point (K28)
//	ctrl  pki-broken            PKI does not hold together
//	ctrl  templates-broken      the table form of the template catalogue is wrong
//	ctrl  launch-unreadable     the Launch of one Workspace cannot be read
//	ctrl  unfinished            so many unfinished objects (default 1) (K22)
//	ctrl  migrate-fails         migrate stops half-way and leaves the state dirty
//	node  record-unreadable     a binding record cannot be read (K64)
//	node  guest-out-of-range    an Instance's guest protocol is out of range (K43)
//	node  guest-lacks           guests lack a capability; only a notice (K44)
//	node  runtime-damaged       an Instance's runtime is damaged (K43)
//	node  runtime-out-of-range  an Instance's runtime cannot be driven (K43)
//	node  processes-left        a helper process of the node is still there
//	node  fail-adopt            no Instance can be adopted; their VMMs run on (K31)
//	node  command-running       so many running lifecycle commands (default 1)
//	node  transfer-running      so many unfinished Transfers (default 1)
//	node  detached-volume       so many detached Volumes (default 1): drain stays DRAINING (K42)
//	both  fail-start            the service fails to start
//	both  slow-start            the service takes so many seconds to start (default 10)
//	both  config-refused        the configuration is refused
package standin
