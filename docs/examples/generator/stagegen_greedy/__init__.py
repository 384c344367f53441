"""Alltoallv in contention-free phases, the pairs of a pattern first, chosen greedily."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path

from stagegen.errors import InputError
from stagegen.topology import Topology

NOBODY = -1
Message = tuple[int, int]


def generate(topology: Topology, description: Path | None) -> Mapping[str, str]:
    """Return the template of the routine for a topology and a pattern.

    Args:
        topology: the cluster.
        description: lines `RANK: RANK RANK …`, who sends much to whom; `#` begins a comment.

    Raises:
        InputError: a line is wrong.
    """
    first = [] if description is None else list(read_pattern(description, topology.rank_count))
    rest = [pair for pair in permutations(range(topology.rank_count), 2) if pair not in set(first)]
    phases = list(phases_of(topology, [*dict.fromkeys(first), *rest]))
    gaps = {
        "@TOPOLOGY@": topology.hash,
        "@PHASES@": str(len(phases)),
        "@TO@": table(phases, topology.rank_count, sender=0),
        "@FROM@": table(phases, topology.rank_count, sender=1),
    }
    text = (Path(__file__).parent / "greedy.c.j2").read_text(encoding="utf-8")
    for gap, value in gaps.items():
        text = text.replace(gap, value)
    return {"alltoallv/greedy.c.j2": text}


def read_pattern(path: Path, ranks: int) -> Iterator[Message]:
    """Yield the pairs of a pattern, in the order of the file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        sender, colon, receivers = text.partition(":")
        try:
            pairs = [(int(sender), int(receiver)) for receiver in receivers.split()]
        except ValueError as error:
            raise InputError("expected `RANK: RANK RANK …`", path, number) from error
        if not colon or not pairs:
            raise InputError("expected `RANK: RANK RANK …`", path, number)
        for one, other in pairs:
            if one == other or not (0 <= one < ranks and 0 <= other < ranks):
                raise InputError(f"{one} to {other}: not two of {ranks} ranks", path, number)
            yield one, other


def phases_of(topology: Topology, messages: list[Message]) -> Iterator[list[Message]]:
    """Yield phases: each takes, in their order, the messages that share no link with it so far."""
    left = messages
    while left:
        phase, used, later = [], set(), []
        for message in left:
            source, destination = message
            needs = {*topology.path(*message), ("from", source), ("to", destination)}
            if used.isdisjoint(needs):
                used |= needs
                phase.append(message)
            else:
                later.append(message)
        yield phase
        left = later


def table(phases: list[list[Message]], ranks: int, sender: int) -> str:
    """Return, for each rank, its partner of every phase as numbers of C, a line for each rank."""
    partners = [{message[sender]: message[1 - sender] for message in phase} for phase in phases]
    rows = ([phase.get(rank, NOBODY) for phase in partners] for rank in range(ranks))
    return "\n".join(f"    {', '.join(map(str, row))}," for row in rows)
