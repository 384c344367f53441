"""How long a command of a session may take before it counts as one that hangs.

A job that hangs looks like one that is slow. So the limit is generous where nothing is known, and
draws closer as measurements show how long calls take; after a command that ran into a limit, the
next limit is longer. Where nothing is known, the first attempt has a part of the patience, and only
the next one has all of it.

If nothing was measured of a collective, or on some ranks, a call there is foreseen as α + βn: α is
what the slowest call took at the least size of anything measured, and βn is generous, a multiple of
the lower bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from stagegen.measure.records import Candidate, Measurement, Request

#: Seconds that a command may take beyond SLOWEST times its lower bound, whatever was seen.
PATIENCE = 120.0
SLOWEST = 100

#: The part of the patience that a command gets even if all others took no time at all.
LEAST = 1 / 12

#: How many times as long as foreseen a command may take.
MARGIN = 10

#: How many times as long as the first attempt an attempt after a failure may take.
LONGER = 4

#: A check has at most about CHECK_CASES cases, of at most about CHECK_SIZE bytes.
CHECK_CASES = 100
CHECK_SIZE = 16 * 1024

#: So many calls of a check are of about CHECK_SIZE bytes: most are short.
LARGE_CALLS = 4


class Watchdog:
    """Limits of commands, learned from what earlier commands took.

    Args:
        bound: lower bound in seconds of a collective and size.
        patience: seconds that a command may take beyond :data:`SLOWEST` times its bound.
    """

    def __init__(self, bound: Callable[[str, int], float], patience: float = PATIENCE):
        self._bound = bound
        self._patience = patience
        self._slowest: dict[tuple[str, str], dict[Candidate, dict[int, float]]]
        self._slowest = defaultdict(lambda: defaultdict(dict))
        self._excess: float | None = None
        self._longest_check: float | None = None

    def of_check(self, collective: str, scale: float, attempt: int = 0) -> float:
        """Return the limit in seconds for the check of one routine.

        Args:
            collective: which one.
            scale: the factor by which all link rates are multiplied.
            attempt: how many attempts have failed before.
        """
        most = self._most(collective, CHECK_SIZE, CHECK_CASES, scale)
        foreseen = LARGE_CALLS * self._bound(collective, CHECK_SIZE) / scale
        return self._limit(self._longest_check, foreseen, attempt, most)

    def of(self, request: Request, scale: float, attempt: int = 0, late: float = 0.0) -> float:
        """Return the limit in seconds for a request.

        Args:
            request: what is asked for.
            scale: as for a check.
            attempt: likewise.
            late: the seconds by which ranks come late to a call at the most.
        """
        turns = (request.calls + request.settle) * request.repetitions
        calls = turns * len(request.candidates)
        computing, waiting = calls * request.timing.computation_ms / 1e3, calls * late
        most = self._most(request.collective, request.size, calls, scale) + SLOWEST * computing
        most += MARGIN * waiting
        take = (self._foreseen(request, candidate, scale) for candidate in request.candidates)
        return self._limit(self._excess, turns * sum(take) + computing + waiting, attempt, most)

    def checked(self, seconds: float) -> None:
        """Learn how long a check took that came to its end."""
        self._longest_check = max(seconds, self._longest_check or 0.0)

    def measured(self, measurement: Measurement, seconds: float, late: float = 0.0) -> None:
        """Learn from a measurement, and from the seconds that its command took.

        Args:
            measurement: the answer.
            seconds: that the command took.
            late: as for its limit.
        """
        request = measurement.request
        of_all = self._slowest[request.collective, request.communicator]
        for candidate, times in measurement.by_candidate().items():
            sizes = of_all[candidate]
            sizes[request.size] = max(*times, sizes.get(request.size, 0.0))
        waiting = late * _turns(request)
        excess = seconds - measurement.of_calls - _computing(request) - waiting
        self._excess = max(excess, self._excess or 0.0)

    def measured_together(self, measured: Sequence[Measurement], seconds: float) -> None:
        """Learn from measurements that one command made, each on ranks of its own.

        Those that end first wait. So each is taken to have as much besides its calls as the one
        that takes the longest.

        Args:
            measured: the answers; no rank comes late.
            seconds: that the command took.
        """
        own = [one.of_calls + _computing(one.request) for one in measured]
        for one, takes in zip(measured, own, strict=True):
            self.measured(one, seconds - max(own) + takes)

    def _most(self, collective: str, size: int, calls: int, scale: float) -> float:
        """Return the limit that is never exceeded."""
        return self._patience + SLOWEST * calls * self._bound(collective, size) / scale

    def _limit(self, longest: float | None, foreseen: float, attempt: int, most: float) -> float:
        """Return a limit that was learned, but at most ``most`` seconds.

        Args:
            longest: the seconds that any command took beyond its calls; None if none has ended, so
                that nothing is known.
            foreseen: the seconds that the calls will take.
            attempt: how many attempts have failed before.
            most: seconds.
        """
        if longest is None:
            return most / LONGER if attempt == 0 else most
        beyond = max(LEAST * self._patience, MARGIN * longest)
        return float(min(most, LONGER**attempt * (beyond + MARGIN * foreseen)))

    def _foreseen(self, request: Request, candidate: Candidate, scale: float) -> float:
        """Return the seconds of a call, from the slowest call like it; 0 if nothing was measured.

        Of a candidate that was not measured, no more is expected than of the slowest one.
        """
        known = self._slowest.get((request.collective, request.communicator))
        if not known:
            return self._unseen(request, scale)
        like = [known[candidate]] if candidate in known else list(known.values())
        return max(self._at(request, sizes, scale) for sizes in like)

    def _unseen(self, request: Request, scale: float) -> float:
        """Return the seconds of a call if nothing is known of its collective or its ranks."""
        first = (sizes[min(sizes)] for known in self._slowest.values() for sizes in known.values())
        bound = self._bound(request.collective, request.size)
        return max(first, default=0.0) + SLOWEST / MARGIN * bound / scale

    def _at(self, request: Request, seconds: dict[int, float], scale: float) -> float:
        """Return the seconds that are foreseen at a size, from those at the nearest size.

        They grow no faster than the size, and no faster than SLOWEST / MARGIN times the bound. A
        smaller size may take as long as a larger one.
        """
        size = request.size
        nearest = min(seconds, key=lambda known: (abs(known - size), known))
        if size <= nearest:
            return seconds[nearest]
        more = self._bound(request.collective, size) - self._bound(request.collective, nearest)
        by_bound = seconds[nearest] + SLOWEST / MARGIN * more / scale
        return min(by_bound, seconds[nearest] * (size + 1) / (nearest + 1))


def _turns(request: Request) -> int:
    """Return how many calls a request has, of all candidates together."""
    return (request.calls + request.settle) * request.repetitions * len(request.candidates)


def _computing(request: Request) -> float:
    """Return the seconds for which a rank computes."""
    return _turns(request) * request.timing.computation_ms / 1e3
