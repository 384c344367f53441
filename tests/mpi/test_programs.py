"""Programs that use the library as applications do, and worse."""

from __future__ import annotations

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi


def passes(source: str, ranks: int, *arguments: str, options: tuple[str, ...] = (), **how) -> str:
    program = support.compiled(source, ranks, *options)
    result = support.run(ranks, program, *arguments, **how)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_thousands_of_communicators_leave_nothing_behind():
    """2,500 of them, each with a private duplicate: more than MPICH has contexts."""
    passes("communicators.c", 3, "recreate", "2500")


def test_more_live_communicators_than_contexts_for_private_ones_do_no_harm():
    passes("communicators.c", 2, "live", "1800")


@pytest.mark.parametrize("ranks", [2, 5])
def test_attribute_functions_of_the_application_are_not_called(ranks):
    passes("attributes.c", ranks)


@pytest.mark.parametrize("ranks", [2, 5])
def test_intercommunicators_go_native(ranks):
    passes("intercommunicators.c", ranks)


#: The alltoallv routines of a cluster with a rank on each host.
ALLTOALLVS = [one.name for one in support.serving(support.cluster(5), "alltoallv")]


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("routine", ALLTOALLVS)
def test_blocks_of_an_alltoallv_may_have_very_different_lengths(routine, ranks):
    passes("lengths.c", ranks, variables={"LIBCOLL_FORCE": f"alltoallv={routine}"})


@pytest.mark.parametrize("ranks", [1, 3])
def test_mistakes_give_the_classes_of_native(ranks):
    passes("errors.c", ranks)


def test_the_error_handler_is_that_of_the_application_again():
    once = {"LIBCOLL_SHORT_CALLS": "0", "LIBCOLL_FORCE": "allgather=ring"}
    passes("handlers.c", 3, options=("-Wl,--wrap=PMPI_Comm_create",), variables=once)


#: Algorithms in which a rank learns of no one else's truncation.
TRUNCATING = [
    "bcast=flat",
    "bcast=binomial",
    "bcast=pipelined_linear",
    "alltoall=simple",
    "alltoall=spreading_simple",
    "alltoallv=bruck_and_direct",
    "alltoallv=spreading_rounds",
    "allgather=simple",
]


@pytest.mark.parametrize("forced", TRUNCATING)
def test_truncation_gives_the_class_of_native(forced):
    collective = forced.partition("=")[0]
    variables = {"LIBCOLL_FORCE": forced}
    passes("errors.c", 3, "truncate", collective, variables=variables, timeout=60)


def ends(*arguments: str, **how) -> str:
    """The program does not come to its end; returns what it says on the way.

    In one of some hundred runs on a busy machine, hydra 4.3.2 leaves the other ranks alive although
    one has called MPI_Abort and is gone. So a run that says so, and then hangs, is tried again.
    """
    program = support.compiled("errors.c", 3)
    for _ in range(3):
        try:
            result = support.run(3, program, *arguments, timeout=30, **how)
        except TimeoutError as error:
            if "Abort(" not in str(error):
                raise
            continue
        assert result.returncode != 0
        return result.stdout + result.stderr
    pytest.fail("three runs hang after MPI_Abort")


@pytest.mark.parametrize("collective", support.CATALOGUE.collectives)
def test_fatal_mistakes_end_the_program(collective):
    assert "went on" not in ends("fatal", collective)


@pytest.mark.parametrize("forced", TRUNCATING)
def test_fatal_errors_inside_routines_end_the_program(forced):
    """The rank that finds the error ends the program; the message names the library's own call."""
    collective = forced.partition("=")[0]
    said = ends("fatal-inside", collective, variables={"LIBCOLL_FORCE": forced})
    assert "Message truncated" in said
    assert said.count("went on") < 3
    assert f"internal_{collective.capitalize()}" not in said


def test_after_an_error_nothing_writes_into_buffers():
    program = support.compiled("abandon.c", 3, f"-I{support.library(3) / 'src'}")
    result = support.run(3, program, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_copy_between_types_has_the_same_data():
    """MPICH 4.3 refuses messages to oneself that would do it."""
    program = support.compiled("copies.c", 3, f"-I{support.library(3) / 'src'}")
    result = support.run(2, program, timeout=60)
    assert result.stdout == "0 of 294 copies are wrong\n", result.stdout + result.stderr


def test_types_of_fortran_are_not_freed():
    passes("f90_types.c", 3, timeout=60)


def test_without_a_context_for_a_private_communicator_all_is_native():
    passes("exhausted.c", 2)


@pytest.mark.parametrize("arguments", [(), ("used",), ("apart",)])
def test_collectives_go_on_inside_finalize(arguments):
    passes("finalize.c", 3, *arguments, timeout=60)


def test_collectives_go_on_while_a_communicator_is_freed():
    passes("dying.c", 5)


@pytest.mark.parametrize("what", ["world", "again"])
def test_what_cannot_be_freed_is_reported_once_and_nothing_is_lost(what):
    passes("freeing.c", 4, what, timeout=60)


#: Routines that make no types. In a second life of MPI, MPICH 4.3 gives new types the handles of
#: its pair types and refuses to free them, whether or not libcoll is there. The test is about keys.
WITHOUT_TYPES = {"LIBCOLL_FORCE": "gather=linear,scatter=linear"}


@pytest.mark.parametrize("how", ["again", "outlive"])
@pytest.mark.parametrize("options", [(), ("-DOF_FORTRAN",)], ids=["C", "Fortran"])
def test_sessions_may_begin_again_and_outlive_mpi_finalize(how, options):
    passes("sessions.c", 3, how, options=options, timeout=60, variables=WITHOUT_TYPES)


@pytest.mark.parametrize("ranks", [3, 4])
def test_elements_that_reach_over_others_are_right(ranks):
    passes("spacing.c", ranks, "520")


@pytest.mark.parametrize("name", ["pair", "spreading_rounds"])
def test_columns_that_change_places_need_no_more_memory_than_the_matrix(name):
    passes("columns.c", 4, variables={"LIBCOLL_FORCE": f"alltoallv={name}"})


@pytest.mark.parametrize("ranks", [2, 5])
def test_correct_calls_that_differ_between_ranks_are_right(ranks):
    passes("uneven.c", ranks, timeout=60)


@pytest.mark.parametrize("name", ["binomial", "linear"])
def test_one_buffer_for_both_sides_at_the_root_is_right(name):
    forced = {"LIBCOLL_FORCE": f"gather={name},scatter={name}"}
    passes("uneven.c", 4, timeout=60, variables=forced)


@pytest.mark.parametrize(
    ("ranks", "calls"), [(4, 1000), pytest.param(6, 200, marks=pytest.mark.slow)]
)
def test_calls_back_to_back_do_not_mix(ranks, calls):
    passes("interleaved.c", ranks, str(calls))


def test_two_threads_on_two_communicators_do_not_mix():
    passes("threads.c", 3)


def test_large_count_types_and_absolute_addresses_are_right():
    passes("large_types.c", 3)
