"""Persistent collectives: random programs, threads and Fortran's names, compared with native."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.tune.candidates import default_candidate
from stagegen.tune.decision import Rule
from tests.mpi import builds, support
from tests.mpi.test_example_programs import FOLDER
from tests.mpi.test_threads import ENVIRONMENT, fixed_addresses

pytestmark = pytest.mark.mpi

RANKS = 4
#: Routines whose persistent forms have plans, two ways for each collective.
FORCED = (
    {
        "allgather": "ring",
        "allgatherv": "ring",
        "allreduce": "ring",
        "barrier": "dissemination",
        "bcast": "linear",
        "gather": "linear",
        "reduce": "linear",
        "reduce_scatter": "ring",
        "reduce_scatter_block": "ring",
        "scatter": "linear",
    },
    {
        "allgather": "simple",
        "allgatherv": "simple",
        "allreduce": "recursive_doubling",
        "barrier": "binomial",
        "bcast": "binomial",
        "gather": "linear",
        "reduce": "binomial",
        "reduce_scatter": "ring",
        "reduce_scatter_block": "ring",
        "scatter": "linear",
    },
)
#: Blocking routines that receive with any tag, or have tags of their own for each node.
BESIDE = (
    ("token_tree", "token_tree"),
    ("lanes", "token_tree_semi_dynamic"),
    ("pre_reduced_ring", "token_tree_remembering"),
    ("token_tree_several", "token_tree_several"),
    ("fixed_tree", "combining_tree"),
)
#: Links a program that looks inside: the library's calls of these come there first.
WRAPS = tuple(
    f"-Wl,--wrap={name}"
    for name in (
        "PMPIX_Async_start", "PMPIX_Request_is_complete", "PMPI_Comm_create", "PMPI_Gather",
        "PMPI_Allreduce", "PMPI_Recv_init_c", "PMPI_Start", "PMPI_Wait", "malloc",
    )
)  # fmt: skip
EXAMPLE = FOLDER / "persistent.c"
CASES = [("window", 0, 1), ("tokens", 1, 2), ("auto", 0, 3), ("native", 1, 4)]


@lru_cache
def library(*flags: str, ranks: int = RANKS, slots: int = 1) -> Path:
    """A library with what `FORCED` and `BESIDE` name."""
    mpi = builds.Mpi.of_environment()
    wanted = {(name, algorithm) for way in FORCED for name, algorithm in way.items()}
    wanted |= {("allreduce", name) for name, _ in BESIDE}
    wanted |= {("barrier", name) for _, name in BESIDE}
    chosen = [a for a in support.CATALOGUE.algorithms if (a.collective, a.name) in wanted]
    return builds.of_catalogue(mpi, ranks, "persistent", support.few(chosen), *flags, slots=slots)


def run(
    source: str,
    *arguments: str | int,
    choice: str,
    way: int = 0,
    flags=(),
    options=(),
    variables=None,
    under=(),
    ranks=RANKS,
    slots=1,
):
    mpi = builds.Mpi.of_environment()
    own = library(*flags, ranks=ranks, slots=slots)
    program = builds.c_program(mpi, own, source, *flags, *options)
    settings = {
        "LIBCOLL_PERSISTENT": choice,
        "LIBCOLL_FORCE": ",".join("=".join(pair) for pair in FORCED[way].items()),
        **(variables or {}),
    }
    result = builds.run(mpi, ranks, *under, program, *arguments, variables=settings)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.mark.parametrize(("choice", "way", "seed"), CASES)
def test_random_programs_get_the_bytes_of_native(choice, way, seed):
    """With `served`, the program makes calls that would be errors in MPICH's own form."""
    served = ["served"] if choice in ("window", "tokens") else []
    run("persistent.c", 600, seed, *served, choice=choice, way=way)


#: Bytes of each rank for each; a rank has nothing for others, another one for a single one.
COUNTS = ((0, 70, 0, 5000), (0, 0, 0, 0), (9, 9, 9, 9), (0, 30_000, 0, 1))


