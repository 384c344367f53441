"""Every routine and the MPI_ entry points against the MPI library's own, byte by byte.

A reduced cross product in `make test`, more of it in `make test-wide`; the rest, which is slow, in
`make check-all`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from stagegen.catalogue import applicable
from stagegen.generate import write_files
from tests.mpi import support
from tests.mpi.conformance import BOTH, PLAIN, SANITIZED, SYNCHRONOUS, Way, built, check

pytestmark = pytest.mark.mpi

#: Ranks of a cluster whose build other tests have, too. Fewer ranks run as a part of it.
COMMON = 6
#: Builds and runs with sanitizers take long, so they have a smaller cluster. Its number of ranks is
#: odd and no power of two.
SMALL = 5
LARGER = 8
LARGE = 16
LARGEST = 32
MINUTES = 60.0


def slow(*values: object) -> object:
    """Parameters of a test that only `make check-all` runs, and that may take long."""
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.timeout(31 * MINUTES)])


WHOLE = [
    *((ranks, "quick") for ranks in (3, 4, COMMON)),
    slow(LARGER, "quick"),
    *(slow(ranks, "full") for ranks in (*range(1, 9), LARGE)),
    *(slow(ranks, "quick") for ranks in (*range(9, 18), 24, LARGEST)),
]


@pytest.mark.parametrize(("ranks", "level"), WHOLE)
def test_all_ranks_of_a_cluster_get_the_bytes_of_native(ranks, level):
    topology = support.cluster(ranks)
    passed = check(ranks, level, timeout=30 * MINUTES).passed
    for name in set(passed) - {"barrier"}:  # of which there is one call only
        routines = len(support.serving(topology, name)) if ranks > 1 else 1
        assert passed[name] > 20 * routines


PARTS = [
    (2, 3),
    *((ranks, COMMON) for ranks in (1, 4, 5)),
    *(slow(ranks, LARGER) for ranks in (1, 4, 7)),
    *(slow(ranks, LARGEST) for ranks in (2, 6, 9, 11, 13, 17, 24)),
]


@pytest.mark.parametrize(("ranks", "cluster"), PARTS)
def test_some_hosts_of_a_cluster_get_the_bytes_of_native(ranks, cluster):
    run = check(ranks, cluster=cluster, timeout=30 * MINUTES)
    assert min(run.passed.values()) > 0


SHARED = [
    (3, 2, "quick"),
    (5, 2, "quick"),
    slow(7, 3, "quick"),
    slow(6, 2, "full"),
    slow(13, 4, "quick"),
    slow(LARGE, 4, "quick"),
]


@pytest.mark.parametrize(("ranks", "slots", "level"), SHARED)
def test_several_ranks_on_a_host_get_the_bytes_of_native(ranks, slots, level):
    whole = check(ranks, level, slots=slots, timeout=30 * MINUTES)
    assert min(whole.passed.values()) > 0


@pytest.mark.parametrize(("ranks", "cluster"), [(2, 3), (2, COMMON), slow(5, COMMON)])
def test_ranks_that_share_memory_get_the_bytes_of_native(ranks, cluster):
    run = check(ranks, cluster=cluster, shared=True, timeout=30 * MINUTES)
    assert min(run.passed.values()) > 0


#: The layouts of the ranks, whether they share memory, and what MPICH 4.3 makes of it.
LAYOUTS = [
    ("same", False, "right"),
    ("mixed", False, "right"),
    ("same", True, "right"),
    ("mixed", True, "wrong"),
]


@pytest.mark.parametrize(("layouts", "shared", "found"), LAYOUTS)
def test_the_calls_left_out_where_ranks_share_memory_are_wrong_in_mpich(layouts, shared, found):
    """If MPICH is right one day, drivers/trials.h needs to leave out nothing."""
    program = support.compiled("mixed_layouts.c", 3)
    result = support.run(2, program, layouts, variables=support.MEMORY if shared else {})
    assert (result.stdout.strip(), result.returncode) == (found, int(found == "wrong"))


DELAYED = [
    (3, 1, "quick", PLAIN, 2000),
    (COMMON, 1, "quick", PLAIN, 2000),
    *(slow(ranks, 1, "full", PLAIN, 3000) for ranks in (3, COMMON, LARGER)),
    *(slow(7, 3, "quick", way, 2000) for way in (PLAIN, BOTH)),
    slow(LARGE, 1, "quick", PLAIN, 5000),
]


@pytest.mark.parametrize(("ranks", "slots", "level", "way", "delays"), DELAYED)
def test_routines_that_watch_arrivals_are_right_when_ranks_come_apart(
    ranks, slots, level, way, delays
):
    run = check(ranks, level, way, slots=slots, timeout=30 * MINUTES, delays=delays)
    watching = {a.collective for a in support.CATALOGUE.algorithms if a.arrivals}
    assert {name for name, passed in run.passed.items() if passed} == watching


#: Routines of allreduce for ranks that come apart, or compared with these, that watch no arrivals.
APART = (
    *("ring", "rabenseifner", "recursive_doubling", "fixed_tree"),
    *("hr1_sites", "hr1_switches", "hr2_sites", "hr2_switches", "hr2_hosts"),
    *("hierarchical", "hierarchical_ring"),
)
#: As DELAYED, and the routines; those of hosts need several ranks on each.
NAMED = [
    (5, 2, "quick", PLAIN, 1000, ",".join(APART)),
    slow(COMMON, 1, "quick", PLAIN, 1000, "all"),
    slow(7, 3, "quick", BOTH, 1000, "all"),
    slow(7, 3, "full", PLAIN, 1000, ",".join(APART)),
]


@pytest.mark.parametrize(("ranks", "slots", "level", "way", "delays", "routines"), NAMED)
def test_other_routines_are_right_when_ranks_come_apart(ranks, slots, level, way, delays, routines):
    run = check(
        ranks, level, way, slots=slots, timeout=30 * MINUTES, delays=delays, routines=routines
    )
    if routines == "all":
        assert min(run.passed.values()) > 0
    else:
        served = {one.name for one in support.serving(support.cluster(ranks, slots), "allreduce")}
        assert set(APART) <= served
        assert run.passed["allreduce"] > 20 * len(APART)


@pytest.mark.parametrize(
    ("name", "found"), [("simple", ["allgather", "alltoall"]), ("fixed_tree", ["barrier"])]
)
def test_only_routines_of_that_name_are_checked(name, found):
    """A barrier has one case, so the one without entry points is its routine's."""
    words = ("quick", "--routines", name, "--collectives", ",".join(found))
    result = support.run(2, support.library(SMALL) / "build/check", *words)
    passed = dict(re.findall(r"^(\w+) +(\d+) passed, 0 failed", result.stdout, re.MULTILINE))
    assert result.returncode == 0, result.stdout + result.stderr
    assert list(passed) == found
    assert min(map(int, passed.values())) > 0


