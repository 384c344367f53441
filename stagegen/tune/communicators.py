"""The communicators to tune for: all ranks, named groups of them, shapes, and numbers of ranks.

A scheduler hands out full hosts, mostly next to each other, with one rank on each or with one in
every slot. So unless told otherwise such jobs are tuned for, besides the whole and the groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from stagegen.catalogue import groups_of
from stagegen.errors import InputError
from stagegen.patterns import Pattern
from stagegen.schedule import depth_first_ranks
from stagegen.topology import WHOLE, RankMap, Topology
from stagegen.tune.shapes import Shape

T = TypeVar("T")

#: The prefix in the name of a communicator on which only calls of one pattern are made.
PATTERN = "pattern"


@dataclass(frozen=True)
class Communicator:
    """Ranks that collectives are measured on.

    Attributes:
        name: as it is asked for: `whole`, a group's name, `4x2`, `per-switch`, `8`.
        ranks: of the topology; they are numbered in this order.
        hosts: on how many hosts they are.
        group: 0 for the whole cluster, k for its k-th group, else None.
        pattern: the blocks that its ranks, all of the cluster or of a group, have for each other,
            if just calls of this pattern are tuned for; else None.
    """

    name: str
    ranks: tuple[int, ...]
    hosts: int
    group: int | None = None
    pattern: Pattern | None = None

    @property
    def shape(self) -> Shape:
        """How the ranks are spread."""
        return Shape.of(self.hosts, len(self.ranks))

    @property
    def table(self) -> str | None:
        """The name of the tables that serve only these ranks; None if there are none."""
        if self.pattern is not None:
            return self.name
        if self.group is None:
            return None
        return f"group {self.name}" if self.group else "cluster"

    @property
    def stands_for_others(self) -> bool:
        """Whether it has no tables of its own: its times make tables for all ranks of its shape."""
        return self.table is None


def as_seen_by(topology: Topology, communicator: Communicator) -> Topology:
    """Return the cluster with the ranks of a communicator only, numbered from 0."""
    if communicator.group == 0:
        return topology
    hosts = tuple(topology.ranks[rank] for rank in communicator.ranks)
    return replace(topology, rank_map=RankMap("list", hosts))


#: The numbers of hosts of the jobs that are tuned for by default, as parts of all hosts; besides
#: these, one host, pairs of hosts, and all hosts with one rank on each.
PARTS = (8, 4, 2)

_SHAPE = re.compile(r"([1-9]\d*)x([1-9]\d*)")


def is_job(name: str) -> bool:
    """Return whether a communicator's name is a shape or a number of ranks."""
    return bool(_SHAPE.fullmatch(name)) or name.isdigit()


def default_names(topology: Topology) -> tuple[str, ...]:
    """Return the names of the default communicators.

    They are the whole, the named groups, and the shapes of jobs (:func:`job_shapes`).
    """
    groups = (group.name for group in groups_of(topology))
    return (*groups, *map(str, job_shapes(topology)))


