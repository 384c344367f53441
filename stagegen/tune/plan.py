"""The plan of one search, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stagegen.measure.records import Candidate, Failure
from stagegen.measure.statistics import WIDTH
from stagegen.measure.timing import Timing
from stagegen.topology import WHOLE
from stagegen.tune.choose import Samples
from stagegen.tune.decision import CLUSTER, HOSTS, OTHER, Table
from stagegen.tune.elsewhere import elsewhere
from stagegen.tune.field import DEAR_SECONDS
from stagegen.tune.protocol import Protocol


@dataclass(frozen=True)
class Plan:
    """What is tuned, apart from the collective.

    Attributes:
        ranks: of the communicator.
        sizes: message sizes in bytes, ascending.
        timing: the timing mechanism.
        budget: seconds of measured time for a size after which no repetitions are added.
        progress: called with a text at every step.
        communicator: its name.
        kinds: of the tables to make, the most special first.
        protocol: how often to measure, and which differences count.
        hints: by size, the candidates that another communicator's search found to be best, the best
            first, with their parameters. A size is *confirmed* by those for the nearest size: the
            first two are timed against the native routine alone. If neither wins, all candidates
            are looked at. Parameters are tuned unless a hinted one wins that is not native.
        bound: the lower bound in seconds for a size, at the links' nominal rates; 0 if there is
            none.
        hosts: on how many hosts the ranks are; None: on one each.
        late: the most seconds by which ranks come late to a call of a size, at the links' nominal
            rates.
        one_rule: whether one rule serves calls of all sizes.
        is_told: whether another communicator's search says what may win: then crossovers follow
            from the times at the sizes, where these are known, and launches have fewer finalists.
        thrifty: whether only algorithms near the best one have their parameters tuned. Within a
            small budget it is so, because each value is checked before it is timed.
    """

    ranks: int
    sizes: tuple[int, ...]
    timing: Timing
    budget: float
    progress: Callable[[str], None]
    communicator: str = WHOLE
    kinds: tuple[str, ...] = (CLUSTER, HOSTS, OTHER)
    protocol: Protocol = field(default_factory=Protocol)
    hints: Mapping[int, tuple[Candidate, ...]] = field(default_factory=dict)
    bound: Callable[[int], float] = lambda size: 0.0
    hosts: int | None = None
    late: Callable[[int], float] = lambda size: 0.0
    one_rule: bool = False
    is_told: bool = False
    thrifty: bool = False

    def tunes(self, size: int) -> bool:
        """Whether parameters are tuned at a size: with one rule for all, at one size alone."""
        return not self.one_rule or size == self.tuning_size

    @property
    def tuning_size(self) -> int:
        """The size in bytes at which parameters are tuned if one rule serves calls of all sizes.

        It is the largest size at which calls are not dear by their lower bound: short messages
        would ask for values that are bad for long ones, which take most of the time.
        """
        *smaller, size = self.sizes
        shorter = max(smaller, default=0)
        while self.bound(size) > DEAR_SECONDS and size // 2 > shorter:
            size //= 2
        return size


@dataclass(frozen=True)
class Outcome:
    """What a search found for one collective on one communicator.

    Attributes:
        communicator: its name.
        tables: one of each kind, for the shape that was measured.
        samples: at every size that was measured with all algorithms.
        failures: routines that ended or hung the job at some size, or were wrong when they were
            checked before it, and so were given up.
        width: the share of a median within which its interval was to be.
        one_rule: whether one rule serves calls of all sizes.
    """

    collective: str
    communicator: str
    tables: tuple[Table, ...]
    samples: dict[int, Samples]
    failures: tuple[Failure, ...]
    width: float = WIDTH
    one_rule: bool = False

    @property
    def predictions(self) -> tuple[Table, ...]:
        """The same tables for shapes that were not measured."""
        return tuple(
            elsewhere(table, self.samples, one_rule=self.one_rule) for table in self.tables
        )


def unconverged(table: Table, samples: Mapping[int, Samples], width: float) -> tuple[int, ...]:
    """Return the sizes at which the interval of the choice's time is wider than ``width``.

    Args:
        table: with the choices.
        samples: of the sizes that were measured.
        width: the share of a median within which its 95 % interval must be.
    """
    return tuple(
        size
        for size in sorted(samples)
        if (sample := samples[size].get(table.choice(size))) is not None
        and not sample.is_known(width)
    )
