"""What ranks exchange when they meet: they find differences, and exchange nothing twice."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 4
FORCED = {"LIBCOLL_FORCE": "bcast=binomial"}
COMPLAINT = re.compile(
    r"^libcoll: rank (\d+) of MPI_COMM_WORLD differs from rank 0 in (.*?):", re.M
)
#: Set on the last rank only; and what is said of it.
UNLIKE = {
    "LIBCOLL_SCRATCH": "0",
    "LIBCOLL_DISABLE": "1",
    "LIBCOLL_DETERMINISTIC": "1",
    "LIBCOLL_HOST_BUFFERS": "1",
    "LIBCOLL_FORCE": "bcast=flat",
    "LIBCOLL_PLACEMENT": "none",
}


@lru_cache
def unlinked(source: str, mpicc: str, *options: str) -> Path:
    calls = f"-I{support.library(RANKS) / 'check'}"
    source_file = support.HERE / source
    return builds.compiled(mpicc, source_file, "-std=c11", "-D_GNU_SOURCE", calls, *options)


def run(setting: str, *arguments: str, library: Path, variables: dict[str, str] | None = None):
    """Run `unlike` with a library preloaded, and a shell's setting on the last rank."""
    last = f'[ "$PMI_RANK" = {RANKS - 1} ] && {setting}; '
    words = ("/bin/sh", "-c", f'{last}export LD_PRELOAD="$LD_PRELOAD:$COLL"; exec "$0" "$@"')
    program = unlinked("unlike.c", support.toolchain().mpicc)
    settings = {"COLL": str(library), **FORCED, **(variables or {})}
    result = support.run(RANKS, *words, program, *arguments, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(line.split() for line in result.stdout.splitlines()), result.stderr


SHARED = ("world", "duplicate", "reversed", "merged", "part-of-merged")


@pytest.mark.parametrize("name", UNLIKE)
def test_a_setting_that_differs_on_one_rank_is_reported_and_makes_calls_native(name):
    found, errors = run(
        f"export {name}={UNLIKE[name]}", library=support.library(RANKS) / "libcoll.so"
    )
    assert {found[shared] for shared in SHARED} == {"native"}
    assert COMPLAINT.findall(errors) == [(str(RANKS - 1), name)]
    assert errors.count("differs") == 1
    assert found["part"] == "binomial"


@pytest.mark.parametrize("name", sorted(UNLIKE.keys() - {"LIBCOLL_DISABLE"}))
def test_ranks_that_have_not_met_do_not_hang_where_settings_differ(name):
    """No setting decides whether ranks exchange, so they find out."""
    setting = f"export {name}={UNLIKE[name]}"
    found, errors = run(setting, "unseen", library=support.library(RANKS) / "libcoll.so")
    assert {found[shared] for shared in SHARED} == {"native"}
    assert COMPLAINT.findall(errors) == [(str(RANKS - 1), name)]
    assert found["part"] == "binomial"


def test_ranks_that_have_not_met_do_not_hang_where_rules_differ():
    """No table decides it either: the other build has fewer routines, and so fewer rules."""
    other = builds.library(builds.Mpi.of_environment(), RANKS) / "libcoll.so"
    found, errors = run(f"COLL={other}", "unseen", library=support.library(RANKS) / "libcoll.so")
    assert {found[shared] for shared in SHARED} == {"native"}
    assert "the build of libcoll" in COMPLAINT.findall(errors)[0][1]


def test_all_settings_that_differ_are_named():
    setting = "export LIBCOLL_SCRATCH=1k LIBCOLL_DETERMINISTIC=yes"
    _, errors = run(setting, library=support.library(RANKS) / "libcoll.so")
    assert COMPLAINT.findall(errors) == [("3", "LIBCOLL_DETERMINISTIC, LIBCOLL_SCRATCH")]


def test_another_build_on_one_rank_is_reported_and_makes_calls_native():
    other = builds.library(builds.Mpi.of_environment(), RANKS) / "libcoll.so"
    found, errors = run(f"COLL={other}", library=support.library(RANKS) / "libcoll.so")
    assert {found[shared] for shared in SHARED} == {"native"}
    assert "the build of libcoll" in COMPLAINT.findall(errors)[0][1]


def test_hosts_and_the_trace_may_differ():
    setting = "export LIBCOLL_TRACE=1 LIBCOLL_HOST=n0 LIBCOLL_DISABLE=0 LIBCOLL_SCRATCH="
    found, errors = run(setting, library=support.library(RANKS) / "libcoll.so")
    assert found["world"] == "binomial"
    assert "differs" not in errors


@pytest.mark.parametrize("flavour", ["wheel", "openmpi"])
def test_nothing_is_exchanged_for_native_calls_and_by_duplicates(flavour):
    """200 communicators of native calls are more than may have private duplicates."""
    mpi = builds.Mpi.of_environment() if flavour == "wheel" else builds.Mpi.of_system(flavour)
    folder = builds.library(mpi, RANKS)
    program = builds.c_program(mpi, folder, "hidden.c", "-ldl")
    variables = {"LIBCOLL_FORCE": "bcast=binomial,barrier=native,alltoall=native"}
    result = builds.run(mpi, RANKS, program, 200, variables=variables, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("flavour", ["wheel", "openmpi"])
def test_ranks_that_have_not_met_exchange_once(flavour):
    """Not for calls that no library serves, and not again by a duplicate."""
    mpi = builds.Mpi.of_environment() if flavour == "wheel" else builds.Mpi.of_system(flavour)
    folder = builds.library(mpi, RANKS)
    program = builds.c_program(mpi, folder, "hidden.c", "-ldl")
    variables = {"LIBCOLL_FORCE": "bcast=binomial,barrier=native,gather=native"}
    result = builds.run(mpi, RANKS, program, "unseen", variables=variables, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


LINE = re.compile(r"^libcoll: communicator '(.*?)': (\d+) ranks?(.*?): (.*?); (a|no) private", re.M)


def traced(hosts: list[str] | None, **variables: str) -> set[tuple[str, ...]]:
    program = support.compiled("unlike.c", RANKS)
    settings = {"LIBCOLL_TRACE": "1", **FORCED, **variables}
    result = support.run(RANKS, program, hosts=hosts, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr.count("'MPI_COMM_WORLD'") <= 2
    return set(LINE.findall(result.stderr))


def test_the_trace_says_what_communicators_are():
    found = traced(None)
    assert ("MPI_COMM_WORLD", "4", " on 4 hosts", "cluster, group whole", "a") in found
    assert ("", "3", " on 3 hosts", "hosts", "a") in found


def test_the_trace_names_the_host_that_is_not_known():
    found = traced(["n0", "Elsewhere", "n2", "n3"])
    why = f"other: rank 1 is on 'Elsewhere', which is no host of {support.cluster(RANKS).name}"
    assert ("MPI_COMM_WORLD", "4", " on 4 hosts", why, "a") in found
    reversed_why = why.replace("rank 1", "rank 2")
    assert ("", "4", " on 4 hosts", reversed_why, "a") in found


def test_the_trace_says_that_ranks_share_one_host():
    found = traced(["n1"] * RANKS)
    assert ("MPI_COMM_WORLD", "4", " on one host", "hosts", "a") in found


def test_the_trace_says_that_nothing_was_tuned_for_such_ranks():
    program = support.compiled("unlike.c", RANKS)
    settings = {"LIBCOLL_TRACE": "1", "LIBCOLL_SHORT_CALLS": "0"}
    result = support.run(RANKS, program, hosts=["n1"] * RANKS, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    line = "'MPI_COMM_WORLD': 4 ranks on one host: hosts; no private duplicate; native: nothing"
    assert f"{line} was tuned for 1x4\n" in result.stderr


def test_the_trace_says_that_ranks_differ():
    library = support.library(RANKS) / "libcoll.so"
    _, errors = run("export LIBCOLL_SCRATCH=0", library=library, variables={"LIBCOLL_TRACE": "1"})
    found = set(LINE.findall(errors))
    why = "native: rank {} and rank 0 differ in build or settings"
    assert ("MPI_COMM_WORLD", "4", "", why.format(RANKS - 1), "no") in found
    # The first of the reversed ranks is the odd one, and rank 1 is the first that differs from it.
    assert ("", "4", "", why.format(1), "no") in found
    assert ("", "3", " on 3 hosts", "hosts", "a") in found


#: More communicators at a time than may have private duplicates.
ALIVE = 140


def test_the_trace_says_that_there_are_too_many_private_duplicates():
    program = support.compiled("communicators.c", RANKS)
    settings = {"LIBCOLL_TRACE": "1", **FORCED}
    result = support.run(RANKS, program, "live", ALIVE, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    why = [line[3] for line in LINE.findall(result.stderr)]
    assert "native: some rank has as many private duplicates as it may have" in why
    assert why.count("cluster, group whole") >= 128


def test_the_trace_says_that_there_is_no_context_for_a_private_duplicate():
    program = support.compiled("exhausted.c", 2)
    result = support.run(2, program, variables={"LIBCOLL_TRACE": "1"}, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    kinds = [(line[3], line[4]) for line in LINE.findall(result.stderr)]
    # The communicator without a context, then the one that comes when there is room again.
    why = "native: the MPI library has no room for a private duplicate"
    assert [kind for kind in kinds if kind[0] == why] == [(why, "no")]
    assert ("cluster, group whole", "a") in kinds


@pytest.mark.parametrize("more", [{}, {"LIBCOLL_HOST": ""}], ids=["not set", "empty"])
def test_slurm_is_asked_where_the_host_is_not_known(more):
    program = support.compiled("unlike.c", RANKS)
    words = ("/bin/sh", "-c", 'SLURMD_NODENAME=N$PMI_RANK exec "$0"', program)
    settings = {"LIBCOLL_TRACE": "1", "LIBCOLL_PLACEMENT": "", **FORCED, **more}
    result = support.run(RANKS, *words, variables=settings, timeout=60)
    assert "'MPI_COMM_WORLD': 4 ranks on 4 hosts: cluster, group whole" in result.stderr


def test_the_library_needs_no_more_to_be_linked_than_before():
    """dlsym is a wish: libraries of C before 2.34 have it elsewhere, and programs may not."""
    archive = support.library(RANKS) / "libcoll.a"
    symbols = subprocess.run(["nm", archive], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"(\w) (?:dlsym|PMPIX_Comm_revoke)$", symbols, re.M) == ["w", "w"]


def test_processes_of_two_worlds_meet_when_they_merge():
    """Those that are spawned have a world of their own, and meet the others when they merge."""
    program = support.compiled("spawned.c", RANKS)
    result = support.run(RANKS, program, variables=FORCED, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
