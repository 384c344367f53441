"""Rounds: several searches go on in turn, and what they ask for is measured together.

A search asks, waits for the answer and decides what to ask next, so it cannot ask for two searches.
Each search has a thread. Only one thread runs at a time, so they need no locks, and their order is
always the same: each runs until it asks, then the next one does. When all wait or have ended, the
caller of :meth:`Rounds.run` answers, in its own thread, which gets the signals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

from stagegen.errors import MeasurementError
from stagegen.measure.records import Measurement, Request

T = TypeVar("T")

#: The answer to a request.
Answer: TypeAlias = Measurement | MeasurementError


class _AbandonedError(BaseException):
    """The caller does not wait for this search any more; nothing may catch it."""


@dataclass
class _Wish:
    """What a search waits for.

    Attributes:
        what: a request, or work that the caller does for it alone.
        answer: to it.
    """

    what: Request | Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)


class _Search:
    """A search in a thread of its own.

    Args:
        work: the search.
        here: of its thread; gets to know the search.
    """

    def __init__(self, work: Callable[[], Any], here: threading.local):
        self._work = work
        self._here = here
        self._turn = threading.Semaphore(0)
        self._over = threading.Semaphore(0)
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.wish: _Wish | None = None
        self.result: Future[Any] = Future()

    def go_on(self) -> None:
        """Let it run until it waits or ends."""
        self.wish = None
        if self._thread.ident is None:
            self._thread.start()
        self._turn.release()
        self._over.acquire()

    def wait_for(self, what: Request | Callable[[], Any]) -> Any:
        """In its thread: let the others go on, until there is an answer; return it, or raise it."""
        wish = self.wish = _Wish(what)
        self._pause()
        return wish.answer.result()

    def _pause(self) -> None:
        self._over.release()
        self._turn.acquire()
        if self._abandoned:
            raise _AbandonedError

    def abandon(self) -> None:
        """End it, at the next time that it waits if it does not now."""
        self._abandoned = True
        self._turn.release()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        self._here.search = self
        self._turn.acquire()
        try:
            self.result.set_result(self._work())
        except BaseException as error:
            self.result.set_exception(error)
        self._over.release()


class Rounds:
    """Runs searches, and answers what they ask for in a round together.

    Args:
        answer: answers requests, of different communicators if there are several.
    """

    def __init__(self, answer: Callable[[Sequence[Request]], Sequence[Answer]]):
        self._answer = answer
        self._here = threading.local()

    def run(self, searches: Sequence[Callable[[], T]]) -> list[T]:
        """Run searches to their ends; return their results in order.

        Raises:
            Exception: the first that a search raises, or that answering does; no search goes on.
        """
        begun = [_Search(work, self._here) for work in searches]
        left = begun
        try:
            while left:
                for search in left:
                    search.go_on()
                    if search.result.done():
                        search.result.result()
                left = [search for search in left if not search.result.done()]
                self._answer_all([search.wish for search in left if search.wish])
        finally:
            for search in left:
                search.abandon()
        return [search.result.result() for search in begun]

    def measure(self, request: Request) -> Measurement:
        """Answer a request: with those of the other searches that run, or at once.

        Raises:
            MeasurementError: the answer.
        """
        search = self._own()
        if search is not None:
            return cast(Measurement, search.wait_for(request))
        (answer,) = self._answer([request])
        if isinstance(answer, MeasurementError):
            raise answer
        return answer

    def alone(self, work: Callable[[], T]) -> T:
        """Do work that no other search takes part in, in the caller's thread; return its result.

        Raises:
            Exception: what the work raises.
        """
        search = self._own()
        return work() if search is None else cast(T, search.wait_for(work))

    def _own(self) -> _Search | None:
        """Return the search of this thread; None if it has none."""
        return getattr(self._here, "search", None)

    def _answer_all(self, wishes: Sequence[_Wish]) -> None:
        """Answer what the searches of a round wait for."""
        together = [wish for wish in wishes if isinstance(wish.what, Request)]
        for wish in wishes:
            if not isinstance(wish.what, Request):
                _settle(wish, wish.what)
        requests = [wish.what for wish in together if isinstance(wish.what, Request)]
        if requests:
            for wish, answer in zip(together, self._answer(requests), strict=True):
                if isinstance(answer, MeasurementError):
                    wish.answer.set_exception(answer)
                else:
                    wish.answer.set_result(answer)


def _settle(wish: _Wish, work: Callable[[], Any]) -> None:
    try:
        wish.answer.set_result(work())
    except MeasurementError as error:
        wish.answer.set_exception(error)
