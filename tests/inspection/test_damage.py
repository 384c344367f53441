"""A damaged trace is read or refused with an error that names it: no file makes a traceback."""

from __future__ import annotations

import json
import random
import warnings

import pytest
from click.testing import CliRunner

from stagegen.cli.inspect import command
from stagegen.errors import InputError, NotFoundError
from stagegen.inspection.look import looks_at
from stagegen.inspection.nodes import of_node
from stagegen.inspection.trace import _PART, EventType
from stagegen.topology.write import topology_yaml
from tests.inspection import made
from tests.strategies import make_topology

#: How many readable files go through the command to its end.
WHOLE = 15


def tree(start: float) -> made.MadeCall:
    """Nodes with events of their own: node 4 at rank 0 and, above it, node 5 at rank 2."""
    events = (
        ((EventType.NODE_IN, 0, 4, 1.0), (EventType.NODE_IN, 1, 4, 2.0),
         (EventType.NODE_UP, 0, 4, 3.0), (EventType.NODE_DOWN, 0, 4, 20.0),
         (EventType.NODE_OUT, 1, 4, 21.0), (EventType.NODE_OUT, 0, 4, 22.0)),
        (),
        ((EventType.NODE_IN, 2, 5, 1.0), (EventType.NODE_IN, 3, 5, 2.0),
         (EventType.NODE_IN, of_node(4), 5, 9.0),
         (EventType.NODE_OUT, of_node(4), 5, 11.0), (EventType.NODE_OUT, 3, 5, 12.0),
         (EventType.NODE_OUT, 2, 5, 13.0)),
        ((EventType.PART, -1, 0, 5.0),),
    )  # fmt: skip
    return moved(events, start)


def phases(start: float) -> made.MadeCall:
    """Two phases of a schedule, in which two ranks send to the two others."""
    return moved(
        (
            ((EventType.STARTED, 2, 0, 1.0), (EventType.ARRIVED, 2, 1, 40.0)),
            ((EventType.STARTED, 3, 0, 2.0), (EventType.ARRIVED, 3, 1, 50.0)),
            ((EventType.ARRIVED, 0, 0, 20.0), (EventType.STARTED, 0, 1, 25.0)),
            ((EventType.ARRIVED, 1, 0, 30.0), (EventType.STARTED, 1, 1, 31.0)),
        ),
        start,
    )


def moved(events, start: float) -> made.MadeCall:
    told = [[(type_, a, b, at + start) for type_, a, b, at in own] for own in events]
    return made.MadeCall([start] * 4, [start + 60.0] * 4, told)


CALLS = {
    "allreduce/tree": made.two_levels,
    "allreduce/configured_tree_mine": tree,
    "alltoall/aapc_sender": phases,
}


def damaged(chance: random.Random, data: bytes) -> bytes:
    """The file, cut, or with changed bits or bytes, mostly in headers that say what follows."""
    changed = bytearray(data)
    part = len(data) // 4
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        near = chance.randrange(4) * part + chance.randrange(_PART.itemsize + 320)
        at = chance.choice([near % len(data), chance.randrange(len(data))])
        damage = chance.randrange(8)
        if damage == 0:
            changed[at] = chance.randrange(256)
        elif damage == 1:
            changed[at : at + 4] = chance.choice([b"\xff" * 4, bytes(4), b"\0\0\0\x80"])
        else:
            changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed[: chance.randrange(len(changed))] if chance.random() < 0.05 else changed)


@pytest.fixture
def topology(tmp_path):
    file = tmp_path / "cluster.yaml"
    file.write_text(topology_yaml(make_topology([1, 1], [0], slots={"n0": 2, "n1": 2})))
    return file


@pytest.mark.parametrize("routine", CALLS)
@pytest.mark.parametrize("files", [250, 1000])
def test_damaged_traces_are_read_or_refused(tmp_path, topology, files, routine):
    """Through the command to its end; warnings of numbers that are none are errors, too."""
    world = made.World(("n0", "n0", "n1", "n1"), (0.0, 0.0, 5e5, 5e5))
    file, page = tmp_path / "events", tmp_path / "page.html"
    made.write(file, routine, [CALLS[routine](1000.0 * (i + 1)) for i in range(3)], world)
    data = file.read_bytes()
    chance = random.Random(len(routine))
    read = 0
    refused = set()
    for _ in range(files):
        file.write_bytes(damaged(chance, data))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                looks = looks_at(file, skip=0)
            except InputError as error:
                refused.add(str(error))
                continue
            json.dumps([look.to_json() for look in looks], allow_nan=False)
            read += 1
            if read <= WHOLE:
                words = [str(file), "--skip", "0", "--topology", str(topology)]
                for more in (["--html", str(page)], ["--json"]):
                    done = CliRunner().invoke(command, [*words, *more])
                    known = isinstance(done.exception, NotFoundError) and not looks
                    assert done.exit_code == 0 or known, done.exc_info
                assert not looks or "nan" not in page.read_text(encoding="utf-8")
    assert read > WHOLE
    assert len(refused) > files // 20
    assert all(error.startswith(f"{file}: not a trace, or a damaged one: ") for error in refused)
