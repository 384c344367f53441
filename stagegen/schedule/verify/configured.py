"""Checks configured trees, from plain rows of workers and contributors.

Rows are read from a file by :mod:`stagegen.trees`, or from the tables of a C file. The check shares
no code with either, nor with what makes trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagegen.schedule.model import Message
from stagegen.schedule.verify.paths import Network, require, require_rank
from stagegen.schedule.verify.proof import Proof
from stagegen.topology import Edge, Topology

Row = tuple[int, Sequence[int]]
"""A node: its worker, and its contributors. Below the number of ranks a contributor is a rank; from
there on it is the node of that number, less the number of ranks."""


@dataclass(frozen=True)
class LinkUse:
    """What a call sends over a link of the network, one way.

    Attributes:
        edge: from one node of the network to another.
        up: operands that pass it.
        at_once: the most of them that are for nodes of one depth, so that they may meet.
        down: results that pass it.
        down_at_once: the most of them that are from nodes of one depth, so that they may meet.
    """

    edge: Edge
    up: int
    at_once: int
    down: int
    down_at_once: int


@dataclass(frozen=True)
class TreeFacts:
    """What a checked tree costs.

    Attributes:
        height: the most nodes from a rank to the result.
        up: messages with operands.
        up_between: those of them between hosts.
        down: messages with results.
        down_between: those of them between hosts.
        most_work: the most contributors that arrive at one rank as messages.
        worker: the rank of which that is so.
        links: the links between a host and a switch, and between switches; those first on which
            the most messages of one way may meet.
    """

    height: int
    up: int
    up_between: int
    down: int
    down_between: int
    most_work: int
    worker: int
    links: tuple[LinkUse, ...]


def verify_configured(topology: Topology, collective: str, rows: Sequence[Row]) -> Proof:
    """Check that rows are a tree of all ranks, the last row being its root.

    Raises:
        ScheduleError: a property does not hold; names the node, or the rank.
    """
    facts = facts_of(topology, rows)
    return Proof(
        collective=collective,
        ranks=topology.rank_count,
        phases=None,
        bound_phases=None,
        syncs=None,
        checked=tuple(_findings(facts, len(rows), collective)),
    )


def facts_of(topology: Topology, rows: Sequence[Row]) -> TreeFacts:
    """Return what a tree costs, once it is checked.

    Raises:
        ScheduleError: the rows are no tree of all ranks.
    """
    count = topology.rank_count
    above = _above(rows, count)
    depth = _depths(above, count, len(rows))
    operands = [
        (Message(_giver(rows, count, one), worker), depth[node])
        for node, (worker, contributors) in enumerate(rows)
        for one in contributors
        if _giver(rows, count, one) != worker
    ]
    results = list(_results(rows, count, depth))
    hosts, network = topology.ranks, Network(topology)
    work = Counter(message.destination for message, _ in operands)
    most = min(work, key=lambda rank: (-work[rank], rank), default=rows[-1][0])
    return TreeFacts(
        height=1 + max(depth),
        up=len(operands),
        up_between=sum(hosts[one] != hosts[other] for (one, other), _ in operands),
        down=len(results),
        down_between=sum(hosts[one] != hosts[other] for (one, other), _ in results),
        most_work=work[most],
        worker=most,
        links=tuple(_links(network, operands, results)),
    )


def _above(rows: Sequence[Row], count: int) -> dict[int, int]:
    """Return the row that each rank and each node but the last contributes to."""
    require(bool(rows), "the tree has no node")
    above: dict[int, int] = {}
    for node, (worker, contributors) in enumerate(rows):
        require_rank(worker, count, f"the worker of node {node}")
        require(len(contributors) > 0, f"node {node} has no contributor")
        for one in contributors:
            require(0 <= one < count + len(rows), f"node {node} has an unknown contributor {one}")
            require(one not in above, f"{_what(one, count)} contributes to two nodes")
            require(one < count + node, f"node {one - count} contributes to one that is before it")
            above[one] = node
    for one in range(count + len(rows) - 1):
        require(one in above, f"{_what(one, count)} contributes to no node")
    return above


def _what(one: int, count: int) -> str:
    return f"rank {one}" if one < count else f"node {one - count}"


def _depths(above: dict[int, int], count: int, nodes: int) -> list[int]:
    """Return how many nodes are above each node."""
    depth = [0] * nodes
    for node in range(nodes - 2, -1, -1):
        depth[node] = depth[above[count + node]] + 1
    return depth


def _giver(rows: Sequence[Row], count: int, one: int) -> int:
    return one if one < count else rows[one - count][0]


def _results(
    rows: Sequence[Row], count: int, depth: Sequence[int]
) -> Iterator[tuple[Message, int]]:
    """Yield the messages of the result with their node's depth; see that every rank gets it."""
    has = {rows[-1][0]}
    for (worker, contributors), level in zip(reversed(rows), reversed(depth), strict=True):
        require(worker in has, f"rank {worker} has to hand down a result that it has not got")
        for rank in (_giver(rows, count, one) for one in contributors):
            if rank not in has:
                has.add(rank)
                yield Message(worker, rank), level
    require(len(has) == count, "some rank gets no result")


