"""How long tuning will still take, from what measured requests took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from stagegen.catalogue import Catalogue
from stagegen.measure.records import Check, Measurement, Request
from stagegen.topology import Topology
from stagegen.tune.communicators import find_communicators
from stagegen.tune.scope import Options
from stagegen.tune.sizes import sizes_of
from stagegen.tune.together import together
from stagegen.tune.tuner import kinds_of

#: Seconds that are added to a race's lower bound to compare its cost with that of other races: with
#: short messages, many candidates race, and with long ones few.
LATENCY = 0.2

#: What a race costs, as a share of a first look of the same weight, until races of its pass tell.
#: DUELS is what the duels at the end cost, as a share of all first looks. Three tunings took these
#: seconds for first looks, compositions, launches 1 to 5, and duels:
#:
#: - long calls, chain-4x4-cyclic in the lab: 619, 101, 393, 135, 57, 34, 26, 72
#: - short calls, generated/reference: 86, 13, 24, 20, 14, 12, 11, 25
#: - the same, measured again: 78, 15, 25, 21, 12, 10, 10, 31
SHARES = {"first": 1.0, "composed": 0.16, "launch 1": 0.55, "launch 2": 0.28, "later": 0.12}
DUELS = 0.25

#: The cost of races of a pass counts fully only once this share of them is done.
TRUSTED = 0.1


@dataclass(frozen=True)
class Race:
    """What is measured at one size, in one pass.

    Attributes:
        collective: which one.
        communicator: the name of the ranks that call.
        size: in bytes.
        composed: whether compositions race, after the other routines.
        launch: of the job that measures; 0 is the first, which scouts.
    """

    collective: str
    communicator: str
    size: int
    composed: bool = False
    launch: int = 0

    @property
    def in_pass(self) -> str:
        """Its pass, as a key of :data:`SHARES`."""
        if self.launch:
            return f"launch {self.launch}" if self.launch <= 2 else "later"
        return "composed" if self.composed else "first"


def races(
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    launches: int = 0,
    *,
    at_once: bool = False,
) -> tuple[Race, ...]:
    """Return what tuning is going to measure, in its order; it may leave some out.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        options: what to tune.
        launches: how many jobs measure again what the first one has found.
        at_once: whether communicators that share no link go from size to size together.
    """
    found = kinds_of(find_communicators(topology, options.communicators, options.patterns))
    first = []
    for name in options.collectives:
        wanted = [one for one, made in found.items() if made and options.wants(name, one.name)]
        for some in together(topology, wanted) if at_once else [(one,) for one in wanted]:
            described = catalogue.collective(name)
            sizes = [sizes_of(described, options, len(one.ranks), one.name) for one in some]
            first += [
                Race(name, one.name, size)
                for of_all in zip_longest(*sizes)
                for one, size in zip(some, of_all, strict=True)
                if size is not None
            ]
    with_parts = {algorithm.collective for algorithm in catalogue.algorithms if algorithm.parts}
    called = [one for one in first if not options.is_part(one.collective, one.communicator)]
    composed = [replace(one, composed=True) for one in called if one.collective in with_parts]
    later = [replace(one, launch=n) for n in range(1, launches + 1) for one in called]
    return (*first, *composed, *later)


def race_of(request: Request) -> Race:
    """Return the race that a request is a part of."""
    composed = not request.launch and any(one.bound for one in request.candidates)
    return Race(request.collective, request.communicator, request.size, composed, request.launch)


class BudgetForecast:
    """Says how much of a budget is left; tuning decides as it goes which races it is for.

    Args:
        expected: the races that there may be.
        seconds: of the budget.
    """

    def __init__(self, expected: Sequence[Race], seconds: float):
        self._expected = set(expected)
        self._begun: set[Race] = set()
        self._left = seconds

    def add_checks(self, checks: Sequence[Check]) -> None:
        """Count what checks took."""
        self._left -= sum(check.took or 0.0 for check in checks)

    def add(self, measurement: Measurement, seconds: float | None = None) -> None:
        """Count a measurement, made or known; its record says what it took."""
        self._begun.add(race_of(measurement.request))
        took = measurement.took
        self._left -= measurement.of_calls if took is None else took

    @property
    def done(self) -> int:
        """How many races have begun."""
        return len(self._begun)

    @property
    def total(self) -> int:
        """How many races there may be; the budget may be spent before."""
        return len(self._expected | self._begun)

    @property
    def left(self) -> float | None:
        """The seconds of the budget that are left."""
        return max(0.0, self._left)


class Forecast:
    """Says how much is done, and how long the rest will take.

    A first look that is still to come costs, per second of its lower bound and :data:`LATENCY`, as
    much as the first looks at its collective did, or at all collectives while few of its own are
    done. A race of another pass costs a share of that: the share of its pass so far, or else
    :data:`SHARES`. Measurements between the sizes count as parts of the races there. Races that
    were passed over are done, and have cost nothing.

    Args:
        expected: the races, in their order.
        bound: lower bound in seconds of a collective and size.
    """

    def __init__(self, expected: Sequence[Race], bound: Callable[[str, int], float]):
        self._races = tuple(dict.fromkeys(expected))
        self._places = {race: place for place, race in enumerate(self._races)}
        self._weights = [LATENCY + bound(one.collective, one.size) for one in self._races]
        self._weight_of: dict[tuple[str, str], float] = defaultdict(float)
        for race, weight in zip(self._races, self._weights, strict=True):
            self._weight_of[race.in_pass, race.collective] += weight
        self._spent: dict[tuple[str, str], float] = defaultdict(float)
        self._done_weight: dict[tuple[str, str], float] = defaultdict(float)
        self._last = max((race.launch for race in self._races), default=0)
        self._duels = 0.0
        self._measured = 0.0
        self._taken = 0.0
        #: How many races are over, or have begun.
        self.done = 0

    def add_checks(self, checks: Sequence[Check]) -> None:
        """Count checks, which take little time beside races: they change nothing."""

    def add(self, measurement: Measurement, seconds: float | None = None) -> None:
        """Count a measurement.

        Args:
            measurement: made, or known from a log.
            seconds: that it took to make; None if it was known.
        """
        race = race_of(measurement.request)
        measured = measurement.of_calls
        if race.launch and race.launch == self._last and race not in self._places:
            self._duels += measured
        else:
            self._spent[race.in_pass, race.collective] += measured
        while self.done <= self._places.get(race, -1):
            over = self._races[self.done]
            self._done_weight[over.in_pass, over.collective] += self._weights[self.done]
            self.done += 1
        if seconds is not None:
            self._measured += measured
            self._taken += seconds

    @property
    def total(self) -> int:
        """How many races there are."""
        return len(self._races)

    @property
    def left(self) -> float | None:
        """The seconds that tuning will still take; None while nothing has been measured."""
        if not self.done:
            return None
        rest: dict[tuple[str, str], float] = defaultdict(float)
        for race, weight in zip(self._races[self.done :], self._weights[self.done :], strict=True):
            rest[race.in_pass, race.collective] += weight
        measured = sum(
            weight * self._share(in_pass) * self._first(collective)
            for (in_pass, collective), weight in rest.items()
        )
        measured += self._left_of_duels()
        return measured * (self._taken / self._measured if self._measured else 1.0)

    def _left_of_duels(self) -> float:
        """Return the seconds of the duels to come, which find the crossovers after all races."""
        if not self._last:
            return 0.0
        firsts = (
            weight * self._first(collective)
            for (in_pass, collective), weight in self._weight_of.items()
            if in_pass == "first"
        )
        return max(0.0, DUELS * sum(firsts) - self._duels)

    def _first(self, collective: str) -> float:
        """Return the seconds that first looks cost, for each second of their weight."""
        alike = [key for key in self._done_weight if key[0] == "first"]
        weight = sum(self._done_weight[key] for key in alike)
        of_all = sum(self._spent[key] for key in alike) / weight
        own = ("first", collective)
        trust = TRUSTED * self._weight_of[own]
        return (self._spent[own] + trust * of_all) / (self._done_weight[own] + trust)

    def _share(self, in_pass: str) -> float:
        """Return the cost of races of a pass, as a share of first looks of the same weight."""
        if in_pass == "first":
            return 1.0
        firsts = {key: self._first(key[1]) for key in self._weight_of if key[0] == in_pass}
        expected = sum(first * self._done_weight[key] for key, first in firsts.items())
        trust = TRUSTED * sum(first * self._weight_of[key] for key, first in firsts.items())
        spent = sum(self._spent[key] for key in firsts)
        return (spent + SHARES[in_pass] * trust) / (expected + trust)
