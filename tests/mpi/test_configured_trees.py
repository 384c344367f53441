"""Routines of random trees against the MPI library's own, byte by byte; their tables, proven."""

from __future__ import annotations

import os
import random
import re
import shutil

import pytest

from stagegen.audit import audit_folder
from stagegen.catalogue import Catalogue, applicable, load_catalogue, with_native
from stagegen.errors import InputError, ScheduleError
from stagegen.generate import run_make
from stagegen.library import write_library
from stagegen.parts.trees import COLLECTIVES, root_of
from stagegen.trees import make_tree, read_tree, shape_of
from tests.mpi import builds, support
from tests.mpi.conformance import BOTH, SUM, built
from tests.trees.made import random_file, random_tree

WRAPPED = "-Wl,--wrap=calloc"
COUNTED = "-Wl,--wrap=PMPI_Win_allocate_shared"

RANKS, SLOTS = 7, 3
"""On hosts n0 and n1 with three ranks each, and n2 with one."""


def catalogue_of(seed: int, count: int, ranks: int, slots: int) -> Catalogue:
    """The routines of random trees and of a flat one, and what every library has besides."""
    topology = support.cluster(ranks, slots)
    chance = random.Random(seed)
    trees = [random_tree(chance, ranks, f"t{number}") for number in range(count)]
    trees.append(make_tree(topology, shape_of("flat"), "flat"))
    catalogue = load_catalogue(added=[root_of(trees, topology)])
    mine = [a for a in catalogue.algorithms if a.name.startswith("configured_tree_")]
    assert len(mine) == (count + 1) * len(COLLECTIVES)
    assert set(mine) <= set(applicable(catalogue, topology))
    return support.part(with_native(catalogue, mine), catalogue)


