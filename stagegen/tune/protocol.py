"""How measurements are made into choices: how many launches, and what a difference must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from stagegen.measure.entries import entry, natural, number
from stagegen.measure.statistics import MARGIN, WIDTH

#: The launches that decide. With five, a rank test on launch medians can reach 5 % (1 in 32).
LAUNCHES = 5

#: The least gain on hosts that stand for others: how much faster one routine is than another
#: differs between hosts.
GAIN_ELSEWHERE = 0.1


@dataclass(frozen=True)
class Protocol:
    """The rules of measuring and of choosing.

    Attributes:
        launches: of the job that decide; another one before them scouts.
        width: repetitions go on until the interval of the median is within this share of it.
        gain: differences below this share do not count.
        seed: of the random order in which candidates take turns.
    """

    launches: int = LAUNCHES
    width: float = WIDTH
    gain: float = MARGIN
    seed: int = 1

    def elsewhere(self) -> Protocol:
        """Return the protocol for ranks that have no tables of their own: they stand for others."""
        return replace(self, gain=max(self.gain, GAIN_ELSEWHERE))

    def to_json(self) -> dict[str, Any]:
        """Return the form of the log's header."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Protocol:
        """Read the form of the log's header; older logs, which were of one launch, have none.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        if "protocol" not in data:
            return cls()
        form = entry(data, "protocol", dict)
        return cls(
            natural(form, "launches", 1),
            number(form["width"]),
            number(form["gain"]),
            natural(form, "seed"),
        )