def _links(
    network: Network,
    operands: Sequence[tuple[Message, int]],
    results: Sequence[tuple[Message, int]],
) -> Iterator[LinkUse]:
    """Yield the links that a call uses; those first on which the most messages may meet."""
    up, up_at_once = _passing(network, operands)
    down, down_at_once = _passing(network, results)
    uses = (
        LinkUse(edge, up[edge], up_at_once[edge], down[edge], down_at_once[edge])
        for edge in {*up, *down}
    )
    yield from sorted(uses, key=lambda u: (-max(u.at_once, u.down_at_once), -u.up, -u.down, u.edge))


def _passing(
    network: Network, messages: Sequence[tuple[Message, int]]
) -> tuple[Counter[Edge], Counter[Edge]]:
    """Return how many messages pass each link, and the most that are of nodes of one depth."""
    passing: Counter[Edge] = Counter()
    levels: Counter[tuple[Edge, int]] = Counter()
    for message, depth in messages:
        edges = [edge for edge in network.path(message) if not _is_rank(edge)]
        passing.update(edges)
        levels.update((edge, depth) for edge in edges)
    at_once: Counter[Edge] = Counter()
    for (edge, _), number in levels.items():
        at_once[edge] = max(number, at_once[edge])
    return passing, at_once


def _is_rank(edge: Edge) -> bool:
    """Whether an edge is that of a rank on a host with several, which is no link."""
    return any(" " in end for end in edge)


def _findings(facts: TreeFacts, nodes: int, collective: str) -> Iterator[str]:
    """Yield the properties that hold, in words."""
    levels = f"{nodes} nodes in {facts.height} levels"
    yield f"every rank contributes once to a tree of {levels}, and gets its result once"
    if collective != "bcast":
        yield f"{facts.up} messages go up, {facts.up_between} of them between hosts"
    if collective != "reduce":
        yield f"{facts.down} messages go down, {facts.down_between} of them between hosts"
    yield _meeting(facts, collective)


def _meeting(facts: TreeFacts, collective: str) -> str:
    """Return where the most messages may meet.

    On the way down as many meet as on the way up, or fewer: each result goes where an operand came
    from. So the way down matters only where data goes no other way.
    """
    way, field = ("from", "down_at_once") if collective == "bcast" else ("to", "at_once")
    worst = max(facts.links, key=lambda link: int(getattr(link, field)), default=None)
    most = 0 if worst is None else getattr(worst, field)
    if worst is None or most < 2:
        return f"no two messages {way} nodes of one depth share a link"
    return f"at most {most} messages {way} nodes of one depth share a link ({'→'.join(worst.edge)})"
