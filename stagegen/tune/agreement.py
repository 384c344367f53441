"""What it costs to recognise the pattern of an alltoallv, and which patterns gain more than that.

No rank knows the counts of all others. In a library with patterns, the ranks tell each other by an
allreduce, in each of the first calls on a communicator (``templates/libcoll/recognition.c``). A
pattern pays for it if its routine gains more than this allreduce takes at some size. A program with
such calls gains from the first one on.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.timing import Timing
from stagegen.tune.choose import Samples, median
from stagegen.tune.communicators import name_of
from stagegen.tune.decision import (
    CLUSTER,
    GROUP,
    NATIVE_CANDIDATE,
    Agreement,
    DecisionTable,
    Table,
)
from stagegen.tune.passes import Topic
from stagegen.tune.plan import Outcome
from stagegen.tune.purse import BudgetSpent
from stagegen.tune.race import decisive
from stagegen.tune.sizes import octaves

#: The bytes that each rank tells: ``struct coll_counts_told`` of ``templates/libcoll/dispatch.h``.
TOLD_BYTES = 24

#: How often the allreduce is timed, in repetitions of as many calls as of the shortest routines.
REPETITIONS = 9


def time_telling(
    source: Source, topics: Iterable[Topic], timing: Timing, progress: Callable[[str], None]
) -> Mapping[str, float]:
    """Return the seconds that ranks take to tell each other what they have, by communicator.

    The communicators are those of patterns whose calls are recognised so, by names. Those of other
    patterns are missing: there, all ranks know all counts. Patterns of the same ranks share a time.
    If the time for tuning is over, the rest is missing, too.

    Args:
        source: makes measurements, or has them from a log.
        topics: what is tuned.
        timing: how calls are timed.
        progress: called with a text.

    Raises:
        MeasurementError: the measurement failed, or the log lacks it.
    """
    telling: dict[tuple[str, int], list[str]] = {}
    for topic in topics:
        one = topic.communicator
        if one.pattern is not None and topic.described.has_one_rule:
            telling.setdefault((topic.collective, one.group or 0), []).append(one.name)
    found: dict[str, float] = {}
    for (collective, _), names in sorted(telling.items()):
        progress(f"{collective}: what ranks tell each other")
        try:
            found |= dict.fromkeys(names, _time_allreduce(source, timing, names[-1]))
        except BudgetSpent:
            break
    return found


def _time_allreduce(source: Source, timing: Timing, communicator: str) -> float:
    """Return the median seconds of the allreduce, with ranks that come together.

    If ranks come late, the others wait in the allreduce; without it, they would wait as long in the
    alltoallv. The request names the communicator of a pattern, so that no reader of a log takes
    these times for the times of a tuned allreduce.
    """
    together = Timing() if timing.arrivals else timing
    calls = together.calls(TOLD_BYTES)
    native = (NATIVE_CANDIDATE,)
    once = Request("allreduce", TOLD_BYTES, together, False, calls, 1, native, communicator)
    (seconds,) = source.measure(decisive(once, 0.0, REPETITIONS)).seconds
    return statistics.median(seconds)


def weigh(
    decision: DecisionTable, outcomes: Iterable[Outcome], told: Mapping[str, float]
) -> DecisionTable:
    """Return the decision with the cost of recognising patterns, and which patterns pay for it.

    Args:
        decision: with the tables of patterns.
        outcomes: from which these tables were made.
        told: the seconds in which ranks tell each other what they have, by communicator.
    """
    samples = {(one.collective, one.communicator): one.samples for one in outcomes}
    tables = (
        replace(table, agreement=_agreement(decision, table, samples, told[table.communicator]))
        if table.communicator in told
        else table
        for table in decision.tables
    )
    return replace(decision, tables=tuple(tables))


def _agreement(
    decision: DecisionTable,
    table: Table,
    samples: Mapping[tuple[str, str], Mapping[int, Samples]],
    seconds: float,
) -> Agreement:
    measured = samples[table.collective, table.communicator]
    usual = usual_choice(decision, table, 0) or NATIVE_CANDIDATE
    gains = (
        seconds_of(usual, size, measured) - median(of_size[table.choice(size)])
        for size, of_size in measured.items()
        if table.choice(size) in of_size and _is_timed(table.choice(size), of_size)
    )
    return Agreement(seconds, any(gain > seconds for gain in gains))


def _is_timed(candidate: Candidate, samples: Samples) -> bool:
    """Whether a candidate was in launches, if any was: a lucky look says nothing beside these."""
    return bool(samples[candidate].launches) or not samples[NATIVE_CANDIDATE].launches


def seconds_of(candidate: Candidate, size: int, measured: Mapping[int, Samples]) -> float:
    """Return the seconds of a candidate at a size at which native was timed.

    If it was timed at other sizes only, the nearest of these tells its ratio to native. If it was
    timed with other values of its parameters only, the best of these count. If it was timed
    nowhere, it counts as fast as native.
    """
    ratios = {
        one: found / median(of_size[NATIVE_CANDIDATE])
        for one, of_size in measured.items()
        if (found := _median_of(candidate, of_size)) is not None
    }
    nearest = min(ratios, key=lambda one: (octaves(one, size), one), default=None)
    ratio = 1.0 if nearest is None else ratios[nearest]
    return ratio * median(measured[size][NATIVE_CANDIDATE])


def _median_of(candidate: Candidate, samples: Samples) -> float | None:
    """Return the median seconds of a candidate, or of the best one of its algorithm."""
    if candidate in samples:
        return median(samples[candidate])
    alike = (median(s) for c, s in samples.items() if c.algorithm == candidate.algorithm)
    return min(alike, default=None)


def usual_choice(decision: DecisionTable, table: Table, size: int) -> Candidate | None:
    """Return the routine for other calls of the ranks of a pattern's table, from a size on.

    None if several rules serve them. An alltoallv has one rule for all sizes.
    """
    (of,) = (one for one in decision.patterns if name_of(one) == table.communicator)
    ranks = CLUSTER if of.group is None else f"{GROUP} {of.group}"
    usual = decision.table(table.collective, ranks, table.shape)
    if usual is None:
        return NATIVE_CANDIDATE
    return usual.choice(size) if len(usual.rules) == 1 else None