@pytest.mark.parametrize("choice", ["tokens", "native"])
def test_the_example_program_times_a_plan_of_a_pattern_and_its_init(tmp_path, choice):
    counts = tmp_path / "counts.txt"
    counts.write_text("".join(f"{' '.join(map(str, row))}\n" for row in COUNTS))
    words = (str(EXAMPLE), str(counts), 3, "alltoallv")
    result = run(*words, choice=choice, variables={"LIBCOLL_TRACE": "1"})
    assert re.search(r"^native / planned +median +[0-9.]+, ", result.stdout, re.MULTILINE)
    for what in ("mean", "init"):
        line = rf"^{what}: planned [0-9.]+ ms, native [0-9.]+ ms$"
        assert re.search(line, result.stdout, re.MULTILINE)
    assert ("persistent, planned" in result.stderr) == (choice == "tokens")


@pytest.mark.parametrize(("choice", "way", "seed"), CASES[:2])
@pytest.mark.parametrize("ranks", [3, 5])
def test_random_programs_on_odd_numbers_of_ranks_get_the_bytes_of_native(ranks, choice, way, seed):
    run("persistent.c", 300, seed, "served", choice=choice, way=way, ranks=ranks)


@pytest.mark.parametrize(("choice", "way", "seed"), CASES[:2])
@pytest.mark.parametrize(("ranks", "slots"), [(4, 2), (5, 2)])
def test_random_programs_on_hosts_with_several_ranks_get_the_bytes_of_native(
    ranks, slots, choice, way, seed
):
    run("persistent.c", 300, seed, "served", choice=choice, way=way, ranks=ranks, slots=slots)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 11))
@pytest.mark.parametrize(("choice", "way"), [("window", 0), ("tokens", 1)])
def test_long_random_programs_get_the_bytes_of_native(choice, way, seed):
    run("persistent.c", 1500, seed, "served", choice=choice, way=way)


@pytest.mark.parametrize("choice", ["window", "tokens"])
@pytest.mark.parametrize(
    "use", ["threads", "blocking", "fortran", "fortran barriers", "mistakes", "types"]
)
def test_persistent_calls_are_right_in_threads_beside_blocking_ones_and_in_fortran(use, choice):
    run("persistent_uses.c", use, choice=choice)


@pytest.mark.parametrize("choice", ["tokens", "auto", "native"])
@pytest.mark.parametrize("use", ["intercommunicators", "addresses", "threads"])
def test_persistent_calls_are_right_between_groups_at_addresses_and_with_lives_in_threads(
    use, choice
):
    # At addresses, only the exchange can have a plan: types are not plain bytes.
    plans = {"intercommunicators": (), "addresses": ("tokens",), "threads": ("tokens", "auto")}
    for way in range(len(FORCED)):
        settings = {"LIBCOLL_TRACE": "1"}
        told = run("persistent_elsewhere.c", use, choice=choice, way=way, variables=settings).stderr
        assert ("persistent, planned" in told) == (choice in plans[use])


@pytest.mark.parametrize(("allreduce", "barrier"), BESIDE)
def test_blocking_collectives_of_the_library_are_right_meanwhile(allreduce, barrier):
    forced = {"LIBCOLL_FORCE": f"allreduce={allreduce},barrier={barrier}"}
    for choice in ("window", "tokens"):
        run("persistent_uses.c", "beside", choice=choice, variables=forced)


@pytest.mark.parametrize("way", [0, 1])
def test_error_handlers_may_free_requests(way):
    run("persistent_uses.c", "handlers", choice="window", way=way)


def test_no_message_comes_into_freed_memory_after_an_error():
    """Recursive doubling has messages of several steps under way."""
    run("persistent_uses.c", "late", choice="window", way=1)


@pytest.mark.parametrize("use", ["nested", "unhooked"])
def test_progress_is_made_in_error_handlers_and_after_a_refusal(use):
    run("persistent_inside.c", use, choice="window", options=WRAPS)


#: Seconds after which the end of MPI gives up a plan without a step.
PATIENCE = 10


@pytest.mark.parametrize("source", ["persistent_uses.c", "sessions.c"])
def test_what_never_ends_does_not_keep_mpi_from_ending(source):
    begin = time.monotonic()
    run(source, "unfinished", choice="window")
    assert time.monotonic() - begin >= PATIENCE  # a native operation ends at once


def test_functions_that_delete_attributes_of_types_may_free_requests():
    run("persistent_uses.c", "deleted types", choice="window")


def test_a_start_waits_for_no_other_rank():
    run("persistent_uses.c", "alone", choice="auto", variables=support.MEMORY)


def test_the_root_of_a_scatter_copies_its_own_block_last():
    """As the blocking call: what leaves from where it arrives has left."""
    run("persistent_inside.c", "overlap", choice="auto", options=WRAPS)


