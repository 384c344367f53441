"""How long algorithms take over the values of their parameters, from the records of a log."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from stagegen.measure.records import Candidate, Measurement

_Times = Mapping[Candidate, float]


@dataclass(frozen=True)
class Curve:
    """The times of one algorithm at one size, over the values of one parameter.

    Attributes:
        size: in bytes.
        points: each value that was timed, with the median of its times in seconds; ascending.
    """

    size: int
    points: tuple[tuple[int, float], ...]

    @property
    def best(self) -> tuple[int, float]:
        """The value with the least time, and the time."""
        return min(self.points, key=_by_seconds)

    @property
    def relative(self) -> tuple[float, ...]:
        """The times over the least of them."""
        return tuple(seconds / self.best[1] for _, seconds in self.points)


@dataclass(frozen=True)
class Curves:
    """The curves of one parameter of an algorithm, by size."""

    algorithm: str
    parameter: str
    by_size: tuple[Curve, ...]

    @property
    def title(self) -> str:
        """Algorithm and parameter."""
        return f"{self.algorithm}: {self.parameter}"


def curves_of(
    measurements: Iterable[Measurement],
    collective: str,
    communicator: str,
    sizes: Collection[int],
) -> tuple[Curves, ...]:
    """Return the curves of all parameters of which several values were timed, by name.

    The median is of all times of a value at a size. Where several values of the other parameters
    were tried, the curve is of those with which most values of this one were.

    Args:
        measurements: of a log.
        collective: which one.
        communicator: its name.
        sizes: the ones to show; between them, only duels for crossovers were timed.
    """
    seconds: dict[int, dict[Candidate, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in measurements:
        asked = one.request
        if (asked.collective, asked.communicator) != (collective, communicator):
            continue
        if asked.size in sizes:
            for candidate, times in one.by_candidate().items():
                seconds[asked.size][candidate] += times
    found: dict[tuple[str, str], list[Curve]] = defaultdict(list)
    for size, of_size in sorted(seconds.items()):
        medians = {candidate: statistics.median(own) for candidate, own in of_size.items()}
        for name, points in _curves_at(medians):
            found[name].append(Curve(size, points))
    return tuple(Curves(*name, tuple(found[name])) for name in sorted(found))


def _curves_at(
    medians: _Times,
) -> Iterator[tuple[tuple[str, str], tuple[tuple[int, float], ...]]]:
    """Yield algorithm and parameter, and the points of its curve, at one size."""
    groups: dict[tuple[str, str], dict[tuple[object, ...], dict[int, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for candidate, seconds in medians.items():
        for name, value in candidate.parameters:
            others = tuple(pair for pair in candidate.parameters if pair[0] != name)
            groups[candidate.algorithm, name][others][value] = seconds
    for key, by_others in groups.items():
        points = max(by_others.values(), key=_many_and_fast)
        if len(points) > 1:
            yield key, tuple(sorted(points.items()))


def _many_and_fast(points: Mapping[int, float]) -> tuple[int, float]:
    return len(points), -min(points.values())


def _by_seconds(point: tuple[int, float]) -> float:
    return point[1]
