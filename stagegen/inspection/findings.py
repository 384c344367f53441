"""What a series tells: latencies, waits, orders, stages, hotspots (Bongo et al., §4, §6)."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stagegen.inspection.node_findings import NodeFindings
from stagegen.inspection.nodes import nodes_of
from stagegen.inspection.parts import SlowestRank, parts_of, slowest_rank, typical_parts
from stagegen.inspection.series import Series
from stagegen.inspection.spread import Spread
from stagegen.inspection.stages import (
    CORE,
    DOWN,
    HOST,
    INSIDE,
    LEAF,
    NETWORK,
    ROOT,
    ROOT_MESSAGE,
    UP,
    Path,
    Stage,
    paths_of,
    round_trip,
)

#: The title of Table 2's last row, which is no stage.
TIME_OF_CALL = "time of a call"


@dataclass(frozen=True)
class RankStages:
    """The stages of a rank.

    Attributes:
        rank: the rank.
        stages: with their seconds in each call that had them, in the order of the path.
        elapsed: seconds of each call whose path was looked at, on this rank.
        between: by call, the messages between hosts on the way to the root, or on the way back if
            these are more.
    """

    rank: int
    stages: Mapping[Stage, Sequence[float]]
    elapsed: Sequence[float]
    between: Sequence[int]

    @property
    def calls(self) -> int:
        """In how many calls the path was looked at."""
        return len(self.elapsed)

    @property
    def messages(self) -> int:
        """How many messages between hosts most calls have on the way; the fewest of several."""
        return max(sorted(set(self.between)), key=self.between.count)

    def spreads(self) -> list[tuple[str, Spread]]:
        """Return the rows of Table 2 with their titles: all stages, and the time of a call."""
        rows = [(stage.title, Spread.of(seconds)) for stage, seconds in self.stages.items()]
        return [*rows, (TIME_OF_CALL, Spread.of(self.elapsed))]

    def mean(self, stage: Stage) -> float:
        """Return the mean seconds per call; calls without the stage count as 0."""
        return sum(self.stages[stage]) / self.calls

    def total(self, waits: bool, ways: Sequence[str] = (DOWN, CORE, UP)) -> float:
        """Return the mean seconds per call of all stages, with or without arrival waits."""
        return sum(
            self.mean(stage)
            for stage in self.stages
            if stage.way in ways and (waits or not stage.is_wait_for_others)
        )

    def parts(self) -> dict[str, float]:
        """Return the rows of Table 3, in seconds per call."""
        return parts_of((stage, self.mean(stage)) for stage in self.stages)

    def timemap(self) -> list[tuple[float, float]]:
        """Return points: mean seconds from entering the core on, and height on the path.

        Arrival waits are left out. Height 0 is the rank, 1 the core; paths of unequal length are
        scaled to the same height (Figs. 12–14).
        """
        shown = [stage for stage in self.stages if not stage.is_wait_for_others]
        downs = [stage for stage in shown if stage.way == DOWN]
        ups = [stage for stage in shown if stage.way == UP]
        x = -sum(self.mean(stage) for stage in downs)
        points = [(x, 0.0)]
        for number, stage in enumerate(downs, 1):
            x += self.mean(stage)
            points.append((x, number / len(downs)))
        if not downs:
            points.append((x, 1.0))
        core = sum(self.mean(stage) for stage in shown if stage.way == CORE)
        x = core
        points.append((x, 1.0))
        for number, stage in enumerate(ups, 1):
            x += self.mean(stage)
            points.append((x, 1 - number / len(ups)))
        return points


@dataclass(frozen=True)
class Hotspot:
    """Where time goes.

    Attributes:
        title: stage in words, with its node.
        seconds: mean seconds per call and rank, over all ranks.
        share: of the time of all ranks without arrival waits.
    """

    title: str
    seconds: float
    share: float


@dataclass(frozen=True, eq=False)
class TreeFindings:
    """What a series of calls over a tree tells.

    Attributes:
        series: the calls.
        nodes: inner nodes, by their numbers.
        ranks: the stages of each rank.
        trips: of each message edge, lower and upper node: what there and back take together.
        above: the node above each node, as most calls had it.
        treeless: how many calls had no tree, and were left out.
        slowest_ranks: of each call the rank that took longest.
    """

    series: Series
    nodes: Mapping[int, NodeFindings]
    ranks: Mapping[int, RankStages]
    trips: Mapping[tuple[int, int], Sequence[float]]
    treeless: int
    above: Mapping[int, int] = field(default_factory=dict)
    slowest_ranks: Sequence[SlowestRank] = ()

    @cached_property
    def by_total(self) -> list[RankStages]:
        """The ranks, the fastest first: by their time without arrival waits."""
        return sorted(self.ranks.values(), key=lambda one: (one.total(waits=False), one.rank))

    @property
    def fastest(self) -> RankStages:
        """The rank with the least time without arrival waits."""
        return self.by_total[0]

    @property
    def slowest(self) -> RankStages:
        """The rank with the most time without arrival waits."""
        return self.by_total[-1]

    def by_messages(self) -> dict[str, RankStages]:
        """Return the fastest and the slowest rank by messages between hosts on their way (Table 4).

        A title says how many such messages most calls of the rank have on the way to the root. In a
        bcast, it is the way from the root.
        """
        groups: dict[int, list[RankStages]] = defaultdict(list)
        for one in self.by_total:
            groups[one.messages].append(one)
        found: dict[str, RankStages] = {}
        for count, ranks in sorted(groups.items()):
            word = "message" if count == 1 else "messages"
            found[f"{count} {word}, fastest"] = ranks[0]
            if len(ranks) > 1:
                found[f"{count} {word}, slowest"] = ranks[-1]
        return found

    @cached_property
    def by_size(self) -> list[NodeFindings]:
        """The nodes, those with the most contributors first."""
        return sorted(self.nodes.values(), key=lambda one: (-len(one.contributors), one.number))

    @property
    def busiest(self) -> NodeFindings | None:
        """The node with the most contributors."""
        return self.by_size[0] if self.nodes else None

    def contributor_title(self, name: int) -> str:
        """Return a contributor in words; a rank that is a node of its own is called a rank."""
        number, ranks = name if name >= 0 else -1 - name, len(self.series.hosts)
        if name >= 0 or (number < ranks and number not in self.nodes):
            return f"rank {number}"
        if number < ranks:
            return f"node of rank {number}"
        rank = f" of rank {self.nodes[number].rank}" if number in self.nodes else ""
        return f"node {number}{rank}"

    def hotspots(self, most: int = 8) -> list[Hotspot]:
        """Return where most time goes, by the node or message."""
        found: dict[tuple[str, str, int], float] = defaultdict(float)
        for one in self.ranks.values():
            for stage in one.stages:
                if not stage.is_wait_for_others:
                    found[stage.part, stage.what, stage.node] += one.mean(stage)
        whole = sum(found.values()) or 1.0
        ranks = len(self.ranks) or 1
        ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [
            Hotspot(self._place(part, what, node), seconds / ranks, seconds / whole)
            for (part, what, node), seconds in ordered[:most]
        ]

    def node_seconds(self) -> dict[int, float]:
        """Return what each node takes: mean seconds per call of a rank whose path goes through it.

        Stages at the node count, and messages between it and the nodes below it: these wait while
        the node is busy with others. A message between it and the call's root, outside of the tree,
        counts as well. Arrival waits do not count.
        """
        found: dict[int, list[float]] = defaultdict(list)
        for one in self.ranks.values():
            own: dict[int, float] = defaultdict(float)
            for stage in one.stages:
                at = self._busy_at(stage)
                if at is not None:
                    own[at] += one.mean(stage)
            for at, seconds in own.items():
                found[at].append(seconds)
        return {at: statistics.fmean(seconds) for at, seconds in found.items()}

    def _busy_at(self, stage: Stage) -> int | None:
        """Return the node that a stage is work of; None if it is an arrival wait."""
        if stage.is_wait_for_others:
            return None
        is_inside = stage.is_message and stage.what != ROOT_MESSAGE
        return self.above.get(stage.node) if is_inside else stage.node

    def _place(self, part: str, what: str, node: int) -> str:
        hosts = self.series.hosts
        rank = self.nodes[node].rank if node in self.nodes else node
        where = f"rank {rank} on {hosts[rank]}" if rank < len(hosts) else f"node {node}"
        if part in (INSIDE, NETWORK):
            which = "between hosts" if part == NETWORK else "within a host"
            above = "call's root" if what == ROOT_MESSAGE else "node above"
            return f"message {which}, {where} and the {above}"
        names = {LEAF: "itself", HOST: "host subtree", ROOT: "cluster-root subtree", CORE: "core"}
        return f"{names[part]}, {what}: {where}"

    def to_json(self) -> dict[str, Any]:
        """Return what the calls tell of the tree."""
        return {
            "nodes": [self.nodes[number].to_json() for number in sorted(self.nodes)],
            "ranks": [
                {
                    "rank": one.rank,
                    "host": self.series.hosts[one.rank],
                    "parts_s": one.parts(),
                    "call": Spread.of(one.elapsed).to_json(),
                    "stages": [
                        {
                            "stage": stage.title,
                            "node": stage.node,
                            "way": stage.way,
                            **Spread.of(one.stages[stage]).to_json(),
                        }
                        for stage in one.stages
                    ],
                    "timemap": one.timemap(),
                }
                for one in self.ranks.values()
            ],
            "by_messages": {name: one.rank for name, one in self.by_messages().items()},
            "fastest": self.fastest.rank,
            "slowest": self.slowest.rank,
            "round_trips": [
                {"lower": lower, "upper": upper, **Spread.of(values).to_json()}
                for (lower, upper), values in sorted(self.trips.items())
            ],
            "hotspots": [vars(one) for one in self.hotspots()],
            "slowest_rank_parts_s": typical_parts(self.slowest_ranks),
            "calls_without_tree": self.treeless,
        }


def tree_findings(series: Series, by_clocks: bool = False) -> TreeFindings | None:
    """Return what the trees of a series tell; None if most calls have none.

    Args:
        series: the calls.
        by_clocks: as in :func:`stagegen.inspection.stages.paths_of`.
    """
    nodes: dict[int, NodeFindings] = {}
    paths: dict[int, dict[Stage, list[float]]] = defaultdict(dict)
    elapsed: dict[int, list[float]] = defaultdict(list)
    between: dict[int, list[int]] = defaultdict(list)
    trips: dict[tuple[int, int], list[float]] = defaultdict(list)
    above: dict[int, Counter[int]] = defaultdict(Counter)
    slowest: list[SlowestRank] = []
    treeless = 0
    for number in range(len(series)):
        call = series.call(number)
        found = nodes_of(series.collective, call)
        if found is None:
            treeless += 1
            if 2 * treeless > len(series):
                return None
            continue
        for node in found.values():
            if len({*node.ins, *node.outs}) > 1:
                known = nodes.setdefault(
                    node.number, NodeFindings(node.number, node.rank, series.hosts[node.rank])
                )
                known.add(node)
            if node.parent is not None or node.giver is not None:
                upper = node.giver if node.parent is None else node.parent
                above[node.number][-1 if upper is None else upper] += 1
            if node.parent is not None:
                both = round_trip(node, found[node.parent])
                if both is not None:
                    trips[node.number, node.parent].append(both)
        ways = paths_of(found, series.hosts, by_clocks)
        slowest.append(slowest_rank(call, found, ways, series.hosts))
        for rank, path in ways.items():
            elapsed[rank].append(call.ended[rank] - call.begun[rank])
            between[rank].append(_between_hosts(path))
            for stage, seconds in path:
                paths[rank].setdefault(stage, []).append(seconds)
    ranks = {
        rank: RankStages(rank, paths[rank], elapsed[rank], between[rank]) for rank in sorted(paths)
    }
    uppers = {number: counts.most_common(1)[0][0] for number, counts in above.items()}
    if not ranks:
        return None
    return TreeFindings(series, nodes, ranks, trips, treeless, uppers, slowest)


def _between_hosts(path: Path) -> int:
    """Return the messages between hosts on the way to the root, or on that back if it has more."""
    ways = [stage.way for stage, _ in path if stage.part == NETWORK]
    return max(ways.count(DOWN), ways.count(UP))
