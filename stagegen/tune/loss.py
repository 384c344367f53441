"""Lost time: what the choices of one table cost by measured times, beside those of another.

At one size, the loss of a choice is its time over that of the reference's choice, both measured in
the same way. Over sizes, it is the geometric mean of these ratios. A size weighs as many octaves as
it stands for: half of the octaves to the next smaller size, and half of the octaves to the next
larger one. So a finer grid does not change the mean, and no size outweighs others by its seconds.
Over several tables, it is the geometric mean of their losses; all tables weigh the same.

If the reference is the worse one, the loss is below 0. By the same times, the loss of A against B
and the loss of B against A cancel out.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from stagegen.measure.records import Candidate, Measurement
from stagegen.measure.timing import Timing
from stagegen.tune.decision import DecisionTable, Table

#: Returns the candidate for a message, by its size in bytes.
Choice: TypeAlias = Callable[[int], Candidate]

#: How repetitions were made: timing mechanism, settled or not, calls. Only equal ones are compared.
_Protocol: TypeAlias = tuple[Timing, bool, int]


#: This many repetitions are enough to show that one candidate is faster than another
#: (:func:`stagegen.measure.statistics.is_faster`).
ENOUGH = 4


class Times:
    """The times of a log, by what was called, on which ranks, and at which size.

    Args:
        measurements: in the order of the log.
    """

    def __init__(self, measurements: Iterable[Measurement]):
        self._seconds: dict[
            tuple[str, str], dict[int, dict[_Protocol, dict[Candidate, list[float]]]]
        ] = defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(list))))
        for one in measurements:
            asked = one.request
            protocol = (asked.timing, asked.settle, asked.calls)
            times = self._seconds[asked.collective, asked.communicator][asked.size][protocol]
            for candidate, seconds in one.by_candidate().items():
                times[candidate] += seconds

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The collectives that were measured, each with the name of a communicator; sorted."""
        return tuple(sorted(self._seconds))

    def sizes(self, collective: str, communicator: str) -> tuple[int, ...]:
        """Return the sizes in bytes at which anything was measured, ascending."""
        return tuple(sorted(self._seconds.get((collective, communicator), ())))

    def ratio(
        self, collective: str, communicator: str, size: int, used: Candidate, other: Candidate
    ) -> float | None:
        """Return the ratio of the median times of two candidates; None if not measured.

        If several protocols timed both, the one with the most repetitions counts.
        """
        if used == other:
            return 1.0
        pair = _most(self._at(collective, communicator, size), used, other)
        return None if pair is None else _ratio(pair)

    def fastest(
        self,
        collective: str,
        communicator: str,
        size: int,
        may_serve: Callable[[Candidate], bool] = lambda _: True,
    ) -> Candidate | None:
        """Return the candidate with the least median; None if there is none.

        The protocol with the most repetitions names the best of its candidates. Another candidate
        replaces this one if it was faster by another protocol, with at least :data:`ENOUGH`
        repetitions of each. Of equals, the first by name counts.
        """
        rounds = [
            {candidate: times[candidate] for candidate in sorted(times) if may_serve(candidate)}
            for times in self._at(collective, communicator, size)
        ]
        thorough = max(rounds, key=lambda times: max(map(len, times.values()), default=0))
        if not thorough:
            return None
        best = min(thorough, key=lambda candidate: statistics.median(thorough[candidate]))
        for challenger in sorted({candidate for times in rounds for candidate in times}):
            pair = _most(rounds, challenger, best)
            if pair is not None and min(map(len, pair)) >= ENOUGH and _ratio(pair) < 1:
                best = challenger
        return best

    def _at(
        self, collective: str, communicator: str, size: int
    ) -> Sequence[Mapping[Candidate, Sequence[float]]]:
        by_size = self._seconds.get((collective, communicator), {})
        return tuple(by_size[size].values()) if size in by_size else ({},)


