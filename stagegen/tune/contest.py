"""Named candidates timed in turn at one size: no search, and nothing is chosen."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stagegen.catalogue import Algorithm
from stagegen.catalogue.algorithm import NATIVE
from stagegen.errors import InputError, MeasurementError
from stagegen.measure.comparison import repetitions_for
from stagegen.measure.records import Bound, Candidate, Measurement, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import Summary, paired_ratio, summarize
from stagegen.measure.timing import Timing
from stagegen.topology import WHOLE
from stagegen.tune.candidates import default_candidate, with_value
from stagegen.tune.race import decisive


@dataclass(frozen=True)
class Contestant:
    """The times of one candidate.

    Attributes:
        candidate: the candidate.
        seconds: its median time, with the interval.
        ratio: its time over the first candidate's, from pairs of the same round.
        repetitions: the seconds of each round.
        late: further times if ranks come late; else None.
    """

    candidate: Candidate
    seconds: Summary
    ratio: Summary
    repetitions: tuple[float, ...]
    late: Late | None = None


@dataclass(frozen=True)
class Late:
    """Further times of a candidate if ranks come late: of each round, in seconds.

    Attributes:
        mean: the elapsed time, a mean over the ranks.
        last: from the last arrival to the last exit.
        spread: from the first arrival to the last.
        message: the time of a message of the operation's size; None if it was not needed.
        behind: the most by which any rank came later than planned.
        clock_error: of the clock that the ranks share.
    """

    mean: tuple[float, ...]
    last: tuple[float, ...]
    spread: tuple[float, ...]
    message: float | None
    behind: float
    clock_error: float

    def to_json(self) -> dict[str, Any]:
        """Return the form of a row."""
        lists = {"mean": self.mean, "last": self.last, "spread": self.spread}
        medians = {f"{name}_s": statistics.median(values) for name, values in lists.items()}
        intervals = {f"{name}_interval_s": _interval(values) for name, values in lists.items()}
        return {
            **medians,
            **intervals,
            "message_s": self.message,
            "behind_s": self.behind,
            "clock_error_s": self.clock_error,
            "rounds": {name: list(values) for name, values in lists.items()},
        }


def named_candidate(algorithms: Mapping[str, Algorithm], spec: str) -> Candidate:
    """Return the candidate of a text such as ``aapc_receiver:window=2``; the rest are defaults.

    A parameter in bytes may have any value; others must have one of the values that tuning tries
    on some number of ranks, since tables are generated only for listed values. The MPI library
    serves the parts of a composition, unless all of them have routines.

    Args:
        algorithms: those that can run: the collective's own by name, and all that may serve parts
            by ``collective/name``.
        spec: as :attr:`Candidate.spec`, but parameters may be left out.

    Raises:
        InputError: no such algorithm can run, or it has no such parameter, value or parts.
    """
    try:
        asked = Candidate.from_spec(spec)
    except ValueError as error:
        raise InputError(f"{error}; expected NAME or NAME:PARAMETER=NUMBER:…") from error
    if asked.algorithm not in algorithms:
        listed = ", ".join(sorted(name for name in algorithms if "/" not in name))
        raise InputError(f"no algorithm {asked.algorithm} can run here; choose from {listed}")
    algorithm = algorithms[asked.algorithm]
    parameters = {parameter.name: parameter for parameter in algorithm.parameters}
    candidate = default_candidate(algorithm)
    for name, value in asked.parameters:
        if name not in parameters:
            listed = ", ".join(parameters) or "none"
            raise InputError(f"{spec}: {algorithm.name} has no parameter {name}; it has {listed}")
        parameter = parameters[name]
        if not parameter.may_be(value):
            raise InputError(f"{spec}: {name} must be one of {parameter.values_text}")
        candidate = with_value(candidate, name, value)
    return replace(candidate, bound=_parts(algorithms, spec, algorithm, asked.bound))


def _parts(
    algorithms: Mapping[str, Algorithm], spec: str, own: Algorithm, bound: Sequence[Bound]
) -> tuple[Bound, ...]:
    """Return the routines of a composition's parts, with all of their parameters."""
    wanted = [part.collective for part in own.parts]
    if bound and [one.collective for one in bound] != wanted:
        listed = f"routines of {', '.join(wanted)}" if wanted else "no parts"
        raise InputError(f"{spec}: {own.name} has {listed}")
    serving = {name: _serving(algorithms, name) for name in wanted}
    return tuple(
        replace(one, candidate=named_candidate(serving[one.collective], one.candidate.spec))
        for one in bound
    )


def _serving(algorithms: Mapping[str, Algorithm], collective: str) -> dict[str, Algorithm]:
    """Return what may serve a part: no composition does."""
    prefix = f"{collective}/"
    return {
        name.removeprefix(prefix): one
        for name, one in algorithms.items()
        if name.startswith(prefix) and not one.parts
    }


def require_right(source: Source, collective: str, candidates: Sequence[Candidate]) -> None:
    """Compare candidates with the native routine, byte by byte.

    Raises:
        MeasurementError: one of them is wrong; names it and its first error.
    """
    others = tuple(c for c in candidates if c.algorithm != NATIVE)
    for check in source.check(collective, others) if others else []:
        if check.wrong != 0:
            raise MeasurementError(
                f"{collective} {check.candidate.spec} is wrong: {check.first_wrong}"
            )


def time_in_turn(
    source: Source,
    collective: str,
    size: int,
    candidates: Sequence[Candidate],
    repetitions: int,
    communicator: str = WHOLE,
    timing: Timing | None = None,
) -> tuple[Contestant, ...]:
    """Time candidates in turn, after one look at each, which does not count.

    Args:
        source: of the measurements.
        collective: which one.
        size: in bytes.
        candidates: the first is the reference for the others.
        repetitions: of each; fewer if a call takes seconds, more if milliseconds. If ranks come
            late, it is the number of experiments.
        communicator: the name of the ranks that call.
        timing: how; the default mechanism if None.

    Raises:
        MeasurementError: a measurement failed.
    """
    timing = timing or Timing()
    calls = timing.calls(size)
    scout = Request(collective, size, timing, False, calls, 1, tuple(candidates), communicator)
    look = source.measure(scout).seconds
    fastest, slowest = min(map(min, look)), max(map(min, look))
    many = repetitions if timing.arrivals else repetitions_for(slowest, repetitions)
    measurement = source.measure(decisive(scout, fastest, many))
    times = measurement.by_candidate()
    first = times[candidates[0]]
    return tuple(
        Contestant(candidate, summarize(seconds), paired_ratio(seconds, first), seconds, late)
        for (candidate, seconds), late in zip(times.items(), _late(measurement), strict=True)
    )


def _late(measurement: Measurement) -> Sequence[Late | None]:
    """Return the further times of each candidate if ranks come late."""
    known = measurement.lateness
    if known is None:
        return [None] * len(measurement.seconds)
    return [
        Late(*lists, known.message, known.behind, known.clock_error)
        for lists in zip(known.mean, known.last, known.spread, strict=True)
    ]


def _interval(values: Sequence[float]) -> list[float]:
    summary = summarize(values)
    return [summary.low, summary.high]
