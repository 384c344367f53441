"""Measures decisions again: a sample of them, each choice against its rivals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from stagegen.measure.records import Candidate, CandidateFailed
from stagegen.measure.source import Source
from stagegen.measure.statistics import MARGIN, is_faster
from stagegen.measure.timing import Timing
from stagegen.tune.checking import CandidateWrong, CheckedSource
from stagegen.tune.contest import Contestant, time_in_turn
from stagegen.tune.decision import NATIVE_CANDIDATE, Table
from stagegen.tune.elsewhere import ELSEWHERE_GAIN
from stagegen.tune.loss import Key, Times

#: How much more often a size at a crossover is drawn than another one: there the choice is closest.
CROSSOVER_WEIGHT = 4


@dataclass(frozen=True)
class Decision:
    """A choice at one size, and what else might serve.

    Attributes:
        key: of the table.
        communicator: the name of the ranks to measure on.
        size: of the message, in bytes.
        choice: what the table chooses.
        rivals: the native routine and the best alternative, without the choice itself.
        weight: how likely it is drawn, beside others.
        gain: the least share by which a rival of the choice had to be faster.
    """

    key: Key
    communicator: str
    size: int
    choice: Candidate
    rivals: tuple[Candidate, ...]
    weight: float
    gain: float = MARGIN

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The choice, then its rivals."""
        return (self.choice, *self.rivals)


@dataclass(frozen=True)
class Verdict:
    """Whether a decision holds.

    Attributes:
        decision: the one that was measured again.
        contestants: the choice and its rivals, with their times; none if the choice cannot run.
        beaten_by: the rivals that were faster, twice.
        why: why the choice cannot run; empty if it can.
    """

    decision: Decision
    contestants: tuple[Contestant, ...]
    beaten_by: tuple[Candidate, ...] = ()
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether the choice is right, and no rival was faster."""
        return not self.beaten_by and not self.why


#: Whether a candidate may serve a table, at a size.
MayServe = Callable[[Key, Candidate, int], bool]


def decisions_of(
    key: Key,
    table: Table,
    communicator: str,
    sizes: Collection[int],
    times: Times | None,
    may_serve: MayServe,
    gain: float = MARGIN,
) -> Iterator[Decision]:
    """Yield the decisions of a table: at the tuned sizes, and on both sides of each crossover.

    Args:
        key: of the table.
        table: the table.
        communicator: the name of the ranks to measure on.
        sizes: the tuned ones.
        times: of the log, from which the best alternative follows; None without one.
        may_serve: whether a candidate may be an alternative.
        gain: the least share by which a routine had to be faster than what it replaces. To replace
            the native one on shapes that were not measured, it is at least
            :data:`stagegen.tune.elsewhere.ELSEWHERE_GAIN`.
    """
    changes = {
        end: table.rules[place - 1 if end >= rule.first else place].candidate
        for place, rule in enumerate(table.rules)
        for end in rule.crossover or ()
    }
    for size in sorted({*sizes, *changes}):
        choice = table.choice(size)
        other = changes.get(size)
        if other is None or other == choice:
            other = _best_other(key, table, communicator, size, times, may_serve)
        rivals = dict.fromkeys(c for c in (NATIVE_CANDIDATE, other) if c not in (None, choice))
        if rivals:
            weight = (1 + math.log2(size + 1)) * (CROSSOVER_WEIGHT if size in changes else 1)
            few = tuple(filter(None, rivals))
            is_wary = choice == NATIVE_CANDIDATE and not table.confirmed
            least = max(gain, ELSEWHERE_GAIN) if is_wary else gain
            yield Decision(key, communicator, size, choice, few, weight, least)


def _best_other(
    key: Key,
    table: Table,
    communicator: str,
    size: int,
    times: Times | None,
    may_serve: MayServe,
) -> Candidate | None:
    """Return the best candidate besides the choice and the native one, by the nearest times."""
    out = (table.choice(size), NATIVE_CANDIDATE)
    able = [c for c in table.rule(size).alternatives if c not in out and may_serve(key, c, size)]
    measured = () if times is None else times.sizes(key[0], communicator)
    if times is None or not measured:
        return able[0] if able else None
    nearest = min(measured, key=lambda other: abs(math.log((other + 1) / (size + 1))))
    fastest = times.fastest(
        key[0], communicator, nearest, lambda c: c not in out and may_serve(key, c, size)
    )
    return fastest or (able[0] if able else None)


def draw(decisions: Iterable[Decision], count: int, seed: int) -> tuple[Decision, ...]:
    """Return a weighted sample without replacement, in the order of drawing.

    Each decision gets the key u^(1/w), with u uniform and w its weight; those with the greatest
    keys are the sample (Efraimidis and Spirakis 2006, algorithm A).
    """
    chance = random.Random(seed)
    keyed = [(math.log(1 - chance.random()) / one.weight, one) for one in decisions]
    ordered = sorted(keyed, key=lambda pair: pair[0], reverse=True)
    return tuple(decision for _, decision in ordered[:count])


def judge(
    source: Source, decision: Decision, repetitions: int, timing: Timing | None = None
) -> Verdict:
    """Measure a decision again, and once more if a rival is faster: one look may be bad luck.

    A rival that is wrong or fails is left out. A choice that is wrong or fails does not hold.

    Raises:
        MeasurementError: a measurement failed, through no candidate's fault.
    """
    collective, name = decision.key[0], decision.communicator
    left = list(decision.candidates)
    checked = CheckedSource(source)

    def contest(candidates: Sequence[Candidate]) -> tuple[Contestant, ...]:
        return time_in_turn(
            checked, collective, decision.size, candidates, repetitions, name, timing
        )

    while True:
        try:
            first = contest(left)
            faster = _faster(first, decision.gain)
            again = _faster(contest([decision.choice, *faster]), decision.gain) if faster else ()
        except CandidateFailed as failed:
            if failed.failure.candidate == decision.choice:
                how = "" if isinstance(failed, CandidateWrong) else "failed: "
                return Verdict(decision, (), why=f"{how}{failed.failure.why}")
            left.remove(failed.failure.candidate)
        else:
            return Verdict(decision, first, again)


def _faster(contestants: Sequence[Contestant], gain: float) -> tuple[Candidate, ...]:
    """Return those that beat the first by more than the noise, and by the gain that a change needs.

    A choice must not be slower than the native routine, however much a change to it had to gain.
    """
    first, *rivals = contestants

    def needed(candidate: Candidate) -> float:
        return min(gain, MARGIN) if candidate == NATIVE_CANDIDATE else gain

    return tuple(
        c.candidate
        for c in rivals
        if is_faster(c.repetitions, first.repetitions, needed(c.candidate))
    )
