"""``stagegen topology``: what a topology file says, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import click

from stagegen.catalogue.collective import load_collectives, sizes_in_words
from stagegen.cli._group import hosts_option, load_group
from stagegen.cli._options import columns, format_option, print_json, to_size, topology_option
from stagegen.report.units import format_bytes, format_seconds
from stagegen.schedule.alltoall.capacity import bound_phases, edge_capacities
from stagegen.schedule.alltoall.phases.root import RootedView, rooted_view
from stagegen.schedule.bounds.lower import COLLECTIVES, Bound, lower_bound, physical_edges
from stagegen.topology import Edge, Topology, format_bandwidth
from stagegen.tune.bounds import bound_or_none

_EDGES_NAMED = 2
"""The most limiting edges that a line of text names."""


@dataclass(frozen=True)
class _EdgeLoad:
    """How an alltoall uses a directed edge of the network.

    Attributes:
        edge: by names.
        load: messages that cross it.
        capacity: how many it carries in a phase.
    """

    edge: Edge
    load: int
    capacity: Fraction


@dataclass(frozen=True)
class _Facts:
    """What follows from a topology."""

    topology: Topology
    view: RootedView
    phases: int
    loads: tuple[_EdgeLoad, ...]
    bounds: tuple[Bound, ...]

    @property
    def bottleneck(self) -> list[Edge]:
        """The edges with the largest load / capacity."""
        most = max((load.load / load.capacity for load in self.loads), default=0)
        return [load.edge for load in self.loads if load.load / load.capacity == most]


@click.group()
def command() -> None:
    """Inspect a topology file."""


_HELP = f"""\
Show hosts, ranks, loads, the root and, for a size, the lower bounds.