def test_empty_blocks_may_be_anywhere():
    """In place, the copy of what is sent is as long as the blocks with data reach."""
    run("persistent_inside.c", "places", choice="window", options=WRAPS)


def test_a_plan_looks_at_few_messages_while_nothing_comes():
    run("persistent_inside.c", "looks", choice="tokens", options=WRAPS)


def test_few_receives_are_posted_of_many():
    """Where two thousand are, MPICH over OFI may wait for ever in a start."""
    run("persistent_inside.c", "many", choice="tokens", options=WRAPS)


#: Messages over OFI; without addresses in other networks than this machine's own.
OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "MPIR_CVAR_NOLOCAL": "1"}


@pytest.mark.parametrize(("network", "planned"), [(OFI, False), ({}, True)])
def test_with_threads_there_are_plans_only_where_no_start_makes_progress(network, planned):
    """Over OFI a start may make progress, and MPICH aborts where a plan's start does."""
    settings = {"LIBCOLL_TRACE": "1", **network}
    told = run("persistent_uses.c", "counted", choice="auto", variables=settings).stderr
    assert ("persistent, planned" in told) == planned


def test_without_threads_there_are_plans_over_any_network(tmp_path):
    counts = tmp_path / "counts.txt"
    counts.write_text("".join(f"{' '.join(map(str, row))}\n" for row in COUNTS))
    settings = {"LIBCOLL_TRACE": "1", **OFI}
    words = (str(EXAMPLE), str(counts), 3, "alltoallv")
    assert "persistent, planned" in run(*words, choice="tokens", variables=settings).stderr


@pytest.mark.parametrize("choice", ["auto", "native"])
def test_native_inits_make_no_communicators(choice):
    """The token tree has no steps."""
    forced = {"LIBCOLL_FORCE": "allreduce=token_tree"}
    run("persistent_inside.c", "inits", choice=choice, options=WRAPS, variables=forced)


@pytest.mark.parametrize("way", [0, 1])
def test_collectives_of_all_kinds_have_plans(way):
    run("persistent_inside.c", "kinds", choice="auto", way=way, options=WRAPS)


@pytest.mark.parametrize("way", [0, 1])
def test_no_rank_leaves_a_persistent_barrier_before_all_have_started_it(way):
    run("persistent_uses.c", "barriers", choice="auto", way=way)


@pytest.mark.parametrize(("choice", "starts"), [("auto", [(256, 3), (8, 2)]), ("native", [])])
def test_the_trace_counts_the_starts_of_operations_that_have_a_plan(choice, starts):
    told = run(
        "persistent_uses.c", "counted", choice=choice, variables={"LIBCOLL_TRACE": "1"}
    ).stderr
    line = r"rank 0: \w+ +persistent, planned +(\d+)\.\.\d+ +bytes +(\d+) starts"
    assert [(int(first), int(count)) for first, count in re.findall(line, told)] == starts


def served_by(algorithms):
    """What makes tables whose rule for allreduce has these algorithms, in this order."""

    def tables(topology, catalogue):
        of_name = {one.name: one for one in catalogue.algorithms if one.collective == "allreduce"}
        first, *others = (default_candidate(of_name[name]) for name in algorithms)
        rules = (Rule(0, first, alternatives=tuple(others)),)
        return [
            replace(one, rules=rules) if one.collective == "allreduce" else one
            for one in support.tables(topology, catalogue)
        ]

    return tables


@pytest.mark.parametrize(
    ("algorithms", "starts"),
    [
        (("token_tree", "lanes", "recursive_doubling"), [(256, 3)]),
        (("token_tree", "lanes"), []),
        (("token_tree", "recursive_doubling", "lanes"), [(256, 3)]),
    ],
)
def test_a_plan_is_that_of_the_first_alternative_that_has_one(algorithms, starts):
    """The token tree and the lanes have no steps."""
    mpi = builds.Mpi.of_environment()
    chosen = [
        one
        for one in support.CATALOGUE.algorithms
        if (one.collective, one.name) in {("allreduce", name) for name in algorithms}
    ]
    own = builds.of_catalogue(
        mpi, RANKS, "-".join(algorithms), support.few(chosen), tables=served_by(algorithms)
    )
    program = builds.c_program(mpi, own, "persistent_uses.c")
    told = builds.run(mpi, RANKS, program, "counted", variables={"LIBCOLL_TRACE": "1"})
    assert told.returncode == 0, told.stdout + told.stderr
    line = r"rank 0: allreduce +persistent, planned +(\d+)\.\.\d+ +bytes +(\d+) starts"
    assert [(int(one), int(count)) for one, count in re.findall(line, told.stderr)] == starts


