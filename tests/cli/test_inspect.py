"""``stagegen inspect``: options that change its numbers."""

from __future__ import annotations

import json

import pytest

from tests.cli.here import stagegen
from tests.inspection import made
from tests.inspection.reading import us


def messages(file, *options):
    """The mean seconds of the messages between hosts on the path of rank 2: there, and back."""
    result = stagegen("inspect", file, "--skip", 0, "--json", *options)
    assert result.returncode == 0, result.stderr
    (series,) = json.loads(result.stdout)["series"]
    stages = {one["stage"]: one["mean_s"] for one in series["tree"]["ranks"][2]["stages"]}
    return [stages[f"message between hosts 0, {way}"] for way in ("down", "up")]


def test_by_clocks_takes_the_ways_as_the_clocks_show_them(tmp_path):
    """If a clock's offset is stated 7 µs too low, one way is 7 µs shorter and the other longer."""
    file = tmp_path / "events.bin"
    calls = [shifted(made.two_levels(1e4 * (i + 1)), 7.0) for i in range(5)]
    made.write(file, "allreduce/tree", calls, made.TWO_HOSTS)
    assert messages(file) == [us(30), us(30)]
    there, back = messages(file, "--by-clocks")
    assert (there, back) == (us(30 - 7), us(30 + 7))
    assert there + back == pytest.approx(sum(messages(file)))


def shifted(call, microseconds):
    """The call, with later times of ranks 2 and 3."""
    late = (0.0, 0.0, microseconds, microseconds)
    return made.MadeCall(
        [at + more for at, more in zip(call.begun, late, strict=True)],
        [at + more for at, more in zip(call.ended, late, strict=True)],
        [
            [(type_, a, b, at + more) for type_, a, b, at in own]
            for own, more in zip(call.events, late, strict=True)
        ],
    )
