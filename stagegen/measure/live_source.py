"""Makes checks and measurements in a session and logs them; survives failures.

Each launch is a job of its own; after a failure, it goes on in a new job.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from stagegen.catalogue.algorithm import NATIVE
from stagegen.errors import MeasurementError
from stagegen.measure.log import LogWriter
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Check,
    Failure,
    Measurement,
    Request,
    joined,
)
from stagegen.measure.rounds import Answer, Rounds
from stagegen.measure.session import Members, Session, SessionError
from stagegen.measure.watchdog import PATIENCE, Watchdog
from stagegen.topology import WHOLE

#: How often to try a command that ends or hangs the job, each time in a session of its own.
ATTEMPTS = 2

T = TypeVar("T")

_NATIVE = Candidate(NATIVE)
_EVENTS = logging.getLogger(__name__)


class LiveSource:
    """Makes measurements in a session and logs them; starts a new session after a failure.

    Args:
        start: starts a session.
        log: where records go as they are made.
        bound: lower bound in seconds of a collective and size, for time-outs.
        members: the ranks of each communicator but the whole.
        start_check: starts a session that only checks, if checks run elsewhere. Its ranks sleep
            while others are timed.
        patience: seconds that a command may take beyond a hundred times its bound; less where
            measurements have shown how long calls take (:mod:`stagegen.measure.watchdog`).
        build: builds what sessions run, before the first one; no command is said to take this time.
    """

    def __init__(
        self,
        start: Callable[[], Session],
        log: LogWriter,
        bound: Callable[[str, int], float],
        members: Mapping[str, Members] | None = None,
        start_check: Callable[[], Session] | None = None,
        patience: float = PATIENCE,
        build: Callable[[], None] | None = None,
    ):
        self._log = log
        self._build = build
        self._watchdog = Watchdog(bound, patience)
        self._members: Mapping[str, Members] = {WHOLE: Members(), **(members or {})}
        self._timing = _Running(start)
        self._checking = _Running(start_check) if start_check else self._timing
        self._launch = 0
        self._rounds = Rounds(self._answers)
        self._together = True
        self._apart: set[tuple[str, str]] = set()

    def at_once(self, searches: Sequence[Callable[[], T]]) -> list[T]:
        """Run searches on communicators that share no link; time at once what they ask for.

        Raises:
            MeasurementError: as for :meth:`measure`; and what a search raises.
        """
        return self._rounds.run(searches)

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Check one candidate after the other; if one ends the job, it is wrong, not fatal.

        Raises:
            MeasurementError: no session can be started, which is no fault of a candidate.
        """
        return self._rounds.alone(lambda: self._check_each(collective, candidates, communicator))

    def _check_each(
        self, collective: str, candidates: Sequence[Candidate], communicator: str
    ) -> list[Check]:
        self._build_once()
        checks = []
        for candidate in candidates:
            begin = time.monotonic()
            check = self._check(collective, candidate, communicator)
            check = replace(check, took=_since(begin))
            self._log.write(check.to_json())
            checks.append(check)
        return checks

    def _check(self, collective: str, candidate: Candidate, communicator: str) -> Check:
        check = Check(collective, candidate, 0, -1, "", communicator)
        for attempt in range(ATTEMPTS):
            session = self._checking.open()
            limit = self._watchdog.of_check(collective, self._scale_of_checks(session), attempt)
            try:
                session.use({communicator: self._members[communicator]})
                begin = time.monotonic()
                (answer,) = session.check(collective, [candidate], limit, again=True)
            except SessionError as error:
                self._checking.close()
                _tell(error)
                check = replace(check, first_wrong=error.why, output=error.output)
            else:
                self._watchdog.checked(time.monotonic() - begin)
                return answer
        return check

    def _scale_of_checks(self, session: Session) -> float:
        """Return the factor of the links' rates; elsewhere, no message crosses such a link."""
        return session.scale if self._checking is self._timing else math.inf

    def measure(self, request: Request) -> Measurement:
        """Measure and log. After a failure find the candidate at fault; if none is, try again.

        If candidates fail together twice, and none fails alone, the times of each alone count. From
        then on, routines of the collective on these ranks have a command each.

        Raises:
            CandidateFailed: one of the candidates ends or hangs the job also when it is timed
                alone, and the native routine does not. This is logged.
            MeasurementError: no session can be started, or the native routine fails alone.
                Names the algorithms and the size.
        """
        return self._rounds.measure(request)

    def _answers(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests, together if that is possible; if that fails, each alone."""
        self._build_once()
        begin = time.monotonic()
        if not self._together or not _may_be_together(requests):
            return [self._answer(request) for request in requests]
        with suppress(SessionError):
            return list(self._measure_together(requests))
        lost = _since(begin) / len(requests)
        answers = [self._answer(request, lost) for request in requests]
        if not any(isinstance(answer, MeasurementError) for answer in answers):
            self._together = False
            _EVENTS.warning("what failed together does not fail alone: all are timed in turn now")
        return answers

    def _answer(self, request: Request, lost: float = 0.0) -> Answer:
        try:
            return self._measure_alone(request, lost)
        except CandidateFailed as failed:
            return failed

    def _build_once(self) -> None:
        if self._build is not None:
            self._build()
            self._build = None

    def _begin(self, launch: int) -> None:
        """Have the next session in a launch, if it is another one."""
        if launch != self._launch:
            self._timing.close()
            self._launch = launch

    def _measure_together(self, requests: Sequence[Request]) -> Sequence[Measurement]:
        """Measure and log; each is said to take an equal share of the command's time."""
        begin = time.monotonic()
        self._begin(requests[0].launch)
        session = self._timing.open()
        try:
            session.use({one.communicator: self._members[one.communicator] for one in requests})
            limit = max(self._watchdog.of(request, session.scale) for request in requests)
            asked = time.monotonic()
            measured = session.measure_together(requests, limit)
        except SessionError as error:
            self._timing.close()
            _tell(error)
            raise
        self._watchdog.measured_together(measured, time.monotonic() - asked)
        names = [request.communicator for request in requests]
        share = round(_since(begin) / len(requests), 6)
        told = [
            replace(
                one, took=share, beside=tuple(n for n in names if n != one.request.communicator)
            )
            for one in measured
        ]
        self._log.write(*(one.to_json() for one in told))
        return told

    def _measure_alone(self, request: Request, lost: float) -> Measurement:
        """Measure on one communicator, after ``lost`` seconds of an attempt with others."""
        begin = time.monotonic() - lost
        self._begin(request.launch)
        try:
            parts = self._parts(request)
        except CandidateFailed as failed:
            failure = replace(failed.failure, took=_since(begin))
            self._log.write(failure.to_json())
            raise CandidateFailed(failure) from failed
        share = round(_since(begin) / len(parts), 6)
        parts = [replace(part, took=share) for part in parts]
        # All or none of them: what is logged of a request is an answer to all of it.
        self._log.write(*(part.to_json() for part in parts))
        return joined(request, parts)

    def _parts(self, request: Request) -> list[Measurement]:
        """Measure all candidates, or each in a command of its own if some only fail together."""
        place = request.collective, request.communicator
        if place in self._apart and len(request.candidates) > 1:
            each = (replace(request, candidates=(one,)) for one in request.candidates)
            return [part for one in each for part in self._parts(one)]
        alone: list[Measurement] = []
        for attempt in range(ATTEMPTS):
            try:
                return [self._measure(request, attempt)]
            except SessionError as error:
                alone = self._each_alone(request, error)
        if len(alone) > 1:
            self._apart.add(place)
            _EVENTS.warning(
                "what failed together does not fail alone: "
                "routines of %s on %s have a command each from now on",
                *place,
            )
        return alone

    def _measure(self, request: Request, attempt: int) -> Measurement:
        session = self._timing.open()
        try:
            session.use({request.communicator: self._members[request.communicator]})
            late = session.make_late(request) if request.timing.arrivals else 0.0
            limit = self._watchdog.of(request, session.scale, attempt, late)
            begin = time.monotonic()
            measurement = session.measure(request, limit)
        except SessionError as error:
            self._timing.close()
            _tell(error)
            raise
        self._watchdog.measured(measurement, time.monotonic() - begin, late)
        return measurement

    def _each_alone(self, request: Request, cause: SessionError) -> list[Measurement]:
        """Time each candidate alone, after they failed together.

        The native routine comes first: if it fails, no candidate is at fault.

        Raises:
            CandidateFailed: a candidate fails alone, too.
            SessionError: the native routine does.
        """
        found: dict[Candidate, Measurement] = {}
        for candidate in dict.fromkeys((_NATIVE, *request.candidates)):
            try:
                alone = replace(request, candidates=(candidate,))
                found[candidate] = self._measure(alone, attempt=1)
            except SessionError as error:
                if candidate == _NATIVE:
                    raise
                failure = Failure(
                    request.collective,
                    request.size,
                    candidate,
                    error.why,
                    request.communicator,
                    error.output,
                )
                raise CandidateFailed(failure) from cause
        return [found[candidate] for candidate in request.candidates]

    def close(self) -> None:
        """End the sessions that are open."""
        self._timing.close()
        self._checking.close()


def _may_be_together(requests: Sequence[Request]) -> bool:
    """Whether requests may be measured at the same time: in one launch, and no rank comes late."""
    late = any(request.timing.arrivals for request in requests)
    return len(requests) > 1 and len({one.launch for one in requests}) == 1 and not late


def _since(begin: float) -> float:
    """Return the seconds since then, in microseconds: a log holds them as they are."""
    return round(time.monotonic() - begin, 6)


def _tell(error: SessionError) -> None:
    """Write to the run's events what failed and what the job said."""
    _EVENTS.warning("%s", error)


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
