"""ITER of Faraj 2006, Fig. 4.3: how many calls make a repetition, by message size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stagegen.topology import parse_size

#: As the option names it if times decide.
ADAPTIVE = "adaptive"


@dataclass(frozen=True)
class Iterations:
    """The number of calls in a repetition, as steps over the message size.

    Attributes:
        steps: pairs of a size in bytes and the calls from this size on, by ascending size. What
            is smaller than the first takes the calls of the first. No steps: the time of a call
            decides (:meth:`stagegen.measure.timing.Timing.calls`).
    """

    steps: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Refuse steps that make no sense.

        Raises:
            ValueError: a number is below 1, or the sizes do not ascend.
        """
        if any(size < 1 or calls < 1 for size, calls in self.steps):
            raise ValueError("sizes and calls must be at least 1")
        if any(later[0] <= earlier[0] for earlier, later in pairwise(self.steps)):
            raise ValueError("the sizes must ascend")

    def at(self, size: int) -> int | None:
        """Return the calls of a repetition at a size in bytes; None if their time decides."""
        below = [calls for least, calls in self.steps if least <= size]
        return below[-1] if below else self.steps[0][1] if self.steps else None

    @classmethod
    def parse(cls, text: str) -> Iterations:
        """Read ``adaptive``, ``source``, a number for all sizes, or ``1:100,8KiB:50``.

        Raises:
            ValueError: it is none of these.
        """
        if text in PRESETS:
            return PRESETS[text]
        steps = (step.rpartition(":") for step in text.split(","))
        return cls(tuple((parse_size(least or "1"), int(calls)) for least, _, calls in steps))

    def to_json(self) -> str | list[list[int]]:
        """Return the form of the log's header."""
        return [list(step) for step in self.steps] or ADAPTIVE

    @classmethod
    def from_json(cls, form: Any) -> Iterations:
        """Read the form of the log's header.

        Raises:
            TypeError, ValueError: it is damaged.
        """
        if form == ADAPTIVE:
            return cls()
        if not isinstance(form, list) or not form:
            raise TypeError(f"`iterations` must be {ADAPTIVE!r} or a list of steps")
        for step in form:
            if not isinstance(step, list) or [type(number) for number in step] != [int, int]:
                raise TypeError("a step of `iterations` must be two integers: size, calls")
        return cls(tuple((size, calls) for size, calls in form))


#: What the option names. The source measured no size between 3 and 4 KB, 12 and 16 KB, and so on
#: (Faraj 2006, §4.1.2.2); "> 256KB" begins one byte after it.
PRESETS = {
    ADAPTIVE: Iterations(),
    "source": Iterations(
        ((1, 100), (4 << 10, 50), (16 << 10, 20), (128 << 10, 10), ((256 << 10) + 1, 5))
    ),
}
