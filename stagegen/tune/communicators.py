"""The communicators to tune for: all ranks, named groups of them, and numbers of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from stagegen.catalogue import groups_of
from stagegen.errors import InputError
from stagegen.schedule import depth_first_ranks
from stagegen.topology import RankMap, Topology

T = TypeVar("T")


@dataclass(frozen=True)
class Communicator:
    """Ranks that collectives are measured on.

    Attributes:
        name: as it is asked for: `whole`, a group's name, `per-switch`, `8`.
        ranks: of the topology; they are numbered in this order.
        group: 0 for the whole cluster, k for its k-th group, else None.
        one_host: whether all ranks share one host.
    """

    name: str
    ranks: tuple[int, ...]
    group: int | None = None
    one_host: bool = False

    @property
    def table(self) -> str | None:
        """The name of the tables that serve only these ranks; None if there are none."""
        if self.group is None:
            return None
        return f"group {self.name}" if self.group else "cluster"


def as_seen_by(topology: Topology, communicator: Communicator) -> Topology:
    """Return the cluster with the ranks of a communicator only, numbered from 0."""
    if communicator.group == 0:
        return topology
    hosts = tuple(topology.ranks[rank] for rank in communicator.ranks)
    return replace(topology, rank_map=RankMap("list", hosts))


def default_names(topology: Topology) -> tuple[str, ...]:
    """Return the names of the default communicators: the whole and the named groups."""
    return tuple(group.name for group in groups_of(topology))


def find_communicators(topology: Topology, names: Sequence[str]) -> tuple[Communicator, ...]:
    """Return the communicators of these names, in this order, each once.

    Raises:
        InputError: a name is unknown, or its communicator has fewer than 2 ranks.
    """
    found = (_find(topology, name) for name in dict.fromkeys(names))
    return tuple(replace(one, one_host=_hosts_of(topology, one) == 1) for one in found)


def _hosts_of(topology: Topology, communicator: Communicator) -> int:
    return len({topology.ranks[rank] for rank in communicator.ranks})


def _find(topology: Topology, name: str) -> Communicator:
    order = depth_first_ranks(topology)
    groups = _groups(topology)
    if name in groups:
        return groups[name]
    if name in _GENERIC:
        ranks = _GENERIC[name](topology, order)
    elif name.isdecimal() and 2 <= int(name) < len(order):
        ranks = _spread(order, int(name))
    else:
        known = ", ".join([*groups, *_GENERIC])
        raise InputError(
            f"unknown communicator '{name}'; choose from {known}, or a number from 2 to "
            f"{len(order) - 1}"
        )
    if len(ranks) < 2:
        raise InputError(f"the communicator {name} has {len(ranks)} rank, but needs at least 2")
    return Communicator(name, tuple(sorted(ranks)))


def _groups(topology: Topology) -> Mapping[str, Communicator]:
    """Return the whole cluster and the groups of the topology file, by name."""
    found = {}
    for number, group in enumerate(groups_of(topology)):
        hosts = set(group.topology.ranks)
        ranks = (rank for rank, host in enumerate(topology.ranks) if host in hosts)
        found[group.name] = Communicator(group.name, tuple(ranks), number)
    return found


def _spread(order: Sequence[int], count: int) -> list[int]:
    """Return ``count`` ranks, spread evenly over the depth-first order."""
    return [order[place * len(order) // count] for place in range(count)]


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
