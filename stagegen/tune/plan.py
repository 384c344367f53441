"""The plan of one search, and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stagegen.measure.records import WHOLE, Failure, Timing
from stagegen.tune.choose import Samples
from stagegen.tune.decision import CLUSTER, HOSTS, OTHER, Table


@dataclass(frozen=True)
class Plan:
    """What is tuned, apart from the collective.

    Attributes:
        ranks: of the communicator.
        sizes: message sizes in bytes, ascending.
        timing: the timing mechanism.
        budget: seconds of measured time per race after which no further round begins.
        progress: called with a text at every step.
        communicator: its name.
        kinds: of the tables to make, the most special first.
    """

    ranks: int
    sizes: tuple[int, ...]
    timing: Timing
    budget: float
    progress: Callable[[str], None]
    communicator: str = WHOLE
    kinds: tuple[str, ...] = (CLUSTER, HOSTS, OTHER)


@dataclass(frozen=True)
class Outcome:
    """What a search found for one collective on one communicator.

    Attributes:
        communicator: its name.
        tables: one of each kind, for as many ranks as were measured.
        samples: at every size that was measured with all algorithms.
        failures: routines that ended or hung the job at some size, and so were given up.
    """

    collective: str
    communicator: str
    tables: tuple[Table, ...]
    samples: dict[int, Samples]
    failures: tuple[Failure, ...]
