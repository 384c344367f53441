"""What calls take on the model cluster: drawn by a seed, around the lower bounds of a real one.

A call takes α + βn, where βn is a factor of its own over the lower bound. Each algorithm draws α,
its factor for short and its factor for long messages, and for each parameter the value that is
best. So the algorithms, their parameters, the sizes, the ranks and the bounds are real; which
algorithm is good where is chance.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product

from docs.tools.bench_tuning.model import Cluster
from stagegen.catalogue import Algorithm, Catalogue, applicable
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Bound, Candidate, Request
from stagegen.topology import WHOLE, Topology
from stagegen.tune.bounds import patience
from stagegen.tune.candidates import default_candidate, part_size, with_value
from stagegen.tune.communicators import Communicator, as_seen_by
from stagegen.tune.decision import NATIVE_CANDIDATE

#: Seconds of α: the least and the most on all ranks, and of a composition beyond its parts.
ALPHA, COMPOSED = (1e-3, 1.2e-2), 2e-4

#: The factor over the bound: the least, and the mean of what comes on top; of the native routine,
#: one of three, as MPI libraries are good at some collectives only.
LEAST, BEYOND = 1.05, 0.7
NATIVE_FACTORS = (1.08, 1.4, 2.0)

#: MPI libraries send longer messages by another protocol.
LONG = 16 * 1024

#: What a value of a parameter costs for each octave from the best one.
OCTAVE = 0.12

#: Seconds of noise of short calls.
LATENCY = 2e-4

#: Seconds per byte where no link is crossed.
MEMORY = 1e-9


@dataclass(frozen=True)
class _Drawn:
    """What was drawn for one algorithm."""

    alpha: float
    short: float
    long: float
    octaves: float


class CatalogueTruth:
    """The true seconds of every call of a cluster's collectives.

    Args:
        topology: the cluster.
        catalogue: its algorithms.
        communicators: the ranks that calls are made on.
        seed: of all that is drawn.
    """

    def __init__(
        self,
        topology: Topology,
        catalogue: Catalogue,
        communicators: Sequence[Communicator],
        seed: int = 1,
    ):
        self._catalogue = catalogue
        self._ranks = {one.name: len(one.ranks) for one in communicators}
        names = {frozenset(one.ranks): one.name for one in reversed(communicators)}
        self._first_of_ranks = {one.name: names[frozenset(one.ranks)] for one in communicators}
        self._seen = {one.name: as_seen_by(topology, one) for one in communicators}
        self._whole = topology
        self._seed = seed
        self._draw = cache(self._draws)
        self._bound = cache(self._bounds)
        self._known = cache(self._seconds)

    def __call__(self, collective: str, candidate: Candidate, size: int, ranks: str) -> float:
        """Return the seconds of a call."""
        return self._known(collective, candidate, size, ranks)

    def best(self, collective: str, size: int, ranks: str) -> tuple[float, Candidate]:
        """Return the least seconds of all candidates on the whole cluster, and the candidate.

        Each part of a composition is served by the best routine for its size.
        """
        return min(
            (self(collective, candidate, size, ranks), candidate)
            for candidate in self.candidates(collective, size, ranks)
        )

    @cached_property
    def _able(self) -> tuple[Algorithm, ...]:
        return applicable(self._catalogue, self._whole)

    def candidates(self, collective: str, size: int, ranks: str) -> Iterator[Candidate]:
        """Yield all candidates for calls of a size, with all values of their parameters."""
        count = self._ranks[ranks]
        for algorithm in self._able:
            if algorithm.collective == collective and algorithm.handles(size):
                if algorithm.parts:
                    yield self._composed(algorithm, size, ranks)
                elif algorithm.works_for(count):
                    yield from _values(algorithm, size, count)

    def _composed(self, algorithm: Algorithm, size: int, ranks: str) -> Candidate:
        sizes = (part_size(part, size, self._ranks[ranks]) for part in algorithm.parts)
        served = (
            Bound(part.collective, self._plain(part.collective, bytes_, ranks))
            for part, bytes_ in zip(algorithm.parts, sizes, strict=True)
        )
        default = default_candidate(algorithm)
        return Candidate(default.algorithm, default.parameters, tuple(served))

    def _plain(self, collective: str, size: int, ranks: str) -> Candidate:
        """Return the best candidate that is no composition."""
        composed = {a.name for a in self._able if a.parts and a.collective == collective}
        plain = (
            (self(collective, candidate, size, ranks), candidate)
            for algorithm in self._able
            if algorithm.collective == collective
            and algorithm.name not in composed
            and algorithm.handles(size)
            and algorithm.works_for(self._ranks[ranks])
            for candidate in _values(algorithm, size, self._ranks[ranks])
        )
        return min(plain, default=(0.0, NATIVE_CANDIDATE))[1]

    def _seconds(self, collective: str, candidate: Candidate, size: int, ranks: str) -> float:
        algorithm = self._catalogue.find(collective, candidate.algorithm)
        if algorithm.parts:
            return COMPOSED + sum(self._of_parts(algorithm, candidate, size, ranks))
        drawn = self._draw(algorithm.full_name)
        steps = math.log2(self._ranks[ranks]) / math.log2(self._whole.rank_count)
        factor = drawn.long if size >= LONG else drawn.short
        wrong = math.prod(
            self._of_value(algorithm, name, value, size) for name, value in candidate.parameters
        )
        bytes_ = size * MEMORY + factor * self._bound(collective, size, ranks)
        return wrong * self._place(algorithm, ranks) * (drawn.alpha * steps + bytes_)

    def _of_parts(
        self, algorithm: Algorithm, candidate: Candidate, size: int, ranks: str
    ) -> Iterator[float]:
        served = [bound.candidate for bound in candidate.bound]
        for place, part in enumerate(algorithm.parts):
            bytes_ = part_size(part, size, self._ranks[ranks])
            routine = served[place] if served else NATIVE_CANDIDATE
            yield self(part.collective, routine, bytes_, ranks)

    def _bounds(self, collective: str, size: int, ranks: str) -> float:
        described = self._catalogue.collective(collective)
        if not described.has_data or not size:
            return 0.0
        return patience(self._seen[ranks], described, size)

    def _draws(self, name: str) -> _Drawn:
        chance = random.Random(f"{self._seed} {name}")
        low, high = ALPHA
        alpha = low * (high / low) ** chance.random()
        if name.endswith(f"/{NATIVE}"):
            short, long = (chance.choice(NATIVE_FACTORS) for _ in range(2))
            return _Drawn(2 * low, short, long, 0.0)
        short, long = (LEAST + chance.expovariate(1 / BEYOND) for _ in range(2))
        return _Drawn(alpha, short, long, OCTAVE * chance.random())

    def _of_value(self, algorithm: Algorithm, name: str, value: int, size: int) -> float:
        """Return the factor of a value: 1 for the best one, which is drawn from the range."""
        (parameter,) = (one for one in algorithm.parameters if one.name == name)
        values = parameter.values_at(size, self._whole.rank_count)
        place = random.Random(f"{self._seed} {algorithm.full_name} {name}").random()
        best = values[int(place * len(values))]
        # All numbers of bytes that cover the message are the same.
        useful = max((one for one in values if one <= value), default=values[0])
        octaves = abs(math.log2(max(useful, 1)) - math.log2(max(best, 1)))
        return math.exp(self._draw(algorithm.full_name).octaves * octaves)

    def _place(self, algorithm: Algorithm, ranks: str) -> float:
        """Return an algorithm's factor on these ranks alone; it does not depend on their name."""
        place = f"{self._seed} {algorithm.full_name} {self._first_of_ranks[ranks]}"
        return math.exp(random.Random(place).gauss(0, 0.05))


def _on_all(known: CatalogueTruth, collective: str, candidate: Candidate, size: int) -> float:
    return known(collective, candidate, size, WHOLE)


class CatalogueCluster(Cluster):
    """The model cluster whose truth also depends on the ranks that call.

    Args:
        known: the true seconds.
        seed: of the noise.
    """

    def __init__(self, known: CatalogueTruth, seed: int):
        super().__init__(partial(_on_all, known), seed=seed, latency=LATENCY)
        self._on_ranks = known

    def _true(self, request: Request, candidate: Candidate) -> float:
        return self._on_ranks(request.collective, candidate, request.size, request.communicator)


def _values(algorithm: Algorithm, size: int, ranks: int) -> Iterator[Candidate]:
    """Yield an algorithm with all values of its parameters together."""
    lists = [parameter.values_at(size, ranks) for parameter in algorithm.parameters]
    for values in product(*lists):
        candidate = default_candidate(algorithm)
        for parameter, value in zip(algorithm.parameters, values, strict=True):
            candidate = with_value(candidate, parameter.name, value)
        yield candidate