def library(folder, seed: int, count: int, ranks: int = RANKS, slots: int = SLOTS):
    topology = support.cluster(ranks, slots)
    catalogue = catalogue_of(seed, count, ranks, slots)
    write_library(folder, topology, catalogue, support.decision(topology, catalogue), {})
    return folder


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("count", "level"),
    [
        (1, "quick"),
        (8, "quick"),
        pytest.param(60, "full", marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_random_trees_get_the_bytes_of_native(tmp_path, count, level):
    """With sends that wait for their receives, and with sanitizers."""
    assert passed(library(tmp_path / "trees", 17, count), RANKS, level, {}) > 60 * count


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("files", "seed", "variables"),
    [
        (20, 29, {}),
        (500, 29, {}),
        (24, 30, support.MEMORY),
        pytest.param(2000, 31, {}, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
        pytest.param(1000, 32, support.MEMORY, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_every_random_file_is_refused_with_a_line_or_gives_right_results(
    tmp_path, files, seed, variables
):
    """All collectives go along what the reader lets pass, in one job, with all kinds of data.

    Ranks that share memory take the processor from each other, so there are fewer files for them.
    """
    folder = library(tmp_path / "trees", 5, 0)
    result, good = along_random_trees(tmp_path, folder, files, seed, variables)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    said = re.fullmatch(r"(\d+) trees, (\d+) calls, (\d+) windows\n", result.stdout)
    assert said is not None, result.stdout
    trees, calls, windows = map(int, said.groups())
    assert trees == good
    assert calls > trees // 4
    assert windows > trees // 4 or variables != support.MEMORY


@pytest.mark.mpi
@pytest.mark.parametrize(("files", "seed", "variables"), [(60, 34, {}), (12, 35, support.MEMORY)])
def test_random_files_give_right_results_with_events(tmp_path, files, seed, variables):
    """In the traced library, ranks await messages and shared memory in another way."""
    folder = library(tmp_path / "trees", 5, 0)
    settings = {**variables, "LIBCOLL_EVENTS": str(tmp_path / "events")}
    result, good = along_random_trees(tmp_path, folder, files, seed, settings, traced=True)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert result.stdout.startswith(f"{good} trees, ")
    assert (tmp_path / "events").stat().st_size > 1000 * good


@pytest.mark.mpi
@pytest.mark.parametrize("variables", [{}, support.MEMORY])
def test_a_barrier_that_releases_ranks_too_early_is_found(tmp_path, variables):
    """One that only goes down the tree, as a bcast does."""
    folder = library(tmp_path / "trees", 5, 0)
    engine = folder / "src" / "configured_tree.c"
    text, steps = engine.read_text(), "0, MPI_BYTE, allreduce, 1)"
    assert text.count(steps) == 1
    engine.write_text(text.replace(steps, "0, MPI_BYTE, bcast, 0)"))
    result, _ = along_random_trees(tmp_path, folder, 24, 33, variables)
    assert result.returncode != 0
    assert {line.partition(": ")[2] for line in result.stderr.splitlines() if "not so" in line} == {
        "not so: left >= last"
    }


def along_random_trees(tmp_path, folder, files, seed, variables, traced=False):
    """Run the program with all random files that can be read; return also how many these are.

    With ``traced``, the program is linked with the library that keeps events.
    """
    topology = support.cluster(RANKS, SLOTS)
    chance = random.Random(seed)
    file, numbers = tmp_path / "t.tree.yaml", tmp_path / "trees.txt"
    good: list[str] = []
    refused_at: list[int | None] = []
    for _ in range(files):
        file.write_text(random_file(chance, topology))
        try:
            rows = read_tree(file, topology).rows
        except InputError as error:
            refused_at.append(error.line)
            continue
        nodes = (f"{worker} {len(below)} {' '.join(map(str, below))}" for worker, below in rows)
        good.append(f"{len(rows)} {' '.join(nodes)}\n")
    assert 0.35 * files < len(good) < 0.85 * files
    assert None not in refused_at
    numbers.write_text("".join(good))
    mpi, options = builds.Mpi.of_environment(), ("TRACE=1",) if traced else ()
    name = "libcoll-trace.a" if traced else "libcoll.a"
    run_make(folder, support.toolchain(), name, variables=options)
    flags = ("-DCOLL_TRACED", f"-I{folder / 'events'}") if traced else ()
    program = builds.c_program(mpi, folder, "random_trees.c", COUNTED, *flags, archive=name)
    words = map(str, (program, numbers, seed))
    return support.run(RANKS, *words, variables=variables, timeout=60 + files / 2), len(good)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "count"),
    [
        (2, 2),
        (4, 1),
        *(
            pytest.param(ranks, 4, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])
            for ranks in (3, 5)
        ),
    ],
)
def test_ranks_that_share_memory_get_the_bytes_of_native(tmp_path, ranks, count):
    """With routines that take shared memory by default: on 4 ranks, 3 on one host."""
    folder = sharing(library(tmp_path / "trees", 5, count, ranks, max(2, ranks - 1)))
    assert passed(folder, ranks, "quick", support.MEMORY) > 60 * count


def sharing(folder):
    """A library whose trees take shared memory: forced ones have the first value of all."""
    changed = 0
    for name in ("routines.c", "rules.c"):  # the check's, which tries only some values; the table's
        file = folder / "src" / name
        text = file.read_text()
        changed += text.count("{.on_host = 1}")
        file.write_text(text.replace("{.on_host = 1}", "{.on_host = 2}"))
    assert changed >= 2 * len(COLLECTIVES)
    return folder


@pytest.mark.mpi
def test_shared_memory_ends_when_all_ranks_free_the_communicator(tmp_path):
    """On one of them a receive is under way that lets the MPI library keep it for longer."""
    folder = sharing(library(tmp_path / "trees", 5, 0, 2, 2))
    run_make(folder, support.toolchain(), "libcoll.a")
    program = builds.c_program(builds.Mpi.of_environment(), folder, "free_pending.c")
    settings = {**support.MEMORY, "LIBCOLL_FORCE": "allreduce=configured_tree_flat"}
    result = support.run(2, program, variables=settings, timeout=20)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.mpi
def test_ranks_that_share_processors_sleep_at_once(tmp_path):
    """Which processors they have, all ranks of the host together: not how many there are."""
    folder = sharing(library(tmp_path / "trees", 5, 0, 2, 2))
    run_make(folder, support.toolchain(), "libcoll.a")
    wraps = ("-Wl,--wrap=sched_getaffinity", "-Wl,--wrap=sched_yield")
    program = builds.c_program(builds.Mpi.of_environment(), folder, "crowded.c", *wraps)
    settings = {**support.MEMORY, "LIBCOLL_FORCE": "allreduce=configured_tree_flat"}
    yields = {}
    for way in ("apart", "together", "unknown"):
        result = support.run(2, program, way, variables=settings, timeout=60)
        assert result.returncode == 0, result.stdout + result.stderr
        yields[way] = int(result.stdout)
    assert yields["apart"] > 0
    assert yields["together"] == 0
    assert (yields["unknown"] > 0) == (os.sysconf("SC_NPROCESSORS_ONLN") > 1)


@pytest.mark.mpi
@pytest.mark.parametrize("together", [True, False])
def test_what_ranks_free_together_does_not_wait_for_an_attribute(tmp_path, together):
    """In the wrong order it hangs, so the test would see that: whatever the MPI library does."""
    folder = sharing(library(tmp_path / "trees", 5, 0, 2, 2))
    lifetime = folder / "src" / "lifetime.c"
    line = "    coll_comm_end_together(dying.comm);\n"
    assert lifetime.read_text().count(line) == 1
    if not together:
        lifetime.write_text(lifetime.read_text().replace(line, ""))
    run_make(folder, support.toolchain(), "libcoll.a")
    wrap = "-Wl,--wrap=dlsym"
    program = builds.c_program(builds.Mpi.of_environment(), folder, "free_kept.c", wrap)
    settings = {**support.MEMORY, "LIBCOLL_FORCE": "allreduce=configured_tree_flat"}
    if together:
        result = support.run(2, program, variables=settings, timeout=20)
        assert result.returncode == 0, result.stdout + result.stderr
    else:
        with pytest.raises(TimeoutError) as hung:
            support.run(2, program, variables=settings, timeout=8)
        assert str(hung.value).count("freeing") == 2  # so it did not hang before that


@pytest.mark.mpi
@pytest.mark.parametrize("shares", [False, True])
def test_a_rank_that_can_keep_nothing_makes_no_rank_wait(tmp_path, shares):
    """Once for each rank: all ranks then do without the tree, with the right results."""
    folder = library(tmp_path / "trees", 5, 0, 4, 2)
    if shares:
        sharing(folder)
    run_make(folder, support.toolchain(), "libcoll.a")
    program = builds.c_program(builds.Mpi.of_environment(), folder, "lacking.c", WRAPPED)
    forced = ",".join(f"{name}=configured_tree_flat" for name in COLLECTIVES)
    settings = {**support.MEMORY, "LIBCOLL_FORCE": forced}
    result = support.run(4, program, *COLLECTIVES, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def passed(folder, ranks, level, memory):
    """The cases of a check that all passed."""
    variables = BOTH.environment(folder) | memory
    program = built(folder, BOTH)
    result = support.run(ranks, program, level, variables=variables, timeout=1500)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    total = SUM.fullmatch(result.stdout.splitlines()[-1])
    assert total is not None
    return int(total[2])


def test_verify_proves_each_tree_and_names_what_was_changed(tmp_path):
    folder = library(tmp_path / "trees", 4, 3)
    proven = {one.routine: one for one in audit_folder(folder)}
    for number in range(3):
        for collective in COLLECTIVES:
            ((_, proof),) = proven[f"{collective}_configured_tree_t{number}"].proofs
            assert proof.collective == collective
            assert "every rank contributes once" in proof.lines()[1]
    file = folder / "src" / "allreduce_configured_tree_flat.tables.h"
    for old, new, wrong in (
        ("0, 1, 2, 3", "0, 1, 2, 2", "rank 2 contributes to two nodes"),
        ("worker[] = {\n    0,", "worker[] = {\n    7,", "there is no rank 7"),
        ("0, 7,\n", "0, 6,\n", "first[] does not divide the 7 contributors"),
        ("NODES = 1", "NODES = 2", "wrong constants: NODES is 2, expected 1"),
    ):
        text = file.read_text()
        assert text.count(old) == 1, old
        file.write_text(text.replace(old, new))
        with pytest.raises(ScheduleError, match=re.escape(wrong)) as caught:
            list(audit_folder(folder))
        assert str(file) in str(caught.value)
        file.write_text(text)
    assert len(list(audit_folder(folder))) == len(proven)


def test_a_folder_keeps_the_trees_and_needs_no_file(tmp_path):
    folder = library(tmp_path / "trees", 4, 2)
    topology = support.cluster(RANKS, SLOTS)
    kept = folder / "parts" / "1-trees" / "trees"
    assert sorted(path.name for path in kept.iterdir()) == [
        "flat.tree.yaml", "t0.tree.yaml", "t1.tree.yaml"
    ]  # fmt: skip
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert list(audit_folder(tmp_path / "elsewhere"))
    assert topology.rank_count == RANKS
