"""The schedule of an alltoallv's pattern: an order of its messages, with tokens, and its gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stagegen.errors import InputError, NotFoundError
from stagegen.patterns import Pattern
from stagegen.schedule.alltoall.phases.hierarchy import hierarchy
from stagegen.schedule.bounds.lower import lower_bound_of_sizes
from stagegen.schedule.model import PATTERN_CONSTRUCTIONS, PatternSchedule
from stagegen.schedule.patterns.paths import Paths, paths_of
from stagegen.schedule.patterns.phased import all_to_all_phases, greedy_phases
from stagegen.schedule.patterns.segments import parts_of, segment_choices, segment_order
from stagegen.schedule.patterns.tokens import Phases, seconds_of, waits_of
from stagegen.topology import Topology

#: The most messages: the proof keeps for each which others come before it, a bit for each.
MESSAGES_MOST = 20_000

#: A schedule that is shorter by less than this part is not worth more parts.
_WORTH = 0.005


def pattern_schedule(
    topology: Topology, pattern: Pattern, construction: str = "segments", segment: int | None = None
) -> PatternSchedule:
    """Return the order of a pattern's messages that a way of scheduling makes.

    Args:
        topology: the cluster.
        pattern: an alltoallv on as many ranks.
        construction: one of `PATTERN_CONSTRUCTIONS`.
        segment: bytes of a part, for `segments`; None tries several and keeps the best.

    Raises:
        InputError: there is no such construction, the pattern is no alltoallv on these ranks, or
            the segment is no positive number.
        NotFoundError: a link is too slow for phases (`all-to-all`), or there are more than
            :data:`MESSAGES_MOST` messages.
    """
    if construction not in PATTERN_CONSTRUCTIONS:
        raise InputError(
            f"unknown schedule {construction!r}; choose from {', '.join(PATTERN_CONSTRUCTIONS)}"
        )
    _require_ranks(topology, pattern)
    if (count := np.count_nonzero(pattern.array)) > MESSAGES_MOST:
        raise NotFoundError(
            f"the pattern {pattern.name!r} has {count} messages; at most {MESSAGES_MOST} can be "
            "ordered"
        )
    if segment is not None and segment < 1:
        raise InputError(f"a segment has {segment} bytes; it must have at least 1")
    paths = paths_of(topology, pattern.array)
    phases = {
        "greedy": lambda: greedy_phases(paths),
        "all-to-all": lambda: all_to_all_phases(topology, paths),
        "segments": lambda: _segments(paths, segment),
    }[construction]()
    return PatternSchedule(
        ranks=topology.ranks,
        construction=construction,
        sizes=tuple(tuple(map(int, row)) for row in pattern.array),
        phases=phases,
        waits=waits_of(topology, phases),
        seconds=seconds_of(paths, phases),
        bound_seconds=lower_bound_of_sizes(topology, "alltoallv", pattern.array.tolist()).seconds,
    )


def _require_ranks(topology: Topology, pattern: Pattern) -> None:
    if not pattern.is_matrix or pattern.ranks != topology.rank_count:
        raise InputError(
            f"the pattern {pattern.name!r} is an {pattern.collective} on {pattern.ranks} ranks; an "
            f"alltoallv on {topology.rank_count} ranks is needed"
        )


def _segments(paths: Paths, segment: int | None) -> Phases:
    """Return the order with parts of a length; without one, the shortest of several.

    The greedy order is one of them: first fit by remaining load is sometimes worse.
    """
    if segment is not None:
        return segment_order(paths, parts_of(paths, segment))
    phases = greedy_phases(paths)
    least = seconds_of(paths, phases)
    for length in segment_choices(paths, most=max(2000, 2 * len(paths.size))):
        other = segment_order(paths, parts_of(paths, length))
        seconds = seconds_of(paths, other)
        if seconds < least * (1 - _WORTH):
            least, phases = seconds, other
    return phases


def aggregated(topology: Topology, pattern: Pattern) -> tuple[Topology, Pattern]:
    """Return the leaders of the hosts as a cluster, and what hosts have for each other.

    Where several ranks share a host, its leader can send the messages of all of them to another
    host as one: the same bytes on the links with fewer messages. What ranks of a host have for each
    other does not cross the network and is left out.

    Raises:
        InputError: the pattern is no alltoallv on these ranks.
    """
    _require_ranks(topology, pattern)
    hosts = hierarchy(topology)
    sizes = pattern.array
    together = tuple(
        tuple(
            0 if own is other else int(sizes[np.ix_(own, other)].sum()) for other in hosts.members
        )
        for own in hosts.members
    )
    return hosts.topology, replace(pattern, name=f"{pattern.name}, by host", sizes=together)
