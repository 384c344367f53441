"""Makes checks and measurements in a session and logs them; survives failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from stagegen.catalogue.algorithm import NATIVE
from stagegen.errors import MeasurementError
from stagegen.measure.log import LogWriter
from stagegen.measure.records import (
    WHOLE,
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
    Request,
)
from stagegen.measure.session import Session

#: Seconds that a command may take beyond a hundred times its lower bound.
PATIENCE = 120.0

#: A check has at most about CHECK_CASES cases, of at most about CHECK_SIZE bytes.
CHECK_CASES = 100
CHECK_SIZE = 16 * 1024

#: How often to try a command that ends or hangs the job, each time in a session of its own.
ATTEMPTS = 2

_NATIVE = Candidate(NATIVE)


class LiveSource:
    """Makes measurements in a session and logs them; starts a new session after a failure.

    Args:
        start: starts a session.
        log: where records go as they are made.
        bound: lower bound in seconds of a collective and size, for time-outs.
        ranks: the job's ranks of each communicator but the whole.
        start_check: starts a session that only checks, if checks run elsewhere.
    """

    def __init__(
        self,
        start: Callable[[], Session],
        log: LogWriter,
        bound: Callable[[str, int], float],
        ranks: Mapping[str, Sequence[int]] | None = None,
        start_check: Callable[[], Session] | None = None,
    ):
        self._log = log
        self._bound = bound
        self._ranks: Mapping[str, Sequence[int]] = {WHOLE: (), **(ranks or {})}
        self._timing = _Running(start)
        self._checking = _Running(start_check) if start_check else self._timing

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Check one candidate after the other; if one ends the job, it is wrong, not fatal.

        Raises:
            MeasurementError: no session can be started, which is no fault of a candidate.
        """
        checks = []
        for candidate in candidates:
            check = self._check(collective, candidate, communicator)
            self._log.write(check.to_json())
            checks.append(check)
        return checks

    def _check(self, collective: str, candidate: Candidate, communicator: str) -> Check:
        why = ""
        for _ in range(ATTEMPTS):
            session = self._checking.open()
            timeout = self._timeout(session, collective, CHECK_SIZE, CHECK_CASES)
            try:
                session.use(communicator, self._ranks[communicator])
                (check,) = session.check(collective, [candidate], timeout)
            except MeasurementError as error:
                self._checking.close()
                why = str(error).splitlines()[0]
            else:
                return check
        return Check(collective, candidate, 0, -1, why, communicator)

    def measure(self, request: Request) -> Measurement:
        """Measure and log; after a failure try again, then find the candidate at fault.

        Raises:
            CandidateFailed: one of the candidates ends or hangs the job even when it is timed
                alone, and the native routine does not. This is logged.
            MeasurementError: no session can be started, or no candidate is at fault.
                Names the algorithms and the size.
        """
        if self._checking is not self._timing:
            self._checking.close()  # its ranks are not to compete with those that are timed
        errors = []
        for _ in range(ATTEMPTS):
            session = self._timing.open()
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
            session.use(request.communicator, self._ranks[request.communicator])
            return session.measure(request, timeout)
        except MeasurementError:
            self._timing.close()
            raise

    def _culprit(self, request: Request) -> CandidateFailed | None:
        """Return the failure of the first candidate that fails alone, after logging it.

        The native routine comes first: if it fails, no candidate is at fault.
        """
        self._measure(self._timing.open(), replace(request, candidates=(_NATIVE,)))
        for candidate in request.candidates:
            if candidate == _NATIVE:
                continue
            session = self._timing.open()
            try:
                self._measure(session, replace(request, candidates=(candidate,)))
            except MeasurementError as error:
                why = str(error).splitlines()[0]
                failure = Failure(
                    request.collective, request.size, candidate, why, request.communicator
                )
                self._log.write(failure.to_json())
                return CandidateFailed(failure)
        return None

    def _timeout(self, session: Session, collective: str, size: int, calls: int) -> float:
        return PATIENCE + 100 * calls * self._bound(collective, size) / session.scale

    def close(self) -> None:
        """End the sessions that are open."""
        self._timing.close()
        self._checking.close()


class _Running:
    """At most one session: started when it is needed, and again after it was closed."""

    def __init__(self, start: Callable[[], Session]):
        self._start = start
        self._session: Session | None = None

    def open(self) -> Session:
        if self._session is None:
            self._session = self._start()
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
