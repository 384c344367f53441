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
    used = [host.name for host in topology.hosts if host.name in topology.ranks]
    return [address for address in addresses(topology, used) if not _resolves(address)]


def why_unresolved(topology: Topology) -> str | None:
    """Return which hosts have no known address and what would help; None if all have one."""
    missing = unresolved(topology)
    if not missing:
        return None
    shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
    return f"no address is known for {shown}; give hosts an `address:` in the topology"


def _resolves(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True
