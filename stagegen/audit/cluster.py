"""Compares ``cluster.c``, by which a library finds its place, with the folder's topology."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path

from stagegen.audit.c_text import number, numbers, only, read_source, rows_of
from stagegen.audit.rings_and_trees import around
from stagegen.errors import InputError, ScheduleError
from stagegen.schedule import Ring
from stagegen.schedule.verify import verify
from stagegen.topology import WHOLE, RankMap, Topology, restricted_to
from stagegen.topology.tree import RankTree

_HOST = re.compile(r'\{"([^"\\]*)", "([^"\\]*)"\},\s*')
_NAME = re.compile(r'"([^"\\]*)",\s*')
_COUNTS = ("coll_cluster_hosts", "coll_cluster_groups")
_TABLES = ("first_position", "host_of_position")
#: Words of errors: for an entry that is not there, and for the length of a table.
_NOTHING, _LONG = "nothing", "has a length of"
#: The most numbers of a table in an error.
_SHOWN = 8


def check_cluster(topology: Topology, path: Path) -> Ring:
    """Check that ``cluster.c`` matches a topology: its hosts, and the host of every position.

    Returns:
        The ring of the ranks in the depth-first order of the file.

    Raises:
        InputError: there is no such file.
        ScheduleError: it differs from the topology (says where), or its order is not depth-first.
    """
    if not path.is_file():
        raise InputError("not a generated folder: src/ has no cluster.c", path.parent.parent)
    code = read_source(path)
    try:
        told = _told(code)
        for name, value in _wanted(topology).items():
            if told[name] != value:
                raise ScheduleError(_disagreement(name, told[name], value))
        tables = [_table(code, name) for name in ("place_of_host", "depth_before_place")]
        order = _depth_first(topology, *tables)
        _check_places(topology, code, tables[0])
    except ScheduleError as error:
        raise ScheduleError(f"{path}: {error}") from error
    return order


def _disagreement(name: str, told: object, wanted: object, of: str = "") -> str:
    """Return the error of a constant or a table: what it has, what was expected, and where."""
    place = ""
    if isinstance(told, list | tuple) and isinstance(wanted, list | tuple):
        both = zip_longest(told, wanted, fillvalue=_NOTHING)
        at, (told, wanted) = next((at, pair) for at, pair in enumerate(both) if pair[0] != pair[1])
        place = f"[{at}]"
    return f"{name}{place} disagrees with topology.yaml: it {of or 'is'} {told}, expected {wanted}"


def _entry(table: tuple[int, ...], place: int) -> object:
    return table[place] if place < len(table) else _NOTHING


def _some(numbers: tuple[int, ...]) -> str:
    """Return the first numbers of a table, for an error."""
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return f"{shown}, …" if len(numbers) > _SHOWN else shown or _NOTHING


def _wanted(topology: Topology) -> dict[str, object]:
    hosts = [(host.name, host.address or host.name) for host in topology.hosts]
    groups = [topology, *(restricted_to(topology, group.hosts) for group in topology.groups)]
    index = {name: at for at, (name, _) in enumerate(hosts)}
    return {
        "coll_cluster_name": topology.name,
        "coll_cluster_hash": topology.hash,
        "coll_cluster_hosts": len(hosts),
        "coll_cluster_groups": len(groups),
        "hosts": hosts,
        "coll_cluster_group_names": [WHOLE, *(group.name for group in topology.groups)],
        "first_position": list(accumulate((g.rank_count for g in groups), initial=0)),
        "host_of_position": [index[name] for group in groups for name in group.ranks],
    }


def _told(code: str) -> dict[str, object]:
    """Return the file's description of the cluster."""
    text = r'^const char \*const {} =\s+"([^"\\]*)";$'
    texts = {
        name: only("(?m)" + text.format(name), code, name)[1]
        for name in ("coll_cluster_name", "coll_cluster_hash")
    }
    counts = {
        name: number(only(rf"(?m)^const int {name} = (\w+);$", code, name)[1]) for name in _COUNTS
    }
    hosts = only(r"(?m)^\} hosts\[\] = \{(.*?)^\};$", code, "hosts[]")[1]
    names = "coll_cluster_group_names"
    groups = only(rf"(?m)^const char \*const {names}\[\] = \{{(.*?)^\}};$", code, names)[1]
    return {
        **texts,
        **counts,
        "hosts": [(row[1], row[2]) for row in rows_of("hosts", hosts, _HOST)],
        names: [row[1] for row in rows_of(names, groups, _NAME)],
        **{name: list(_table(code, name)) for name in _TABLES},
    }


def _table(code: str, name: str) -> tuple[int, ...]:
    pattern = rf"(?m)^static const int {name}\[\] = \{{([^{{}}]*)\}};$"
    return numbers(name, only(pattern, code, f"{name}[]")[1])


def _check_places(topology: Topology, code: str, places: tuple[int, ...]) -> None:
    """Check which switch and site the host at each place has; a place may be wrong, or missing."""
    switches = [switch.name for switch in topology.switches if switch.hosts]
    site_of = {name: at for at, site in enumerate(topology.sites) for name in site.switches}
    told = {name: _table(code, name) for name in ("switch_of_place", "site_of_place")}
    for place, host in zip(places, topology.hosts, strict=False):
        wanted = {
            "switch_of_place": switches.index(host.switch),
            "site_of_place": site_of.get(host.switch, 0),
        }
        for name, value in wanted.items():
            length = len(told[name])
            if length != len(topology.hosts):
                raise ScheduleError(_disagreement(name, length, len(topology.hosts), _LONG))
            if told[name][place : place + 1] != (value,):
                problem = f"is {_entry(told[name], place)}, expected {value} for host {host.name}"
                raise ScheduleError(f"{name}[{place}] disagrees with topology.yaml: it {problem}")


def _depth_first(topology: Topology, places: tuple[int, ...], depths: tuple[int, ...]) -> Ring:
    """Return the ring of the ranks by their hosts' places, after proving the ring of all hosts.

    The ring uses every link once in each direction, so the hosts on each side of a link are
    consecutive, and so are those of any subset (``docs/theory.md``, Logical rings). The depths at
    which the paths to neighbours part are compared with the topology.
    """
    if sorted(places) != list(range(len(topology.hosts))):
        wanted = f"each of 0 to {len(topology.hosts) - 1} once"
        problem = f"it has {_some(places)}, expected {wanted}"
        raise ScheduleError(f"place_of_host[] does not have every place exactly once: {problem}")
    hosts = tuple(host.name for host in topology.hosts)
    order = tuple(sorted(range(len(hosts)), key=places.__getitem__))
    everyone = replace(topology, rank_map=RankMap("list", hosts))
    try:
        verify(everyone, around(everyone, order))
    except ScheduleError as error:
        raise ScheduleError(f"place_of_host[], with hosts as ranks: {error}") from error
    meetings = (0, *_meetings(everyone.tree, order))
    if depths != meetings:
        raise ScheduleError(_disagreement("depth_before_place", depths, meetings))
    place_of = dict(zip(hosts, places, strict=True))
    ranks = sorted(range(topology.rank_count), key=lambda rank: place_of[topology.ranks[rank]])
    return around(topology, tuple(ranks))


def _meetings(tree: RankTree, order: tuple[int, ...]) -> Iterator[int]:
    """Yield how many switches after the first one the paths to neighbours of an order share."""
    for pair in pairwise(order):
        one, other = (set(tree.node_path(order[0], rank)) for rank in pair)
        yield max(0, sum(tree.is_switch[node] for node in one & other) - 1)
