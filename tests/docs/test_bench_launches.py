"""Further launches of ``make bench``: what is suspect, how it is timed, and what it decides."""

from __future__ import annotations

import pytest

from docs.tools.bench.launches import LAUNCHES, launched, suspects
from docs.tools.bench.plan import FIXED
from docs.tools.bench.results import Result
from docs.tools.bench.rows import Launches
from stagegen.measure.comparison import Comparison
from tests.docs.bench_rows import launched_again, row, timed


def result(*rows) -> Result:
    return Result(FIXED.name, "bbr", 4, rows)


def test_slow_rows_and_both_sides_of_broken_guidelines_are_suspect():
    rows = [
        row("barrier", 0, 0.96),
        row("scatter", 4, 0.98),
        timed("allreduce", 8, 1.0),
        timed("reduce", 8, 0.4),
        timed("bcast", 8, 0.4),
    ]
    slow, sides = [("barrier", 0)], [("allreduce", 8), ("bcast", 8), ("reduce", 8)]
    assert suspects(result(*rows)) == tuple(sorted(slow + sides))
    assert suspects(result(rows[1], *rows[3:])) == ()


def test_what_was_cleared_stays_suspect():
    cleared = launched_again(row("barrier", 0, 0.96), [1.0] * 5, [1.0] * 5)
    assert cleared.judged_speedup == 1
    assert suspects(result(cleared)) == (("barrier", 0),)


def test_each_launch_times_all_points_in_an_order_of_its_own():
    points = [("bcast", size) for size in range(8)]
    orders = []

    def compare(order):
        orders.append(list(order))
        number = len(orders)
        return {
            (name, size): Comparison(name, size, "ring", (size, size + number, 99), (1, 2, 3))
            for name, size in order
        }

    found = launched(compare, points)
    assert [sorted(order) for order in orders] == [points] * LAUNCHES
    assert len({tuple(order) for order in orders}) == LAUNCHES
    (run,) = {one.run for one in found.values()}
    assert found == {
        ("bcast", size): Launches(
            run, tuple(size + n for n in range(1, LAUNCHES + 1)), (2,) * LAUNCHES
        )
        for size in range(8)
    }
    (again,) = {one.run for one in launched(compare, points).values()}
    assert again != run, "another run has other times"


@pytest.mark.parametrize(
    ("native", "tuned", "speedup"),
    [([1, 1, 1], [2, 1, 0.5], 1), ([3, 1, 1], [1, 1, 4], 1), ([2, 2, 1], [1, 1, 1], 2)],
)
def test_the_median_of_the_launches_speedups_counts(native, tuned, speedup):
    assert launched_again(row("bcast", 8, 0.5), native, tuned).judged_speedup == speedup


def test_the_job_counts_where_there_was_no_further_launch():
    assert row("bcast", 8, 0.5).judged_speedup == pytest.approx(0.5)
