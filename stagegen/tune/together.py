"""Which communicators may be timed at the same time: those that share no host and no link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from stagegen.schedule.verify import used_by
from stagegen.topology import Topology
from stagegen.tune.communicators import Communicator

T = TypeVar("T")


class AtOnce(Protocol):
    """Runs searches on communicators that share no link; returns their results in order."""

    def __call__(self, searches: Sequence[Callable[[], T]], /) -> list[T]:
        """Run them to their ends."""


def in_turn(searches: Sequence[Callable[[], T]], /) -> list[T]:
    """Run searches one after the other."""
    return [search() for search in searches]


def together(
    topology: Topology, communicators: Sequence[Communicator]
) -> tuple[tuple[Communicator, ...], ...]:
    """Return the communicators in sets that may be timed at the same time.

    Each is in the first set with whose members it shares nothing, as the checker finds.

    Args:
        topology: the cluster.
        communicators: in the order in which they are tuned.
    """
    used = dict(
        zip(communicators, used_by(topology, [one.ranks for one in communicators]), strict=True)
    )
    found: list[list[Communicator]] = []
    for one in communicators:
        apart = (s for s in found if all(used[one].isdisjoint(used[other]) for other in s))
        own = next(apart, None)
        if own is None:
            found.append([one])
        else:
            own.append(one)
    return tuple(map(tuple, found))
