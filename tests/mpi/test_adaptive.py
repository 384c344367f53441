"""Calls that adapt: alike on all ranks, with the right results, bounded, and as the source says."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path

import jsonschema
import pytest

from tests.mpi import adapting, support
from tests.mpi.locales import decimal_commas

pytestmark = pytest.mark.mpi

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
SCHEMA = json.loads((SCHEMAS / "learned.schema.json").read_text(encoding="utf-8"))

#: Bytes at which the table's choice is the routine that turns slow: the last of all.
GUARDED = 65536

#: Faraj 2006, Table 4.13: sizes, and invocations until each selects; of `enhanced` by the group
#: that wins, as the ranks of a test need not choose what the source's cluster chose.
SIZES = (2 << 10, 128 << 10)
GOLDEN = {
    "alltoall": (90, {1: 50, 3: 60, 4: 60, 5: 60, 6: 60}),
    "allgather": (120, {1: 60, 2: 90, 3: 70, 4: 70, 5: 70, 6: 60}),
    "allgatherv": (120, {1: 60, 2: 90, 3: 70, 4: 70, 5: 70, 6: 60}),
    "allreduce": (200, {1: 70, 2: 110, 3: 80}),
}


def learn(tmp_path, *arguments: object, **variables: str):
    path = tmp_path / "learned.json"
    adapting.run(*arguments, LIBCOLL_LEARN=str(path), **variables)
    return adapting.learned(path)["situations"]


@pytest.mark.parametrize("policy", adapting.policies())
def test_random_calls_are_right_and_alike_on_all_ranks(policy):
    adapting.run("stress", 1200, 11, 200, LIBCOLL_ADAPTIVE=f"{policy},iter=2,sizes=3,bound=4")


@pytest.mark.slow
@pytest.mark.parametrize("policy", adapting.policies())
def test_a_million_random_calls_are_right(policy):
    calls = 1_000_000 // len(adapting.policies())
    settings = f"{policy},iter=3,bound=8"
    adapting.run("stress", calls, 5, 20, LIBCOLL_ADAPTIVE=settings, timeout=7200)


def test_random_calls_of_two_and_of_three_ranks_are_right():
    for ranks in (2, 3):
        adapting.run("stress", 300, 3, 0, ranks=ranks, LIBCOLL_ADAPTIVE="star,iter=2")


def test_threads_with_a_communicator_each_get_right_results():
    adapting.run("threads", 300, LIBCOLL_ADAPTIVE="star,iter=3,bound=4")


def _selected(tmp_path, collective: str, size: int, policy: str):
    settings = f"{policy},sites=1"
    (situation,) = learn(tmp_path, "same", collective, size, 225, LIBCOLL_ADAPTIVE=settings)
    return situation


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("collective", GOLDEN)
def test_basic_selects_after_as_many_calls_as_the_source_says(tmp_path, collective, size):
    calls, _ = GOLDEN[collective]
    situation = _selected(tmp_path, collective, size, "star-basic")
    assert situation["selected_after"] == calls
    assert len(situation["candidates"]) == calls // 10
    assert [one["is_monitoring"] for one in situation["stages"][: calls // 10]] == [False] * (
        calls // 10
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("collective", GOLDEN)
def test_enhanced_selects_after_as_many_calls_as_the_source_says(tmp_path, collective, size):
    """Representatives are not measured again: 50, 60 and 110 calls are those of Table 4.13."""
    _, calls = GOLDEN[collective]
    situation = _selected(tmp_path, collective, size, "star-enhanced")
    searching = takewhile(lambda one: not one["is_monitoring"], situation["stages"])
    tried = [one["candidate"] for one in searching]
    assert len(tried) == len(set(tried))
    groups = [situation["candidates"][one]["group"] for one in tried]
    alone = [group for group in calls if calls[group] == 10 * len(calls)]
    expected = [calls[groups[-1]]] if len(groups) > len(calls) else [calls[one] for one in alone]
    assert situation["selected_after"] == 10 * len(tried)
    assert situation["selected_after"] in expected
    representatives = [situation["candidates"][one] for one in tried[: len(calls)]]
    assert all(one["is_representative"] for one in representatives)


@pytest.mark.parametrize("setting", ["no-such-policy", "star,iter=0", "star,what=1", "star,iter"])
def test_an_unknown_setting_is_reported_once_and_the_table_serves(tmp_path, setting):
    path = tmp_path / "learned.json"
    result = adapting.run(
        "same", "bcast", 100, 5, LIBCOLL_ADAPTIVE=setting, LIBCOLL_LEARN=str(path)
    )
    assert result.stderr.count("LIBCOLL_ADAPTIVE") == 1, result.stderr
    assert not path.exists()


def test_sites_that_take_turns_adapt_apart_until_a_rank_calls_from_elsewhere(tmp_path):
    """Rank 1 takes turns between two other lines then, so sites are apart once more."""
    situations = learn(tmp_path, "sites", 120, LIBCOLL_ADAPTIVE="star-basic,iter=4,bound=2")
    whole, *apart = situations
    assert whole["site"] is None
    assert len(apart) == 4
    assert len({one["site"] for one in apart}) == 2
    assert all(one["site"].startswith("adaptive+0x") for one in apart)
    assert 16 <= whole["calls"] < 100
    assert sum(one["calls"] for one in apart[:2]) >= 80
    assert sum(one["calls"] for one in apart[2:]) >= 60


@pytest.mark.parametrize("policy", ["star", "star-basic,iter=5"])
@pytest.mark.parametrize(
    ("before", "period"),
    [("", "ab"), ("c", "ab"), ("abccba", "ab"), ("", "ababc"), ("b", "aabbaac")],
)
def test_a_period_is_found_behind_other_calls_and_not_a_part_of_it(
    tmp_path, policy, before, period
):
    """Each site's situation has the calls of its places in the period."""
    times = 40
    _, *apart = learn(tmp_path, "sequence", before, period, times, LIBCOLL_ADAPTIVE=policy)
    calls = {one["site"]: one["calls"] for one in apart}
    assert len(calls) == len(apart) == len(set(period))
    expected = sorted(period.count(line) * times for line in set(period))
    for found, most in zip(sorted(calls.values()), expected, strict=True):
        assert most // 3 <= found <= most


