"""A configured tree: ranks side by side by their hosts, nodes above them, messages as lines."""

from __future__ import annotations

from collections.abc import Iterator

from stagegen.report.pictures.canvas import Canvas, counted, text_width
from stagegen.report.pictures.colours import ALARM, GROUPS, INK, LINE, SOFT
from stagegen.schedule.verify import facts_of
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree
from stagegen.trees.model import Contributor

_MARGIN = 0.35
_STEP = 0.42
"""From one rank to the next."""
_LEVEL = 0.85
"""From one level of nodes to the next."""
_RADIUS = 0.13
_BEHIND = {"facecolor": "white", "linewidth": 0, "pad": 0.6, "alpha": 0.85}
"""Keeps lines off a label."""


def configured_picture(topology: Topology, tree: ConfiguredTree) -> Canvas:
    """Return the picture of a configured tree.

    A node stands where its contributors are, and has the colour of the host that does its work.
    """
    places = {rank: place for place, rank in enumerate(_leaves(tree, tree.root.name))}
    across = {rank: _MARGIN + 0.25 + place * _STEP for rank, place in places.items()}
    facts = facts_of(topology, tree.rows)
    title = f"Tree {tree.name} on {topology.name}"
    about = (
        f"{counted(len(tree.nodes), 'node')} in {counted(facts.height, 'level')}; up "
        f"{facts.up} messages, {facts.up_between} between hosts; down {facts.down}, "
        f"{facts.down_between} between hosts."
    )
    legend = "A node: its name, and the rank that does its work, in the colour of that rank's host."
    lines = "Lines: thick between hosts, thin within a host, grey where no message is needed."
    width = max(
        2 * _MARGIN + 0.5 + (len(places) - 1) * _STEP,
        0.4 + max(text_width(text, 8) for text in (about, legend, lines)),
    )
    base = 0.95
    canvas = Canvas(width, base + (1 + tree.height) * _LEVEL + 0.75)
    canvas.title(title, about, legend, lines)
    hosts = list(dict.fromkeys(topology.ranks))
    colour = {host: GROUPS[number % len(GROUPS)] for number, host in enumerate(hosts)}
    x: dict[Contributor, float] = {}
    x.update(across.items())
    y: dict[Contributor, float] = dict.fromkeys(places, base)
    for node in tree.nodes:
        ends = [x[one] for one in node.contributors]
        x[node.name] = (min(ends) + max(ends)) / 2
        y[node.name] = base + (tree.height - tree.depth[node.name]) * _LEVEL
    for node in tree.nodes:
        for one in node.contributors:
            giver = tree.worker_of(one)
            style = {"color": LINE, "linewidth": 1.0}
            if giver != node.worker:
                between = topology.ranks[giver] != topology.ranks[node.worker]
                style = {"color": ALARM if between else INK, "linewidth": 2.2 if between else 1.0}
            canvas.line([x[one], x[node.name]], [y[one], y[node.name]], zorder=1, **style)
    for rank, at in across.items():
        canvas.circle(at, base, _RADIUS, colour[topology.ranks[rank]])
        canvas.text(
            at, base, str(rank), 7, ha="center", va="center", color="white", weight="bold", zorder=6
        )
    for first, last, host in _runs(topology, places):
        left, right = (_MARGIN + 0.25 + place * _STEP for place in (first, last))
        canvas.boxes(f"host {host}", [(left - 0.18, base - 0.28, right - left + 0.36, 0.05, LINE)])
        canvas.text((left + right) / 2, base - 0.45, host, 8, ha="center", color=colour[host])
    for node in tree.nodes:
        label = f"{node.name}: {node.worker}"
        at, high = x[node.name], y[node.name]
        host_colour = colour[topology.ranks[node.worker]]
        canvas.circle(at, high, _RADIUS, host_colour)
        canvas.text(at, high + 0.17, label, 7, ha="center", color=INK, zorder=6, bbox=_BEHIND)
    canvas.text(0.15, 0.12, "ranks, by the order of the tree; hosts below them", 7, color=SOFT)
    return canvas


def _leaves(tree: ConfiguredTree, name: str) -> Iterator[int]:
    """Yield the ranks from left to right."""
    for one in tree.by_name[name].contributors:
        if isinstance(one, int):
            yield one
        else:
            yield from _leaves(tree, one)


def _runs(topology: Topology, places: dict[int, int]) -> Iterator[tuple[int, int, str]]:
    """Yield (first place, last place, host) of ranks of one host that are side by side."""
    run: tuple[int, int, str] | None = None
    for rank, place in places.items():
        host = topology.ranks[rank]
        if run is not None and run[2] == host:
            run = run[0], place, host
            continue
        if run is not None:
            yield run
        run = place, place, host
    if run is not None:
        yield run
