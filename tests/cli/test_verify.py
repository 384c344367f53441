"""`stagegen verify`: proves what is in the C files, and sees every number that is changed there."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from click.testing import CliRunner

from stagegen.cli.verify import command
from stagegen.errors import InputError, ScheduleError
from stagegen.generate import Renderer
from stagegen.generate.sources import applicable, runtime_sources
from stagegen.library.reprove import reprove
from stagegen.repository import load_catalogue
from stagegen.topology import load_topology
from tests.schedule.rated import with_rates
from tests.strategies import make_topology

FIGURE = load_topology("topologies/fig-3-2.yaml")
CLUSTERS = {
    "fig-3-2": FIGURE,
    "one switch": make_topology([5], []),
    "cyclic": make_topology([3, 3, 2], [0, 1], ranks=[f"n{i * 3 % 8}" for i in range(8)]),
    "slots": make_topology([3, 2], [0], slots={"n0": 3, "n4": 2}),
    "rates": with_rates(
        make_topology([4, 4, 3], [0, 0]), {"n1": 25 * 10**8}, {"s1": 2 * 10**9, "s2": 5 * 10**8}
    ),
}
ARRAY = re.compile(r"static const (?:short|int) (\w+)\[\] = \{([^{}]*)\};")


def write_folder(topology, folder):
    """All routines that the topology can have, as a session or a library has them."""
    catalogue = load_catalogue()
    algorithms = applicable(catalogue, topology)
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash)
    (folder / "src").mkdir(parents=True)
    for name, text in runtime_sources(topology, catalogue, algorithms, renderer).items():
        (folder / "src" / name).write_text(text, encoding="utf-8")
    (folder / "topology.yaml").write_text(topology.to_yaml(), encoding="utf-8")
    return {a.routine for a in algorithms}, {a.routine for a in algorithms if a.needs}


@pytest.fixture(scope="module")
def figure(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify") / "figure"
    write_folder(FIGURE, folder)
    return folder


@pytest.mark.parametrize("topology", CLUSTERS.values(), ids=CLUSTERS)
def test_what_was_generated_holds(topology, tmp_path):
    routines, scheduled = write_folder(topology, tmp_path / "g")
    found = {proof.routine: proof for proof in reprove(tmp_path / "g")}
    assert set(found) == routines
    assert {name for name, proof in found.items() if proof.proofs} == scheduled


def numbers(text: str) -> list[tuple[str, int, int]]:
    """The table and the place of every number of every table, outside of comments."""
    bare = re.sub(r"/\*.*?\*/", lambda m: " " * len(m[0]), text, flags=re.DOTALL)
    return [
        (table[1], table.start(2) + n.start(), table.start(2) + n.end())
        for table in ARRAY.finditer(bare)
        for n in re.finditer(r"-?\d+", table[2])
    ]


def holds(folder, routine) -> bool:
    try:
        return any(proof.routine == routine for proof in reprove(folder))
    except ScheduleError:
        return False


SCHEDULED = sorted(
    algorithm.routine
    for algorithm in applicable(load_catalogue(), FIGURE)
    if algorithm.needs is not None
)


@pytest.mark.parametrize("routine", SCHEDULED)
def test_every_changed_number_is_seen(figure, tmp_path, routine):
    (tmp_path / "src").mkdir()
    shutil.copy(figure / "topology.yaml", tmp_path)
    shutil.copy(figure / "src" / "routines.c", tmp_path / "src")
    file = tmp_path / "src" / f"{routine}.c"
    text = (figure / "src" / file.name).read_text()
    file.write_text(text)
    assert holds(tmp_path, routine)
    places = numbers(text)
    assert places
    by_table: dict[str, int] = {}
    for table, _, _ in places:
        by_table[table] = by_table.get(table, 0) + 1
    for at, (table, start, end) in enumerate(places):
        # Some twenty numbers of each table, at different columns.
        if at % (1 + by_table[table] // 20):
            continue
        file.write_text(text[:start] + str(int(text[start:end]) + 1) + text[end:])
        assert not holds(tmp_path, routine), (table, text[start - 20 : end + 20])


def test_command(figure):
    result = CliRunner().invoke(command, [str(figure)], catch_exceptions=False)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) == len(list(reprove(figure)))
    (aapc,) = (line for line in lines if line.startswith("alltoall_aapc_receiver:"))
    assert "6 ranks, 9 phases (lower bound 9" in aapc
    assert "no two messages of a phase share a network edge" in aapc
    form = json.loads(CliRunner().invoke(command, [str(figure), "--format", "json"]).output)
    names = [routine["routine"] for routine in form["routines"]]
    assert names == [proof.routine for proof in reprove(figure)]


def edited(figure, tmp_path, name, old, new):
    folder = tmp_path / "g"
    shutil.copytree(figure, folder)
    file = folder / "src" / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new", "part"),
    [
        ("alltoall_aapc_none.c", "    0, 4, ", "    0, 3, ", "rank 0, phase 0: sends 0→3"),
        ("alltoall_aapc_none.c", "    0, 4, ", "    0, 4.5, ", "'4.5', which is no number"),
        (
            "alltoall_aapc_receiver.c",
            "== RECEIVE ? pay",
            "== SEND ? pay",
            "of scheme sender, not of receiver",
        ),
        ("alltoall_aapc_receiver.c", "AWAITED_MOST = ", "AWAITED_MOST = 0 * ", "AWAITED_MOST"),
        ("alltoall_aapc_barrier.c", "PMPI_Barrier(", "(void)(", "of scheme none, not of barrier"),
        ("allgather_logical_ring_lr1.c", "ring[] = {\n    0, 1,", "ring[] = {\n    1, 0,", "rank"),
    ],
)
def test_what_is_wrong_is_named(figure, tmp_path, name, old, new, part):
    folder = edited(figure, tmp_path, name, old, new)
    with pytest.raises(ScheduleError, match=re.escape(name)) as error:
        list(reprove(folder))
    assert part in str(error.value)


def test_another_topology_is_seen(figure, tmp_path):
    folder = edited(figure, tmp_path, "alltoall_aapc_none.c", "steps", "steps")
    other = make_topology([1, 2, 3], [0, 0])
    (folder / "topology.yaml").write_text(other.to_yaml())
    with pytest.raises(ScheduleError):
        list(reprove(folder))


def test_no_folder(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="not a generated folder"):
            list(reprove(folder))
    assert InputError.exit_status == 2
    assert ScheduleError.exit_status == 1