def test_sites_are_found_after_ranks_have_called_from_anywhere(tmp_path):
    """Ranks that differ have no period, so nothing is used up."""
    whole, *apart = learn(tmp_path, "astray", 400, LIBCOLL_ADAPTIVE="star-basic,iter=4,bound=2")
    assert 180 <= whole["calls"] < 300
    assert whole["is_paused"]
    assert len({one["site"] for one in apart}) == len(apart) == 2
    assert sum(one["calls"] for one in apart) >= 80


@pytest.mark.parametrize("times", [3, 6])
def test_after_four_periods_that_a_rank_left_sites_are_off(tmp_path, times):
    settings = "star-basic,iter=4,bound=2"
    whole, *apart = learn(tmp_path, "leaving", times, LIBCOLL_ADAPTIVE=settings)
    assert len(apart) == 2 * min(times, 4)
    assert not whole["is_paused"] or times < 4
    assert len({one["site"] for one in apart}) == 2


@pytest.mark.parametrize("seed", range(6))
def test_what_serves_in_the_end_was_selected(tmp_path, seed):
    """A candidate that is only looked at once more is not what serves."""
    settings = f"star,sites=0,iter=2,bound=2,seed={seed}"
    (one,) = learn(tmp_path, "same", "allgather", 256, 120, LIBCOLL_ADAPTIVE=settings)
    *_, last = one["stages"]
    monitored = {stage["candidate"] for stage in one["stages"] if stage["is_monitoring"]}
    assert not monitored or one["current"] in monitored or last["decision"] == "drawn again"


@pytest.mark.parametrize("collective", ["bcast", "reduce", "alltoall", "allreduce"])
def test_with_a_root_the_rank_that_takes_longest_decides(tmp_path, collective):
    """Some ranks leave such a call before it has ended, so a mean would say little."""
    settings = "star-basic,iter=3,sites=0"
    (one,) = learn(tmp_path, "same", collective, 2000, 80, LIBCOLL_ADAPTIVE=settings)
    heard = one["decided_by"]
    assert heard == ("max" if collective in ("bcast", "reduce") else "mean")
    searching = list(takewhile(lambda stage: not stage["is_monitoring"], one["stages"]))
    least = {stage["candidate"]: min(stage[f"{heard}_s"]) for stage in searching}
    first = one["stages"][len(searching)]
    assert first["candidate"] == min(least, key=least.__getitem__)


def test_the_file_is_json_and_settings_are_read_in_a_locale_with_decimal_commas(tmp_path):
    variables = {"LIBCOLL_ADAPTIVE": "star,iter=2,epsilon=0.25", **decimal_commas(tmp_path)}
    path = tmp_path / "learned.json"
    adapting.run("same", "alltoall", 256, 30, LIBCOLL_LEARN=str(path), **variables)
    found = adapting.learned(path)
    jsonschema.validate(found, SCHEMA)
    assert found["settings"]["epsilon"] == 0.25


def test_short_calls_of_a_new_communicator_are_native_first(tmp_path):
    """As without adapting: a duplicate takes longer than some of them."""
    program = adapting.program("short_calls.c")
    variables = {"LIBCOLL_ADAPTIVE": "star", "LIBCOLL_SHORT_CALLS": "", "LIBCOLL_TRACE": "1"}
    few = adapting.run("d" + "s" * 10, of=program, **variables).stderr
    assert "no private duplicate" in few
    assert "; a private duplicate" not in few
    many = adapting.run("d" + "s" * 30, of=program, **variables).stderr
    assert "; a private duplicate" in many


