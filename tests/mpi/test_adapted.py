"""What MPI promises holds while candidates change: types, places, operations, orders."""

from __future__ import annotations

import pytest

from tests.mpi import adapting

pytestmark = pytest.mark.mpi

#: A stage is one call, and as many sizes adapt as may.
RESTLESS = "iter=1,delta=1,bound=1,sizes=64"

#: Bytes of scratch memory that few candidates of longer messages are content with.
LITTLE = "600"


def checked(rounds: int, *level: str, **variables: str) -> int:
    """Return how many cases of the conformance check passed, all of them."""
    program = adapting.program("adapted.c", adapting.library() / "check" / "conformance.c")
    return int(adapting.run(rounds, *level, of=program, timeout=1800, **variables).stdout)


def candidates_that_served(path) -> dict[str, set[str]]:
    """By collective, the algorithms that had a stage."""
    served: dict[str, set[str]] = {}
    for one in adapting.learned(path)["situations"]:
        names = [candidate["algorithm"] for candidate in one["candidates"]]
        of = served.setdefault(one["collective"], set())
        of |= {names[stage["candidate"]] for stage in one["stages"]}
    return served


def test_entry_points_give_the_bytes_of_native_while_candidates_change(tmp_path):
    path = tmp_path / "learned.json"
    settings = {"LIBCOLL_ADAPTIVE": f"star-basic,{RESTLESS}", "LIBCOLL_LEARN": str(path)}
    assert checked(1, **settings) > 1000
    served = candidates_that_served(path)
    assert all(len(served[collective]) > 5 for collective in adapting.OF_SOURCE)


@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize("scratch", [None, LITTLE, "0"])
@pytest.mark.parametrize("policy", adapting.policies())
def test_entry_points_give_the_bytes_of_native_with_every_policy(policy, scratch):
    variables = {} if scratch is None else {"LIBCOLL_SCRATCH": scratch}
    assert checked(6, **variables, LIBCOLL_ADAPTIVE=f"{policy},{RESTLESS}") > 20_000


@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize("policy", adapting.policies())
def test_every_policy_serves_all_combinations_at_the_entry_points(policy):
    assert checked(2, "full", LIBCOLL_ADAPTIVE=f"{policy},{RESTLESS}") > 20_000


@pytest.mark.parametrize("variables", [{}, {"LIBCOLL_SCRATCH": LITTLE}], ids=["", "little"])
def test_operations_that_do_not_commute_in_the_midst_of_a_situation(tmp_path, variables):
    """Candidates that cannot do such a call leave it to the table, and it does not count."""
    path = tmp_path / "learned.json"
    settings = f"star-basic,{RESTLESS},sites=0"
    calls = 60
    adapting.run("ordered", calls, LIBCOLL_ADAPTIVE=settings, LIBCOLL_LEARN=str(path), **variables)
    situations = {one["collective"]: one for one in adapting.learned(path)["situations"]}
    allreduce = situations["allreduce"]
    assert len({stage["candidate"] for stage in allreduce["stages"]}) > 5
    assert 0 < allreduce["calls"] < calls


#: Programs of the other tests: the file, ranks, arguments.
PROGRAMS = [
    ("interleaved.c", 4, "200"),
    ("uneven.c", 5),
    ("large_types.c", 3),
    ("threads.c", 3),
    ("finalize.c", 3, "used"),
    ("communicators.c", 3, "recreate", "300"),
    ("attributes.c", 5),
    ("intercommunicators.c", 5),
    ("errors.c", 3),
    ("f90_types.c", 3),
    ("sessions.c", 3, "outlive"),
    ("dying.c", 5),
    ("exhausted.c", 4, "allreduce"),
    ("spacing.c", 4, "520"),
    ("communicators.c", 2, "live", "1800"),
    ("finalize.c", 3),
    ("finalize.c", 3, "apart"),
]

#: Of them, those of `make test`.
QUICK = 3


def _cases():
    for number, case in enumerate(PROGRAMS):
        for policy in adapting.policies():
            is_quick = number < QUICK and policy == "star-basic"
            yield pytest.param(
                *case[:2], case[2:], policy, marks=[] if is_quick else [pytest.mark.slow]
            )


@pytest.mark.parametrize(("source", "ranks", "arguments", "policy"), list(_cases()))
def test_programs_are_right_while_candidates_change(source, ranks, arguments, policy):
    program = adapting.program(source)
    adapting.run(*arguments, ranks=ranks, of=program, LIBCOLL_ADAPTIVE=f"{policy},{RESTLESS}")


@pytest.mark.slow
@pytest.mark.parametrize("policy", adapting.policies())
def test_deterministic_sums_have_the_same_bits_with_every_policy(policy):
    """The same bits whatever the policy, and without one."""
    program = adapting.program("deterministic.c")
    outputs = {
        adapting.run(of=program, LIBCOLL_DETERMINISTIC="1", **variables).stdout
        for variables in ({}, {"LIBCOLL_ADAPTIVE": f"{policy},{RESTLESS}"})
    }
    assert len(outputs) == 1
