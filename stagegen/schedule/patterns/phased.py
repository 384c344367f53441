"""Greedy and all-to-all-based phases, in the manner of CC-MPI.

Faraj (2006), section 4.1.1.1, names them, with their goals: both balance the load and avoid
contention; the second also has few phases. The details are in a paper that the dissertation cites
(Karwande, Yuan & Lowenthal 2003). This is our own reading of names and goals.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stagegen.schedule.alltoall.schedule import alltoall_phases
from stagegen.schedule.model import Piece
from stagegen.schedule.patterns.paths import Paths
from stagegen.topology import Topology

Phases = tuple[tuple[Piece, ...], ...]


def greedy_phases(paths: Paths) -> Phases:
    """Return phases that are filled greedily, from the longest message to the shortest.

    Balance: a phase takes as long as its first message, and the others are the longest that are
    left. No contention: a message goes into the first phase in which its path is free.
    """
    return _filled(paths, _descending(paths), [])


def all_to_all_phases(topology: Topology, paths: Paths) -> Phases:
    """Return the phases of an alltoall, with the messages of a pattern alone, and then merged.

    The phases of AAPC are free of contention for all messages, so for some. The phases with the
    longest messages stay. The messages of the others move, the longest first, into the first phase
    that lasts at least as long and in which their path is free; so phases become empty and drop
    out. What finds no place stays in its phase.
    """
    number = {
        pair: place
        for place, pair in enumerate(
            zip(paths.source.tolist(), paths.destination.tolist(), strict=True)
        )
    }
    members = [
        [number[message] for message in phase if message in number]
        for phase in alltoall_phases(topology).phases
    ]
    members = [sorted(phase, key=lambda m: -paths.seconds[m]) for phase in members if phase]
    members.sort(key=lambda phase: -paths.seconds[phase[0]])
    kept: list[list[int]] = []
    used = np.zeros((len(members), len(paths.capacity)), np.int32)
    for phase in members:
        _fit(paths, phase, kept, used)
    return _pieces(paths, kept)


def _fit(
    paths: Paths, phase: list[int], kept: list[list[int]], used: npt.NDArray[np.int32]
) -> None:
    """Move the messages of a phase into phases that are kept; keep the rest as a phase.

    Args:
        paths: of the messages.
        phase: messages.
        kept: the phases so far.
        used: [phase, edge]: how many messages of the phase use the edge.
    """
    before = len(kept)
    rest = []
    for message in phase:
        edges = paths.edges[message]
        free = np.all(used[:before, edges] < paths.capacity[edges], axis=1)
        if not free.any():
            rest.append(message)
            continue
        place = int(np.argmax(free))
        kept[place].append(message)
        used[place, edges] += 1
    if rest:
        kept.append(rest)
        np.add.at(used[before], paths.edges[rest], 1)


def _descending(paths: Paths) -> list[int]:
    order: list[int] = np.argsort(-paths.seconds, kind="stable").tolist()
    return order


def _filled(paths: Paths, order: list[int], phases: list[list[int]]) -> Phases:
    """Return phases with each message in the first one in which its path is free."""
    used = np.zeros((64, len(paths.capacity)), np.int64)
    for message in order:
        edges = paths.edges[message]
        free = np.all(used[: len(phases)][:, edges] < paths.capacity[edges], axis=1)
        place = int(np.argmax(free)) if free.any() else len(phases)
        if place == len(phases):
            phases.append([])
        if place == len(used):
            used = np.concatenate((used, np.zeros_like(used)))
        phases[place].append(message)
        used[place, edges] += 1
    return _pieces(paths, phases)


def _pieces(paths: Paths, phases: list[list[int]]) -> Phases:
    return tuple(
        tuple(Piece(int(paths.source[m]), int(paths.destination[m])) for m in sorted(phase))
        for phase in phases
    )