@pytest.mark.parametrize(("choice", "planned"), [("auto", [131072]), ("tokens", [32768, 131072])])
def test_messages_that_take_less_than_half_a_millisecond_are_for_the_mpi_library(choice, planned):
    """Of these ranks' links, which have 1 Gbit/s: 62,500 bytes."""
    how = {"choice": choice, "variables": {"LIBCOLL_TRACE": "1"}}
    told = run("persistent_uses.c", "short and long", **how).stderr
    found = re.findall(r"rank 0: alltoall +persistent, planned +(\d+)\.\.\d+ +bytes", told)
    assert [int(first) for first in found] == planned


@pytest.mark.parametrize(("choice", "planned"), [("auto", []), ("tokens", [32768, 131072])])
def test_messages_within_a_host_are_for_the_mpi_library(choice, planned):
    """All four ranks are on the first of two hosts."""
    mpi = builds.Mpi.of_environment()
    program = builds.c_program(mpi, library(ranks=8, slots=4), "persistent_uses.c")
    settings = {"LIBCOLL_PERSISTENT": choice, "LIBCOLL_TRACE": "1"}
    told = builds.run(mpi, 4, program, "short and long", variables=settings)
    assert told.returncode == 0, told.stdout + told.stderr
    found = re.findall(r"rank 0: alltoall +persistent, planned +(\d+)\.\.\d+ +bytes", told.stderr)
    assert [int(first) for first in found] == planned


#: A setting of the last rank, and which of all choices counts then; None: settings differ.
UNLIKE = [
    ("LIBCOLL_PERSISTENT=tokens", "window"),
    ("LIBCOLL_PERSISTENT=native", "native"),
    ("LIBCOLL_FORCE=allreduce=native", None),
    ("LIBCOLL_DISABLE=1", None),
]


@pytest.mark.parametrize(("setting", "counts"), UNLIKE)
def test_ranks_whose_settings_differ_get_the_bytes_of_native_and_it_is_said_once(setting, counts):
    """With `window`, all alltoalls of all ranks have plans."""
    last = f'[ "$PMI_RANK" = {RANKS - 1} ] && export {setting}; exec "$0" "$@"'
    words = {"under": ("/bin/sh", "-c", last), "variables": {"LIBCOLL_TRACE": "1"}}
    told = run("persistent.c", 40, 3, choice="window", **words).stderr
    assert told.count("differ") == 1
    if counts is None:
        assert f"differs from rank 0 in {setting.partition('=')[0]}:" in told
    else:
        assert f"LIBCOLL_PERSISTENT differs between ranks: {counts} counts for all" in told
    assert ("persistent, planned" in told) == (counts == "window")


def test_an_init_for_which_a_rank_has_no_memory_is_native_on_all_ranks():
    """Each allocation of each init fails once, on the first rank and on the last."""
    wraps = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc")]
    for way, ranks in ((0, 3), (1, 2)):
        how = {"way": way, "ranks": ranks, "options": wraps}
        told = run("persistent_lacking.c", choice="tokens", **how).stdout
        assert int(told.split()[0]) > 200


def test_a_setting_that_means_nothing_is_reported_once():
    told = run("persistent.c", 20, 1, choice="tokenz").stderr
    assert told.count("LIBCOLL_PERSISTENT: 'tokenz' is ignored: expected auto, window,") == 1


#: MPICH keeps memory to its end.
NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}


@pytest.mark.slow
@pytest.mark.parametrize(("choice", "way"), [("window", 0), ("tokens", 1)])
def test_sanitizers_find_nothing_in_random_programs(choice, way):
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    arguments = ("persistent.c", 400, 12, "served")
    run(*arguments, choice=choice, way=way, flags=flags, variables=NO_LEAKS)


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["window", "tokens"])
def test_threads_do_not_race(choice):
    flags = ("-g", "-fsanitize=thread")
    how = {"flags": flags, "variables": ENVIRONMENT, "under": fixed_addresses()}
    run("persistent_uses.c", "threads", choice=choice, **how)
