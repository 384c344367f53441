"""The time of a call by parts of the tree: of a rank, and of the slowest rank of each call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stagegen.inspection.stages import CORE, DOWN, HOST, INSIDE, LEAF, NETWORK, ROOT, UP, Stage

ARRIVAL_WAITS = "arrival waits"
REST = "before and after the tree"
CALL = "the call"


def parts_of(stages: Iterable[tuple[Stage, float]]) -> dict[str, float]:
    """Return the rows of Table 3 of Bongo et al.: the seconds of stages, added up by part."""
    found = list(stages)
    own = [(stage, seconds) for stage, seconds in found if not stage.is_wait_for_others]

    def of(*parts: str) -> float:
        return sum(seconds for stage, seconds in own if stage.part in parts)

    def on(way: str, chosen: Sequence[tuple[Stage, float]]) -> float:
        return sum(seconds for stage, seconds in chosen if stage.way == way)

    return {
        "down-path, with arrival wait": on(DOWN, found),
        "down-path, no arrival wait": on(DOWN, own),
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


def typical_parts(calls: Iterable[SlowestRank]) -> dict[str, float]:
    """Return the mean parts of the calls whose times are between the quartiles; seconds.

    A few calls take many times as long as most, when the system lets a rank wait for a processor.
    The middle half has the median, which tuning goes by, and its parts add up.
    """
    ordered = sorted(calls, key=lambda one: one.seconds)
    quarter = len(ordered) // 4
    rows = [one.parts() for one in ordered[quarter : len(ordered) - quarter]]
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} if rows else {}