def _most(
    rounds: Iterable[Mapping[Candidate, Sequence[float]]], used: Candidate, other: Candidate
) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return the times of two candidates by the protocol that timed both most often."""
    found = [(times[used], times[other]) for times in rounds if used in times and other in times]
    return max(found, key=lambda pair: min(map(len, pair)), default=None)


def _ratio(pair: tuple[Sequence[float], Sequence[float]]) -> float:
    """Return the ratio of two medians."""
    used, other = pair
    return statistics.median(used) / statistics.median(other)


@dataclass(frozen=True)
class Loss:
    """What choices cost beside others, by size.

    Attributes:
        ratios: by size in bytes, the time of the choice over that of the reference's choice.
        unmeasured: the sizes where the choices differ and one of them was not timed.
    """

    ratios: Mapping[int, float]
    unmeasured: tuple[int, ...] = ()

    @property
    def share(self) -> float | None:
        """The time lost as a share of the reference's time; None if nothing is known."""
        if not self.ratios:
            return None
        return math.exp(weighted_mean({s: math.log(r) for s, r in self.ratios.items()})) - 1

    def between(self, first: int, last: int | None) -> Loss:
        """Return the part for messages from ``first`` to ``last`` bytes, None for no end.

        Sizes keep the weights that they have among themselves.
        """
        end = math.inf if last is None else last
        return Loss(
            {size: ratio for size, ratio in self.ratios.items() if first <= size <= end},
            tuple(size for size in self.unmeasured if first <= size <= end),
        )


def weights(sizes: Iterable[int]) -> dict[int, float]:
    """Return the octaves that each size stands for; 1 if it is the only one.

    Sizes of 0 and 1 byte are the same octave.
    """
    ordered = sorted(set(sizes))
    if len(ordered) == 1:
        return {ordered[0]: 1.0}
    found = dict.fromkeys(ordered, 0.0)
    for low, high in pairwise(ordered):
        half = (math.log2(max(high, 1)) - math.log2(max(low, 1))) / 2
        found[low] += half
        found[high] += half
    return found


def weighted_mean(values: Mapping[int, float]) -> float:
    """Return the mean of values by size, at least one, each with the weight of its size."""
    weight = weights(values)
    if not any(weight.values()):  # of 0 and 1 byte only
        weight = dict.fromkeys(values, 1.0)
    weighted = math.fsum(weight[size] * value for size, value in values.items())
    return weighted / sum(weight.values())


def lost(used: Choice, reference: Choice, times: Times, collective: str, communicator: str) -> Loss:
    """Return what the choices of ``used`` cost beside those of ``reference``.

    Args:
        used: the choices that serve.
        reference: the choices that they are compared with.
        times: of the measurements that decide.
        collective: which one.
        communicator: its name in the measurements.
    """
    ratios: dict[int, float] = {}
    unmeasured: list[int] = []
    for size in times.sizes(collective, communicator):
        ratio = times.ratio(collective, communicator, size, used(size), reference(size))
        if ratio is None:
            unmeasured.append(size)
        else:
            ratios[size] = ratio
    return Loss(ratios, tuple(unmeasured))


#: Identifies what a table is made from: the collective, the kind of communicators, and how many
#: ranks and hosts were measured.
Key: TypeAlias = tuple[str, str, int, int]

#: By kind of tables, ranks and hosts: the name of the communicator that was measured for them.
Measured: TypeAlias = Mapping[tuple[str, int, int], str]


def key_of(table: Table) -> Key:
    """Return the key of a table; a table that predicts has the key of its measurements."""
    return table.collective, table.communicator, table.ranks, table.shape.hosts


def by_key(decision: DecisionTable) -> dict[Key, Table]:
    """Return one table of each key: that of the measured shape alone, if there is one."""
    found: dict[Key, Table] = {}
    for table in decision.tables:
        found.setdefault(key_of(table), table)
    return found


def total(losses: Iterable[Loss]) -> float | None:
    """Return the share of time lost over several tables, which all weigh the same.

    None if nothing is known of any.
    """
    shares = [loss.share for loss in losses]
    logs = [math.log1p(share) for share in shares if share is not None]
    return math.exp(math.fsum(logs) / len(logs)) - 1 if logs else None
