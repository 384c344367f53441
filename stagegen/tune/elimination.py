"""Saves launches: leaves out candidates that cannot be chosen, and sizes that are decided.

- A candidate is *beaten* if even its least time, scouting included, is above the median of a rival
  by :func:`stagegen.tune.choose.far`, and by more than the noise. A hiccup can cause one long time,
  but not all of them.
- A challenger is *out of reach* if it could not pass the test against the native routine even with
  the best luck in the launches to come, or if the one that is tested first could not. That changes
  no decision, except with fewer than five launches: there, one that loses a launch could still lead
  by far in the median. Where calls are long, each challenger is tested for itself.
- The native routine is *replaced* before all launches are done if the challenger was faster on
  another communicator, and is ahead by the least gain in each of :data:`CONFIRMED` launches.
- A challenger that is slower than the leader in two launches or more is *behind*: the leader that
  replaces it is the better of two that both beat the native routine. Of long calls, medians and
  means must say so: a leader that is slow now and then may have the better median.
- Where calls are dear, launches go on for the first group alone. A candidate that another one beats
  *by far* (:func:`stagegen.tune.choose.is_faster_by_far`) is not timed again, but stays: the tables
  of other groups may have it. The native routine is beaten only by more than the noise, as for the
  choice: else launches would end before any candidate may replace it.

The error of the race: in each group, the native routine is tested against one challenger, which
scouting ranked best. A challenger that is no faster must be ahead in each of five launches, which
has a probability of at most 1 in 32, and its median gain must reach the least gain besides. The
others may replace the native routine only if that one does, so the probability of a false change
does not grow with their number. While that challenger is on test, it is not taken out as beaten or
behind.

Where calls are long, each challenger has two tests, by medians and by means: a false change has a
probability of at most 1 in 16 for each of them. These are few (:data:`FINALISTS` of
:mod:`stagegen.tune.launches`), noise is small beside the least gain, and a wrong choice costs most:
two that looks cannot tell apart may differ in how they stand full queues.

A challenger that was faster on another communicator needs fewer launches, as it has passed the
looks on both. One that is no faster here is ahead in both launches with a probability of at most 1
in 4, and by the least gain in both with a lower one.

The bound of 1 in 32 does not cover decisions by far. They are made for every candidate if there
were fewer than five launches: calls are dear, a budget is spent, or the options ask for few. There,
no time of the native routine, looks included, comes near the other's median: where calls are dear,
all are 30 % above it after one launch, 12 % after two; else 50 % and 20 %.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from itertools import chain

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import launch_mean_ratios, launch_ratios, may_be_faster
from stagegen.tune.choose import far, unbeaten
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import least
from stagegen.tune.further import launches_between, since_settled
from stagegen.tune.point import Point
from stagegen.tune.protocol import Protocol

#: This many launches confirm a routine that was faster on another communicator.
CONFIRMED = 2

#: The logarithm of the factor is also at least this many times the noise.
NOISE_FACTOR = 4


def noise_factor(noise: float) -> float:
    """Return the factor by which times differ by more than the noise, a logarithm."""
    return math.exp(NOISE_FACTOR * noise)


def is_settled(point: Point, protocol: Protocol, noise: float = 0.0) -> bool:
    """Whether further launches can no longer change the choice of any group.

    ``noise`` is that of launches, as :func:`stagegen.tune.choose.noise_among` has it.
    """
    if not point.launches:
        return len(point.running) <= 1
    return all(_is_settled(point, group, protocol, noise) for group in _contested(point))


def worth_timing(point: Point, noise: float = 0.0) -> tuple[Candidate, ...]:
    """Return the finalists that the next launch times.

    Where calls are dear, these are the ones that may still be chosen for the first group. The
    others stay, with the times that they have. ``noise`` is as in :func:`is_settled`.
    """
    if not point.launches:
        return point.running
    groups = _contested(point)
    left = {candidate for group in groups for candidate in _left(point, group, noise)}
    return tuple(candidate for candidate in point.running if candidate in left)


def _contested(point: Point) -> tuple[frozenset[Candidate], ...]:
    """Return the groups that further launches are for: where calls are dear, only the first."""
    return point.field.without_dear(least(point.seen)).groups


def _left(point: Point, group: frozenset[Candidate], noise: float) -> list[Candidate]:
    """Return the running candidates of a group; if calls are dear, only those not beaten by far."""
    running = [candidate for candidate in point.running if candidate in group]
    if not point.is_dear:
        return running
    samples = point.samples()
    return list(unbeaten({candidate: samples[candidate] for candidate in running}, noise))


def _is_settled(
    point: Point, group: frozenset[Candidate], protocol: Protocol, noise: float
) -> bool:
    running = _left(point, group, noise)
    if len(running) <= 1:
        return True
    if NATIVE_CANDIDATE in running or len(point.launches) < 2:
        return False
    leader = min(running, key=point.median)
    return not any(
        _is_open(point, leader, holder, protocol)
        for holder in running
        if holder != leader and holder in point.holders
    )


def _is_open(point: Point, challenger: Candidate, holder: Candidate, protocol: Protocol) -> bool:
    """Whether launches to come may decide between two.

    Where calls are long, the mean may gain enough, too. There it is closed if the challenger, after
    two launches or more, is not ahead by half of the least gain. It is then unlikely to get there,
    and little is lost. If what was called before may decide, only launches that exclude this count
    here (:attr:`Point.settles_from`). A large gain over native may have further launches
    (:mod:`stagegen.tune.further`).
    """
    ours, theirs = point.raced[challenger], point.raced[holder]
    ratios = launch_ratios(ours, theirs)
    if not point.is_long:
        return may_be_faster(ratios, protocol.launches, protocol.gain)
    recent = since_settled(point, ours)
    medians, means = launch_ratios(recent, theirs), launch_mean_ratios(recent, theirs)
    if len(medians) > 1:
        gained = 1 - min(statistics.median(medians), statistics.fmean(means))
        if gained < protocol.gain / 2:
            return False
    known = ratios, launch_mean_ratios(ours, theirs)
    launches = launches_between(point, challenger, holder, protocol)
    return any(may_be_faster(one, launches, 0.0) for one in known)


def eliminate(point: Point, protocol: Protocol, noise: float) -> None:
    """Take out candidates that are beaten, out of reach or behind, the slowest first; one stays.

    Args:
        point: what is known of a size; learns which finalists are out.
        protocol: which differences count.
        noise: as :func:`stagegen.tune.point.noise_of` has it.
    """
    for candidate in sorted(point.running, key=point.median, reverse=True):
        rivals = {one: point.median(one) for one in point.running if one != candidate}
        challenges = candidate != NATIVE_CANDIDATE
        out_of_reach = challenges and _is_out_of_reach(point, candidate, protocol)
        beaten = _is_beaten(point, candidate, rivals, noise)
        behind = challenges and _is_behind(point, candidate, rivals, protocol)
        if out_of_reach or ((beaten or behind) and not _is_on_test(point, candidate)):
            point.out.add(candidate)
    _replace_native(point, protocol)


def _replace_native(point: Point, protocol: Protocol) -> None:
    """If launches confirm what was faster elsewhere, take out native and all that is not ahead."""
    if not point.is_told or NATIVE_CANDIDATE not in point.running:
        return
    native = point.raced[NATIVE_CANDIDATE]
    ratios = {c: launch_ratios(point.raced[c], native) for c in point.running}
    ahead = {
        candidate
        for candidate, known in ratios.items()
        if len(known) >= CONFIRMED and max(known) < 1 - protocol.gain
    }
    if all(point.challenger(group) in ahead for group in point.field.groups):
        point.out.update(set(point.running) - ahead)


def _is_on_test(point: Point, candidate: Candidate) -> bool:
    """Whether it is tested first, so that others replace the native routine only if it does."""
    if point.is_long:
        return False
    tested = {point.challenger(group) for group in point.field.groups}
    return candidate in tested and NATIVE_CANDIDATE in point.running


def _is_beaten(
    point: Point, candidate: Candidate, rivals: Mapping[Candidate, float], noise: float
) -> bool:
    inner = [group for group in point.field.groups if candidate in group][-1]
    others = [one for one in rivals if one in inner]
    if not others:
        return False
    rival = min(others, key=rivals.__getitem__)
    shared = point.raced[candidate].keys() & point.raced[rival].keys()
    if not shared:
        return False
    factor = max(far(len(shared), point.is_long), noise_factor(noise))
    median = statistics.median(chain.from_iterable(point.raced[rival][n] for n in shared))
    return min(*point.seen[candidate], *point.pooled(candidate)) > factor * median


def _is_out_of_reach(point: Point, candidate: Candidate, protocol: Protocol) -> bool:
    """Whether it can no longer replace the native routine in any group.

    It can as long as it has not failed itself, and, unless calls are long, neither has the one that
    is tested first.
    """
    if NATIVE_CANDIDATE not in point.running:
        return False
    if point.is_long:
        return not _is_open(point, candidate, NATIVE_CANDIDATE, protocol)
    groups = (group for group in point.field.groups if candidate in group)
    tested = {first for group in groups if (first := point.challenger(group)) is not None}
    return not any(
        _is_open(point, first, NATIVE_CANDIDATE, protocol)
        and _is_open(point, candidate, NATIVE_CANDIDATE, protocol)
        for first in tested - point.out
    )


def _is_behind(
    point: Point, candidate: Candidate, rivals: Mapping[Candidate, float], protocol: Protocol
) -> bool:
    """Whether a challenger lost to the leader in each of several launches, by what counts."""
    if candidate in point.holders and not point.is_long:
        return False
    inner = [group for group in point.field.groups if candidate in group][-1]
    others = [c for c in rivals if c in inner and c != NATIVE_CANDIDATE]
    if not others:
        return False
    leader = min(others, key=rivals.__getitem__)
    ours, theirs = point.raced[candidate], point.raced[leader]
    ratios = launch_ratios(ours, theirs)
    if point.is_long and min(launch_mean_ratios(ours, theirs), default=1.0) <= 1:
        return False  # it may be the steadier one
    return len(ratios) > 1 and min(ratios) > 1 and statistics.median(ratios) > 1 + protocol.gain
