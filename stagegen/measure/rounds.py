"""Rounds: several searches go on in turn, and what they ask for is measured together.

A search waits for each answer before it knows its next request. So each search has a thread, and
they take turns: one runs until it asks, then the next one does. Only one thread runs at a time, so
searches need no locks, and their order is always the same. When all wait or have ended, the caller
of :meth:`Rounds.run` answers. It does so in its own thread, in which Python raises signals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar, cast

from stagegen.errors import MeasurementError
from stagegen.measure.records import Measurement, Request

T = TypeVar("T")

#: The answer to a request.
Answer: TypeAlias = Measurement | MeasurementError


class _AbandonedError(BaseException):
    """The caller does not wait for this search any more; nothing may catch it."""


@dataclass(frozen=True)
class _Found(Generic[T]):
    """A result, or the error in its place."""

    result: T | None = None
    error: BaseException | None = None

    def get(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


def _try(work: Callable[[], T]) -> _Found[T]:
    """Return what work returns or raises."""
    try:
        return _Found(work())
    except BaseException as error:
        return _Found(error=error)


class _Search(Generic[T]):
    """A search in a thread of its own.

    The turn is handed over by queues, which a signal's exception leaves whole.

    Args:
        work: the search.
        here: thread-local data, by which code in the thread finds its search.
    """

    def __init__(self, work: Callable[[], T], here: threading.local):
        self._work = work
        self._here = here
        self._answers: SimpleQueue[_Found[Any] | None] = SimpleQueue()
        self._over: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_begun = False
        #: What it waits for: the answer to a request, or work that the caller does for it.
        self.wish: Request | Callable[[], Any] | None = None
        #: What it found; None while it goes on.
        self.found: _Found[T] | None = None

    def begin(self) -> None:
        """Let it run until it waits or ends."""
        self._is_begun = True
        self._thread.start()
        self.go_on(_Found())

    def go_on(self, answer: _Found[Any]) -> None:
        """Give it an answer, and let it run until it waits again or ends."""
        self.wish = None
        self._answers.put(answer)
        self._over.get()

    def wait_for(self, wish: Request | Callable[[], Any]) -> Any:
        """In its thread: let the others go on until there is an answer; return it, or raise it."""
        self.wish = wish
        self._over.put(None)
        return self._take_turn()

    def abandon(self) -> None:
        """Make it end: now if it waits, else as soon as it waits next."""
        self._answers.put(None)
        if self._is_begun and self._thread.ident is not None:
            self._thread.join()

    def _take_turn(self) -> Any:
        answer = self._answers.get()
        if answer is None:
            raise _AbandonedError
        return answer.get()

    def _run(self) -> None:
        self._here.search = self

        def work() -> T:
            self._take_turn()
            return self._work()

        self.found = _try(work)
        self._over.put(None)


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
        try:
            for search in begun:
                search.begin()
                _require(search)
            while left := [search for search in begun if search.found is None]:
                for search, answer in zip(left, self._answers(left), strict=True):
                    search.go_on(answer)
                    _require(search)
        finally:
            for search in begun:
                search.abandon()
        return [search.found.get() for search in begun if search.found]

    def measure(self, request: Request) -> Measurement:
        """Answer a request: with those of the other searches that run, or at once.

        Raises:
            MeasurementError: the answer.
        """
        search = self._own()
        if search is not None:
            return cast(Measurement, search.wait_for(request))
        (answer,) = self._answer([request])
        return _found(answer).get()

    def alone(self, work: Callable[[], T]) -> T:
        """Do work that no other search takes part in, in the caller's thread; return its result.

        Raises:
            Exception: what the work raises.
        """
        search = self._own()
        return work() if search is None else cast(T, search.wait_for(work))

    def _own(self) -> _Search[Any] | None:
        """Return the search of this thread; None if it has none."""
        return getattr(self._here, "search", None)

    def _answers(self, searches: Sequence[_Search[Any]]) -> list[_Found[Any]]:
        """Return what searches wait for: first do the work for single ones, then the requests."""
        found = {
            search: _of_work(search.wish)
            for search in searches
            if not isinstance(search.wish, Request) and search.wish is not None
        }
        asked = {search: search.wish for search in searches if isinstance(search.wish, Request)}
        if asked:
            answers = self._answer(list(asked.values()))
            found |= dict(zip(asked, map(_found, answers), strict=True))
        return [found[search] for search in searches]


def _require(search: _Search[Any]) -> None:
    """Raise what a search has ended with, if it is an error."""
    if search.found is not None:
        search.found.get()


def _found(answer: Answer) -> _Found[Measurement]:
    return _Found(error=answer) if isinstance(answer, MeasurementError) else _Found(answer)


def _of_work(work: Callable[[], T]) -> _Found[T]:
    """Return what work for a search returns, or how it failed; other errors end all searches."""
    try:
        return _Found(work())
    except MeasurementError as error:
        return _Found(error=error)
