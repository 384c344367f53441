"""Which host of a topology a machine is, by the name that it has for itself."""

from __future__ import annotations

from stagegen.topology.model import Topology


def host_named(topology: Topology, name: str) -> str | None:
    """Return the host of that name; None if there is none, or if the name could be several's.

    It is the host whose whole name or address this is, else the only one with this first label,
    where one of both names has no further ones. Case does not count (RFC 4343). A generated library
    finds its host in the same way (``hosts.c``).
    """
    asked = name.lower()
    for host in topology.hosts:
        if asked in (host.name.lower(), (host.address or "").lower()):
            return host.name
    alike = [host.name for host in topology.hosts if _is_same_label(asked, host.name.lower())]
    return alike[0] if len(alike) == 1 else None


def _is_same_label(one: str, other: str) -> bool:
    is_one_short = "." not in one or "." not in other
    return is_one_short and one.partition(".")[0] == other.partition(".")[0]
