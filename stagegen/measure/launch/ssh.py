"""What the launchers over ssh share: how hosts are reached, and how long they may take."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from stagegen.topology import Topology

#: For every ssh: nobody is there to type a password, and a host that is down costs seconds.
SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=20"


def addresses(topology: Topology, hosts: Sequence[str]) -> list[str]:
    """Return where ssh reaches these hosts: their address in the topology, else their name."""
    return [topology.host_by_name[name].address or name for name in hosts]


def unresolved(topology: Topology) -> list[str]:
    """Return the addresses of hosts with ranks that no name service knows, in file order."""
    return [one for one in addresses(topology, _used(topology)) if not _resolves(one)]


def _used(topology: Topology) -> list[str]:
    return [host.name for host in topology.hosts if host.name in topology.ranks]


def why_unresolved(topology: Topology) -> str | None:
    """Return which hosts have no known address and what would help; None if all have one."""
    of_ip6 = [address for address in addresses(topology, _used(topology)) if ":" in address]
    if of_ip6:
        problem = f"mpiexec takes what follows the colon of {of_ip6[0]} for a number of ranks"
        return f"{problem}; give the host a name in /etc/hosts, and write that"
    missing = unresolved(topology)
    if not missing:
        return None
    shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
    return f"no address is known for {shown}; give hosts an `address:` in the topology"


def _resolves(address: str) -> bool:
    name = address.rpartition("@")[2]
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):  # the latter: a label is empty or too long
        return False
    return True
