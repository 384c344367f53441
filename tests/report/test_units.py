"""Times as people read them: three digits, and never a power of ten."""

from __future__ import annotations

import pytest

from stagegen.report.units import format_seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (5e-10, "0.5 ns"),
        (9.994e-7, "999 ns"),
        (9.996e-7, "1 µs"),
        (1e-3 - 1e-12, "1 ms"),
        (0.0012345, "1.23 ms"),
        (-0.9999, "−1 s"),
        (999.6, "1000 s"),
        (12345.0, "12300 s"),
    ],
)
def test_a_time_has_the_unit_of_its_rounded_number(seconds, text):
    assert format_seconds(seconds) == text
