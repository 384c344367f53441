"""How often calls are repeated in ``stagegen bench``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.measure.comparison import repetitions_for

seconds = st.floats(1e-9, 100.0)


@given(seconds, seconds, st.integers(1, 99))
def test_of_a_shorter_call_there_are_never_fewer_repetitions(one, other, asked):
    short, long = sorted((one, other))
    assert repetitions_for(short, asked) >= repetitions_for(long, asked) >= 1


@pytest.mark.parametrize(
    ("seconds", "asked", "made"),
    [
        (1e-3, 9, 180),
        (4.9e-3, 2, 40),
        (5.1e-3, 9, 9),
        (1.9, 9, 9),
        (2.1, 9, 5),
        (2.1, 2, 2),
    ],
)
def test_repetitions_are_as_many_as_the_documentation_says(seconds, asked, made):
    """20 times N below 5 ms, at most 5 above 2 s: `docs/interfaces.md`, and the README."""
    assert repetitions_for(seconds, asked) == made
