"""The narrow waist: search asks for measurements; they come from a log, or are made and logged.

The same search on the same log asks for the same things in the same order, so a log alone
reproduces every choice; and a search that was stopped goes on where its log ends.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from stagegen.errors import MeasurementError
from stagegen.measure.records import (
    WHOLE,
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
    Request,
)


class Source(Protocol):
    """Where checks and measurements come from."""

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Compare candidates with the native routine on some ranks."""

    def measure(self, request: Request) -> Measurement:
        """Time candidates in turn; raises CandidateFailed where one of them ends the job."""


class LogSource:
    """Answers from the records of a log; hands on to ``live`` what the log does not hold.

    A routine that did not end when it was checked is checked again where that can be done:
    the fault may have been the machine's.

    Args:
        records: of the log, without its header, as :func:`stagegen.measure.log.read_log`
            returns them.
        live: makes what is missing, or None: then it is an error.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]], live: Source | None = None):
        self._live = live
        self._checks: dict[tuple[str, str, Candidate], Check] = {}
        self._measured: dict[Request, deque[Measurement]] = defaultdict(deque)
        self._failures: list[Failure] = []
        for record in records:
            self._add(record)

    def _add(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "check":
            self._keep(Check.from_json(record))
        elif record["kind"] == "measurement":
            one = Measurement.from_json(record)
            self._measured[one.request].append(one)
        elif record["kind"] == "failure":
            self._failures.append(Failure.from_json(record))

    def _keep(self, check: Check) -> None:
        self._checks[check.collective, check.communicator, check.candidate] = check

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
        check = self._checks.get((collective, communicator, candidate))
        return check is not None and (check.ended or self._live is None)

    def measure(self, request: Request) -> Measurement:
        """Answer from the log; of equal requests the first gets the first answer.

        What has no answer has a failure, if the log goes on after it: the first one that is
        left of one of its candidates at its size.
        """
        if self._measured[request]:
            return self._measured[request].popleft()
        for failure in self._failures:
            if _is_of(failure, request):
                self._failures.remove(failure)
                raise CandidateFailed(failure)
        return self._from_live(f"{request.collective} of {request.size} bytes").measure(request)

    def _from_live(self, what: str) -> Source:
        if self._live is None:
            raise MeasurementError(f"the log lacks {what}; go on measuring with --resume")
        return self._live


def _is_of(failure: Failure, request: Request) -> bool:
    return (
        (failure.collective, failure.communicator, failure.size)
        == (request.collective, request.communicator, request.size)
    ) and failure.candidate in request.candidates
