"""Checks before timing: every routine must give the native one's results, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stagegen.catalogue import Algorithm
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Candidate, Check
from stagegen.measure.source import Source
from stagegen.tune.candidates import variants


def find_wrong(
    source: Source,
    collective: str,
    communicator: str,
    algorithms: Sequence[Algorithm],
    progress: Callable[[str], None],
) -> tuple[Check, ...]:
    """Compare every routine, with every value of its parameters, with the native one.

    Compositions are left out, as their parts are not known yet.

    Returns:
        The checks of the wrong ones.

    Raises:
        MeasurementError: no session can be started, or the log lacks a check.
    """
    candidates = (
        candidate
        for algorithm in algorithms
        if algorithm.name != NATIVE and not algorithm.parts
        for candidate in variants(algorithm)
    )
    return find_wrong_among(source, collective, communicator, candidates, progress)


def find_wrong_among(
    source: Source,
    collective: str,
    communicator: str,
    candidates: Iterable[Candidate],
    progress: Callable[[str], None],
) -> tuple[Check, ...]:
    """Compare candidates, compositions with their parts included, with the native routine.

    Results and errors are the same as for :func:`find_wrong`.
    """
    distinct = tuple(dict.fromkeys(candidates))
    progress(f"{collective}: checking")
    checks = source.check(collective, distinct, communicator) if distinct else []
    return tuple(check for check in checks if check.wrong != 0)
