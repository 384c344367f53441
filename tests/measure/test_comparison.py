"""How often calls are repeated in ``stagegen bench``."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stagegen.measure.comparison import repetitions_for

PAGE = Path(__file__).parents[2] / "docs" / "interfaces.md"

seconds = st.floats(1e-9, 100.0)


@given(seconds, seconds, st.integers(1, 99))
def test_a_shorter_call_never_has_fewer_repetitions(one, other, asked):
    short, long = sorted((one, other))
    assert repetitions_for(short, asked) >= repetitions_for(long, asked) >= 1


def test_repetitions_are_as_many_as_the_page_of_interfaces_says():
    told = " ".join(PAGE.read_text(encoding="utf-8").split())
    rule = re.search(
        r"less than (\d+) ms has (\d+) times N repetitions\. "
        r"A call that takes more than (\d+) s has at most (\d+)\.",
        told,
    )
    assert rule is not None
    short_ms, factor, long_s, most = map(int, rule.groups())
    for asked in (2, 9):
        assert repetitions_for(0.99 * short_ms / 1000, asked) == factor * asked
        assert repetitions_for(1.01 * short_ms / 1000, asked) == asked
        assert repetitions_for(0.99 * long_s, asked) == asked
        assert repetitions_for(1.01 * long_s, asked) == min(most, asked)
