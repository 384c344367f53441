"""Which communicators may be timed at the same time: those that share no host and no link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol, TypeVar

from stagegen.schedule.verify import used_by
from stagegen.topology import Topology
from stagegen.tune.communicators import Communicator

T = TypeVar("T")


class RunSearches(Protocol):
    """Runs searches on communicators that share no link; returns their results in order."""

    def __call__(self, searches: Sequence[Callable[[], T]], /) -> list[T]:
        """Run them to their ends."""


def in_turn(searches: Sequence[Callable[[], T]], /) -> list[T]:
    """Run searches one after the other."""
    return [search() for search in searches]


def together(
    topology: Topology, communicators: Sequence[Communicator]
) -> list[tuple[Communicator, ...]]:
    """Return the communicators in sets that may be timed at the same time.

    Among named groups that follow each other, each joins the first set in which it shares nothing
    with any member, as the checker finds. All others are alone: jobs learn from each other, and
    what is timed together must have even blocks.

    Args:
        topology: the cluster.
        communicators: in the order in which they are tuned.
    """
    found: list[tuple[Communicator, ...]] = []
    for is_named, some in groupby(communicators, key=_may_be_together):
        row = list(some)
        found += _apart(topology, row) if is_named else [(one,) for one in row]
    return found


def _may_be_together(communicator: Communicator) -> bool:
    """Whether it is a named group, with calls of even blocks."""
    return bool(communicator.group) and communicator.pattern is None


def _apart(topology: Topology, groups: Sequence[Communicator]) -> list[tuple[Communicator, ...]]:
    """Return groups in sets whose members share nothing."""
    used = dict(zip(groups, used_by(topology, [one.ranks for one in groups]), strict=True))
    found: list[tuple[Communicator, ...]] = []
    for one in groups:
        fits = (all(used[one].isdisjoint(used[other]) for other in some) for some in found)
        place = next((k for k, does in enumerate(fits) if does), None)
        if place is None:
            found.append((one,))
        else:
            found[place] = (*found[place], one)
    return found
