"""What it costs that ranks tell each other what an alltoallv has, and which patterns pay for it.

No rank knows the counts of all others. In a library with patterns, the ranks tell each other by an
allreduce, in each of the first calls on a communicator (``templates/libcoll/recognition.c``). So a
pattern is worth it only if its routine gains more than this allreduce takes.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace

from stagegen.measure.records import Candidate, CandidateFailed, Request
from stagegen.measure.source import Source
from stagegen.measure.timing import Timing
from stagegen.tune.choose import Samples, median
from stagegen.tune.communicators import name_of
from stagegen.tune.decision import CLUSTER, NATIVE_CANDIDATE, Agreement, DecisionTable, Table
from stagegen.tune.plan import Outcome
from stagegen.tune.race import decisive
from stagegen.tune.sizes import octaves

#: The bytes that each rank tells: ``struct coll_counts_told`` of ``templates/libcoll/dispatch.h``.
TOLD_BYTES = 24

#: How often the allreduce is timed, in repetitions of as many calls as of the shortest routines.
REPETITIONS = 9


def time_agreement(source: Source, timing: Timing) -> float | None:
    """Return the median seconds of the allreduce; None if it fails.

    Args:
        source: makes measurements, or has them from a log.
        timing: how calls are timed.

    Raises:
        MeasurementError: the measurement failed, or the log lacks it.
    """
    native = (NATIVE_CANDIDATE,)
    once = Request("allreduce", TOLD_BYTES, timing, False, timing.calls(TOLD_BYTES), 1, native)
    try:
        (seconds,) = source.measure(decisive(once, 0.0, REPETITIONS)).seconds
    except CandidateFailed:
        return None
    return statistics.median(seconds)


def weigh(
    decision: DecisionTable, outcomes: Iterable[Outcome], told: Mapping[str, float | None]
) -> DecisionTable:
    """Return the decision with what it costs to recognise patterns, and which of them pay for it.

    Args:
        decision: with the tables of patterns.
        outcomes: that these were made of.
        told: the collectives of which ranks tell each other what they have, with the seconds that
            this takes; None if it failed.
    """
    samples = {(one.collective, one.communicator): one.samples for one in outcomes}
    patterns = set(map(name_of, decision.patterns))
    tables = (
        replace(table, agreement=_agreement(decision, table, samples, told[table.collective]))
        if table.communicator in patterns and table.collective in told
        else table
        for table in decision.tables
    )
    return replace(decision, tables=tuple(tables))


def _agreement(
    decision: DecisionTable,
    table: Table,
    samples: Mapping[tuple[str, str], Mapping[int, Samples]],
    seconds: float | None,
) -> Agreement:
    if seconds is None:
        return Agreement(None, pays=False)
    measured = samples[table.collective, table.communicator]
    usual = usual_choice(decision, table, 0) or NATIVE_CANDIDATE
    gains = (
        _seconds_of(usual, size, measured) - median(of_size[table.choice(size)])
        for size, of_size in measured.items()
        if table.choice(size) in of_size
    )
    return Agreement(seconds, any(gain > seconds for gain in gains))


def _seconds_of(candidate: Candidate, size: int, measured: Mapping[int, Samples]) -> float:
    """Return the seconds of a candidate at a size at which native was timed.

    If it was not timed itself, it has the ratio to native of the nearest size at which it was; if
    it was timed nowhere, it is taken for native.
    """
    at = [one for one, of_size in measured.items() if candidate in of_size]
    nearest = min(at, key=lambda one: (octaves(one, size), one), default=size)
    if nearest == size:
        return median(measured[size].get(candidate, measured[size][NATIVE_CANDIDATE]))
    beside = measured[nearest]
    ratio = median(beside[candidate]) / median(beside[NATIVE_CANDIDATE])
    return ratio * median(measured[size][NATIVE_CANDIDATE])


def usual_choice(decision: DecisionTable, table: Table, size: int) -> Candidate | None:
    """Return what serves other calls of all ranks of the cluster from a size on.

    None if several rules do. An alltoallv has one rule for all sizes.
    """
    usual = decision.table(table.collective, CLUSTER, table.shape)
    if usual is None:
        return NATIVE_CANDIDATE
    return usual.choice(size) if len(usual.rules) == 1 else None
