"""The last race of ``stagegen reconfigure``: the tree that it found against what serves now."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from stagegen.catalogue import Catalogue
from stagegen.cli._reconfigure_live import Bed
from stagegen.measure.records import Candidate
from stagegen.measure.statistics import Launches, is_faster_in_launches


@dataclass(frozen=True)
class Race:
    """The last race: the tree that was found, what serves the size now, and the native routine.

    Attributes:
        times: seconds of each by launch; those of the tree come first.
        gain: the least share by which the tree must be faster.
        representative: whether the times are of the cluster itself.
    """

    times: Mapping[Candidate, Launches]
    gain: float
    representative: bool

    @property
    def candidate(self) -> Candidate:
        """The tree."""
        return next(iter(self.times))

    @property
    def others(self) -> list[Candidate]:
        """What it races against."""
        return list(self.times)[1:]

    def median(self, one: Candidate) -> float:
        """Return the median over the launches of their medians."""
        return statistics.median(map(statistics.median, self.times[one].values()))

    def ratio(self, other: Candidate) -> float:
        """Return the tree's median time over another candidate's."""
        return self.median(self.candidate) / self.median(other)

    def is_faster(self, other: Candidate) -> bool:
        """Whether the tree is faster than another one by the tuner's test."""
        return is_faster_in_launches(self.times[self.candidate], self.times[other], self.gain)

    @property
    def not_beaten(self) -> list[Candidate]:
        """The candidates that the tree does not beat; if there is one, there is no rule."""
        return [one for one in self.others if not self.is_faster(one)]

    @property
    def verdict(self) -> str:
        """Its outcome, in words."""
        if not self.not_beaten:
            return "a rule: it is faster than all others beyond doubt"
        return f"no rule: it is not faster than {self.not_beaten[0].spec} beyond doubt"

    def to_json(self) -> dict[str, Any]:
        """Return the form in the file of the race."""
        return {
            "routine": self.candidate.spec,
            "gain": self.gain,
            "representative": self.representative,
            "raced_s": {
                one.spec: {str(n): list(seconds) for n, seconds in launched.items()}
                for one, launched in self.times.items()
            },
            "against": [
                {"routine": one.spec, "ratio": self.ratio(one), "faster": self.is_faster(one)}
                for one in self.others
            ],
            "rule": not self.not_beaten,
            "verdict": self.verdict,
        }


def raced(
    bed: Bed, catalogue: Catalogue, candidates: Sequence[Candidate], gain: float, launches: int
) -> Race:
    """Time candidates in turn, launch by launch; the tree that was found is the first one.

    Raises:
        MeasurementError: one gives wrong results, or the job fails.
    """
    times: dict[Candidate, dict[int, tuple[float, ...]]] = {one: {} for one in candidates}
    with closing(bed.timed(catalogue, list(times))) as timed:
        timed.look()
        for launch in range(1, launches + 1):
            found = timed.launch(launch, range(len(times)))
            for one, seconds in zip(times, found, strict=True):
                times[one][launch] = seconds
        return Race(times, gain, timed.is_representative)
