"""Prunes algorithms that cannot win at larger sizes, or that need no second look.

Ruling out an algorithm by its time alone would drop a ring for its latency. So the time that
additional bytes take counts, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Candidate
from stagegen.tune.choose import Samples, median

#: An algorithm is pruned if it took PRUNE_FACTOR times as long as the best one, and the bytes added
#: since the last size cost it PRUNE_FACTOR times as much.
PRUNE_FACTOR = 1.5

#: Only sizes count at which bytes matter more than latency: where the best one takes BYTES_MATTER
#: times as long as at the smallest size. A ring of 16 ranks has four times the latency of a tree,
#: and wins in the end.
BYTES_MATTER = 4


class Pruning:
    """Collects the names of pruned algorithms, from samples of ascending sizes."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._behind: set[str] = set()
        self._before: Mapping[str, float] = {}
        self._least: dict[int, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def behind(self, candidates: Iterable[Candidate]) -> frozenset[Candidate]:
        """Return the candidates whose algorithms fell behind at the last size."""
        return frozenset(c for c in candidates if c.algorithm in self._behind)

    def observe(self, samples: Samples, kinds: Sequence[frozenset[Candidate]]) -> None:
        """Compare each candidate with the best one of the smallest set that holds it.

        Args:
            samples: of the next size.
            kinds: sets of candidates with a winner each, each within the one before.
        """
        times: dict[str, float] = {}
        for candidate, sample in samples.items():
            before = times.get(candidate.algorithm, inf)
            times[candidate.algorithm] = min(before, *sample.seconds)
        self._behind = {c.algorithm for c, sample in samples.items() if sample.dropped}
        for number, kind in enumerate(kinds):
            inner = kinds[number + 1] if number + 1 < len(kinds) else frozenset()
            if not kind:
                continue
            best = min(kind, key=lambda candidate: median(samples[candidate]))
            least = self._least.setdefault(number, median(samples[best]))
            if median(samples[best]) > BYTES_MATTER * least:
                members = (c.algorithm for c in kind - inner)
                self._names.update(n for n in members if self._is_behind(n, best.algorithm, times))
        self._before = times

    def _is_behind(self, name: str, best: str, times: Mapping[str, float]) -> bool:
        if name == NATIVE or name not in self._before or best not in self._before:
            return False
        more = times[name] - self._before[name]
        best_more = times[best] - self._before[best]
        return times[name] > PRUNE_FACTOR * times[best] and more > PRUNE_FACTOR * best_more
