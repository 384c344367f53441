"""The narrow waist: search asks for measurements; they come from a log, or are made and logged.

The same search on the same log asks for the same things in the same order, so a log alone
reproduces every choice; and a search that was stopped goes on where its log ends.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from stagegen.errors import InputError, MeasurementError
from stagegen.measure.log import LogWriter
from stagegen.measure.records import Candidate, Check, Measurement, Request
from stagegen.measure.session import Session

#: Seconds that a command may take beyond a hundred times its lower bound.
PATIENCE = 120.0


class Source(Protocol):
    """Where checks and measurements come from."""

    def check(self, collective: str, candidates: tuple[Candidate, ...]) -> list[Check]:
        """Compare candidates with the native routine."""

    def measure(self, request: Request) -> Measurement:
        """Time candidates in turn."""


class LogSource:
    """Answers from the records of a log; hands on to ``live`` what the log does not hold.

    Args:
        records: of the log, without its header.
        live: makes what is missing, or None: then it is an error.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]], live: Source | None = None):
        self._live = live
        self._checks: dict[tuple[str, Candidate], Check] = {}
        self._measured: dict[Request, deque[Measurement]] = defaultdict(deque)
        for number, record in enumerate(records, start=2):
            try:
                self._add(record)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise InputError(f"line {number} of the log is damaged: {error!r}") from error

    def _add(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "check":
            check = Check.from_json(record)
            self._checks[check.collective, check.candidate] = check
        elif record["kind"] == "measurement":
            one = Measurement.from_json(record)
            self._measured[one.request].append(one)

    def check(self, collective: str, candidates: tuple[Candidate, ...]) -> list[Check]:
        """Answer from the log, the rest live."""
        missing = tuple(c for c in candidates if (collective, c) not in self._checks)
        if missing:
            for check in self._from_live(f"checks of {collective}").check(collective, missing):
                self._checks[collective, check.candidate] = check
        return [self._checks[collective, candidate] for candidate in candidates]

    def measure(self, request: Request) -> Measurement:
        """Answer from the log; of equal requests the first gets the first answer."""
        if self._measured[request]:
            return self._measured[request].popleft()
        return self._from_live(f"{request.collective} of {request.size} bytes").measure(request)

    def _from_live(self, what: str) -> Source:
        if self._live is None:
            raise MeasurementError(f"the log lacks {what}; go on measuring with --resume")
        return self._live


class LiveSource:
    """Makes measurements in a session and logs them; starts a new session after a failure.

    Args:
        start: starts a session.
        log: where records go as they are made.
        bound: lower bound in seconds of a collective and size, for time-outs.
    """

    def __init__(
        self,
        start: Callable[[], Session],
        log: LogWriter,
        bound: Callable[[str, int], float],
    ):
        self._start = start
        self._log = log
        self._bound = bound
        self._session: Session | None = None

    def check(self, collective: str, candidates: tuple[Candidate, ...]) -> list[Check]:
        """Check one candidate after the other; one that ends the job is wrong, not fatal.

        Raises:
            MeasurementError: no session can be started, which is no fault of a candidate.
        """
        checks = []
        for candidate in candidates:
            session = self._open()
            try:
                (check,) = session.check(collective, [candidate], PATIENCE)
            except MeasurementError as error:
                self._drop()
                check = Check(collective, candidate, 0, -1, str(error).splitlines()[0])
            self._log.write(check.to_json())
            checks.append(check)
        return checks

    def measure(self, request: Request) -> Measurement:
        """Measure and log.

        Raises:
            MeasurementError: the job failed; it says at which algorithm and size.
        """
        calls = request.calls * request.repetitions * len(request.candidates)
        timeout = PATIENCE + 100 * calls * self._bound(request.collective, request.size)
        try:
            measurement = self._open().measure(request, timeout)
        except MeasurementError:
            self._drop()
            raise
        self._log.write(measurement.to_json())
        return measurement

    def close(self) -> None:
        """End the session, if one is open."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _open(self) -> Session:
        if self._session is None:
            self._session = self._start()
        return self._session

    def _drop(self) -> None:
        self.close()
