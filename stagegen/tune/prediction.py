"""Predicts the times of algorithms at the next size from those at the sizes before.

The cost formulas of Faraj 2006, section 4.1.1.1, are sums of terms in α and terms in βn, so a call
of n bytes takes a + bn. Each algorithm's a and b are fitted to its own times. The two times that
give b are of sizes that are far apart if possible: between near sizes, noise makes the line steep.

Only this is certain: more bytes take more time, by at least the growth of the lower bound. The
bound assumes the links' nominal rates. If the best routine was faster than the bound at the last
sizes, the bound is scaled down to its time: links may be faster, and buffers may take whole
messages.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

#: Lines rule out candidates up to this factor beyond the last size; farther away, only what is
#: certain does: protocols change between short and long messages, and slopes change with them.
NEAR = 8

#: The line goes through the times at two sizes that differ at least by this factor, if possible.
APART = 4

#: The error of predictions, as a share, counts as at least the first and at most the second.
ERROR_LEAST, ERROR_MOST = 0.05, 0.4

#: The error of one time in seconds is at least this: the ranks do not begin at the same instant.
ERROR_SECONDS = 2e-4

#: A time tells what an algorithm's bytes take if the lower bound is at least this share of it.
TELLING = 0.2

#: Bytes are most of a call if the lower bound is at least this share of its time.
MOSTLY = 0.5

#: Long messages may take less than the line through short ones says, as protocols change, but not
#: by more than this factor. On chain-4x4-cyclic, nearly all times of seconds were above their line,
#: up to twice.
DOUBT = 2.0

#: Beyond the last size that was looked at, the bytes may take this many times the bound.
DEARER = 2.0

#: How near the best routine came to the bound counts at this many of the last sizes.
HELD = 3

#: If the best routine comes within this factor of the bound, the rest counts as headers. They are
#: the same share of longer messages, so no routine is expected to come nearer with these. Headers
#: are 6 % of frames of 1,500 bytes. Where they are less, the expected time may be too high by the
#: difference.
REACHED = 1.1

#: How many of the last predictions tell the error.
REMEMBERED = 60


class Prediction:
    """The times of the algorithms of one collective.

    Args:
        bound: the lower bound in seconds for a size in bytes.
    """

    def __init__(self, bound: Callable[[int], float]):
        self._bound = bound
        self._held: deque[float] = deque([1.0], maxlen=HELD)
        self._last = 0
        self._has_told = False
        self._seen: dict[str, list[tuple[int, float]]] = {}
        self._errors: deque[float] = deque(maxlen=REMEMBERED)
        self._factors: deque[float] = deque(maxlen=REMEMBERED)

    def observe(self, size: int, seconds: Mapping[str, float]) -> None:
        """Take in the times of algorithms at the next larger size."""
        bound = self._bound(size)
        self._last = size
        for name, time in seconds.items():
            expected = self.expected(name, size)
            if expected is not None:
                self._errors.append(abs(time / expected - 1))
            self._seen.setdefault(name, []).append((size, time))
            if bound > TELLING * time:
                self._factors.append(time / bound)
        fastest = min(seconds.values(), default=math.inf)
        if bound > 0 and seconds:
            self._held.append(fastest / bound)
        are_many = 2 * len(seconds) > len(self._seen)
        self._has_told |= are_many and bound > MOSTLY * fastest

    def is_fresh(self, name: str) -> bool:
        """Whether an algorithm was seen at the last size; predictions from farther are guesses."""
        return name in self._seen and self._seen[name][-1][0] == self._last

    def begins_to_tell(self, size: int, seconds: float) -> bool:
        """Whether bytes are most of such calls, for the first time in a look at many candidates."""
        return not self._has_told and self._bound(size) > MOSTLY * seconds

    @property
    def error(self) -> float:
        """The share by which three of four predictions were off at most."""
        return usual_error(self._errors)

    def expected(self, name: str, size: int) -> float | None:
        """Return the predicted seconds; None if the algorithm was not seen yet."""
        if name not in self._seen:
            return None
        last, seconds = self._seen[name][-1]
        likely = (self._slope(name, 0.0) + self._slope(name, self.error)) / 2
        return seconds + max(likely * (size - last), self._usual(name) * self._growth(last, size))

    def least(self, name: str, size: int) -> float:
        """Return the predicted seconds less their error; 0 if the algorithm was not seen yet.

        Each of the times that the line goes through has this error, so it counts more the farther
        the line goes.
        """
        if name not in self._seen:
            return 0.0
        last, seconds = self._seen[name][-1]
        certain = max(0.0, seconds - max(self.error * seconds, ERROR_SECONDS))
        slope = self._slope(name, self.error) if size <= NEAR * last else 0.0
        return certain + max(slope * (size - last), self._growth(last, size))

    def hope(self, name: str, size: int) -> float:
        """Return the least seconds to hope for in a long call; 0 if the algorithm was not seen yet.

        However far the size is beyond the last one, the line through an algorithm's own times is
        not off by more than :data:`DOUBT`. Of two lines the flatter one counts: one unlucky call
        makes one of them steep. No call comes nearer to the lower bound than the best one at the
        last sizes, if that was within :data:`REACHED`.
        """
        seen = self._seen.get(name, [])
        if not seen:
            return 0.0
        least = max(self.least(name, size), self._nearest() * self._bound(size))
        if len(seen) < 3:
            return least
        last, seconds = seen[-1]
        slope = min(_line(seen), _line(seen[:-1]))
        return max(least, (seconds + slope * (size - last)) / DOUBT)

    def most(self, name: str, size: int) -> float:
        """Return the predicted seconds plus their error; infinite if the algorithm was not seen.

        Protocols change with the size, so bytes may take :data:`DEARER` times the bound, too.
        """
        expected = self.expected(name, size)
        if expected is None:
            return math.inf
        last, seconds = self._seen[name][-1]
        dear = seconds + DEARER * self._growth(last, size)
        return (1 + self.error) * max(expected, dear)

    def is_above(self, name: str, size: int, seconds: float) -> bool:
        """Whether a time is above its prediction by more than the error, or has none."""
        expected = self.expected(name, size)
        return expected is None or seconds > (1 + self.error) * expected

    def _slope(self, name: str, error: float) -> float:
        """Return the seconds per byte by the times of an algorithm, as :func:`_line` has them."""
        return _line(self._seen[name], error)

    def _usual(self, name: str) -> float:
        """Return the factor by which the time of an algorithm grows faster than the bound.

        It is 1 if its own times tell. If bytes had little part in these, it is the median factor of
        all algorithms.
        """
        last, seconds = self._seen[name][-1]
        if self._bound(last) > TELLING * seconds or not self._factors:
            return 1.0
        return statistics.median(self._factors)

    def _nearest(self) -> float:
        """Return the factor of the bound below which no long call is expected."""
        nearest = min(self._held)
        return nearest if nearest <= REACHED else 1.0

    def _growth(self, low: int, high: int) -> float:
        """Return by how many seconds the lower bound grows."""
        return min(1.0, *self._held) * max(0.0, self._bound(high) - self._bound(low))


def usual_error(errors: Collection[float]) -> float:
    """Return the share by which three of four predictions were off at most.

    It is at least :data:`ERROR_LEAST` and at most :data:`ERROR_MOST`, which is also taken until
    four predictions are known.
    """
    known = statistics.quantiles(errors, n=4)[2] if len(errors) > 3 else ERROR_MOST
    return min(ERROR_MOST, max(ERROR_LEAST, known))


def _line(seen: Sequence[tuple[int, float]], error: float = 0.0) -> float:
    """Return the least seconds per byte of the line through two times, if each is off by ``error``.

    The error is a share; with 0 it is the line through the times as they are. The line goes through
    the last size and one that is at least :data:`APART` times smaller, or the one before if there
    is none.
    """
    *before, (high, after) = seen
    if not before:
        return 0.0
    low, seconds = next((p for p in reversed(before) if APART * p[0] <= high), before[-1])
    off = [max(error * time, ERROR_SECONDS) if error else 0.0 for time in (seconds, after)]
    return max(0.0, (after - off[1] - seconds - off[0]) / (high - low))
