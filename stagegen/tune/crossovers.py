"""From choices at the measured sizes to rules: where between two sizes the choice changes.

Binary search assumes one change. So the sizes between are bracketed first, an octave at a time, and
each bracket at whose ends different choices win is searched: several changes make several rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from stagegen.measure.records import Candidate
from stagegen.tune.choose import RESOLUTION, Samples, crossover, median
from stagegen.tune.decision import NATIVE_CANDIDATE, Rule
from stagegen.tune.duels import Duels
from stagegen.tune.purse import BudgetSpent

#: If calls take longer than this many seconds at the upper size, no duels are fought between the
#: two: the place of the crossover follows from the times at both, and costs nothing. A wrong place
#: costs little, as the two are nearly equal around it.
DUEL_SECONDS = 0.05

#: Bytes are nearly all of a call that takes at most this many times its lower bound.
ALL_BYTES = 1.25

#: The resolution of crossovers on communicators whose searches learn from another one. There, no
#: duels are fought between sizes at which both routines were timed, or which are no further apart
#: than this.
OCTAVE = 1.0


@dataclass(frozen=True)
class Crossovers:
    """Finds the crossovers of one collective.

    Attributes:
        duels: of the collective.
        handles: whether a candidate can do messages of a size.
        gain: smaller differences do not count.
        is_told: whether another communicator's search says what may win: then times at both sizes
            tell where a choice changes.
        bound: the lower bound in seconds for a size in bytes.
    """

    duels: Duels
    handles: Callable[[Candidate, int], bool]
    gain: float
    is_told: bool = False
    bound: Callable[[int], float] = lambda _: 0.0

    def reconsidered(
        self, choices: Mapping[int, Candidate], samples: Mapping[int, Samples]
    ) -> dict[int, Candidate]:
        """Return the choices after duels with what serves at the sizes around, where it may win.

        A candidate may have had no launch at a size because others had lucky looks there. If it
        serves at a neighbouring size, duels would find that it wins right beside this one, and make
        rules for one size alone. On communicators whose searches learn, there are no such duels.

        Raises:
            MeasurementError: a duel failed, or the log lacks it.
        """
        found = dict(choices)
        try:
            for sizes in (list(choices), list(choices)[::-1]):
                for before, size in pairwise(sizes):
                    other, own = found[before], found[size]
                    if self._may_win(other, size, own, samples[size]) and self.duels.is_faster(
                        size, other, own
                    ):
                        found[size] = other
        except BudgetSpent:
            pass
        return found

    def rules(
        self, choices: Mapping[int, Candidate], samples: Mapping[int, Samples]
    ) -> Iterator[Rule]:
        """Yield the rules for the choices at each size.

        Raises:
            MeasurementError: a duel failed, or the log lacks it.
        """
        sizes = list(choices)
        yield Rule(0, choices[sizes[0]])
        for low, high in pairwise(sizes):
            lower, upper = choices[low], choices[high]
            if lower == upper:
                continue
            if self._can_both(low, high, choices) and self._needs_no_duel(
                low, high, choices, samples
            ):
                yield Rule(self._crossing(low, high, choices, samples), upper, (low, high))
                continue
            try:
                yield from list(self._between(low, high, lower, upper))
            except BudgetSpent:
                can = self._can_both(low, high, choices)
                first = self._crossing(low, high, choices, samples) if can else high
                yield Rule(first, upper, (low, high))

    def _may_win(self, other: Candidate, size: int, own: Candidate, samples: Samples) -> bool:
        """Whether a candidate was only looked at, and calls are short, so that luck decides."""
        return (
            other != own
            and not self.is_told
            and other in samples
            and not samples[other].launches
            and self.handles(other, size)
            and median(samples[own]) <= DUEL_SECONDS
        )

    def _can_both(self, low: int, high: int, choices: Mapping[int, Candidate]) -> bool:
        return self.handles(choices[low], high) and self.handles(choices[high], low)

    def _needs_no_duel(
        self,
        low: int,
        high: int,
        choices: Mapping[int, Candidate],
        samples: Mapping[int, Samples],
    ) -> bool:
        pair = (choices[low], choices[high])
        timed = all(
            one in samples[size] and samples[size][one].launches
            for one in pair
            for size in (low, high)
        )
        if self.is_told and (timed or high <= (1 + OCTAVE) * low):
            return True
        return median(samples[high][choices[high]]) > DUEL_SECONDS

    def _crossing(
        self,
        low: int,
        high: int,
        choices: Mapping[int, Candidate],
        samples: Mapping[int, Samples],
    ) -> int:
        """Return the first size at which the upper choice's gain counts, by lines through times.

        If the upper choice is the native routine, it is the first size at which the lower one's
        gain no longer counts. If the time of one of the two is unknown at a size, it is the upper
        size.
        """
        lower, upper = choices[low], choices[high]
        of_upper, of_lower = (
            (1 - self.gain, 1.0) if upper == NATIVE_CANDIDATE else (1.0, 1 - self.gain)
        )
        upper_below = self._seconds(upper, low, high, samples)
        lower_above = self._seconds(lower, high, low, samples)
        if upper_below is None or lower_above is None:
            return high
        here = of_upper * upper_below - of_lower * median(samples[low][lower])
        there = of_upper * median(samples[high][upper]) - of_lower * lower_above
        if here <= 0:
            return low + 1
        if there >= 0:
            return high
        return min(high, max(low + 1, round(low + (high - low) * here / (here - there))))

    def _seconds(
        self, candidate: Candidate, size: int, other: int, samples: Mapping[int, Samples]
    ) -> float | None:
        """Return the seconds of a candidate that was timed at another size, or at both.

        Where bytes are nearly all of a call, the bound tells what it takes at most with more or
        less of them: what it takes beyond the bound may grow with the bound, or be the same for all
        sizes. Otherwise, its time at a size where it was not timed is unknown: None.
        """
        if candidate in samples[size]:
            return median(samples[size][candidate])
        seconds, bound = median(samples[other][candidate]), self.bound(other)
        if seconds > ALL_BYTES * bound:
            return None
        return self.bound(size) + (seconds - bound) * max(1.0, self.bound(size) / bound)

    def _between(self, low: int, high: int, lower: Candidate, upper: Candidate) -> Iterator[Rule]:
        def faster(size: int) -> bool | None:
            """Whether the upper choice is faster at a size, or the lower one; None: neither."""
            for candidate, upper_serves in ((lower, True), (upper, False)):
                if not self.handles(candidate, size):
                    return upper_serves
            if self.duels.is_faster(size, upper, lower):
                return True
            return False if self.duels.stays_faster(size, lower, upper) else None

        inner = [size for k in range(1, 64) if low < (size := 2 * low << (k - 1)) < high]
        known = {low: False, **{size: faster(size) for size in inner}, high: True}
        has_native = NATIVE_CANDIDATE in (lower, upper)
        serves = _filled(known, upper == NATIVE_CANDIDATE if has_native else None)
        for one, next_one in pairwise(serves):
            if serves[one] == serves[next_one]:
                continue
            goes_up = serves[next_one]
            new = upper if goes_up else lower
            changed = partial(_has_changed, faster, goes_up, new == NATIVE_CANDIDATE)
            resolution = OCTAVE if self.is_told else RESOLUTION
            interval = crossover(one, next_one, changed, resolution)
            yield Rule(interval[1], new, interval)


def _filled(faster: Mapping[int, bool | None], native: bool | None) -> dict[int, bool]:
    """Return whether the upper choice serves at each size.

    Where neither is faster, the choice that serves on both sides stays. If the sides differ, native
    serves, or else the choice below.

    Args:
        faster: whether the upper choice is faster, or the lower one; None: neither.
        native: whether native is the upper choice, or the lower one; None: neither.
    """
    sizes = sorted(faster)
    below, above = _last_known(faster, sizes), _last_known(faster, sizes[::-1])
    return {
        size: below[size] if below[size] == above[size] or native is None else native
        for size in sizes
    }


def _last_known(faster: Mapping[int, bool | None], sizes: Sequence[int]) -> dict[int, bool]:
    """Return whether the upper choice is faster at each size, or was at the last known one."""
    found: dict[int, bool] = {}
    last = bool(faster[sizes[0]])
    for size in sizes:
        known = faster[size]
        last = last if known is None else known
        found[size] = last
    return found


def _has_changed(
    faster: Callable[[int], bool | None], goes_up: bool, to_native: bool, size: int
) -> bool:
    """Whether the new choice serves: if it is faster, or is native and the old one is not."""
    known, new, old = faster(size), goes_up, not goes_up
    return known is not old if to_native else known is new