def test_where_a_rank_has_no_memory_nothing_adapts_any_more(tmp_path):
    """The others know before the first stage, so no rank waits for another."""
    program = adapting.program("unadaptable.c", "-Wl,--wrap=calloc")
    variables = {"LIBCOLL_ADAPTIVE": "star-basic,iter=2", "LIBCOLL_LEARN": str(tmp_path / "l.json")}
    adapting.run(of=program, **variables)
    situations = adapting.learned(tmp_path / "l.json")["situations"]
    assert [one["bytes"] for one in situations if one["collective"] == "alltoall"] == [64]


def test_with_no_site_allowed_sites_do_not_count(tmp_path):
    situations = learn(tmp_path, "sites", 60, LIBCOLL_ADAPTIVE="star-basic,iter=4,sites=0")
    assert [one["site"] for one in situations] == [None]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_sites_beyond_the_limit_are_left_to_the_table(tmp_path, most):
    path = tmp_path / "learned.json"
    settings = f"star-basic,iter=4,sites={most}"
    result = adapting.run("turns", 60, LIBCOLL_ADAPTIVE=settings, LIBCOLL_LEARN=str(path))
    others = [int(word) for word in result.stdout.split()]
    assert [count > 0 for count in others] == [line < most for line in range(3)]
    _, *apart = adapting.learned(path)["situations"]
    assert len({one["site"] for one in apart}) == len(apart) == most


def test_sizes_beyond_the_limit_are_left_to_the_table(tmp_path):
    situations = learn(
        tmp_path, "stress", 400, 1, 0, LIBCOLL_ADAPTIVE="star,iter=2,sizes=2,sites=0"
    )
    sizes = {}
    for one in situations:
        sizes.setdefault((one["collective"], one["number"]), set()).add(one["bytes"])
    assert max(map(len, sizes.values())) == 2


def test_reductions_that_must_be_deterministic_do_not_adapt(tmp_path):
    variables = {"LIBCOLL_ADAPTIVE": "star,iter=2", "LIBCOLL_DETERMINISTIC": "1"}
    assert not learn(tmp_path, "same", "allreduce", 256, 30, **variables)
    (tmp_path / "learned.json").unlink()
    assert learn(tmp_path, "same", "alltoall", 256, 30, **variables)


def test_no_candidate_takes_more_memory_than_it_may(tmp_path):
    """Mesh and bruck need 3 times the data of an alltoall; ring and pair need none."""
    settings = {"LIBCOLL_ADAPTIVE": "star-basic,iter=2", "LIBCOLL_SCRATCH": "64"}
    (situation,) = learn(tmp_path, "same", "alltoall", 256, 40, **settings)
    names = {one["algorithm"] for one in situation["candidates"]}
    assert {"ring", "pair", "simple"} <= names
    assert not {"mesh_2d", "mesh_3d", "bruck"} & names


def test_ranks_that_differ_in_the_setting_are_native_and_reported(tmp_path):
    pick = 'LIBCOLL_ADAPTIVE=$([ "$PMI_RANK" = 1 ] && echo star || echo star-basic) exec "$@"'
    words = ("/bin/sh", "-c", pick, "sh", adapting.program(), "same", "alltoall", "64", "20")
    path = tmp_path / "learned.json"
    result = support.run(adapting.RANKS, *words, variables={"LIBCOLL_LEARN": str(path)})
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("LIBCOLL_ADAPTIVE") == 1
    assert not adapting.learned(path)["situations"]


#: What a call may take longer while it is monitored, in nanoseconds.
ADDED_MOST = 60


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("policy", ["star-basic,iter=64,bound=64", "star", "guard"])
def test_monitoring_adds_few_nanoseconds_to_a_call(policy, lines):
    """The table's choice does nothing; one rank alone can be disturbed, so the least counts."""
    best = {}
    for adaptive in ("0", policy) * 5:
        result = adapting.run("nothing", 20_000, lines, LIBCOLL_ADAPTIVE=adaptive)
        best[adaptive] = min(float(result.stdout), best.get(adaptive, 1e9))
    plain, monitored = best.values()
    assert monitored - plain < ADDED_MOST, best


#: A period that is slow ends long stages. Where other programs run, calls vary.
NEVER_SLOW = "epsilon=10"