A size counts the bytes {sizes_in_words(load_collectives())}. Where
blocks may differ in length, the bounds are for blocks as even as possible.
"""


@command.command(help=_HELP)
@topology_option
@hosts_option
@format_option
@click.option(
    "--size", callback=to_size, metavar="SIZE", help="Show lower bounds for a size, such as 64KiB."
)
@click.option(
    "--root", type=int, metavar="RANK", help="Root of the bounds that have one; default: the best."
)
def show(
    topology_file: str, hosts: str | None, output_format: str, size: int | None, root: int | None
) -> None:
    """Show a topology, and what follows from it."""
    facts = _facts(load_group(topology_file, hosts), size, root)
    if output_format == "json":
        print_json(_form(facts))
    else:
        click.echo("\n".join(_text(facts)))


def _facts(topology: Topology, size: int | None, root: int | None) -> _Facts:
    names = topology.tree.names
    capacities = {
        (names[one], names[other]): capacity
        for (one, other), capacity in edge_capacities(topology).items()
    }
    bounds = () if size is None else tuple(_bounds(topology, size, root))
    return _Facts(
        topology=topology,
        view=rooted_view(topology),
        phases=bound_phases(topology),
        loads=tuple(
            _EdgeLoad(edge, before * beyond, capacities[edge])
            for edge, before, beyond in physical_edges(topology)
        ),
        bounds=bounds,
    )


def _bounds(topology: Topology, size: int, root: int | None) -> Iterator[Bound]:
    """Yield the bound of every collective that has one, also of those without a description."""
    described = {one.name: one for one in load_collectives()}
    for name in dict.fromkeys((*COLLECTIVES, *described)):
        if name not in described:
            yield lower_bound(topology, name, size, root)
        elif (bound := bound_or_none(topology, described[name], size, root)) is not None:
            yield bound


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _form(facts: _Facts) -> dict[str, Any]:
    topology = facts.topology
    form = {
        **topology.to_json(),
        "hash": topology.hash,
        "edges": [
            {
                "edge": list(load.edge),
                "load": load.load,
                "capacity": _number(load.capacity),
                "bandwidth": topology.rates[load.edge],
                "latency": topology.latencies[load.edge],
            }
            for load in facts.loads
        ],
        "bottleneck": [list(edge) for edge in facts.bottleneck],
        "bound_phases": facts.phases,
        "root": facts.view.root,
        "subtrees": [list(subtree) for subtree in facts.view.subtrees],
    }
    if facts.bounds:
        form["size"] = facts.bounds[0].size
        form["bounds"] = {bound.collective: bound.to_json() for bound in facts.bounds}
    return form


def _text(facts: _Facts) -> Iterator[str]:
    topology = facts.topology
    yield (
        f"{topology.name}: {topology.rank_count} ranks ({topology.rank_map.order}), "
        f"{len(topology.hosts)} hosts, {len(topology.switches)} switches"
    )
    yield f"hash {topology.hash}"
    yield f"launcher {topology.launcher or 'not given'}"
    yield (
        f"alltoall: at least {facts.phases} phases, around root {facts.view.root}; "
        f"bottleneck {_names(facts.bottleneck)}"
    )
    yield from ("", *columns(_switch_rows(topology)))
    yield from ("", *columns(_link_rows(facts)))
    if topology.groups:
        yield from ("", *columns(_group_rows(topology)))
    if topology.sites:
        yield from ("", *columns(_site_rows(topology)))
    if topology.blocked:
        yield "blocked by the spanning tree: " + ", ".join(
            f"{one}–{other}" for one, other in (link.ends for link in topology.blocked)
        )
    if facts.bounds:
        yield from ("", *columns(_bound_rows(facts.bounds)))


def _names(edges: tuple[Edge, ...] | list[Edge]) -> str:
    """Return the names of the first edges, with … if there are more."""
    named = [f"{one}→{other}" for one, other in edges[:_EDGES_NAMED]]
    return ", ".join(named + ["…"] * (len(edges) > _EDGES_NAMED)) or "none"


def _switch_rows(topology: Topology) -> Iterator[tuple[str, ...]]:
    ranks_of: dict[str, list[str]] = {}
    for rank, host in enumerate(topology.ranks):
        ranks_of.setdefault(host, []).append(str(rank))
    yield "switch", "hosts (ranks)"
    for switch in topology.switches:
        hosts = (f"{host} ({' '.join(ranks_of.get(host, ['-']))})" for host in switch.hosts)
        yield switch.name, ", ".join(hosts) or "-"


def _group_rows(topology: Topology) -> Iterator[tuple[str, ...]]:
    """Yield one row for each group: its ranks are numbered from 0 in the order of all ranks."""
    yield "group", "ranks", "hosts"
    for group in topology.groups:
        count = sum(host in group.hosts for host in topology.ranks)
        yield group.name, str(count), ", ".join(group.hosts)


def _site_rows(topology: Topology) -> Iterator[tuple[str, ...]]:
    """Yield one row for each site."""
    yield "site", "hosts", "ranks", "switches"
    numbers = topology.site_numbers
    for number, site in enumerate(topology.sites):
        hosts = sum(found == number for found in numbers.values())
        ranks = sum(numbers[host] == number for host in topology.ranks)
        yield site.name, str(hosts), str(ranks), ", ".join(site.switches)


def _link_rows(facts: _Facts) -> Iterator[tuple[str, ...]]:
    """Yield one row for each link between switches, and one for all host links that are alike."""
    topology = facts.topology
    yield "link", "rate", "alltoall load", "messages of a phase"
    loads = {load.edge: load for load in facts.loads}
    for link in topology.links:
        if link.ends in loads:
            yield _link_row(topology, f"{link.ends[0]}–{link.ends[1]}", loads[link.ends])
        else:
            yield f"{link.ends[0]}–{link.ends[1]}", format_bandwidth(link.rate), "0", "-"
    alike: dict[tuple[int, int, Fraction], list[_EdgeLoad]] = {}
    for load in facts.loads:
        if load.edge[0] in topology.host_by_name:
            key = topology.rates[load.edge], load.load, load.capacity
            alike.setdefault(key, []).append(load)
    for first, *others in alike.values():
        name = f"{len(others) + 1} host links" if others else "–".join(first.edge)
        yield _link_row(topology, name, first)


def _link_row(topology: Topology, name: str, load: _EdgeLoad) -> tuple[str, ...]:
    rate = format_bandwidth(topology.rates[load.edge])
    return name, rate, str(load.load), f"{_number(load.capacity):g}"


def _bound_rows(bounds: tuple[Bound, ...]) -> Iterator[tuple[str, ...]]:
    """Yield one row for all collectives with the same bound."""
    head = f"at least, for {format_bytes(bounds[0].size or 0)}"
    yield head, "data", "latency", "formula", "at", ""
    alike: dict[tuple[str, ...], list[str]] = {}
    for bound in bounds:
        times = format_seconds(bound.seconds), format_seconds(bound.latency_seconds)
        cells = (*times, bound.formula, _names(bound.edges), f"({bound.reference})")
        alike.setdefault(cells, []).append(bound.collective)
    for columns_after, collectives in alike.items():
        yield ", ".join(collectives), *columns_after
