"""Routines that watch arrivals: which ranks send to which, once one is late or known as late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 6
SERVED = {
    "reduce": "pre_reduced_tree",
    "bcast": "late_leaves",
    "allgather": "pre_gathered_ring",
    "allreduce": "token_tree_several",
}
LANES = {"allreduce": "lanes"}
CHAIN = {"allreduce": "arrival_chain"}
TREES = ("token_tree", "token_tree_semi_dynamic", "token_tree_remembering", "fixed_tree")

#: In µs: longer than a busy machine holds up a rank, and less than a late rank is late.
PATIENCE = 50_000
SENDS = ("PMPI_Send", "PMPI_Isend", "PMPI_Isend_c")


def run(
    source: str,
    *words: str,
    wrapped: tuple[str, ...] = (),
    ranks: int = RANKS,
    arity: int = 0,
    patience: int = PATIENCE,
    served: Mapping[str, str] = SERVED,
) -> list[dict[int, str]]:
    """Run a program with these routines; return of each line which ranks each rank sent to."""
    forced = ",".join(f"{name}={routine}" for name, routine in served.items())
    built = {(name, one) for name, routine in served.items() for one in _built_with(routine)}
    chosen = [support.CATALOGUE.find(*one) for one in sorted(built)]
    chosen = [support.with_default(one, "patience", patience) for one in chosen]
    if arity:
        chosen = [support.with_default(one, "arity", arity) for one in chosen]
    mpi = builds.Mpi.of_environment()
    name = f"early-{'-'.join(routine for _, routine in sorted(built))}-{arity}-{patience}"
    folder = builds.of_catalogue(mpi, ranks, name, support.few(chosen))
    program = builds.c_program(mpi, folder, source, *(f"-Wl,--wrap={name}" for name in wrapped))
    result = support.run(ranks, program, *words, variables={"LIBCOLL_FORCE": forced}, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [[sender.split(">") for sender in line.split()] for line in result.stdout.splitlines()]
    return [{int(rank): to for rank, to in line} for line in lines]


def _built_with(routine: str) -> tuple[str, ...]:
    """The routines of the library that has it: one library for all token trees."""
    return TREES if routine in TREES else (routine,)


def sends(collective: str, root: int, *parts: str, **tree: int) -> list[dict[int, str]]:
    return run("early.c", collective, str(root), *parts, wrapped=SENDS, **tree)


#: Where each rank sends: with no rank late, with rank 1 late, with rank 2 late. The root is 0.
REDUCE = (
    {0: "", 1: "0", 2: "0", 3: "1", 4: "1", 5: "2"},
    {0: "", 1: "0", 2: "0", 3: "0", 4: "2", 5: "2"},
    {0: "", 1: "0", 2: "0", 3: "0", 4: "1", 5: "1"},
)
BCAST = (
    {0: "1,2", 1: "3,4", 2: "5", 3: "", 4: "", 5: ""},
    {0: "2,3", 1: "", 2: "4,5", 3: "", 4: "", 5: "1"},
    {0: "1,3", 1: "4,5", 2: "", 3: "", 4: "", 5: "2"},
)


@pytest.mark.parametrize(("collective", "expected"), [("reduce", REDUCE), ("bcast", BCAST)])
def test_early_ranks_have_a_tree_and_forget_which_rank_was_late(collective, expected):
    """In call 1, they know nothing. They exchange levels in the calls 97, 129 and 161, too."""
    assert tuple(sends(collective, 0, "1:95", "2:67")) == expected


def test_ranks_do_not_exchange_levels_in_the_first_call():
    """It opens connections, which takes long."""
    assert sends("bcast", 0, "1:2") == [BCAST[0], BCAST[0]]


def test_ranks_exchange_levels_in_the_third_and_the_fifth_call():
    """After one call in which another rank is late, the mean names none."""
    assert sends("bcast", 0, "1:1", "1:3", "2:2") == [BCAST[0], BCAST[1], BCAST[0]]


def test_a_root_that_is_late_takes_one_message_of_a_reduce():
    assert sends("reduce", 0, "0:4")[1] == {0: "", 1: "0", 2: "1", 3: "1", 4: "2", 5: "2"}


def test_a_root_that_is_late_sends_a_bcast_as_if_it_were_early():
    assert sends("bcast", 1, "1:4") == [
        {0: "", 1: "2,3", 2: "4,5", 3: "0", 4: "", 5: ""},
        {0: "", 1: "2,3", 2: "4,5", 3: "0", 4: "", 5: ""},
    ]


def test_early_ranks_have_a_ring_and_the_late_one_sends_to_all():
    first, then = sends("allgather", 0, "1:1", "1:4")
    ring = {rank: ",".join([str((rank + 1) % RANKS)] * (RANKS - 1)) for rank in range(RANKS)}
    assert first == ring
    assert then == {
        0: "2,1,2,1,2,1,2,1,1",
        1: "0,2,3,4,5",
        2: "3,3,3,3",
        3: "4,4,4,4",
        4: "5,5,5,5",
        5: "0,0,0,0",
    }


@pytest.mark.parametrize("late", ["5", "2+5"])
def test_late_ranks_of_several_branches_tell_the_root_at_once(late):
    """Rank 5 is below 1, which passes its token there, and is sent the release by 1."""
    told = {0: "4,3,2,1", 1: "5,5", 2: "0", 3: "0", 4: "0", 5: "1,0"}
    assert sends("allreduce", 0, "-1:1", f"{late}:2")[1] == told


#: With two children each: 7 is below 3, and 3 below 1; 6 is below 2. Each is sent a token.
DEEP = {0: "2,1", 1: "3,4,3", 3: "1,7,8,7", 4: "1", 5: "2", 7: "3,0", 8: "3"}


@pytest.mark.parametrize(
    ("late", "others"), [("7", {2: "0,6,5", 6: "2"}), ("7+6", {2: "6,6,5", 6: "2,0"})]
)
def test_a_rank_passes_the_token_on_and_answers_its_sender(late, others):
    found = sends("allreduce", 0, "-1:1", f"{late}:2", ranks=9, arity=2)[1]
    assert found == {**DEEP, **others}


def test_one_rank_of_each_branch_tells_the_root():
    told = sends("allreduce", 0, "-1:1", "1:2")[1]
    assert [to.split(",").count("0") for to in told.values()].count(1) == 4
    assert told[0] == "4,3,2,1"


@pytest.mark.parametrize("collective", [name for name in SERVED if name != "allreduce"])
def test_ranks_that_can_keep_nothing_count_as_early(collective):
    """Once for each rank, with the right results."""
    assert run("lacking.c", collective, wrapped=("calloc",)) == []


def test_ranks_that_cannot_learn_have_the_order_of_the_hosts():
    served = {"allreduce": "pre_reduced_ring"}
    assert run("lacking.c", "allreduce", wrapped=("calloc",), served=served) == []


def test_a_chain_is_right_if_ranks_cannot_keep_which_one_coordinates():
    assert run("lacking.c", "allreduce", wrapped=("calloc",), served=CHAIN) == []


def test_a_short_message_is_one_lane():
    """Of 4 bytes: only its owner gets operands and sends the result."""
    (first,) = run("early.c", "allreduce", "0", "-1:1", wrapped=SENDS, served=LANES)
    assert first.pop(0).split(",") == [str(rank) for rank in range(1, RANKS)]
    assert first == dict.fromkeys(range(1, RANKS), "0")


def to_ranks(line: Mapping[int, str]) -> dict[int, list[int]]:
    return {rank: [int(to) for to in text.split(",") if to] for rank, text in line.items()}


def test_without_late_ranks_a_pre_reduced_ring_is_one_ring_and_the_late_rank_gives_blocks_to_all():
    """Early ranks combine around their own ring; results go around the ring of all, late at last.

    Messages of the first half are sent while others are received, which is not noted here.
    """
    served = {"allreduce": "pre_reduced_ring"}
    found = run("early.c", "allreduce", "0", "-1:1", "1:4", "2:6", wrapped=SENDS, served=served)
    first, one, two = map(to_ranks, found)
    assert all({*to} == {(rank + 1) % RANKS} for rank, to in first.items())
    for late, line in ((1, one), (2, two)):
        early = [rank for rank in range(RANKS) if rank != late]
        order = [*early, late]
        after = dict(zip(order, [*order[1:], order[0]], strict=True))
        given, passed = line[late][: len(early)], line[late][len(early) :]
        assert given == early[::-1]
        assert {*passed} == {after[late]}
        assert all({*line[rank]} == {after[rank]} for rank in early)


def test_a_late_rank_owns_no_lane():
    """Each other rank sends its operand to the owner of the only lane, which answers all."""
    found = run("early.c", "allreduce", "0", "0:4", "2:6", wrapped=SENDS, served=LANES)
    for late, line in zip((0, 2), map(to_ranks, found[1:]), strict=True):
        (owner,) = (rank for rank, to in line.items() if len(to) > 1)
        assert owner != late
        others = [rank for rank in range(RANKS) if rank != owner]
        assert sorted(line[owner]) == others
        assert all(line[rank] == [owner] for rank in others)


def test_a_late_rank_owns_no_lane_of_a_ring_and_gets_results_from_the_owners():
    """Ranks 0 to 2 are a site, and 3 to 5. This message is one lane, so each site has one owner.

    What late ranks and others give an owner is sent synchronously, which is not noted here.
    """
    served = {"allreduce": "lane_rings_sites"}
    found = run("early.c", "allreduce", "0", "0:4", "4:6", wrapped=SENDS, served=served)
    for late, line in zip((0, 4), map(to_ranks, found[1:]), strict=True):
        near, far = sorted(rank for rank, to in line.items() if to)
        assert late not in (near, far)
        assert sorted(line[near]) == sorted({0, 1, 2, far} - {near})
        assert sorted(line[far]) == sorted({3, 4, 5, near} - {far})


#: Rank 5 is below 1, and 1 below the root, 0. Either 1 tells 0, which releases it; or 0 passes a
#: token to 1, which 5 tells, and which releases 0.
AT_ROOT = {0: "4,3,2,1", 1: "0,5", 2: "0", 3: "0", 4: "0", 5: "1"}
BELOW = {0: "1,4,3,2", 1: "5,0", 2: "0", 3: "0", 4: "0", 5: "1"}


@pytest.mark.parametrize(
    ("tree", "calls"),
    [
        ("token_tree", [AT_ROOT, BELOW, BELOW, AT_ROOT]),
        ("token_tree_semi_dynamic", [AT_ROOT, AT_ROOT, BELOW, BELOW]),
        ("token_tree_remembering", [AT_ROOT, BELOW, BELOW, BELOW]),
        ("fixed_tree", [AT_ROOT, AT_ROOT, AT_ROOT, AT_ROOT]),
    ],
)
def test_the_token_goes_to_the_late_rank_in_the_call_or_in_the_next_ones(tree, calls):
    """No rank is late, then rank 5 twice, then none."""
    served = {"allreduce": tree}
    parts = ("-1:1", "5:1", "5:1", "-1:1")
    assert run("early.c", "allreduce", "0", *parts, wrapped=SENDS, served=served) == calls


def test_a_root_that_comes_last_stays_the_root_however_impatient_it_is():
    """All others wait for rank 5 when it comes. With a patience of 0, it waits for none of them.

    The rank that comes last to the first call is any, and so is the root of the second one.
    """
    served = {"allreduce": "token_tree_semi_dynamic"}
    parts = ("-1:1", *["5:1"] * 4)
    found = run("early.c", "allreduce", "0", *parts, wrapped=SENDS, served=served, patience=0)
    assert found[2:] == [BELOW, BELOW, BELOW]


def test_the_last_of_children_that_come_one_after_the_other_is_not_late():
    """Rank 1 comes last, and later than the patience after the one before; yet no token goes."""
    found = run(
        *("early.c", "allreduce", "0", "-1:1", "-2:1"),
        wrapped=SENDS,
        served={"allreduce": "token_tree"},
    )
    assert found == [AT_ROOT, AT_ROOT]


def chained(*parts: str) -> list[dict[int, list[int]]]:
    """The ranks that each rank sends to: the coordinator, the next of the chain, of the walk.

    Before these calls, rank 0 comes first to one, so it coordinates the next call.
    """
    before = ("-1:1", "-2:1")
    found = run("early.c", "allreduce", "0", *before, *parts, wrapped=SENDS, served=CHAIN)
    return [to_ranks(line) for line in found[len(before) :]]


def test_ranks_are_a_chain_in_the_order_of_their_arrival_and_the_last_one_begins_the_walk():
    """Rank 0 comes first and coordinates, then 5, 4, 3, 2 and 1; the walk is 1 3 4 5 0 2."""
    (told,) = chained("-2:1")
    assert {rank: told[rank] for rank in range(1, RANKS)} == {
        5: [0, 4, 0], 4: [0, 3, 5], 3: [0, 2, 4], 2: [0, 1], 1: [0, 3],
    }  # fmt: skip
    assert Counter(told[0]) == {1: 2, 2: 4, 3: 3, 4: 3, 5: 4}


def test_another_rank_coordinates_after_a_call_to_which_the_coordinator_came_late():
    """Rank 0 is late twice: in the first of these calls, all others tell it that they are here."""
    first, second = chained("0:1", "0:1")
    assert all(first[rank][0] == 0 for rank in range(1, RANKS))
    assert all(second[rank][0] == 1 for rank in range(RANKS) if rank != 1)
    assert len(second[0]) == 2, "rank 0 comes last: it begins the walk, and gives no sum"