#: How many ranks run, how many the cluster has, and how many are on a host. The build is the
#: cluster's.
SANITIZERS = [
    *(slow(ranks, ranks, 1, "quick") for ranks in (5, COMMON)),
    slow(7, 7, 3, "quick"),
    *(slow(ranks, LARGER, 1, "quick") for ranks in (5, LARGER)),
    *(slow(ranks, LARGER, 1, "full") for ranks in (3, 5, LARGER)),
]
BUFFERLESS = [
    *(slow(ranks, ranks, 1, "quick") for ranks in (5, COMMON)),
    slow(7, 7, 3, "quick"),
    *(slow(ranks, LARGER, 1, "quick") for ranks in (3, LARGER)),
    *(slow(ranks, LARGER, 1, "full") for ranks in (5, LARGER)),
]


def test_sanitizers_find_nothing_where_nothing_is_buffered():
    """Both of the next tests in one, for `make test`."""
    assert check(SMALL, way=BOTH).passed


@pytest.mark.parametrize(("ranks", "cluster", "slots", "level"), SANITIZERS)
def test_sanitizers_find_nothing(ranks, cluster, slots, level):
    """No leaks either."""
    assert check(ranks, level, SANITIZED, cluster, slots, timeout=30 * MINUTES).passed


@pytest.mark.parametrize(("ranks", "cluster", "slots", "level"), BUFFERLESS)
def test_nothing_relies_on_buffering(ranks, cluster, slots, level):
    assert check(ranks, level, SYNCHRONOUS, cluster, slots, timeout=30 * MINUTES).passed


def test_the_clusters_under_sanitizers_and_without_buffers_have_every_algorithm():
    """Otherwise a cluster would be missing that some algorithm is made for."""
    everything = {algorithm.routine for algorithm in support.CATALOGUE.algorithms}
    for cases in (SANITIZERS, BUFFERLESS):
        values = [getattr(case, "values", case) for case in cases]
        clusters = {values[1:3] for values in values}
        served = {
            algorithm.routine
            for ranks, slots in clusters
            for algorithm in applicable(support.CATALOGUE, support.cluster(ranks, slots))
        }
        assert served == everything


def test_synchronous_builds_send_synchronously():
    folder = support.library(SMALL)
    for way, word in ((PLAIN, b"PMPI_Isend"), (BOTH, b"PMPI_Issend")):
        built(folder, way)
        assert word in (folder / way.folder / "post_all.o").read_bytes()


