"""Before anything is timed: every routine has to give what the native one gives, byte by byte."""

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

    Not compositions, whose parts are not known yet.

    Returns:
        The checks of those that are wrong.

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
    """Compare these candidates, of compositions with their parts, with the native routine.

    Returns, raises: as above.
    """
    distinct = tuple(dict.fromkeys(candidates))
    progress(f"{collective}: checking")
    checks = source.check(collective, distinct, communicator) if distinct else []
    return tuple(check for check in checks if check.wrong != 0)
