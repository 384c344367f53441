"""Checks the syncs of a schedule one by one, and that tokens cannot be taken for each other.

A token from the receiver of `first` proves that `first` has arrived; a token from its sender
proves only that the send is complete. So the order that is checked in
:mod:`stagegen.schedule.verify.order` excludes contention for `receiver`; for `sender` the end of
one message can meet the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from stagegen.errors import ScheduleError
from stagegen.schedule.model import Sync, SyncGraph
from stagegen.schedule.verify.checked_schemes import CheckedScheme
from stagegen.schedule.verify.paths import require
from stagegen.schedule.verify.plan import Numbers, Plan

_NOBODY = (-1, -1)


@dataclass(frozen=True)
class SyncTable:
    """Syncs as arrays, with an element for each.

    Attributes:
        first: the numbers of the earlier messages.
        then: the numbers of the later messages.
        giver: the ranks that give the tokens; -1 without one.
        taker: the ranks that await them; -1 without one.
    """

    first: Numbers
    then: Numbers
    giver: Numbers
    taker: Numbers


def read_syncs(syncs: Sequence[Sync], plan: Plan) -> SyncTable:
    """Return the syncs as arrays.

    Raises:
        ScheduleError: a sync names a message that the schedule does not have.
    """
    flat = chain.from_iterable((*first, *then, *(token or _NOBODY)) for first, then, token in syncs)
    table = np.fromiter(flat, np.int64, 6 * len(syncs)).reshape(-1, 6).T
    numbers = plan.numbers()
    found = []
    for which, (source, destination) in enumerate((table[:2], table[2:4])):
        known = (np.stack((source, destination)) < plan.ranks) & (table[2 * which :][:2] >= 0)
        pair = np.where(known.all(axis=0), source * plan.ranks + destination, 0)
        found.append(np.where(known.all(axis=0), numbers[pair], -1))
        for wrong in np.flatnonzero(found[-1] < 0)[:1]:
            first, then, _ = syncs[wrong]
            raise ScheduleError(
                f"sync {first} before {then}: the schedule has no message {syncs[wrong][which]}"
            )
    return SyncTable(found[0], found[1], table[4], table[5])


def check_syncs(table: SyncTable, plan: Plan, sync: SyncGraph, scheme: CheckedScheme) -> None:
    """Check every sync by itself: forward in time, part of the scheme, with the right token."""
    early, late = plan.phase[table.first], plan.phase[table.then]
    same_block = early // sync.block_size == late // sync.block_size
    sender, receiver = plan.source[table.first], plan.destination[table.first]
    taker = plan.source[table.then]
    giver = sender if scheme.giver == "sender" else receiver
    knows = taker == giver
    right = np.where(knows, _NOBODY[0], giver), np.where(knows, _NOBODY[0], taker)

    def reject(wrong: npt.NDArray[np.bool_], problem: str) -> None:
        for index in np.flatnonzero(wrong)[:1].tolist():
            first, then, token = sync.syncs[index]
            told = None if knows[index] else (int(right[0][index]), int(right[1][index]))
            said = problem.format(
                early=early[index], late=late[index], token=token, right=told, size=sync.block_size
            )
            require(False, f"sync {first} before {then}: {said}")

    reject(early >= late, "phase {early} does not come before phase {late}")
    reject(
        (table.giver != right[0]) | (table.taker != right[1]),
        "the token is {token}, but must be {right}",
    )
    if scheme.blocks:
        reject(
            same_block != scheme.inside,
            f"phases {{early}} and {{late}} are {'not ' if scheme.inside else ''}"
            "in the same block of {size}",
        )


def check_token_order(table: SyncTable, plan: Plan) -> None:
    """Check that between two ranks tokens are awaited in the order in which they are given.

    All tokens from one rank to another are alike. Tokens that are given at once, or awaited at
    once, may be taken for each other.
    """
    given, awaited = plan.phase[table.first], plan.phase[table.then]
    stream = table.giver * plan.ranks + table.taker
    order = np.lexsort((awaited, given, stream))
    order = order[table.giver[order] >= 0]
    one, two = order[:-1], order[1:]
    mistaken = (stream[one] == stream[two]) & (awaited[one] > awaited[two])
    for index in np.flatnonzero(mistaken)[:1]:
        giver, taker = table.giver[one[index]], table.taker[one[index]]
        raise ScheduleError(
            f"the tokens from rank {giver} to rank {taker} for "
            f"{plan.message(table.then[one[index]])} and {plan.message(table.then[two[index]])} "
            "can be mistaken for each other"
        )
