"""What each timing mechanism does, in which order, and what it times: no clock is real."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.data import DRIVERS
from tests.mpi import support

pytestmark = pytest.mark.mpi

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "docs" / "examples" / "timing" / "arrival.c"

#: The mechanism's C file; its steps with three calls; the seconds that it gives.
MECHANISMS = {
    "mpptest": (DRIVERS / "timing_mpptest.c", "t ccc t", [20]),
    "barrier": (DRIVERS / "timing_barrier.c", "tct b tct b tct", [10, 20, 30]),
    "computation": (DRIVERS / "timing_computation.c", "k tct k tct k tct", [10, 20, 30]),
    "arrival": (EXAMPLE, "b k tct b k tct b k tct", [10, 20, 30]),
}


def build(name: str, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
    program = support.scratch() / name
    compiler = [support.toolchain().mpicc, "-std=c11", "-D_GNU_SOURCE", "-Werror", f"-I{DRIVERS}"]
    command = [*compiler, *flags, "-o", program, *sources, "-lm"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
    return program


@lru_cache
def mechanism(name: str) -> Path:
    flags = (f"-DMECHANISM=by_{name}",)
    return build(f"mechanism_{name}", HERE / "mechanism.c", MECHANISMS[name][0], flags=flags)


def run(program: Path, *words: object) -> tuple[int, list[str]]:
    command = [str(program), *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return result.returncode, result.stdout.splitlines()


def repeat(
    name: str, calls: int = 3, bound: int = 1000, rank: int = 0
) -> tuple[str, list[int], list[float]]:
    status, (steps, computed, seconds) = run(mechanism(name), calls, bound, rank, 0)
    assert status == 0
    return steps, [int(word) for word in computed.split()], [float(s) for s in seconds.split()]


@pytest.mark.parametrize("name", MECHANISMS)
def test_steps_and_times_are_those_of_the_figure(name):
    """The session makes the barrier before the first step."""
    _, steps, seconds = MECHANISMS[name]
    found = repeat(name)
    assert found[0] == steps.replace(" ", "")
    assert found[2] == seconds


def test_one_long_interval_has_no_barrier_however_many_calls():
    steps, _, seconds = repeat("mpptest", calls=5)
    assert steps == "tccccct"
    assert seconds == [30]


def test_computation_is_as_asked_for_before_every_call():
    assert repeat("computation", calls=4, bound=1234)[1] == [1234] * 4


@pytest.mark.parametrize("name", ["mpptest", "barrier"])
def test_nothing_is_computed_unless_the_mechanism_says_so(name):
    assert repeat(name)[1] == []


def test_the_example_computes_a_share_that_depends_on_rank_and_call_alone():
    first, second = (repeat("arrival", calls=20, rank=rank)[1] for rank in (0, 1))
    assert repeat("arrival", calls=20)[1] == first
    assert len({*first, *second}) > 30
    assert all(0 <= share < 1000 for share in (*first, *second))
    assert max(first) - min(first) > 500


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_error_of_a_call_ends_the_repetition(name):
    status, (steps, *_) = run(mechanism(name), 3, 1000, 0, 2)
    assert status == 1
    assert steps.endswith("c")
    assert steps.count("c") == 2


@lru_cache
def calibration() -> Path:
    return build("calibration", HERE / "calibration.c", DRIVERS / "calibration.c")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("speed", "rate"), [(4321, 4300), (437.9, 440), (62.4, 62), (1, 1)])
def test_interruptions_do_not_change_the_rate_and_it_is_measured_once(speed, rate, seed):
    status, (line,) = run(calibration(), speed, seed)
    found, bound, before, after = map(int, line.split())
    assert status == 0
    assert found == rate
    assert bound == 25 * rate
    assert before == after
