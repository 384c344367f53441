"""Tables of schedules: what is written is what was made, and a process loads only its part."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.catalogue import applicable, groups_of
from stagegen.generate import Renderer
from stagegen.generate.routines import routine_files
from stagegen.generate.tables import aapc_tables
from stagegen.schedule import (
    SCHEMES,
    Rows,
    Step,
    Token,
    broadcast_tree,
    reduce_tree,
    schedule_rows,
)
from stagegen.schedule.alltoall.schedule import alltoall_phases, with_sync
from stagegen.topology import Topology
from tests.generate import c_tables
from tests.mpi import support
from tests.schedule.rated import with_rates
from tests.strategies import make_topology

TOPOLOGY = make_topology([3, 3, 2], [0, 1], slots={"n1": 2})
ALGORITHMS = {a.routine: a for a in applicable(support.CATALOGUE, TOPOLOGY)}
RENDERER = Renderer("a test", "name", "0" * 64, "1" * 64)
AAPC = [name for name, a in ALGORITHMS.items() if a.needs == "aapc" and not a.uses]
TREES = [name for name, a in ALGORITHMS.items() if a.construction in ("binary", "kary")]
RINGS = [name for name, a in ALGORITHMS.items() if a.needs == "ring" and not a.uses]


@lru_cache
def text_of(routine: str) -> str:
    return files_of(routine)[f"{routine}.c"]


def data_of(routine: str, topology: Topology = TOPOLOGY) -> str:
    """The file of tables of a routine."""
    return files_of(routine, topology)[f"{routine}.tables.h"]


def files_of(routine: str, topology: Topology = TOPOLOGY) -> dict[str, str]:
    algorithm = ALGORITHMS[routine]
    collective = support.CATALOGUE.collective(algorithm.collective)
    return routine_files(algorithm, RENDERER, groups_of(topology)[0], collective)


def parameter(routine: str, name: str) -> tuple[int, ...]:
    return next((p.values for p in ALGORITHMS[routine].parameters if p.name == name), ())


@pytest.mark.parametrize("routine", AAPC)
def test_a_table_of_phases_is_the_schedule(routine):
    scheme_name = ALGORITHMS[routine].construction
    scheme = SCHEMES[scheme_name]
    phases = alltoall_phases(TOPOLOGY)
    every = len(phases.phases) if scheme.blocks and scheme.barriers else 1
    windows = parameter(routine, "window") or (1,)
    wanted = schedule_rows(
        *(with_sync(TOPOLOGY, phases, scheme_name, every, window) for window in windows)
    )
    data = data_of(routine)
    assert c_tables.steps_of(data) == wanted.rows
    told = c_tables.members(data)
    assert told["phases"] == str(len(phases.phases))
    assert told["giver"] == f"AAPC_{(scheme.giver or 'no_tokens').upper()}"
    assert (told["blocks"], told["barriers"]) == (
        str(scheme.blocks).lower(),
        str(scheme.barriers).lower(),
    )
    assert ("dummies" in told, "tokens" in told) == (scheme.dummies, scheme.giver is not None)


def test_steps_say_the_places_of_messages_where_links_differ():
    topology = with_rates(make_topology([3, 3], [0]), {}, {"s1": 2 * 10**9})
    phases = alltoall_phases(topology)
    wanted = schedule_rows(with_sync(topology, phases, "receiver"), placed=True)
    assert c_tables.steps_of(data_of("alltoall_aapc_receiver", topology)) == wanted.rows
    for rank, row in enumerate(wanted.rows):
        for step in row:
            has = step.send_to is not None
            assert not has or phases.phases[step.phase][step.place] == (rank, step.send_to)
            assert has or step.place is None
    assert "places" not in c_tables.tables(data_of("alltoall_aapc_receiver"))
    assert "places" not in c_tables.tables(data_of("alltoall_aapc_none", topology))


@pytest.mark.parametrize("routine", TREES)
def test_a_table_of_trees_is_the_trees(routine):
    tables, count = c_tables.tables(data_of(routine)), TOPOLOGY.rank_count
    make = reduce_tree if ALGORITHMS[routine].collective == "reduce" else broadcast_tree
    for arity in parameter(routine, "arity") or (2,):
        table, width = tables[f"tree_{arity}"], 1 + arity
        assert len(table) == count * count * width
        for root in range(count):
            rows = [table[(r * count + root) * width :][:width] for r in range(count)]
            tree = make(TOPOLOGY, root, ALGORITHMS[routine].construction, arity)
            arcs = [(b, a) if make is reduce_tree else (a, b) for a, b in tree.edges]
            edges = [(r, child) for r, row in enumerate(rows) for child in row[1:] if child != -1]
            assert sorted(edges) == sorted(arcs)
            for rank in range(count):
                children = [child for parent, child in arcs if parent == rank]
                assert [c for c in rows[rank][1:] if c != -1] == children
                assert rows[rank][0] == next((p for p, c in arcs if c == rank), -1)


@pytest.mark.parametrize("routine", RINGS)
def test_a_table_of_a_ring_has_every_rank_at_its_place(routine):
    tables = c_tables.tables(data_of(routine))
    assert sorted(tables["ring"]) == list(range(TOPOLOGY.rank_count))
    assert [tables["ring"][place] for place in tables["place_of"]] == sorted(tables["ring"])


@pytest.mark.parametrize("routine", [n for n, a in ALGORITHMS.items() if a.topology_specific])
def test_the_header_says_what_is_proven_for_each_value(routine):
    text = text_of(routine)
    head = " ".join(line.strip(" *") for line in text[: text.index("*/")].splitlines())
    assert f"{TOPOLOGY.rank_count} ranks" in head or "synchronisations" in head
    if ALGORITHMS[routine].needs in ("aapc", "hosts"):
        assert "lower bound" in head
        assert "synchronisations" in head
    for name in ("block_size", "window", "arity") if ALGORITHMS[routine].has_tables else ():
        for value in parameter(routine, name):
            assert f"{name.replace('_', ' ')} {value}:" in head.replace("_", " ")


TABLES = 256 * (255 * 5 + 2 * 254 * 3) * 4 // 1024
"""Kilobytes: of 256 ranks, each with 255 steps of five numbers and 508 tokens of three."""


def ring_rows(ranks: int) -> Rows:
    """A schedule without a topology: in phase p rank r sends to r + p + 1; a token each."""
    rows = tuple(
        tuple(
            Step(
                phase=p,
                send_to=(r + p + 1) % ranks,
                receive_from=(r - p - 1) % ranks,
                await_from=(Token((r + 1) % ranks, p - 1),) if p else (),
                owed=(Token((r - 1) % ranks, p + 1),) if p < ranks - 2 else (),
            )
            for p in range(ranks - 1)
        )
        for r in range(ranks)
    )
    return Rows(ranks - 1, SCHEMES["receiver"], rows)


@lru_cache
def rss_program() -> Path:
    """The routine of 256 ranks with `rss.c` around it."""
    algorithm = ALGORITHMS["alltoall_aapc_receiver"]
    schedule = aapc_tables(ring_rows(256))
    values = {"schedule": schedule, "banner": "", "contract": "", "function": "serve",
        "signature": "int serve(const struct coll_call *call, const struct coll_comm *cc, "
        "const struct coll_parameters *parameters)", "algorithm": algorithm}  # fmt: skip
    folder = support.scratch() / "rss"
    folder.mkdir()
    (folder / "routine.c").write_text(RENDERER.render(algorithm.template.as_posix(), values))
    (folder / "serve.tables.h").write_text(RENDERER.render("alltoall/_tables.h.j2", values))
    command = [support.toolchain().mpicc, "-O1", '-DROUTINE="routine.c"', f"-I{folder}"]
    command += [f"-I{support.library(2) / 'src'}", str(Path(__file__).parent / "rss.c")]
    command += [str(support.library(2) / "libcoll.a"), "-pthread", "-o", str(folder / "rss")]
    subprocess.run(command, check=True)
    return folder / "rss"


def mapping(what: str) -> dict[str, int]:
    """Kilobytes of the mapping of the tables after reading `one` position or `all`."""
    output = subprocess.run([rss_program(), what], capture_output=True, text=True, check=True)
    values = (line.split(":") for line in output.stdout.splitlines())
    return {name: int(number.split()[0]) for name, number in values}


def test_a_process_uses_the_pages_of_its_own_rows_and_writes_to_none():
    """So all other pages are the file's: shared by all processes, and never needed by this one.

    The rows of a position are 11 KB in two tables, its places in two others are 16 bytes.
    """
    one, every = mapping("one"), mapping("all")
    assert one["Size"] == every["Size"] >= TABLES
    assert every["Referenced"] >= TABLES
    assert one["Referenced"] <= 8 * 4 + 8 < TABLES / 20
    assert one["Anonymous"] == every["Anonymous"] == 0
