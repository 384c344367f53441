"""What a recorded program calls, as a histogram of calls that tuning reads.

The form is that of the file of ``LIBCOLL_TRACE=json:FILE``, except for the routines, which a
recording does not know. Only the time of the operations counts: no table shortens the waiting for a
late rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stagegen import __version__
from stagegen.catalogue import load_catalogue
from stagegen.recording import read
from stagegen.recording.profile import Profile, Row, profile_of
from stagegen.topology import Topology
from stagegen.topology.host_names import host_named
from stagegen.tune.candidates import INT_MOST
from stagegen.tune.decision import CLUSTER, GROUP, HOSTS, ONE_HOST, OTHER

#: The name in place of the routine, which is unknown.
UNKNOWN = "unknown"


def trace_form(profile: Profile, topology: Topology) -> dict[str, Any]:
    """Return the histogram of a profile for a cluster, in the form of the file."""
    return {
        "version": 1,
        "library": __version__,
        "cluster": topology.name,
        "topology_hash": topology.hash,
        "left_out": 0,
        "calls": list(_calls(profile, topology)),
    }


def recorded_form(path: Path, topology: Topology) -> dict[str, Any]:
    """Return the histogram of a recording.

    Raises:
        InputError: the file is no recording, or is damaged.
    """
    return trace_form(profile_of(read(path)), topology)


def _calls(profile: Profile, topology: Topology) -> Iterator[dict[str, Any]]:
    """Yield an entry for each collective, kind of communicator, and size.

    Calls that no routine of the catalogue serves are of the kind that no table serves.
    """
    known = {one.name for one in load_catalogue().descriptions}
    for row in profile.by_hosts:
        if row.ranks > 1:
            is_tunable = row.collective in known and row.size <= INT_MOST
            kind, hosts = _kind(row, topology) if is_tunable else (OTHER, None)
            yield {
                "collective": row.collective,
                "communicator": kind,
                "ranks": row.ranks,
                "hosts": hosts,
                "bytes": row.size,
                "routine": UNKNOWN,
                "calls": row.calls,
                "seconds": row.operation,
            }


def _kind(row: Row, topology: Topology) -> tuple[str, int | None]:
    """Return the kind of table that serves such communicators, and their hosts if known.

    No table serves intercommunicators.
    """
    if row.is_inter:
        return OTHER, None
    names = {host_named(topology, name) for name in row.host_names}
    if None in names:
        return (ONE_HOST, 1) if row.hosts == 1 else (OTHER, None)
    for kind, hosts in _with_tables(topology):
        ranks = sum(host in hosts for host in topology.ranks)
        if row.ranks == ranks and names == hosts:
            return kind, row.hosts
    return (ONE_HOST if row.hosts == 1 else HOSTS), row.hosts


def _with_tables(topology: Topology) -> Iterator[tuple[str, set[str]]]:
    """Yield the kinds of table that are for all ranks of certain hosts, and these hosts."""
    yield CLUSTER, set(topology.ranks)
    for group in topology.groups:
        yield f"{GROUP} {group.name}", set(group.hosts)
