"""The time of a call by parts of the tree: of a rank, and of the slowest rank of each call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagegen.inspection.nodes import Node, of_node
from stagegen.inspection.series import Call
from stagegen.inspection.stages import (
    ARRIVAL_WAIT,
    CORE,
    DOWN,
    HOST,
    INSIDE,
    LATENCY,
    LEAF,
    NETWORK,
    ROOT,
    UP,
    Path,
    Stage,
    tree_parts,
    what_to_above,
)

ARRIVAL_WAITS = "arrival waits"
REST = "before and after the tree"
CALL = "the call"


def parts_of(stages: Iterable[tuple[Stage, float]]) -> dict[str, float]:
    """Return the rows of Table 3 of Bongo et al.: the seconds of stages, added up by part.

    As there (§4), the core belongs to the down-path.
    """
    found = list(stages)
    own = [(stage, seconds) for stage, seconds in found if not stage.is_wait_for_others]

    def of(*parts: str) -> float:
        return sum(seconds for stage, seconds in own if stage.part in parts)

    def on(way: str, chosen: Sequence[tuple[Stage, float]]) -> float:
        return sum(seconds for stage, seconds in chosen if stage.way == way)

    return {
        "down-path, with arrival wait": on(DOWN, found) + of(CORE),
        "down-path, no arrival wait": on(DOWN, own) + of(CORE),
        "up-path": on(UP, found),
        "host subtree, no arrival wait": of(LEAF, HOST),
        "cluster-root subtree, no arrival wait": of(ROOT),
        "messages within hosts": of(INSIDE),
        "messages between hosts (proxies)": of(NETWORK),
        "core": of(CORE),
        "total, no arrival wait": sum(seconds for _, seconds in own),
        "total, with arrival wait": sum(seconds for _, seconds in found),
    }


@dataclass(frozen=True)
class SlowestRank:
    """The rank with the longest time in a call, which is the time of the call.

    Attributes:
        seconds: of the call on this rank.
        stages: of its path.
    """

    seconds: float
    stages: tuple[tuple[Stage, float], ...]

    def parts(self) -> dict[str, float]:
        """Return seconds that add up to those of the call, which are the last entry."""
        waits = sum(seconds for stage, seconds in self.stages if stage.is_wait_for_others)
        named = {
            "ranks and host subtrees": (LEAF, HOST),
            "messages within hosts": (INSIDE,),
            "cluster-root subtree": (ROOT,),
            "messages between hosts": (NETWORK,),
            "core": (CORE,),
        }
        found = {ARRIVAL_WAITS: waits}
        for title, parts in named.items():
            found[title] = sum(
                seconds
                for stage, seconds in self.stages
                if stage.part in parts and not stage.is_wait_for_others
            )
        return {**found, REST: self.seconds - sum(found.values()), CALL: self.seconds}

    def stages_by_title(self) -> dict[str, float]:
        """Return the seconds of stages, then what is in none, then those of the call."""
        found: dict[str, float] = {}
        for stage, seconds in self.stages:
            found[stage.title] = found.get(stage.title, 0.0) + seconds
        return {**found, REST: self.seconds - sum(found.values()), CALL: self.seconds}


def slowest_rank(
    call: Call, nodes: Mapping[int, Node], paths: Mapping[int, Path], hosts: Sequence[str]
) -> SlowestRank:
    """Return the slowest rank of a call, with its path.

    Where data goes one way only, the path is that of the data: in a reduce that of the operand that
    came last, in a bcast that from the root. How much later than the slowest rank the rank at its
    other end began counts as an arrival wait, which is negative if it began earlier.

    Args:
        call: the call.
        nodes: of the call.
        paths: of all ranks.
        hosts: of the ranks.
    """
    elapsed = [end - begin for begin, end in zip(call.begun, call.ended, strict=True)]
    rank = max(range(len(elapsed)), key=elapsed.__getitem__)
    goes_up = any(node.ins for node in nodes.values())
    comes_down = any(node.outs for node in nodes.values())
    own = paths.get(rank, ())
    if goes_up and comes_down:
        return SlowestRank(elapsed[rank], own)
    if goes_up:
        first, way = _last_operand(rank, nodes, hosts)
    else:
        first, way = _root(nodes, rank), own
    wait = Stage(DOWN, LEAF, 0, ARRIVAL_WAIT, first), call.begun[first] - call.begun[rank]
    return SlowestRank(elapsed[rank], (wait, *way))


def _root(nodes: Mapping[int, Node], rank: int) -> int:
    """Return the rank that all data comes from."""
    return next((node.rank for node in nodes.values() if node.outs and node.down is None), rank)


def _last_operand(rank: int, nodes: Mapping[int, Node], hosts: Sequence[str]) -> tuple[int, Path]:
    """Return whose operand came last to a rank's last node, and the way from there on.

    The last one need not be above the others: a rank may do the work of several nodes. The call's
    root, outside of the routine's tree, is the last node of its rank.
    """
    own = [one for one in nodes.values() if one.rank == rank and one.ins]
    if not own:
        return rank, ()
    node = max(own, key=_done_at)
    found: list[tuple[Stage, float]] = []
    parts = tree_parts(nodes, hosts)
    for _ in nodes:  # a damaged file may have a circle
        if node.up is not None:
            part = parts[node.number]
            found.append((Stage(DOWN, part, 0, LATENCY, node.number), node.up - node.last_in))
        last = max(node.ins, key=node.ins.__getitem__)
        lower = nodes.get(of_node(last)) if last < 0 else None
        if lower is None or lower.up is None or not lower.ins:
            break
        part = INSIDE if hosts[lower.rank] == hosts[node.rank] else NETWORK
        stage = Stage(DOWN, part, 0, what_to_above(lower), lower.number)
        found.append((stage, node.ins[last] - lower.up))
        node = lower
    return (last if last >= 0 else node.rank), tuple(reversed(found))


def _done_at(node: Node) -> tuple[float, bool]:
    """Return when a node had all that it needs, and whether nothing is above it."""
    return (node.last_in, True) if node.up is None else (node.up, False)


def typical_parts(calls: Iterable[SlowestRank]) -> dict[str, float]:
    """Return the mean parts of the calls whose times are between the quartiles; seconds.

    A few calls take many times as long as most, when the system lets a rank wait for a processor.
    The middle half has the median, which tuning goes by, and its parts add up.
    """
    return _means([one.parts() for one in _middle(calls)])


def typical_stages(calls: Iterable[SlowestRank]) -> dict[str, float]:
    """Return the mean stages of the same calls, by the stages' titles in the order of the path.

    Different ranks are the slowest in different calls, so a title stands for stages at several
    nodes. A call without such a stage counts as 0. The last entries are what is in no stage, and
    the time of the call, which all others add up to.
    """
    rows = [one.stages_by_title() for one in _middle(calls)]
    means = _means(rows)
    return {title: means[title] for title in merged(rows)}


def merged(orders: Iterable[Iterable[str]]) -> list[str]:
    """Return all names of several orders, each one behind the name that it is behind there."""
    found: list[str] = []
    for order in orders:
        place = 0
        for name in order:
            if name not in found:
                found.insert(place, name)
            place = found.index(name) + 1
    return found


def _middle(calls: Iterable[SlowestRank]) -> list[SlowestRank]:
    """Return the calls whose times are between the quartiles."""
    ordered = sorted(calls, key=lambda one: one.seconds)
    quarter = len(ordered) // 4
    return ordered[quarter : len(ordered) - quarter]


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each entry; rows without it count as 0."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: sum(row.get(name, 0.0) for row in rows) / len(rows) for name in names}