def test_long_stages_tell_few_numbers(tmp_path):
    """All but the last ITER calls are told as at most 32 means. Each call still has a time."""
    settings = f"star-basic,iter=4,bound=64,{NEVER_SLOW}"
    (situation,) = learn(tmp_path, "same", "alltoall", 256, 900, LIBCOLL_ADAPTIVE=settings)
    longest = max(situation["stages"], key=lambda one: one["calls"])
    assert longest["calls"] > 100
    assert len(longest["mean_s"]) == len(longest["max_s"]) == longest["calls"]
    early, last = longest["mean_s"][:-4], longest["mean_s"][-4:]
    assert 16 < len(set(early)) <= 32
    assert len(set(last)) == 4
    pairs = zip(longest["mean_s"], longest["max_s"], strict=True)
    assert all(0 < mean <= most for mean, most in pairs)
    short = [one for one in situation["stages"] if one["calls"] == 4]
    assert all(len(set(one["mean_s"])) == 4 for one in short)


def test_the_skew_of_a_long_stage_is_that_of_its_calls(tmp_path):
    """Ranks that are late in turn have equal means."""
    settings = f"star-basic,iter=4,bound=16,{NEVER_SLOW}"
    arguments = ("alternating", 300)
    (situation,) = learn(tmp_path, *arguments, LIBCOLL_ADAPTIVE=settings)
    longest = max(situation["stages"], key=lambda one: one["calls"])
    assert longest["calls"] >= 64
    assert longest["skew_s"] > 0.0015


@pytest.mark.parametrize("policy", ["star-basic,iter=2", "guard"])
def test_meetings_of_the_search_are_counted_apart(tmp_path, policy):
    (situation,) = learn(tmp_path, "same", "alltoall", 256, 400, LIBCOLL_ADAPTIVE=policy)
    searching, all_meetings = situation["search_s"], situation["meetings_s"]
    assert 0 < searching < all_meetings, "a situation begins with a meeting"


def test_the_file_of_what_was_learned_is_as_its_schema_says(tmp_path):
    for policy in adapting.policies():
        path = tmp_path / f"{policy}.json"
        settings = f"{policy},iter=2,bound=4"
        adapting.run("stress", 200, 7, 0, LIBCOLL_ADAPTIVE=settings, LIBCOLL_LEARN=str(path))
        learned = adapting.learned(path)
        jsonschema.validate(learned, SCHEMA)
        assert learned["situations"]


def test_without_a_policy_nothing_is_written(tmp_path):
    path = tmp_path / "learned.json"
    adapting.run("stress", 50, 7, 0, LIBCOLL_LEARN=str(path))
    assert not path.exists()


def test_each_rank_may_write_what_its_communicators_learned(tmp_path):
    pattern = str(tmp_path / "learned-%r.json")
    adapting.run("stress", 300, 7, 0, LIBCOLL_ADAPTIVE="star,iter=2", LIBCOLL_LEARN=pattern)
    files = [adapting.learned(tmp_path / f"learned-{rank}.json") for rank in range(adapting.RANKS)]
    assert files[0]["situations"]
    assert files[1]["situations"]


#: Links a program that counts the library's requests.
WRAPS = tuple(
    f"-Wl,--wrap={name}" for name in ("PMPI_Ireduce", "PMPI_Ibcast", "PMPI_Wait", "PMPI_Comm_free")
)


@pytest.mark.parametrize("calls", [5, 6, 7, 10, 13, 16])
@pytest.mark.parametrize("end", ["free", "keep", "two"])
def test_no_meeting_goes_on_when_a_communicator_or_mpi_ends(end, calls):
    """A period has five calls, and two more pass until its meeting has ended."""
    program = adapting.program("adaptive_pending.c", *WRAPS)
    result = adapting.run(end, calls, of=program, LIBCOLL_ADAPTIVE="guard,sites=0")
    assert "not so" not in result.stderr


def passed_of(situation):
    """How many calls passed while the meetings after short stages went on, that no stage heard."""
    return {one["calls"] - len(one["mean_s"]) for one in situation["stages"] if one["mean_s"]}


def test_guard_leaves_a_routine_that_turns_slow_and_says_so(tmp_path):
    """From the 500th call on, it sleeps for 20 ms in each. A period may have hundreds of calls."""
    path = tmp_path / "learned.json"
    result = adapting.run(
        *("same", "alltoall", GUARDED, 2000),
        **{"LIBCOLL_ADAPTIVE": "guard", "LIBCOLL_LEARN": str(path)},
    )
    (situation,) = adapting.learned(path)["situations"]
    assert situation["candidates"][0]["algorithm"] == "turncoat"
    latest = situation["stages"][-16:]
    others = sum(stage["calls"] for stage in latest if stage["candidate"] != 0)
    assert others > sum(stage["calls"] for stage in latest) / 2, "it may be tried again"
    (line,) = result.stderr.splitlines()
    assert line.startswith("libcoll: guard: 1 of 1 situations left the table's choice, and 0 of")
    assert passed_of(situation) <= {0, 2}
    assert 2 in passed_of(situation), "the meeting after the period before the trial"
    assert "from turncoat to " in line
