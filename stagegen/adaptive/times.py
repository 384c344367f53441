"""Merges learned files into the known times, so that the next run starts from these.

A call takes longer in a program than in tuning: ranks come late, and the network carries other
traffic. So the two times are not compared. At a size that a program used, every algorithm gets a
time of that size: those that were tried get the program's, and all others what was known before,
times the median ratio of the two among those that were tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from stagegen.adaptive.known import Known, KnownTime, Origin
from stagegen.adaptive.learned import Learned
from stagegen.adaptive.subjects import Seen, Subject, by_subject, pooled, require_same, table_of
from stagegen.measure.records import Candidate
from stagegen.tune.decision import DecisionTable


@dataclass(frozen=True)
class Updated:
    """Known times with what was learned.

    Attributes:
        known: the times.
        added: what was learned, in words.
        left_out: what was not taken over, and why.
    """

    known: Known
    added: tuple[str, ...]
    left_out: tuple[str, ...]


def update(
    known: Known, decision: DecisionTable, files: Iterable[Learned], build_hash: str | None
) -> Updated:
    """Return the known times with those that programs measured.

    Args:
        known: the times of the library.
        decision: its table before the merge.
        files: of ``LIBCOLL_LEARN``, in any order.
        build_hash: of the library, or None if it is not known.

    Raises:
        InputError: a file is of another cluster or another build.
    """
    files = list(files)
    require_same(files, decision, build_hash)
    added: list[str] = []
    left_out: list[str] = []
    for subject, seen in by_subject(files):
        table = table_of(decision, subject)
        if table is None:
            left_out.append(f"times of {subject}: there is no table of its own")
            continue
        before = known.of_table(table)
        rows = _at_size(before, subject, seen)
        if isinstance(rows, str):
            left_out.append(f"times of {subject}: {rows}")
            continue
        known = known.having(table, [*(one for one in before if one.size != subject.size), *rows])
        tried = sum(1 for one in rows if one.learned is not None and one.learned.calls)
        added.append(f"times of {subject}: {tried} of programs, {len(rows) - tried} scaled")
    return Updated(known, tuple(added), tuple(left_out))


def _at_size(before: Sequence[KnownTime], subject: Subject, seen: Seen) -> list[KnownTime] | str:
    """Return the times of all algorithms at the subject's size, or why nothing is taken over."""
    files = tuple(sorted({file.file for file, _ in seen}))
    tried = _tried(seen)
    if not tried:
        return "no candidate was tried in all situations, or no times were kept"
    nearest = _at(before, subject.size)
    ratios = [
        median(times) / nearest[candidate.algorithm].seconds
        for candidate, times in tried.items()
        if candidate.algorithm in nearest
    ]
    if nearest and not ratios:
        return "tuning knows nothing of those that were tried"
    factor = median(ratios) if ratios else 1.0
    rows = {
        name: KnownTime(subject.size, one.candidate, one.seconds * factor, Origin(files, 0, factor))
        for name, one in nearest.items()
    }
    for candidate, times in sorted(tried.items(), key=lambda one: -median(one[1])):
        old = nearest.get(candidate.algorithm)
        # A program does not tell the parts of a composition: they stay.
        same = old.candidate if old is not None and old.candidate.bound else candidate
        origin = Origin(files, len(times))
        rows[candidate.algorithm] = KnownTime(subject.size, same, median(times), origin)
    return list(rows.values())


def _tried(seen: Seen) -> Mapping[Candidate, list[float]]:
    """Return the times of the candidates that were tried in every situation.

    Programs differ in how late their ranks come. So times of candidates that different programs
    tried cannot be compared.
    """
    each = [
        {one.candidates[i] for i in range(len(one.candidates)) if one.times_of(i)}
        for _, one in seen
    ]
    common = sorted(set.intersection(*each))
    times = {candidate: pooled(seen, candidate) for candidate in common}
    return {candidate: found for candidate, found in times.items() if median(found) > 0}


def _at(before: Iterable[KnownTime], size: int) -> dict[str, KnownTime]:
    """Return what is known of each algorithm at a size, as libcoll finds it.

    The parameters are those of the nearest size. The time is from the line through the sizes around
    it; beyond the largest one, in proportion to the bytes.
    """
    rows: dict[str, list[KnownTime]] = defaultdict(list)
    for one in sorted(before, key=lambda one: one.size):
        if one.seconds > 0:
            rows[one.candidate.algorithm].append(one)
    return {name: _on_the_line(known, size) for name, known in rows.items()}


def _on_the_line(rows: Sequence[KnownTime], size: int) -> KnownTime:
    nearest = min(rows, key=lambda one: _distance(one.size, size))
    below = [one for one in rows if one.size <= size]
    above = [one for one in rows if one.size >= size]
    if not below or (below[-1].size == 0 and not above):
        return nearest
    low = below[-1]
    if not above:
        return replace(nearest, seconds=low.seconds * size / low.size)
    if above[0] == low:
        return low
    share = (size - low.size) / (above[0].size - low.size)
    return replace(nearest, seconds=low.seconds + share * (above[0].seconds - low.seconds))


def _distance(one: int, other: int) -> float:
    """Return how far a size is from another one: their ratio; 0 counts as 1."""
    small, large = sorted((max(one, 1), max(other, 1)))
    return large / small
