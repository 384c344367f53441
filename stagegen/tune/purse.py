"""The time of a whole tuning: counts what commands take, and says when none is left.

Each record of the log says how long its command took. So a search on a log spends its time as the
live one did, and ends with the same tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagegen.measure.records import Candidate, CandidateFailed, Check, Measurement, Request
from stagegen.measure.source import Source
from stagegen.topology import WHOLE


class BudgetSpent(Exception):  # noqa: N818 - a message to the search
    """The time for tuning is over; what was measured stays known."""


@dataclass
class Purse:
    """The time that may be spent.

    Attributes:
        total: seconds for the whole tuning.
        spent: seconds that commands have taken.
        start: seconds that the last start of a launch took.
    """

    total: float
    spent: float = 0.0
    start: float = 0.0

    @property
    def left(self) -> float:
        """The seconds that the whole tuning has left."""
        return max(0.0, self.total - self.spent)

    def require(self) -> None:
        """Let a command begin.

        Raises:
            BudgetSpent: the time is over.
        """
        if self.spent >= self.total:
            raise BudgetSpent


class PaidSource:
    """A source whose commands take time from a purse.

    Old logs do not say how long a command took. There, a measurement costs the time of its calls,
    and a check nothing.

    Args:
        source: of checks and measurements.
        purse: the one that pays.
    """

    def __init__(self, source: Source, purse: Purse):
        self._source = source
        self._purse = purse
        self._launch: int | None = None
        self._first_check: float | None = None

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Check one candidate after the other, as long as there is time.

        Raises:
            BudgetSpent: there is none.
        """
        checks: list[Check] = []
        for candidate in candidates:
            self._purse.require()
            checks += self._source.check(collective, (candidate,), communicator)
            took = checks[-1].took or 0.0
            self._purse.spent += took
            if self._launch is None:
                self._learn_start(took)
        return checks

    def measure(self, request: Request) -> Measurement:
        """Measure if there is time.

        Raises:
            BudgetSpent: there is none.
            CandidateFailed: one of the candidates cannot be timed; that took time, too.
        """
        self._purse.require()
        try:
            measurement = self._source.measure(request)
        except CandidateFailed as failed:
            self._purse.spent += failed.failure.took or 0.0
            raise
        calls = measurement.of_calls
        took = calls if measurement.took is None else measurement.took
        self._purse.spent += took
        if request.launch != self._launch:
            began = self._purse.start if self._launch is None else 0.0
            self._launch = request.launch
            self._purse.start = max(began, took - calls)
        return measurement

    def _learn_start(self, took: float) -> None:
        """Take the first check for one with a start, if it took longer than the next one.

        Outside the lab, checks run in the job that measures, and the first command is one.
        """
        if self._first_check is None:
            self._first_check = took
        else:
            self._purse.start = max(self._purse.start, self._first_check - took)
