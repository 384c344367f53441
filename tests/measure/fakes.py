"""Sources of measurements and jobs that are no cluster."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from stagegen.measure.arrivals import METRICS_LATE, Imbalance, Replay
from stagegen.measure.launch.base import PIPES, Environment, RunningJob
from stagegen.measure.launch.mpiexec import start_mpiexec
from stagegen.measure.records import Candidate, Check, Measurement, Request, Timing
from stagegen.topology import WHOLE

ENVIRONMENT = Environment(
    "fake", True, 1.0, "real", "mpich", "0", "0", 2, congestion_control="cubic"
)
TIMING = Timing("barrier", 0)


def late_timings() -> st.SearchStrategy[Timing]:
    """Timings in which ranks come late."""
    metrics = st.sampled_from(METRICS_LATE)
    imbalances = st.builds(Imbalance, st.integers(1, 4096), st.booleans(), st.integers(0, 1 << 40))
    seconds = st.floats(0, 10, allow_subnormal=False)
    calls = st.lists(st.lists(seconds, min_size=3, max_size=3), min_size=1, max_size=4)
    replays = calls.map(lambda offsets: Replay.of("libx.so+0x10", offsets))
    return st.builds(Timing, st.just("imbalance"), metric=metrics, arrivals=imbalances) | st.builds(
        Timing, st.just("replay"), metric=metrics, arrivals=replays
    )


class Model:
    """Times from a cost model `cost(candidate, size)` in seconds, with noise that repeats itself.

    The noise of a measurement depends on what is asked for and how often it was asked before,
    not on what else was asked for, so that a search which begins in the middle sees the same.
    """

    def __init__(
        self,
        cost: Callable[[Candidate, int], float],
        noise: float = 0.0,
        wrong: frozenset[str] = frozenset(),
        seed: int = 1,
    ):
        self.cost, self.noise, self.wrong, self.seed = cost, noise, wrong, seed
        self.asked: list[Request] = []
        self.checked: list[Candidate] = []

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        self.checked += candidates
        return [
            Check(collective, c, 9, 2, "a case", communicator) if c.algorithm in self.wrong
            else Check(collective, c, 9, 0, "", communicator)
            for c in candidates
        ]  # fmt: skip

    def measure(self, request: Request) -> Measurement:
        before = self.asked.count(request)
        self.asked.append(request)
        specs = [candidate.spec for candidate in request.candidates]
        how = (request.collective, request.communicator, request.size, request.settle)
        many = (request.calls, request.repetitions)
        chance = random.Random(f"{self.seed} {before} {how} {many} {specs}")
        seconds = tuple(
            tuple(
                self.cost(candidate, request.size) * (1 + self.noise * chance.expovariate(1))
                for _ in range(request.repetitions)
            )
            for candidate in request.candidates
        )
        return Measurement(request, seconds)

    def timed(self) -> set[str]:
        return {candidate.algorithm for request in self.asked for candidate in request.candidates}


def request(*candidates: Candidate, size: int = 1024, repetitions: int = 1) -> Request:
    return Request("alltoall", size, TIMING, False, 1, repetitions, candidates)


def fake_job(script: str, stderr: Path) -> RunningJob:
    """A Python script in place of the driver."""
    with stderr.open("wb") as stream:
        return start_mpiexec(
            [sys.executable, "-u", "-c", script],
            type(PIPES)(subprocess.PIPE, subprocess.PIPE, stream),
            ENVIRONMENT,
        )
