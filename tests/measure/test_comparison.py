"""How often calls are repeated in ``stagegen bench``."""

from __future__ import annotations

import pytest

from stagegen.measure.comparison import LONG_REPETITIONS, SHORT_FACTOR, repetitions_for


@pytest.mark.parametrize(
    ("seconds", "asked", "made"),
    [
        (1e-3, 9, 9 * SHORT_FACTOR),
        (1e-1, 9, 9),
        (3.0, 9, LONG_REPETITIONS),
        (3.0, 2, 2),
    ],
)
def test_the_shorter_the_call_the_more_repetitions(seconds, asked, made):
    assert repetitions_for(seconds, asked) == made
