"""The measuring session and what it makes of commands, wrong ones above all."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from subprocess import PIPE
from time import monotonic
from typing import Any

import pytest

from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.generate.timings import Mechanism
from stagegen.measure.arrivals import Imbalance
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.machines import as_ranges, machines_of
from stagegen.measure.session import Session
from tests.mpi import support

pytestmark = pytest.mark.mpi

MOST = 512
"""Routines that a command can name."""


#: Mechanisms that give numbers in place of times.
RANKED = """
#include "timing.h"

/* On rank r, call i takes (r + 1) (i + 1) s. */
static int repeat(const struct timed *timed, double *seconds) {
    int rank;
    TIMING_TRY(PMPI_Comm_rank(timed->comm, &rank));
    for (long i = 0; i < timed->calls; ++i)
        seconds[i] = (rank + 1.0) * ((double)i + 1.0);
    return MPI_SUCCESS;
}

const struct timing by_ranked = {.name = "ranked", .each_call = 1, .repeat = repeat};
"""
TELLING = """
#include "timing.h"

/* Its time of all calls is the bound and, as a fraction, the seconds of the computation. */
static int repeat(const struct timed *timed, double *seconds) {
    *seconds = (double)timed->bound + timed->computation;
    return MPI_SUCCESS;
}

const struct timing by_telling = {.name = "telling", .each_call = 0, .repeat = repeat};
"""
PLANNED = """
#include "timing.h"

/* No rank waits: rank r comes as late as it should, and goes 10 + r seconds after the meeting. */
static int repeat(const struct timed *timed, double *seconds) {
    int rank;
    TIMING_TRY(PMPI_Comm_rank(timed->comm, &rank));
    for (long i = 0; i < timed->calls; ++i) {
        timed->arrivals[i] = timed->delays[i];
        seconds[i] = 10.0 + rank - timed->delays[i];
    }
    return MPI_SUCCESS;
}

