"""Making checks and measurements in a session, and logging them; surviving what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stagegen.errors import MeasurementError
from stagegen.measure.log import LogWriter
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
    Request,
)
from stagegen.measure.session import Session
from stagegen.repository.algorithm import NATIVE

#: Seconds that a command may take beyond a hundred times its lower bound.
PATIENCE = 120.0

#: A check has at most about so many cases, of at most about so many bytes.
CHECK_CASES = 100
CHECK_SIZE = 16 * 1024

#: A command that ends or hangs the job is tried so often, each time in a session of its own.
ATTEMPTS = 2

_NATIVE = Candidate(NATIVE)


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
            check = self._check(collective, candidate)
            self._log.write(check.to_json())
            checks.append(check)
        return checks

    def _check(self, collective: str, candidate: Candidate) -> Check:
        why = ""
        for _ in range(ATTEMPTS):
            session = self._open()
            timeout = self._timeout(session, collective, CHECK_SIZE, CHECK_CASES)
            try:
                (check,) = session.check(collective, [candidate], timeout)
            except MeasurementError as error:
                self.close()
                why = str(error).splitlines()[0]
            else:
                return check
        return Check(collective, candidate, 0, -1, why)

    def measure(self, request: Request) -> Measurement:
        """Measure and log; after a failure once more, then find out whose fault it is.

        Raises:
            CandidateFailed: one of the candidates ends or hangs the job also when it is timed
                alone, and the native routine does not. This is logged.
            MeasurementError: no session can be started, or no candidate is to blame. It says
                at which algorithms and size.
        """
        errors = []
        for _ in range(ATTEMPTS):
            session = self._open()
            try:
                measurement = self._measure(session, request)
            except MeasurementError as error:
                errors.append(error)
            else:
                self._log.write(measurement.to_json())
                return measurement
        raise self._culprit(request) or errors[-1]

    def _measure(self, session: Session, request: Request) -> Measurement:
        calls = (request.calls + request.settle) * request.repetitions * len(request.candidates)
        timeout = self._timeout(session, request.collective, request.size, calls)
        try:
            return session.measure(request, timeout)
        except MeasurementError:
            self.close()
            raise

    def _culprit(self, request: Request) -> CandidateFailed | None:
        """Return the failure of the first candidate that fails alone, after logging it.

        The native routine comes first: where that fails, nobody else is to blame.
        """
        self._measure(self._open(), replace(request, candidates=(_NATIVE,)))
        for candidate in request.candidates:
            if candidate == _NATIVE:
                continue
            session = self._open()
            try:
                self._measure(session, replace(request, candidates=(candidate,)))
            except MeasurementError as error:
                why = str(error).splitlines()[0]
                failure = Failure(request.collective, request.size, candidate, why)
                self._log.write(failure.to_json())
                return CandidateFailed(failure)
        return None

    def _timeout(self, session: Session, collective: str, size: int, calls: int) -> float:
        return PATIENCE + 100 * calls * self._bound(collective, size) / session.scale

    def close(self) -> None:
        """End the session, if one is open."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _open(self) -> Session:
        if self._session is None:
            self._session = self._start()
        return self._session
