"""What decision tables choose for a call of all ranks, to compare tables with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import Summary, paired_ratio
from stagegen.topology import Topology
from stagegen.tune.contest import Contestant
from stagegen.tune.decision import CLUSTER, NATIVE_CANDIDATE, DecisionTable
from stagegen.tune.serving import Serving
from stagegen.tune.shapes import Shape


def choice_of(
    decision: DecisionTable, serving: Serving, topology: Topology, collective: str, size: int
) -> Candidate:
    """Return the candidate for a call of a size on all ranks, as the library would choose it.

    It is the first choice that can do the size, and native where nothing was tuned.
    """
    ranks = topology.rank_count
    shape = Shape.of(len(set(topology.ranks)), ranks)
    table = decision.table(collective, CLUSTER, shape)
    if table is None:
        return NATIVE_CANDIDATE
    able = (
        one
        for one in table.rule(size).options
        if one == NATIVE_CANDIDATE or serving.handles(collective, one, size, ranks)
    )
    return next(able, NATIVE_CANDIDATE)


@dataclass(frozen=True)
class Served:
    """A table's choice at a size, against the native routine and against the first table's.

    Attributes:
        contestant: the times of the choice.
        over_native: its time over native's, from pairs of the same round.
        over_first: its time over the time of the first table's choice, likewise.
    """

    contestant: Contestant
    over_native: Summary
    over_first: Summary


def served(contestants: Sequence[Contestant], choices: Sequence[Candidate]) -> tuple[Served, ...]:
    """Return how the choices of several tables fared in one contest.

    Args:
        contestants: each candidate once; the first is native.
        choices: of each table, the first table first.
    """
    native = contestants[0].repetitions
    by_candidate = {one.candidate: one for one in contestants}
    first = by_candidate[choices[0]].repetitions
    return tuple(
        Served(one, paired_ratio(one.repetitions, native), paired_ratio(one.repetitions, first))
        for one in (by_candidate[choice] for choice in choices)
    )
