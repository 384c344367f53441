"""How long the next look of a search takes, as far as the looks before it tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stagegen.tune.sizes import octaves
from stagegen.tune.subject import Subject

#: The first look of a search costs this many times as much as others: it tunes all parameters, and
#: routines are checked. The median of 31 in the lab; half of them are between 3.6 and 14.
BEGIN = 8.0

#: If the looks of other collectives are all that tells, a first look is expected to take so many
#: times as long. They were first looks for the most part.
UNLIKE = 4.0

#: How many calls a look takes, by the most seconds of a call; the longer a call, the fewer
#: candidates are looked at. To its lower bound a call adds :data:`LATENCY` seconds.
CALLS, LATENCY = ((0.05, 80.0), (0.1, 40.0), (1.0, 10.0), (math.inf, 4.0)), 0.02

#: With one rule for all sizes, predictions rule out nothing: a look takes at least so many calls.
ALL = 20.0


def cost_of_look(subject: Subject, size: int, everyone: Sequence[Subject]) -> float:
    """Return the seconds that a look is expected to take, by looks before it.

    Args:
        subject: the search.
        size: in bytes.
        everyone: all subjects; their looks tell if neither this one nor its collective's first one
            had any.
    """
    plain = _plain_cost(subject, size)
    known = subject.costs or (subject.first.costs if subject.first else {})
    if known:
        near = min(known, key=lambda s: (octaves(s, size), s))
        begun = 1.0 if subject.plan.one_rule else _beginning(known, near)
        return known[near] * plain / _plain_cost(subject, near) / begun
    spent = [(one, s) for one in everyone for s in one.costs]
    plain_ones = sum(_plain_cost(one, s) for one, s in spent)
    rate = sum(one.costs[s] for one, s in spent) / plain_ones if spent else 1.0
    return rate * (plain + sum(_plain_cost(subject, rung) for rung in subject.search.rungs()))


def cost_of_first_look(subject: Subject, everyone: Sequence[Subject]) -> float:
    """Return the seconds that a look which tunes all parameters is expected to take.

    Args:
        subject: the search.
        everyone: all subjects, as for :func:`cost_of_look`.
    """
    known = subject.costs or (subject.first.costs if subject.first else {})
    factor = BEGIN if known and not subject.plan.one_rule else UNLIKE
    return factor * cost_of_look(subject, subject.plan.sizes[0], everyone)


def _beginning(known: Mapping[int, float], size: int) -> float:
    """Return the factor by which a look took longer because it was the first one."""
    return BEGIN if size == next(iter(known)) else 1.0


def _plain_cost(subject: Subject, size: int) -> float:
    """Return what a look costs if calls take their lower bound, the latency, and late ranks."""
    seconds = subject.plan.bound(size) + LATENCY + subject.plan.late(size)
    calls = next(calls for most, calls in CALLS if seconds <= most)
    return seconds * max(calls, ALL if subject.plan.one_rule else 0.0)
