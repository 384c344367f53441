"""The narrow waist: search asks for measurements; they come from a log, or are made and logged.

The same search on the same log asks for the same measurements in the same order, so a log alone
reproduces every choice; and a search that was stopped goes on where its log ends.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from stagegen.errors import MeasurementError
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
    Request,
)
from stagegen.topology import WHOLE

#: After so many checks that did not end, in as many runs, the fault is the routine's.
DOUBTS = 2


class Source(Protocol):
    """Where checks and measurements come from."""

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Compare candidates with the native routine on some ranks."""

    def measure(self, request: Request) -> Measurement:
        """Time candidates in turn; raises CandidateFailed where one of them ends the job."""


class LogSource:
    """Answers from the records of a log; passes on to ``live`` what the log does not hold.

    A routine that did not end when it was checked is checked again if there is a ``live``, as the
    fault may have been the machine's; but not if the log has :data:`DOUBTS` such checks.

    Args:
        records: of the log, without its header, as :func:`stagegen.measure.log.read_log`
            returns them.
        live: makes what is missing; if None, a missing record is an error.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]], live: Source | None = None):
        self._live = live
        self._checks: dict[tuple[str, str, Candidate], Check] = {}
        self._unended: Counter[tuple[str, str, Candidate]] = Counter()
        self._measured: dict[Request, deque[_Answer]] = defaultdict(deque)
        self._failures: list[Failure] = []
        for record in records:
            self._add(record)

    def _add(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "check":
            self._keep(Check.from_json(record))
        elif record["kind"] == "measurement":
            one = Measurement.from_json(record)
            for candidate, answer in _answers(one).items():
                self._measured[_of_one(one.request, candidate)].append(answer)
        elif record["kind"] == "failure":
            self._failures.append(Failure.from_json(record))

    def _keep(self, check: Check) -> None:
        key = check.collective, check.communicator, check.candidate
        self._checks[key] = check
        self._unended[key] += not check.ended

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Answer from the log, the rest live."""
        missing = tuple(c for c in candidates if not self._is_checked(collective, communicator, c))
        if missing:
            live = self._from_live(f"checks of {collective}")
            for check in live.check(collective, missing, communicator):
                self._keep(check)
        return [self._checks[collective, communicator, candidate] for candidate in candidates]

    def _is_checked(self, collective: str, communicator: str, candidate: Candidate) -> bool:
        key = collective, communicator, candidate
        check = self._checks.get(key)
        final = self._live is None or self._unended[key] >= DOUBTS
        return check is not None and (check.ended or final)

    def measure(self, request: Request) -> Measurement:
        """Answer from the log, each candidate on its own; measure the rest live.

        The first of equal requests gets the first answer. A candidate without an answer may have a
        failure in the log: the first unused one at the request's size is raised.
        """
        pools = {c: self._measured[_of_one(request, c)] for c in request.candidates}
        missing = tuple(candidate for candidate, pool in pools.items() if not pool)
        wanted = replace(request, candidates=missing)
        for failure in self._failures:
            if _is_of(failure, wanted):
                self._failures.remove(failure)
                raise CandidateFailed(failure)
        answers: dict[Candidate, _Answer] = {}
        if missing:
            live = self._from_live(f"{request.collective} of {request.size} bytes")
            answers = _answers(live.measure(wanted))
        found = [answers[c] if c in answers else pools[c].popleft() for c in request.candidates]
        took = [share for _, share in found if share is not None]
        together = sum(took) if len(took) == len(found) else None
        return Measurement(request, tuple(seconds for seconds, _ in found), took=together)

    def _from_live(self, what: str) -> Source:
        if self._live is None:
            raise MeasurementError(f"the log lacks {what}; go on measuring with --resume")
        return self._live


#: The repetitions of one candidate, and its share of what the command took; None in old logs.
_Answer: TypeAlias = tuple[tuple[float, ...], float | None]


def _answers(measurement: Measurement) -> dict[Candidate, _Answer]:
    """Return the answer of each candidate; all have an equal share of the command's time."""
    took = measurement.took
    share = None if took is None else took / len(measurement.seconds)
    return {candidate: (one, share) for candidate, one in measurement.by_candidate().items()}


def _of_one(request: Request, candidate: Candidate) -> Request:
    """Return the part of a request that is for one of its candidates."""
    return replace(request, candidates=(candidate,), timing=request.timing.recorded)


def _is_of(failure: Failure, request: Request) -> bool:
    return (
        (failure.collective, failure.communicator, failure.size)
        == (request.collective, request.communicator, request.size)
    ) and failure.candidate in request.candidates
