"""LIBCOLL_MULTICAST: releases by datagrams besides messages, on a network that loses datagrams.

The ranks are on this machine, and the group is on its loopback device. `lossy.c` is preloaded, and
treats datagrams as a bad network does.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mpi import builds, support
from tests.mpi.conformance import BOTH, built

pytestmark = pytest.mark.mpi

RANKS = 6
GROUP = "239.77.0.1%lo"
TREES = (
    "fixed_tree", "token_tree", "token_tree_semi_dynamic", "token_tree_remembering",
    "token_tree_several",
)  # fmt: skip
COMPLAINT = "releases go along the tree alone"
#: As in templates/engines/multicast.c.
SOCKETS_MOST = 32


@lru_cache
def network() -> Path:
    """The library that treats datagrams badly."""
    library = support.scratch() / "lossy.so"
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, support.HERE / "lossy.c", "-o", library, "-ldl"], check=True)
    return library


def run(
    *words: object, group: str = GROUP, lossy: str = "", tree: str = "token_tree"
) -> subprocess.CompletedProcess[str]:
    """Run the program: `words` are communicators, rounds and a slow rank."""
    variables = {
        "LIBCOLL_FORCE": f"barrier={tree},allreduce={tree}",
        "LIBCOLL_MULTICAST": group,
        "LOSSY": f"tell {lossy}",
    }
    program = support.compiled("multicast.c", RANKS)
    return support.run(
        RANKS, program, *map(str, words), variables=variables, preload=(network(),), timeout=100
    )


def datagrams(result: subprocess.CompletedProcess[str]) -> list[int]:
    """How many each rank received, the fewest first; ranks that received none are left out."""
    return sorted(int(number) for number in re.findall(r"(\d+) datagrams came", result.stderr))


def is_right(result: subprocess.CompletedProcess[str]) -> bool:
    return (result.returncode, result.stdout) == (0, "right\n")


@pytest.mark.parametrize("tree", TREES)
def test_late_ranks_get_what_they_should_on_many_communicators(tree):
    result = run(tree=tree)
    assert is_right(result), result.stdout + result.stderr
    assert COMPLAINT not in result.stderr
    assert len(datagrams(result)) == RANKS
    assert datagrams(result)[1] > 50, "but for place 0 where it releases, which waits for none"


@pytest.mark.parametrize("lossy", ["lose", "lost", "again", "lose again", "foreign"])
@pytest.mark.parametrize("tree", ["fixed_tree", "token_tree_remembering", "token_tree_several"])
def test_datagrams_that_are_lost_or_come_again_change_nothing(tree, lossy):
    """The slow rank waits for the others, which have left or have heard nothing."""
    result = run(6, 20, 2, lossy=lossy, tree=tree)
    assert is_right(result), result.stdout + result.stderr
    assert COMPLAINT not in result.stderr


def test_ranks_take_a_datagram_that_arrives_before_the_release_along_the_tree():
    """Damaged datagrams make wrong sums: otherwise, nothing above would be tested."""
    result = run(lossy="damage")
    assert result.returncode != 0
    assert "wrong sum" in result.stdout
    assert "too early" not in result.stdout


def test_without_the_variable_no_datagram_is_sent():
    for group in ("", "0"):
        result = run(group=group, lossy="damage")
        assert is_right(result), result.stdout + result.stderr
        assert not datagrams(result)
        assert COMPLAINT not in result.stderr


@pytest.mark.parametrize("flags", [(), ("-include", str(support.SYNCHRONOUS))])
@pytest.mark.parametrize("lossy", ["", "lose again"])
def test_tokens_go_down_deep_trees_and_ranks_answer(lossy, flags):
    """With two children each, 9 ranks have four levels."""
    mpi = builds.Mpi.of_environment()
    tree = "token_tree_several"
    wanted = (support.CATALOGUE.find(name, tree) for name in ("barrier", "allreduce"))
    chosen = [support.with_default(one, "arity", 2) for one in wanted]
    folder = builds.of_catalogue(mpi, 9, "deep", support.few(chosen), *flags)
    program = builds.c_program(mpi, folder, "multicast.c")
    variables = {
        "LIBCOLL_FORCE": f"barrier={tree},allreduce={tree}",
        "LIBCOLL_MULTICAST": GROUP,
        "LOSSY": f"tell {lossy}",
    }
    result = support.run(
        9, program, "4", "12", "7", variables=variables, preload=(network(),), timeout=100
    )
    assert is_right(result), result.stdout + result.stderr


@pytest.mark.parametrize(
    "group", ["10.0.0.1", "239.77.0.1%no-such-device", "nonsense", "239.77.0.1%" + 99 * "x"]
)
def test_what_is_no_group_is_reported_once_and_the_tree_serves_alone(group):
    result = run(group=group)
    assert is_right(result), result.stdout + result.stderr
    assert result.stderr.count(COMPLAINT) == 1
    assert not datagrams(result)


def test_one_rank_that_hears_nothing_leaves_all_to_the_tree():
    """Its communicators release along the tree, so they never meet the damaged datagrams."""
    result = run(1, 40, lossy="none damage")
    assert is_right(result), result.stdout + result.stderr
    assert result.stderr.count(COMPLAINT) == 1


def test_only_so_many_communicators_have_a_socket():
    result = run(SOCKETS_MOST + 8, 3)
    assert is_right(result), result.stdout + result.stderr
    assert result.stderr.count(COMPLAINT) == 1
    assert not is_right(run(SOCKETS_MOST + 8, 3, lossy="damage")), "some have none"


def test_jobs_may_share_a_group():
    with ThreadPoolExecutor(2) as jobs:
        results = [job.result() for job in [jobs.submit(run) for _ in range(2)]]
    assert all(map(is_right, results)), results
    assert not any(COMPLAINT in result.stderr for result in results)


def test_ranks_that_differ_in_it_are_left_to_the_mpi_library():
    program = support.compiled("multicast.c", RANKS)
    script = '[ "$PMI_RANK" = 1 ] || export LIBCOLL_MULTICAST=239.77.0.1%lo; exec "$0"'
    result = support.run(RANKS, "/bin/sh", "-c", script, program, timeout=100)
    assert is_right(result), result.stdout + result.stderr
    assert "rank 1 of MPI_COMM_WORLD differs from rank 0 in LIBCOLL_MULTICAST" in result.stderr


def test_conformance_sanitizers_and_sends_without_buffers():
    folder = support.library(5)
    words = ("quick", "--collectives", "barrier,allreduce", "--routines", ",".join(TREES))
    variables = {"LIBCOLL_MULTICAST": GROUP, **BOTH.environment(folder)}
    program = built(folder, BOTH)
    result = support.run(
        5, program, *words, "--delays", "1000", variables=variables, timeout=250
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    assert COMPLAINT not in result.stderr
    assert re.search(r"allreduce +[1-9]\d+ passed, 0 failed", result.stdout)
