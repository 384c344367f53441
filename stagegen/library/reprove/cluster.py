"""Compares ``cluster.c``, by which a library finds its place, with the folder's topology."""

from __future__ import annotations

import re
from pathlib import Path

from stagegen.errors import InputError, ScheduleError
from stagegen.library.reprove.source import number, numbers, only, read_source, rows_of
from stagegen.topology import Topology

_HOST = re.compile(r'\{"([^"\\]*)", "([^"\\]*)"\},\s*')


def check_cluster(topology: Topology, path: Path) -> None:
    """Check that ``cluster.c`` is of a topology: its hosts, and the host of every position.

    Raises:
        InputError: there is no such file.
        ScheduleError: it is of another; says in what.
    """
    if not path.is_file():
        raise InputError("not a generated folder: src/ has no cluster.c", path.parent.parent)
    code = read_source(path)
    hosts = [(host.name, host.address or host.name) for host in topology.hosts]
    index = {name: at for at, (name, _) in enumerate(hosts)}
    wanted = {
        "coll_cluster_name": topology.name,
        "coll_cluster_hash": topology.hash,
        "coll_cluster_size": topology.rank_count,
        "hosts[]": hosts,
        "host_of_position[]": [index[name] for name in topology.ranks],
    }
    try:
        told = _told(code)
    except ScheduleError as error:
        raise ScheduleError(f"{path}: {error}") from error
    for name, value in wanted.items():
        if told[name] != value:
            raise ScheduleError(f"{path}: {name} is not what topology.yaml says")


def _told(code: str) -> dict[str, object]:
    """Return what the file says of the cluster."""
    text = r'^const char \*const {} =\s+"([^"\\]*)";$'
    name, digest = (
        only("(?m)" + text.format(of), code, of)[1]
        for of in ("coll_cluster_name", "coll_cluster_hash")
    )
    size = only(r"(?m)^const int coll_cluster_size = (\w+);$", code, "coll_cluster_size")[1]
    hosts = only(r"(?m)^\} hosts\[\] = \{(.*?)^\};$", code, "hosts[]")[1]
    only(r"(?m)^enum \{ HOSTS = sizeof hosts / sizeof hosts\[0\] \};$", code, "HOSTS")
    positions = r"(?m)^static const int host_of_position\[\] = \{([^{}]*)\};$"
    return {
        "coll_cluster_name": name,
        "coll_cluster_hash": digest,
        "coll_cluster_size": number(size),
        "hosts[]": [(row[1], row[2]) for row in rows_of("hosts", hosts, _HOST)],
        "host_of_position[]": list(
            numbers("host_of_position", only(positions, code, "host_of_position[]")[1])
        ),
    }
