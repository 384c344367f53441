"""A model of a cluster as a source of measurements: α-β costs, launches, and TCP's hiccups.

What is true is known here, so the loss of choices and the time that tuning takes are exact.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from stagegen.measure.records import Candidate, Check, Measurement, Request
from stagegen.topology import WHOLE

#: The true seconds of a call: by collective, candidate, and size in bytes.
Truth: TypeAlias = Callable[[str, Candidate, int], float]

#: Seconds that a launch of the job takes, a request beyond its calls, and a check.
START, REQUEST, CHECK = 5.0, 0.003, 0.05

#: A lost packet costs a call this many seconds.
HICCUP = 0.2


@dataclass
class Cluster:
    """Answers requests with times that are drawn around the true ones.

    Attributes:
        truth: the true seconds of each call.
        seed: of all that is random.
        noise: the standard deviation of the logarithm of a call's time.
        luck: the same of a factor that a candidate keeps throughout a launch, at all sizes.
        hiccups: the probability that a call loses a packet.
        latency: the mean seconds of noise that each call takes beyond that, always above 0.
        seconds: how long everything so far has taken.
        calls: how many were made.
        by_launch: the seconds of each launch.
        asked: all requests, in their order.
    """

    truth: Truth
    seed: int = 1
    noise: float = 0.03
    luck: float = 0.01
    hiccups: float = 0.01
    latency: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    by_launch: dict[int, float] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    _launch: int | None = None

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Find every routine right; each check takes :data:`CHECK` seconds."""
        self.seconds += CHECK * len(candidates)
        return [Check(collective, c, 1, 0, "", communicator, took=CHECK) for c in candidates]

    def measure(self, request: Request) -> Measurement:
        """Draw the times that a request asks for."""
        begin = self.seconds
        if request.launch != self._launch:
            self._launch = request.launch
            self._spend(request, START)
        self._spend(request, REQUEST)
        self.asked.append(request)
        times = tuple(
            tuple(self._repetition(request, c) for _ in range(request.repetitions))
            for c in request.candidates
        )
        return Measurement(request, times, took=round(self.seconds - begin, 6))

    def _repetition(self, request: Request, candidate: Candidate) -> float:
        times = [self._call(request, candidate) for _ in range(request.calls)]
        settle = self._call(request, candidate) if request.settle else 0.0
        self._spend(request, sum(times) + settle)
        self.calls += len(times) + request.settle
        return sum(times) / len(times)

    def _call(self, request: Request, candidate: Candidate) -> float:
        true = self._true(request, candidate)
        place = f"{self.seed} {request.launch} {request.collective} {candidate.spec}"
        luck = random.Random(place).gauss(0, self.luck)
        time = true * math.exp(luck + self._chance.gauss(0, self.noise))
        time += self.latency * self._chance.expovariate(1)
        return time + HICCUP * (self._chance.random() < self.hiccups)

    def _true(self, request: Request, candidate: Candidate) -> float:
        return self.truth(request.collective, candidate, request.size)

    def _spend(self, request: Request, seconds: float) -> None:
        self.seconds += seconds
        self.by_launch[request.launch] = self.by_launch.get(request.launch, 0.0) + seconds


def lines(costs: Mapping[str, tuple[float, float]]) -> Truth:
    """Return the truth in which each algorithm takes α + βn, by its name."""

    def truth(collective: str, candidate: Candidate, size: int) -> float:
        alpha, beta = costs[candidate.algorithm]
        return alpha + beta * size

    return truth
