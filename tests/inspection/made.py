"""Calls that no program made: when each rank does what is known, and what its clock shows."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stagegen.inspection.nodes import Node, of_node
from stagegen.inspection.trace import (
    _PART,
    CALL,
    ENDIAN,
    ENTRY,
    MAGIC,
    ROUTINE_NAME,
    VERSION,
    EventType,
)
from stagegen.trees import ConfiguredTree

#: Microseconds in nanoseconds.
US = 1000
Told = tuple[EventType, int, int, float]
"""An event: type, a, b, and when; microseconds of true time."""


@dataclass(frozen=True)
class MadeCall:
    """A call: when the ranks begin and end it, and their events; microseconds of true time."""

    begun: Sequence[float]
    ended: Sequence[float]
    events: Sequence[Sequence[Told]]
    size: int = 4


@dataclass(frozen=True)
class World:
    """Ranks on hosts; `offsets` are by how many microseconds their clocks are ahead."""

    hosts: Sequence[str]
    offsets: Sequence[float]
    error: float = 5.0
    names: Mapping[str, int] = field(default_factory=dict)


def write(path: Path, routine: str, calls: Sequence[MadeCall], world: World) -> Path:
    """Write a file as the library does."""
    path.write_bytes(
        b"".join(_part(rank, routine, calls, world) for rank in range(len(world.hosts)))
    )
    return path


def _part(rank: int, routine: str, calls: Sequence[MadeCall], world: World) -> bytes:
    offset, ranks = world.offsets[rank], len(world.hosts)

    def shown(at: float) -> int:
        return round((at + offset) * US)

    made = np.zeros(len(calls), CALL)
    entries: list[tuple[int, int, int]] = []
    for sequence, (row, call) in enumerate(zip(made, calls, strict=True)):
        own = sorted(call.events[rank], key=lambda told: told[3])
        row["begun"], row["ended"] = shown(call.begun[rank]), shown(call.ended[rank])
        row["first"], row["count"] = len(entries), len(own)
        row["bytes"], row["sequence"], row["root"] = call.size, sequence, -1
        entries += [(shown(at), a, int(type_) | b << 8) for type_, a, b, at in own]
    samples = [] if offset == world.offsets[0] else [0.0, 1e6]
    head = np.zeros(1, _PART)
    head["magic"], head["version"], head["endian"] = MAGIC, VERSION, ENDIAN
    head["rank"], head["ranks"] = rank, ranks
    head["begun"], head["ended"] = shown(0), shown(1e6)
    head["host"], head["cluster"] = world.hosts[rank].encode(), b"made"
    head["clock"] = b"clock" if not samples else f"clock {world.hosts[rank]}".encode()
    head["counts"] = [1, 1, ranks, len(samples), len(calls), len(entries)]
    parts = [
        head.tobytes(),
        routine.encode().ljust(ROUTINE_NAME, b"\0"),
        struct.pack("<QiiiI", 1, 0, ranks, rank, 0),
        np.arange(ranks, dtype="<i4").tobytes(),
        *(
            struct.pack("<qqq", shown(at), round(offset * US), round(world.error * US))
            for at in samples
        ),
        made.tobytes(),
        np.array(entries, ENTRY).tobytes(),
    ]
    return b"".join(parts)


#: Two hosts. The clock of the second one is half a second ahead.
TWO_HOSTS = World(("a", "a", "b", "b"), (0.0, 0.0, 5e5, 5e5))


def sent(to: int, at: float) -> Told:
    return EventType.SENT, to, 1, at


def received(origin: int, at: float) -> Told:
    return EventType.RECEIVED, origin, 1, at


def two_levels(start: float, late: Mapping[int, float] | None = None) -> MadeCall:
    """Ranks 1 and 2 contribute to rank 0, rank 3 to rank 2; ranks 0, 1 are on a, 2, 3 on b.

    Without late ranks, these are the times. Up: the message from 3 to 2 takes 4, rank 2 hands on
    after 2, and its message to 0 takes 30; the message from 1 to 0 takes 5. Rank 0 serves 2 after
    3, and 1 after 6 more. Down: the messages to 1 and 2 take 5 and 30, rank 2 serves 3 after 1,
    and its message takes 4. Each rank begins at 0, and ends 2 later than its last event.
    """
    wait = {rank: (late or {}).get(rank, 0.0) for rank in range(4)}
    up3 = wait[3] + 1
    in3 = up3 + 4
    up2 = max(in3, wait[2]) + 2
    in2 = up2 + 30
    up1 = wait[1] + 1
    in1 = up1 + 5
    out2 = max(in1, in2, wait[0]) + 3
    out1 = out2 + 6
    down1 = out1 + 5
    down2 = out2 + 30
    out3 = down2 + 1
    down3 = out3 + 4
    events = (
        (received(1, in1), received(2, in2), sent(2, out2), sent(1, out1)),
        (sent(0, up1), received(0, down1)),
        (received(3, in3), sent(0, up2), received(0, down2), sent(3, out3)),
        (sent(2, up3), received(2, down3)),
    )
    moved = [[(type_, a, b, at + start) for type_, a, b, at in own] for own in events]
    begun = [start + wait[rank] for rank in range(4)]
    ended = [own[-1][3] + 2 for own in moved]
    return MadeCall(begun, ended, moved)


def nodes_of_tree(tree: ConfiguredTree) -> dict[int, Node]:
    """The nodes of a configured tree, in whose calls each message, latency and the core take 1 s.

    A rank is a node of its own, unless it does the work of the node to which it contributes. The
    numbers of inner nodes are those of their places in the file, after those of the ranks.
    """
    numbers: dict[int | str, int] = {rank: rank for rank in range(tree.ranks)}
    numbers |= {node.name: tree.ranks + place for place, node in enumerate(tree.nodes)}
    nodes: dict[int, Node] = {}
    for one in tree.nodes:
        node = nodes[numbers[one.name]] = Node(numbers[one.name], one.worker)
        for contributor in one.contributors:
            number = numbers[contributor]
            if contributor == one.worker:
                node.ins[number] = 0.0
                continue
            if number < tree.ranks:
                nodes[number] = Node(number, number, {number: 0.0}, {}, 1.0)
            nodes[number].parent = nodes[number].giver = node.number
            node.ins[of_node(number)] = (nodes[number].up or 0.0) + 1
        node.up = node.last_in + 1
    for one in reversed(tree.nodes):
        node = nodes[numbers[one.name]]
        out = (node.up or 0.0) if node.down is None else node.down + 1
        node.outs = dict.fromkeys(node.ins, out)
        for below in (nodes[-1 - name] for name in node.outs if name < 0):
            below.down = out + 1
            below.outs = {name: out + 2 for name in below.ins if name >= 0}
    nodes[numbers[tree.root.name]].up = None
    return nodes
