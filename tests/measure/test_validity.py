"""A routine that changed loses what a log says of it; all others keep it."""

from __future__ import annotations

import pytest

from stagegen.measure.records import Candidate, Check, Failure, Measurement
from stagegen.measure.source import LogSource
from stagegen.measure.validity import ROUTINES, last_routines, still_valid
from tests.measure.fakes import request

NATIVE, RING, FLAT = Candidate("native"), Candidate("ring"), Candidate("flat")
COMPOSED = Candidate.from_spec("of_halves+alltoall/native+alltoall/ring")
THEN = {"alltoall/native": "n1", "alltoall/ring": "r1", "alltoall/flat": "f1"}
HEADER = {"kind": "log", ROUTINES: THEN}
SESSION = {"kind": "session"}


def measured(*candidates: Candidate) -> dict:
    seconds = tuple((0.5 + place,) for place, _ in enumerate(candidates))
    return Measurement(request(*candidates), seconds).to_json()


RECORDS = [
    SESSION,
    Check("alltoall", RING, 9, 0, "").to_json(),
    Check("alltoall", FLAT, 9, 0, "").to_json(),
    measured(NATIVE, RING, FLAT),
    measured(RING),
    measured(COMPOSED),
    Failure("alltoall", 64, RING, "it hung").to_json(),
]


def test_nothing_is_lost_while_nothing_changes():
    assert still_valid(HEADER, RECORDS, THEN) == RECORDS
    assert still_valid(HEADER, RECORDS, {**THEN, "alltoall/added": "a1"}) == RECORDS


@pytest.mark.parametrize(
    "now", [{**THEN, "alltoall/ring": "r2"}, {"alltoall/native": "n1", "alltoall/flat": "f1"}]
)
def test_a_changed_routine_is_forgotten_in_compositions_too(now):
    kept = still_valid(HEADER, RECORDS, now)
    assert kept == [
        SESSION,
        RECORDS[2],
        {**RECORDS[3], "seconds": {"native": [0.5], "flat": [2.5]}},
    ]


def test_what_was_measured_after_the_change_counts():
    now = {**THEN, "alltoall/ring": "r2"}
    records = [*RECORDS, {"kind": ROUTINES, ROUTINES: now}, measured(RING)]
    assert last_routines(HEADER, records) == now
    assert still_valid(HEADER, records, now)[-1] == measured(RING)


def test_a_routine_that_was_changed_back_keeps_its_first_records_only():
    now = {**THEN, "alltoall/ring": "r2"}
    later = Measurement(request(RING), ((7.0,),)).to_json()
    records = [*RECORDS, {"kind": ROUTINES, ROUTINES: now}, later]
    assert still_valid(HEADER, records, THEN) == RECORDS


class Live:
    """Answers with a number, and keeps what it was asked for."""

    def __init__(self):
        self.asked = []

    def measure(self, asked):
        self.asked.append(asked.candidates)
        return Measurement(asked, tuple((9.0,) for _ in asked.candidates))


def test_only_what_is_missing_is_measured():
    live = Live()
    source = LogSource(still_valid(HEADER, RECORDS[3:4], {**THEN, "alltoall/ring": "r2"}), live)
    answer = source.measure(request(NATIVE, RING, FLAT))
    assert live.asked == [(RING,)]
    assert answer.by_candidate() == {NATIVE: (0.5,), RING: (9.0,), FLAT: (2.5,)}