const struct timing by_planned = {.name = "planned", .each_call = 1, .late = 1, .repeat = repeat};
"""
OWN = (
    Mechanism("planned", PLANNED, Path("planned.c")),
    Mechanism("ranked", RANKED, Path("ranked.c")),
    Mechanism("telling", TELLING, Path("telling.c")),
)


@lru_cache
def session() -> Path:
    folder = support.scratch() / "session"
    topology = support.cluster(2)
    renderer = Renderer("a test", topology.name, topology.hash, support.CATALOGUE.hash)
    build = session_build(topology, support.CATALOGUE)
    write_files(folder, measuring_sources(build, renderer, OWN))
    run_make(folder, support.toolchain())
    return folder / "session"


def answers(*lines: str, end: str = "\n") -> list[list[dict[str, Any]]]:
    """Run a session on a single rank; return the answers to each command."""
    text = "\n".join(lines) + end
    result = subprocess.run(
        [session()], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    found: list[list[dict[str, Any]]] = [[]]
    for line in result.stdout.splitlines():
        answer = json.loads(line)
        if answer == {"done": True}:
            found.append([])
        else:
            found[-1].append(answer)
    assert not found.pop()
    return found


def together(folder: Path, ranks: int, *lines: str) -> list[dict[str, Any]]:
    """Run a session on several ranks; return the answers to all commands."""
    (folder / "commands").write_text("\n".join([*lines, "quit", ""]))
    with (folder / "commands").open() as commands, (folder / "answers").open("wb") as out:
        job = Job((str(session()),), {"LIBCOLL_PLACEMENT": "rank"})
        job = replace(job, streams=Streams(commands, out, subprocess.STDOUT))
        with LocalLauncher().start(job, support.cluster(ranks)) as running:
            assert running.wait(120) == 0
    return [json.loads(line) for line in (folder / "answers").read_text().splitlines()]


def error(answer: list[dict[str, Any]]) -> str:
    assert len(answer) == 1
    return answer[0]["error"]


@pytest.mark.parametrize("count", [MOST + 1, MOST + 2])
def test_more_routines_than_there_is_room_for_are_refused(count):
    wrong, hello = answers("check bcast" + " flat" * count, "hello")
    assert "too many routines" in error(wrong)
    assert hello[0]["ranks"] == 1


def test_as_many_routines_as_there_is_room_for_are_checked():
    (checked,) = answers("check bcast" + " flat" * MOST)
    assert len(checked) == MOST


def test_a_long_line_is_one_wrong_command():
    line = "check bcast" + " flat" * 15000
    wrong, hello = answers(line, "hello")
    assert "unknown command" in error(wrong)
    assert hello[0]["ranks"] == 1


def test_the_last_line_needs_no_end():
    (hello,) = answers("hello", end="")
    assert hello[0]["ranks"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "measure bcast 8 barrier 0 0 1 1 flat",
        "measure bcast 8 nonsense 0 slowest 0 1 1 flat",
        "measure bcast 8 barrier 0 nonsense 0 1 1 flat",
        "measure bcast 8 barrier -1 slowest 0 1 1 flat",
        "measure bcast 8 barrier nan slowest 0 1 1 flat",
        "measure bcast 8 barrier 0 slowest 0 0 1 flat",
        "measure bcast -8 barrier 0 slowest 0 1 1 flat",
        "measure nonsense 8 barrier 0 slowest 0 1 1 flat",
        "measure bcast 8 barrier 0 slowest 0 1 1 flat:nonsense=1",
        "check bcast nonsense",
        "check bcast :",
        "measure bcast 8 imbalance 0 mean 0 1 1 flat",
        "measure bcast 8 imbalance: 0 mean 0 1 1 flat",
        "measure bcast 8 imbalance:unit=1:most=-1:seed=1:first=0 0 mean 0 1 1 flat",
        "measure bcast 8 imbalance:unit=-1:most=1:seed=1:first=0 0 mean 0 1 1 flat",
        "measure bcast 8 imbalance:unit=1:most=1:seed=1:first=0x 0 mean 0 1 1 flat",
        "measure bcast 8 imbalance:unit=1:most=1:seed=1:first=0 0 slowest 0 1 1 flat",
        "measure bcast 8 barrier:unit=1:most=1:seed=1:first=0 0 mean 0 1 1 flat",
        "measure bcast 8 barrier 0 last 0 1 1 flat",
        "measure bcast 8 replay:unit=0:most=0:seed=0:first=0 0 mean 0 1 1 flat",
        "delays 0 1 5",
        "delays 1 0 5",
        "delays 0 0 -5",
        "delays 0 0 nan",
        "delays 0 0 x",
        "delays 0 0",
        "message bcast",
        "message bcast -1",
        "message nonsense 8",
        "communicator 1",
        "communicator -1",
        "communicator 0 0",
        "communicator x",
        "communicator 0 x",
    ],
)
def test_a_wrong_command_is_reported_and_the_next_one_answered(line):
    wrong, hello = answers(line, "hello")
    assert error(wrong)
    assert hello[0]["ranks"] == 1


def test_a_rank_reports_where_it_runs(monkeypatch):
    """It reports variables of MPI libraries, whatever bytes they have, and no others."""
    monkeypatch.setenv("FI_STAGEGEN", 'a "quoted"\\ tab\t, \xe4')
    monkeypatch.setenv("UNRELATED_FI_X", "1")
    monkeypatch.setenv("MPIR_CVAR_COLLECTIVE_FALLBACK", "error")
    (told,), (hello,) = answers("environment", "hello")
    assert (told["rank"], told["host"]) == (0, socket.gethostname())
    assert told["kernel"] == platform.release()
    assert {cpu for cpu, _ in told["cpus"]} == os.sched_getaffinity(0)
    tcp = Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()
    assert told["network"]["ipv4.tcp_rmem"].split(" ") == tcp
    assert told["variables"]["FI_STAGEGEN"].startswith('a "quoted"\\ tab\t, ')
    assert "UNRELATED_FI_X" not in told["variables"]
    assert told["controls"]["MPIR_CVAR_COLLECTIVE_FALLBACK"] != ""
    assert hello["ranks"] == 1
    (machine,) = machines_of([told])
    assert machine.ranks == 1 <= machine.cores


def test_all_ranks_report_where_they_run_even_on_fewer_cpus(tmp_path):
    """Rank 1 is bound to a single CPU by its parent."""
    cpu = min(os.sched_getaffinity(0))
    script = f'[ "$PMI_RANK" = 1 ] && exec taskset -c {cpu} "$0" || exec "$0"'
    job = Job(("sh", "-c", script, str(session())), streams=Streams(PIPE, PIPE))
    with closing(Session(LocalLauncher().start(job, support.cluster(2)))) as running:
        (machine,) = running.environment()
    assert (machine.hosts, machine.ranks) == ((socket.gethostname(),), 2)
    assert machine.binding == (as_ranges(os.sched_getaffinity(0)), str(cpu))


@pytest.mark.parametrize("timing", ["mpptest", "barrier", "computation"])
@pytest.mark.parametrize("settle", [0, 1])
def test_each_repetition_of_each_routine_has_a_time(timing, settle):
    begin = monotonic()
    (times,) = answers(f"measure bcast 8 {timing} 0.5 slowest {settle} 4 3 flat binomial")
    whole = monotonic() - begin
    assert [time["routine"] for time in times] == ["flat", "binomial"]
    assert all(len(time["seconds"]) == 3 for time in times)
    every = [seconds for time in times for seconds in time["seconds"]]
    assert min(every) >= 0
    assert 4 * sum(every) <= whole, "its time is the mean of its four calls"


def test_each_rank_says_once_how_much_it_computes():
    found = answers("calibrate", "measure bcast 8 telling 10 slowest 0 1 2 flat", "calibrate")
    (first,), (measured,), (second,) = found
    (rate,) = first["rates"]
    assert second == first
    assert len(str(rate).rstrip("0")) <= 2, "two digits count"
    assert measured["seconds"] == [10 * rate + 0.01] * 2


#: The times of three calls on ranks 0 to 2: 1, 2, 3 times as long on each next one.
METRICS = {"slowest": 3 * (1 + 2 + 3) / 3, "mean": 2 * (1 + 2 + 3) / 3}


def test_the_slowest_rank_or_the_mean_over_the_ranks_counts(tmp_path):
    lines = [f"measure bcast 8 ranked 0 {metric} 0 3 2 flat native" for metric in METRICS]
    found = [one["seconds"] for one in together(tmp_path, 3, *lines) if "seconds" in one]
    assert found == [[METRICS["slowest"]] * 2] * 2 + [[METRICS["mean"]] * 2] * 2


#: What follows each of these is done on so many ranks.
COMMUNICATORS = {"communicator 3 1": 2, "communicator 4 2 0": 3, "communicator 2": 1,
                 "communicator": 5}  # fmt: skip


def test_some_ranks_check_and_time_and_the_others_wait(tmp_path):
    """Also where rank 0, which talks, is none of them."""
    lines = [
        line
        for command in COMMUNICATORS
        for line in (
            command,
            "check bcast flat",
            "measure bcast 64 barrier 0 slowest 1 2 3 flat native",
        )
    ]
    found = together(tmp_path, 5, *lines, "hello")
    checks = [one for one in found if "cases" in one]
    times = [one["seconds"] for one in found if "seconds" in one]
    assert all(one["cases"] > 0 and one["wrong"] == 0 for one in checks)
    assert len(checks) == len(COMMUNICATORS)
    assert [len(seconds) for seconds in times] == [3] * 2 * len(COMMUNICATORS)
    assert all(
        all(seconds)
        for seconds, ranks in zip(times[::2], COMMUNICATORS.values(), strict=True)
        if ranks > 1
    )
    assert not [one for one in found if "error" in one]


#: Of pairs, blocks of 5 and 3000 bytes as they are, and twice as long; then those of an allgatherv.
BLOCKS = (
    "communicator",
    "blocks 0 1 5 2 3000",
    "blocks 2 0 700 2 9",
    "measure alltoallv 618 barrier 0 slowest 1 2 3 pair native own_windows",
    "measure alltoallv 1235 barrier 0 slowest 1 2 3 pair native",
    "communicator",
    "blocks 0 0 1 1 100",
    "measure allgatherv 5000 barrier 0 slowest 1 2 3 pipelined_ring native",
)


def test_blocks_that_a_command_gives_are_timed(tmp_path):
    found = together(tmp_path, 3, *BLOCKS)
    assert not [one for one in found if "error" in one]
    assert [len(one["seconds"]) for one in found if "seconds" in one] == [3] * 7


@pytest.mark.parametrize("line", ["blocks 3 0 1", "blocks 0 x", "blocks 0 1 -1", "blocks 0 9 1"])
def test_wrong_blocks_are_reported(tmp_path, line):
    (wrong,) = (one for one in together(tmp_path, 3, line) if "error" in one)
    assert "not blocks" in wrong["error"]


RANKS, CALLS, EXPERIMENTS = 3, 2, 4


def late_lists(delays: list[list[float]]) -> dict[str, list[float]]:
    """What ``planned`` should give for the delays of each rank in each experiment, in seconds."""
    exits = [10.0 + rank for rank in range(RANKS)]
    return {
        "mean": [fmean(e - d for e, d in zip(exits, late, strict=True)) for late in delays],
        "last": [max(exits) - max(late) for late in delays],
        "spread": [max(late) - min(late) for late in delays],
    }


@pytest.mark.parametrize("metric", ["mean", "last"])
def test_all_routines_meet_the_delays_that_seed_experiment_and_rank_decide(tmp_path, metric):
    """The draws are those of :class:`Imbalance`; the metrics, those of an oracle."""
    plan, first = Imbalance(1000, False, seed=12345678901234567890 % (1 << 63)), 3_000_007
    word = plan.word(first, None).replace("imbalance", "planned")
    command = f"measure bcast 8 {word} 0 {metric} 0 {CALLS} {EXPERIMENTS} flat native"
    found = [one for one in together(tmp_path, RANKS, command) if "seconds" in one]
    assert [one["routine"] for one in found] == ["flat", "native"]
    drawn = [
        [1e-6 * plan.draw(first + experiment, rank) for rank in range(RANKS)]
        for experiment in range(EXPERIMENTS)
    ]
    expected = late_lists(drawn)
    for one in found:
        for name, values in expected.items():
            assert one[name] == pytest.approx(values, abs=1e-8)
        assert one["seconds"] == one[metric]
        assert (one["behind"], one["clock_error"]) == (0, 0)


def test_a_recording_is_replayed_call_by_call_and_only_on_as_many_ranks(tmp_path):
    """Four recorded calls, three experiments of two calls: the fifth call is the first again.

    Rank 2 is so late that the first one's call takes as long; the time after the last arrival does
    not have that in it.
    """
    calls = [[0, 5, 9000000], [7, 0, 9], [1, 1, 0], [0, 4, 4]]
    give = [f"delays {call} {rank} {late}" for call, late_of in enumerate(calls)
            for rank, late in enumerate(late_of)]  # fmt: skip
    measure = "measure bcast 8 planned:unit=0:most=0:seed=0:first=0 0 last 0 2 3 flat"
    lines = [*give, measure, "communicator 0 1", measure]
    *found, last = (one for one in together(tmp_path, RANKS, *lines) if "done" not in one)
    assert "no delays for these ranks" in last["error"]
    (one,) = found
    used = [[1e-6 * late for late in calls[i % len(calls)]] for i in range(6)]
    each = late_lists(used)
    for name, values in each.items():
        means = [fmean(values[i : i + 2]) for i in (0, 2, 4)]
        assert one[name] == pytest.approx(means, abs=1e-8)
    slowest = max(10.0 + rank - late for rank, late in enumerate(used[0]))
    assert slowest > 10.9 > 3.1 > each["last"][0]


def test_ranks_wait_for_their_delays_on_the_clock_that_they_share(tmp_path):
    """What is drawn and what happens differ by what is reported, and by no more."""
    plan = Imbalance(20000, False, seed=3)
    command = f"measure allreduce 8 {plan.word(0, None)} 0 mean 1 2 3 native recursive_doubling"
    found = [one for one in together(tmp_path, RANKS, command) if "seconds" in one]
    for one in found:
        for experiment, spread in enumerate(one["spread"]):
            drawn = [1e-6 * plan.draw(experiment, rank) for rank in range(RANKS)]
            assert abs(spread - (max(drawn) - min(drawn))) <= one["behind"] + 1e-8
            assert one["mean"][experiment] >= max(drawn) - fmean(drawn) - one["behind"]
        assert one["clock_error"] == 0, "all ranks are on one kernel"


def test_the_time_of_a_message_is_of_the_operation_s_size(tmp_path):
    lines = ["message bcast 4096", "message reduce_scatter 4096", "message barrier 0"]
    found = [one for one in together(tmp_path, 4, *lines) if "message" in one]
    assert [one["bytes"] for one in found] == [4096, 1024, 0]
    assert all(one["message"] > 0 for one in found)


#: Rank 1 lives in a time namespace of its own, whose clock is ahead by 1000 s.
AHEAD = ("unshare", "--time", "--monotonic", "1000", "--fork")


@pytest.mark.skipif(
    subprocess.run([*AHEAD, "true"], capture_output=True, check=False).returncode != 0,
    reason="no time namespaces here",
)
def test_ranks_whose_clocks_differ_meet_at_the_same_time(tmp_path):
    """Up to the error that is reported: with a wrong clock they would differ by 1000 s."""
    plan = Imbalance(5000, False, seed=5)
    script = f'[ "$PMI_RANK" = 1 ] && exec {" ".join(AHEAD)} "$0" || exec "$0"'
    command = f"measure allreduce 8 {plan.word(0, None)} 0 last 0 2 3 native"
    (tmp_path / "commands").write_text(f"{command}\nquit\n")
    with (tmp_path / "commands").open() as commands, (tmp_path / "answers").open("wb") as out:
        job = Job(("sh", "-c", script, str(session())), {"LIBCOLL_PLACEMENT": "rank"})
        job = replace(job, streams=Streams(commands, out, subprocess.STDOUT))
        with LocalLauncher().start(job, support.cluster(RANKS)) as running:
            assert running.wait(120) == 0
    (one, _) = map(json.loads, (tmp_path / "answers").read_text().splitlines())
    assert 0 < one["clock_error"] < 1
    for experiment, spread in enumerate(one["spread"]):
        drawn = [1e-6 * plan.draw(experiment, rank) for rank in range(RANKS)]
        error = one["behind"] + 2 * one["clock_error"] + 1e-8
        assert abs(spread - (max(drawn) - min(drawn))) <= error
    assert all(seconds < 100 for seconds in one["last"])


#: Times that each communicator's ranks have by themselves: see ``RANKED``.
AT_ONCE = (
    "communicator 4 2 | 0 1 3",
    "measure bcast 8 ranked 0 slowest 0 3 2 flat native"
    " | allgather 64 ranked 0 mean 0 2 1 ring bruck native",
    "measure bcast 1024 barrier 0 slowest 1 2 3 binomial"
    " | alltoall 4096 barrier 0 slowest 1 3 2 pair",
)


def test_communicators_time_at_the_same_time_what_the_command_gives_each(tmp_path):
    found = [one for one in together(tmp_path, 5, *AT_ONCE) if "done" not in one]
    assert [one["routine"] for one in found[:5]] == ["flat", "native", "ring", "bruck", "native"]
    assert [one["seconds"] for one in found[:2]] == [[2 * (1 + 2 + 3) / 3] * 2] * 2
    assert [one["seconds"] for one in found[2:5]] == [[2 * (1 + 2) / 2]] * 3
    first, second = found[5:]
    assert (len(first["seconds"]), len(second["seconds"])) == (3, 2)
    assert min(*first["seconds"], *second["seconds"]) > 0


def test_a_session_makes_more_sets_of_communicators_than_it_keeps(tmp_path):
    """Each set after the others, and then all again, when the session has forgotten some."""
    sets = [f"{a} {b}" for a in range(5) for b in range(5) if a != b]
    sets += [f"{a} | {b} {c}" for a, b, c in ((0, 1, 2), (4, 3, 0), (2, 0, 4))]
    lines = []
    for ranks in [*sets, *sets[:3], *sets]:
        measured = " | ".join(["bcast 8 ranked 0 slowest 0 1 1 flat"] * len(ranks.split("|")))
        lines += [f"communicator {ranks}", f"measure {measured}"]
    found = [one for one in together(tmp_path, 5, *lines) if "done" not in one]
    expected = [
        [float(len(some.split()))]
        for ranks in [*sets, *sets[:3], *sets]
        for some in ranks.split("|")
    ]
    assert [one["seconds"] for one in found] == expected


def test_after_several_communicators_one_checks_and_times_again(tmp_path):
    single = "measure bcast 8 ranked 0 mean 0 1 1 flat"
    lines = [*AT_ONCE, "communicator 1 3", "check bcast flat", single]
    *_, check, measured = (one for one in together(tmp_path, 5, *lines) if "done" not in one)
    assert check["wrong"] == 0 < check["cases"]
    assert measured["seconds"] == [1.5]


SINGLE = "bcast 8 barrier 0 slowest 0 1 1 flat"
LATE = "bcast 8 imbalance:unit=1:most=2:seed=1:first=0 0 last 0 1 1 flat"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"measure {SINGLE}", "more communicators than requests"),
        (f"measure {SINGLE} | {SINGLE} | {SINGLE}", "more requests than communicators"),
        (f"measure {SINGLE} | nonsense", "not a measure command"),
        (f"measure {SINGLE} | {SINGLE} nonsense", "unknown routine"),
        (f"measure {SINGLE} | {LATE}", "late"),
        ("check bcast flat", "several communicators"),
        ("message bcast 8", "several communicators"),
        ("blocks 0 1 5", "several communicators"),
        ("communicator 0 1 | 1 2", "different ranks"),
        ("communicator 0 1 |", "different ranks"),
        ("communicator | 0 1", "different ranks"),
        ("communicator 0 | x", "different ranks"),
    ],
)  # fmt: skip
def test_what_several_communicators_cannot_do_is_reported_and_the_session_goes_on(
    tmp_path, line, told
):
    lines = ["communicator 0 2 | 1", line, "communicator", f"measure {SINGLE}"]
    wrong, right = (one for one in together(tmp_path, 3, *lines) if "done" not in one)
    assert told in wrong["error"]
    assert right["routine"] == "flat"
