"""Checks before timing: every routine must give the native one's results, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from stagegen.catalogue import Algorithm
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
    Request,
)
from stagegen.measure.source import Source
from stagegen.topology import WHOLE
from stagegen.tune.candidates import default_candidate


class CandidateWrong(CandidateFailed):
    """One candidate of a request does not give the native routine's results."""


class CheckedSource:
    """A source that times no candidate before it has been checked on the same ranks.

    Most routines are checked with the defaults of their parameters before the search begins.
    Anything else is checked here, right before it is timed for the first time: other values, and
    all routines in jobs on parts of the cluster.

    A check that does not end takes minutes, and its routine is left out everywhere. So from then on
    the routine is not checked: neither with other values of its parameters nor on other ranks.

    Args:
        source: of checks and measurements.
    """

    def __init__(self, source: Source):
        self._source = source
        self._right: set[tuple[str, str, Candidate]] = set()
        self._unended: dict[tuple[str, str], Check] = {}

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Compare candidates with the native routine on some ranks; return the checks made."""
        checks: list[Check] = []
        for candidate in candidates:
            routine = (collective, candidate.algorithm)
            if routine in self._unended:
                continue
            (check,) = self._source.check(collective, (candidate,), communicator)
            checks.append(check)
            if check.wrong == 0:
                self._right.add((collective, communicator, candidate))
            elif not check.ended:
                self._unended[routine] = check
        return checks

    def measure(self, request: Request) -> Measurement:
        """Check the candidates that were not checked yet, and time all.

        Raises:
            CandidateWrong: one of the candidates is wrong, or does not end when it is checked.
            CandidateFailed: one of them ends or hangs the job when it is timed.
            MeasurementError: the measurement failed.
        """
        unchecked = tuple(
            candidate
            for candidate in request.candidates
            if candidate.algorithm != NATIVE
            and (request.collective, request.communicator, candidate) not in self._right
        )
        if unchecked:
            for check in self.check(request.collective, unchecked, request.communicator):
                if check.wrong != 0:
                    raise CandidateWrong(_failure(request, check))
            for candidate in unchecked:
                if unended := self._unended.get((request.collective, candidate.algorithm)):
                    where = f"it did not end its check on {unended.communicator}"
                    check = replace(unended, candidate=candidate, first_wrong=where)
                    raise CandidateWrong(_failure(request, check))
        return self._source.measure(request)


def _failure(request: Request, check: Check) -> Failure:
    return Failure(
        request.collective,
        request.size,
        check.candidate,
        f"wrong: {check.first_wrong or 'it did not end'}",
        request.communicator,
        in_check=True,
    )


def find_wrong(
    source: Source,
    collective: str,
    communicator: str,
    algorithms: Sequence[Algorithm],
    progress: Callable[[str], None],
) -> tuple[Check, ...]:
    """Compare every routine, with the defaults of its parameters, with the native one.

    Compositions are left out, as their parts are not known yet.

    Args:
        source: of the checks.
        collective: of the algorithms.
        communicator: its name.
        algorithms: to check.
        progress: called with a text.

    Returns:
        The checks of the wrong ones.

    Raises:
        MeasurementError: no session can be started, or the log lacks a check.
    """
    candidates = (
        default_candidate(algorithm)
        for algorithm in algorithms
        if algorithm.name != NATIVE and not algorithm.parts
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

    After a check that did not end, :class:`CheckedSource` makes no other check of its routine.
    Results and errors are the same as for :func:`find_wrong`.
    """
    distinct = tuple(dict.fromkeys(candidates))
    progress(f"{collective}: checking")
    checks = source.check(collective, distinct, communicator) if distinct else []
    return tuple(check for check in checks if check.wrong != 0)
