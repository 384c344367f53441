"""What a log says of routines: the last check of each counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stagegen.measure.records import Candidate, Check, Measurement
from stagegen.topology import WHOLE
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.recorded import Recorded
from tests.measure.fakes import request

RING = Candidate("ring")
UNENDED = Check("alltoall", RING, 9, -1, "it hung")


@pytest.mark.parametrize(
    ("checks", "is_there"),
    [
        ([replace(UNENDED, wrong=0)], True),
        ([UNENDED], False),
        ([UNENDED, replace(UNENDED, wrong=0)], True),
        ([UNENDED, replace(UNENDED, wrong=0, communicator="half")], False),
        ([replace(UNENDED, wrong=0), replace(UNENDED, wrong=2)], False),
    ],
)
def test_a_routine_that_was_checked_again_has_its_times(checks, is_there):
    made = Measurement(request(RING, NATIVE_CANDIDATE), ((1.0,), (2.0,)))
    records = [*(one.to_json() for one in checks), made.to_json()]
    times = Recorded(Path("x"), None, {}, records, None).times()
    assert times is not None
    (size,) = times.sizes("alltoall", WHOLE)
    fastest = RING if is_there else NATIVE_CANDIDATE
    assert times.fastest("alltoall", WHOLE, size) == fastest
