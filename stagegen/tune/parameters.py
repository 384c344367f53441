"""Tunes the parameters of one algorithm at one size, before it races against the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stagegen.catalogue import Algorithm, Parameter
from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import MARGIN
from stagegen.tune.candidates import useful_values, with_value
from stagegen.tune.choose import choose
from stagegen.tune.race import Field, race

#: If calls take longer than this many seconds, all values get one look, the best one and the one
#: before get two: the race of all algorithms afterwards decides.
LONG_SECONDS = 0.01


def choices(algorithm: Algorithm, size: int) -> list[Parameter]:
    """Return the parameters with more than one value that makes a difference at a size."""
    return [p for p in algorithm.parameters if len(useful_values(p, size)) > 1]


def tune_parameters(
    source: Source,
    scout: Callable[[int, tuple[Candidate, ...]], Request],
    algorithm: Algorithm,
    size: int,
    best: Candidate,
) -> tuple[Candidate, list[float]]:
    """Try all values of one parameter after the other, as if they were independent.

    Args:
        source: of the measurements.
        scout: returns the request for one look at candidates at a size.
        algorithm: one that has several values of some parameter at this size.
        size: in bytes.
        best: the candidate to improve.

    Returns:
        The best candidate, and its measured seconds.
    """
    seconds: list[float] = []
    for parameter in choices(algorithm, size):
        values = useful_values(parameter, size)
        tried = tuple(with_value(best, parameter.name, value) for value in values)
        best, seconds = _best_of(source, scout(size, tried), best)
    return best, seconds


def _best_of(source: Source, request: Request, best: Candidate) -> tuple[Candidate, list[float]]:
    """Return the candidate that replaces ``best``, or ``best``, and its seconds."""
    first = source.measure(request).by_candidate()
    quickest = min(sorted(first), key=lambda candidate: first[candidate])
    if min(first[quickest]) < LONG_SECONDS:
        field = Field(request.candidates, (frozenset(request.candidates),))
        samples = race(source, request, field, budget=0)
        best = choose(samples, best, best)
        return best, list(samples[best].seconds)
    both = tuple(dict.fromkeys((quickest, best)))
    second = source.measure(replace(request, candidates=both)).by_candidate()
    seconds = {candidate: [*first[candidate], *second[candidate]] for candidate in both}
    if min(seconds[quickest]) < (1 - MARGIN) * min(seconds[best]):
        best = quickest
    return best, seconds[best]
