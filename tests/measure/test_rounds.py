"""Searches that go on in turn: their order, their answers, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from stagegen.errors import MeasurementError
from stagegen.measure.records import Candidate, Measurement, Request
from stagegen.measure.rounds import Answer, Rounds
from tests.measure.fakes import request

ONE = Candidate("flat")


def asked(size: int) -> Request:
    return request(ONE, size=size)


class Answers:
    """Answers with the size as the time; keeps the sizes of each round, and its thread."""

    def __init__(self, fails: int = -1):
        self.rounds: list[list[int]] = []
        self.threads: set[threading.Thread] = set()
        self._fails = fails

    def __call__(self, requests: Sequence[Request]) -> list[Answer]:
        self.rounds.append([one.size for one in requests])
        self.threads.add(threading.current_thread())
        return [
            MeasurementError("no answer")
            if one.size == self._fails
            else Measurement(one, ((float(one.size),),))
            for one in requests
        ]


def search(rounds: Rounds, sizes: Sequence[int]):
    """A search for the sum of the times of some sizes."""
    return lambda: sum(rounds.measure(asked(size)).seconds[0][0] for size in sizes)


def test_what_searches_ask_for_is_answered_together_until_they_end():
    answers = Answers()
    rounds = Rounds(answers)
    found = rounds.run([search(rounds, sizes) for sizes in ((1, 2, 3), (10,), (), (20, 30))])
    assert found == [6, 10, 0, 50]
    assert answers.rounds == [[1, 10, 20], [2, 30], [3]]
    assert answers.threads == {threading.current_thread()}


def test_outside_of_a_search_a_request_is_answered_at_once():
    answers = Answers(fails=5)
    rounds = Rounds(answers)
    assert rounds.measure(asked(4)).seconds == ((4.0,),)
    with pytest.raises(MeasurementError, match="no answer"):
        rounds.measure(asked(5))
    assert rounds.alone(threading.current_thread) == threading.current_thread()


def test_work_for_one_search_is_done_by_the_caller_before_the_requests_of_the_others():
    answers = Answers()
    rounds = Rounds(answers)
    order: list[str] = []

    def checks() -> int:
        thread = rounds.alone(lambda: order.append("check") or threading.current_thread())
        assert thread == main
        return rounds.measure(asked(5)).request.size

    main = threading.current_thread()
    assert rounds.run([search(rounds, (1,)), checks]) == [1, 5]
    assert order == ["check"]


def test_only_one_search_runs_at_a_time():
    answers = Answers()
    rounds = Rounds(answers)
    inside: list[int] = []

    def careful(name: int) -> int:
        for size in range(50):
            inside.append(name)
            assert inside == [name]
            inside.clear()
            rounds.measure(asked(size))
        return name

    assert rounds.run([lambda n=n: careful(n) for n in range(4)]) == [0, 1, 2, 3]
    assert len(answers.rounds) == 50


def test_a_search_may_go_on_after_an_error_that_is_its_answer():
    answers = Answers(fails=2)
    rounds = Rounds(answers)

    def tries() -> float:
        with pytest.raises(MeasurementError):
            rounds.measure(asked(2))
        return rounds.measure(asked(7)).seconds[0][0]

    assert rounds.run([tries, search(rounds, (1, 3))]) == [7, 4]


def alive() -> int:
    return threading.active_count()


def test_an_error_of_a_search_ends_all_of_them():
    before = alive()
    rounds = Rounds(Answers(fails=2))
    with pytest.raises(MeasurementError, match="no answer"):
        rounds.run([search(rounds, range(10, 99)), search(rounds, (1, 2, 3))])
    assert alive() == before


class InterruptError(Exception):
    """As a signal raises it, in the caller's thread."""


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupt_while_it_measures_ends_all_searches(count):
    before = alive()

    def answer(requests):
        raise InterruptError

    rounds = Rounds(answer)
    with pytest.raises(InterruptError):
        rounds.run([search(rounds, (1, 2)) for _ in range(count)])
    assert alive() == before


def test_an_interrupt_of_work_for_one_search_ends_all_searches():
    before = alive()
    rounds = Rounds(Answers())

    def interrupted() -> None:
        raise InterruptError

    with pytest.raises(InterruptError):
        rounds.run([search(rounds, (1,)), lambda: rounds.alone(interrupted)])
    assert alive() == before


@pytest.mark.parametrize("started", [True, False])
def test_an_interrupt_while_a_thread_starts_ends_all_searches(monkeypatch, started):
    before = alive()
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if started:
            start(thread)
        raise InterruptError

    rounds = Rounds(Answers())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(InterruptError):
            rounds.run([search(rounds, (1, 2)), search(rounds, (1,))])
    assert alive() == before