#: Mistakes in a routine or in its engine, and the words that report them.
MISTAKES = {
    "leak": (SANITIZED, "post_all", "free(requests);", "(void)0;", "LeakSanitizer"),
    "overflow": (
        SANITIZED,
        "allgather_simple",
        "return ",
        "volatile int i = 0x7fffffff; i += cc->size; return ",
        "overflow",
    ),
    "wrong byte": (PLAIN, "allgather_simple", "return ", "call->recv[0] ^= 1; return ", "WRONG"),
}


def small_library(folder: Path) -> None:
    topology = support.cluster(2)
    wanted = [("allgather", "simple"), ("bcast", "pipelined_linear")]
    catalogue = support.few([support.CATALOGUE.find(*names) for names in wanted])
    decision = support.decision(topology, catalogue)
    support.write_library(folder, topology, catalogue, decision, {})


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found(name, tmp_path):
    """A routine that is damaged: otherwise these tests could not fail."""
    way, file, text, damage, found = MISTAKES[name]
    small_library(tmp_path)
    source = f"src/{file}.c"
    head, end = (tmp_path / source).read_text().rsplit(text, 1)
    write_files(tmp_path, {source: f"{head}{damage}{end}"})
    result = support.run(
        2, built(tmp_path, way), "quick", variables=way.environment(tmp_path), timeout=100
    )
    assert result.returncode != 0
    assert found in result.stdout + result.stderr


@pytest.mark.parametrize("room", [0, 1000])
def test_a_check_has_the_same_cases_without_room_for_all_results_of_native(room, tmp_path):
    small_library(tmp_path)
    said = [support.run(2, built(tmp_path, PLAIN), "quick", timeout=100).stdout]
    head, limit, end = (tmp_path / "check/expected.h").read_text().partition("32 << 20")
    assert limit
    write_files(tmp_path, {"check/expected.h": f"{head}{room}{end}"})
    said.append(support.run(2, built(tmp_path, PLAIN), "quick", timeout=100).stdout)
    assert "2 ranks: " in said[0]
    assert said[1] == said[0]


def make_check(*words: str) -> str:
    """`make check` as users call it, with no launcher of ours."""
    folder = support.library(SMALL)
    mpicc = Path(support.toolchain().mpicc)
    tools = [f"MPICC={mpicc}", f"MPIEXEC={mpicc.parent / 'mpiexec'}"]
    result = subprocess.run(
        ["make", "-C", folder, "check", *tools, *words],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_make_check_checks_only_the_collectives_that_are_named():
    output = make_check("NP=2", "LEVEL=quick", "COLLECTIVES=barrier,bcast")
    assert re.findall(r"^(\w+) +\d+ passed", output, re.MULTILINE) == ["barrier", "bcast"]


def test_make_check_checks_only_the_routines_that_are_named():
    """MPI_Barrier, fixed_tree and token_tree on four communicators are more cases than one."""
    words = ("NP=2", "LEVEL=quick", "COLLECTIVES=barrier")
    cases = {}
    for routines in ("all", "dissemination,fixed_tree", "fixed_tree"):
        output = make_check(*words, f"ROUTINES={routines}", "DELAYS=10")
        cases[routines] = int(re.findall(r"^barrier +(\d+) passed", output, re.MULTILINE)[0])
    assert cases["all"] > cases["dissemination,fixed_tree"] > cases["fixed_tree"] > 0


@pytest.mark.parametrize(
    "words",
    [
        ["fulll"],
        ["--collectives", "bcast,nonsense"],
        ["--collectives", ""],
        ["--collectives"],
        ["--delays", "0"],
        ["--delays", "12x"],
        ["--routines", "fixed_tree,nonsense"],
        ["--routines", "all,fixed_tree"],
        ["--routines", ""],
    ],
)
def test_a_wrong_command_line_is_status_2_and_says_what_to_give(words):
    result = support.run(2, support.library(SMALL) / "build/check", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert f'wrong argument "{words[-1]}"; give:' in result.stderr


def test_a_check_of_nothing_fails():
    """No routine of alltoall watches arrivals."""
    words = ("--collectives", "alltoall", "--delays", "1")
    result = support.run(2, support.library(SMALL) / "build/check", *words)
    assert result.returncode == 1
    assert "nothing to check" in result.stderr


@pytest.mark.parametrize("way", [PLAIN, BOTH], ids=lambda way: way.name)
def test_make_check_passes_with_plain_mpiexec(way: Way):
    output = make_check("NP=3", "LEVEL=quick", *way.variables)
    assert re.search(r"3 ranks: \d+ passed, 0 failed", output)
