"""``stagegen topology``: what a topology file says, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import click

from stagegen.cli._options import columns, format_option, print_json, to_size, topology_option
from stagegen.schedule.bounds import COLLECTIVES, Bound, lower_bound, physical_edges
from stagegen.schedule.root import RootedView, rooted_view
from stagegen.topology import Edge, Topology, format_bandwidth, load_topology


@click.group()
def command() -> None:
    """Look at a topology file."""


@command.command()
@topology_option
@format_option
@click.option(
    "--size", callback=to_size, metavar="SIZE", help="Show lower bounds for it, such as 64KiB."
)
def show(topology_file: str, output_format: str, size: int | None) -> None:
    """Show hosts, ranks, loads, the root and, for a size, the lower bounds.

    A size is per pair of ranks for alltoall, per rank for allgather, of the buffer for bcast.
    """
    topology = load_topology(topology_file)
    view = rooted_view(topology)
    bounds = [] if size is None else [lower_bound(topology, name, size) for name in COLLECTIVES]
    if output_format == "json":
        print_json(_form(topology, view, bounds))
    else:
        click.echo("\n".join(_text(topology, view, bounds)))


def _loads(topology: Topology) -> dict[Edge, int]:
    """Return the load of an alltoall on every directed edge of the network that is in use."""
    return {edge: before * beyond for edge, before, beyond in physical_edges(topology)}


def _capacity(topology: Topology, edge: Edge) -> int | float:
    """Return how many times as fast as the slowest host link an edge is."""
    used = set(topology.ranks)
    slowest = min(host.bandwidth for host in topology.hosts if host.name in used)
    ratio = Fraction(topology.rates[edge], slowest)
    return int(ratio) if ratio.denominator == 1 else float(ratio)


def _bottleneck(loads: dict[Edge, int]) -> list[Edge]:
    most = max(loads.values(), default=0)
    return [edge for edge, load in loads.items() if load == most]


def _form(topology: Topology, view: RootedView, bounds: list[Bound]) -> dict[str, Any]:
    loads = _loads(topology)
    form = {
        **topology.to_json(),
        "hash": topology.hash,
        "edges": [
            {
                "edge": list(edge),
                "load": load,
                "capacity": _capacity(topology, edge),
                "bandwidth": topology.rates[edge],
                "latency": topology.latencies[edge],
            }
            for edge, load in loads.items()
        ],
        "bottleneck": [list(edge) for edge in _bottleneck(loads)],
        "bound_phases": view.bottleneck,
        "root": view.root,
        "subtrees": [list(subtree) for subtree in view.subtrees],
    }
    if bounds:
        form["size"] = bounds[0].size
        form["bounds"] = {bound.collective: bound.to_json() for bound in bounds}
    return form


def _text(topology: Topology, view: RootedView, bounds: list[Bound]) -> Iterator[str]:
    loads = _loads(topology)
    bottleneck = ", ".join(f"{one}→{other}" for one, other in _bottleneck(loads)[:4])
    yield (
        f"{topology.name}: {topology.rank_count} ranks ({topology.rank_map.order}), "
        f"{len(topology.hosts)} hosts, {len(topology.switches)} switches"
    )
    yield f"hash {topology.hash}"
    yield f"launcher {topology.launcher or 'not given'}"
    yield (
        f"alltoall: {view.bottleneck} phases around root {view.root}; "
        f"bottleneck {bottleneck or 'none'}{', …' if len(_bottleneck(loads)) > 4 else ''}"
    )
    yield from ("", *columns(_switch_rows(topology)))
    yield from ("", *columns(_link_rows(topology, loads)))
    if topology.blocked:
        yield "blocked by the spanning tree: " + ", ".join(
            f"{one}–{other}" for one, other in (link.ends for link in topology.blocked)
        )
    if bounds:
        yield from ("", *columns(_bound_rows(bounds)))


def _switch_rows(topology: Topology) -> Iterator[tuple[str, ...]]:
    ranks_of: dict[str, list[str]] = {}
    for rank, host in enumerate(topology.ranks):
        ranks_of.setdefault(host, []).append(str(rank))
    yield "switch", "hosts (ranks)"
    for switch in topology.switches:
        hosts = (f"{host} ({' '.join(ranks_of.get(host, ['-']))})" for host in switch.hosts)
        yield switch.name, ", ".join(hosts) or "-"


def _link_rows(topology: Topology, loads: dict[Edge, int]) -> Iterator[tuple[str, ...]]:
    """Yield one row for each link between switches, and one for each kind of host link."""
    yield "link", "rate", "alltoall load", "capacity"
    kinds: dict[tuple[int, int], list[str]] = {}
    for edge, load in loads.items():
        host = topology.host_by_name.get(edge[0])
        if host is not None:
            kinds.setdefault((host.bandwidth, load), []).append(host.name)
    for link in topology.links:
        load = loads.get(link.ends, 0)
        yield _link_row(topology, f"{link.ends[0]}–{link.ends[1]}", link.ends, load)
    for (_, load), names in kinds.items():
        host = topology.host_by_name[names[0]]
        name = f"{len(names)} host links" if len(names) > 1 else f"{host.name}–{host.switch}"
        yield _link_row(topology, name, (host.name, host.switch), load)


def _link_row(topology: Topology, name: str, edge: Edge, load: int) -> tuple[str, ...]:
    rate = format_bandwidth(topology.rates[edge])
    return name, rate, str(load), f"{_capacity(topology, edge):g}"


def _bound_rows(bounds: list[Bound]) -> Iterator[tuple[str, ...]]:
    yield f"lower bound for {bounds[0].size} bytes", "", "", ""
    for bound in bounds:
        edge = "none" if bound.edge is None else f"{bound.edge[0]}→{bound.edge[1]}"
        yield bound.collective, f"{bound.seconds * 1e3:.6g} ms", bound.formula, f"at {edge}"