def job_shapes(topology: Topology) -> tuple[Shape, ...]:
    """Return the shapes of jobs on parts of the cluster, those with the most ranks first.

    They have 1, 2, ⅛, ¼ and ½ of the hosts, with one rank on each and with as many as all of them
    have slots; and all hosts with one rank. The shape of the whole cluster is left out. Without the
    job on one host, the native routine would serve ranks that share one, as nothing else is known.
    """
    counts = sorted(Counter(topology.ranks).values(), reverse=True)
    numbers = {1, 2, *(len(counts) // part for part in PARTS)}
    shapes = {
        Shape(hosts, ranks)
        for hosts in numbers
        if 1 <= hosts <= len(counts)
        for ranks in (1, counts[hosts - 1])
    }
    whole = Shape.of(len(counts), sum(counts))
    found = {one for one in shapes | {Shape(len(counts), 1)} if one.ranks > 1} - {whole}
    return tuple(sorted(found, key=lambda shape: (-shape.ranks, shape)))


def job_of(topology: Topology, shape: Shape) -> str | None:
    """Return the name of the job that is measured for a shape; None if there are too few hosts.

    If hosts have different numbers of ranks, too few of them may have the mean number, rounded up.
    Then the job has fewer ranks on each host.
    """
    for ranks in range(shape.ranks_per_host, 0, -1):
        if shape.hosts * ranks > 1 and _job(topology, Shape(shape.hosts, ranks)):
            return str(Shape(shape.hosts, ranks))
    return None


def find_communicators(
    topology: Topology, names: Sequence[str], patterns: Sequence[Pattern] = ()
) -> tuple[Communicator, ...]:
    """Return the communicators of these names, in this order, each once.

    Args:
        topology: the cluster.
        names: of the communicators; of a pattern, as :func:`name_of` has it.
        patterns: that names may name.

    Raises:
        InputError: a name is unknown, or its communicator has fewer than 2 ranks; a pattern is of a
            group that the topology lacks, or that has another number of ranks.
    """
    known = {name_of(pattern): pattern for pattern in patterns}
    return tuple(
        _with_pattern(topology, known[name]) if name in known else _find(topology, name)
        for name in dict.fromkeys(names)
    )


def name_of(pattern: Pattern) -> str:
    """Return the name of the communicator on which only calls of a pattern are made."""
    return f"{PATTERN} {pattern.name}"


def _with_pattern(topology: Topology, pattern: Pattern) -> Communicator:
    """Return the ranks of the cluster, or of a pattern's group, for its calls alone."""
    own = _groups(topology).get(pattern.group or WHOLE)
    if own is None:
        raise InputError(f"the topology has no group {pattern.group} of pattern {pattern.name!r}")
    if len(own.ranks) != pattern.ranks:
        whose = "the cluster" if pattern.group is None else f"the group {pattern.group}"
        counts = f"{pattern.ranks} ranks, but {whose} has {len(own.ranks)}"
        raise InputError(f"the pattern {pattern.name!r} has {counts}")
    return replace(own, name=name_of(pattern), pattern=pattern)


def ranks_of_groups(topology: Topology) -> Mapping[str, tuple[int, ...]]:
    """Return the ranks of the whole cluster and of each group of the topology file, by name."""
    return {name: one.ranks for name, one in _groups(topology).items()}


def _hosts_of(topology: Topology, ranks: Iterable[int]) -> int:
    return len({topology.ranks[rank] for rank in ranks})


def _find(topology: Topology, name: str) -> Communicator:
    order = depth_first_ranks(topology)
    groups = _groups(topology)
    if name in groups:
        return groups[name]
    if name in _GENERIC:
        ranks = _GENERIC[name](topology, order)
    elif (shape := _SHAPE.fullmatch(name)) and _job(topology, Shape(*map(int, shape.groups()))):
        ranks = _job(topology, Shape(*map(int, shape.groups())))
    elif name.isdecimal() and 2 <= int(name) < len(order):
        ranks = _spread(order, int(name))
    else:
        known = ", ".join([*groups, *_GENERIC])
        raise InputError(
            f"unknown communicator '{name}'; choose from {known}, or a number from 2 to "
            f"{len(order) - 1}, or a shape that fits into the cluster, such as 2x1"
        )
    if len(ranks) < 2:
        raise InputError(f"the communicator {name} has {len(ranks)} rank, but needs at least 2")
    return Communicator(name, tuple(sorted(ranks)), _hosts_of(topology, ranks))


def _groups(topology: Topology) -> Mapping[str, Communicator]:
    """Return the whole cluster and the groups of the topology file, by name."""
    found = {}
    for number, group in enumerate(groups_of(topology)):
        hosts = set(group.topology.ranks)
        ranks = [rank for rank, host in enumerate(topology.ranks) if host in hosts]
        found[group.name] = Communicator(group.name, tuple(ranks), len(hosts), number)
    return found


def _spread(order: Sequence[int], count: int) -> list[int]:
    """Return ``count`` ranks, spread evenly over the depth-first order."""
    return [order[place * len(order) // count] for place in range(count)]


def _job(topology: Topology, shape: Shape) -> list[int]:
    """Return the ranks of a job on the first hosts of the file that have enough; [] if too few."""
    on: dict[str, list[int]] = {}
    for rank, host in enumerate(topology.ranks):
        on.setdefault(host, []).append(rank)
    hosts = (on[host.name] for host in topology.hosts if host.name in on)
    enough = [
        ranks[: shape.ranks_per_host] for ranks in hosts if len(ranks) >= shape.ranks_per_host
    ]
    chosen = enough[: shape.hosts]
    return [rank for ranks in chosen for rank in ranks] if len(chosen) == shape.hosts else []


def _first_of_each(ranks: Iterable[int], key: Callable[[int], T]) -> list[int]:
    found: dict[T, int] = {}
    for rank in ranks:
        found.setdefault(key(rank), rank)
    return list(found.values())


def _per_switch(topology: Topology, order: Sequence[int]) -> list[int]:
    return _first_of_each(order, lambda rank: topology.host_by_name[topology.ranks[rank]].switch)


def _per_host(topology: Topology, order: Sequence[int]) -> list[int]:
    return _first_of_each(order, lambda rank: topology.ranks[rank])


def _half(_: Topology, order: Sequence[int]) -> list[int]:
    return list(order[::2])


_GENERIC: Mapping[str, Callable[[Topology, Sequence[int]], list[int]]] = {
    "per-switch": _per_switch,
    "per-host": _per_host,
    "half": _half,
}
