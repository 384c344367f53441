"""Signals that ask a command to end: it ends in order, and its exit status says which it was.

Batch systems send SIGTERM when a job's time is over, and some SIGUSR1, SIGUSR2 or SIGXCPU a while
before. A terminal sends SIGINT, or SIGHUP when it is closed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from stagegen.errors import StagegenError

ENDINGS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXCPU,
)

#: What a signal does by default.
_DEFAULTS = (signal.SIG_DFL, signal.default_int_handler)


class Stopped(BaseException):
    """A signal asked the command to end.

    Attributes:
        signal: which one.
    """

    def __init__(self, number: int):
        self.signal = signal.Signals(number)
        super().__init__(self.signal.name)


class StoppedError(StagegenError):
    """A signal ended the command, in order; a message says what is left to do.

    Attributes:
        exit_status: what a shell reports of a command that the signal ended.
    """

    def __init__(self, stopped: Stopped, message: str):
        super().__init__(message)
        self.exit_status = 128 + stopped.signal


class Endings:
    """Raises :class:`Stopped` at the first signal; later ones find the command ending already."""

    def __init__(self) -> None:
        self._is_ending = False

    def finish(self) -> None:
        """Ignore signals from now on: the command is about to end by itself."""
        self._is_ending = True

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
        if not self._is_ending:
            self._is_ending = True
            raise Stopped(number)


@contextmanager
def endings() -> Iterator[Endings]:
    """Take the signals that ask for the end, but none that the starter has set to be ignored.

    Raises:
        StoppedError: a signal ended the body of the `with`.
    """
    taken = Endings()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {n: h for n in ENDINGS if (h := signal.getsignal(n)) in _DEFAULTS}
    try:
        for number in before:
            signal.signal(number, taken)
        yield taken
    except Stopped as stopped:
        raise StoppedError(stopped, f"ended by {stopped}") from None
    finally:
        for number, handler in before.items():
            with suppress(ValueError):
                signal.signal(number, handler)
