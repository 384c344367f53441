"""The measuring session and what it makes of commands, wrong ones above all."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.local import LocalLauncher
from tests.mpi import support

pytestmark = pytest.mark.mpi

MOST = 512
"""Routines that a command can name."""


@lru_cache
def session() -> Path:
    folder = support.scratch() / "session"
    topology = support.cluster(2)
    renderer = Renderer("a test", topology.name, topology.hash, support.CATALOGUE.hash)
    write_files(folder, measuring_sources(session_build(topology, support.CATALOGUE), renderer))
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
        "measure bcast 8 barrier 0 0 1 flat",
        "measure bcast 8 nonsense 0 0 1 1 flat",
        "measure bcast 8 barrier 0 0 0 1 flat",
        "measure bcast -8 barrier 0 0 1 1 flat",
        "measure nonsense 8 barrier 0 0 1 1 flat",
        "measure bcast 8 barrier 0 0 1 1 flat:nonsense=1",
        "check bcast nonsense",
        "check bcast :",
        "communicator 1",
        "communicator -1",
        "communicator 0 0",
        "communicator x",
        "communicator 0 x",
    ],
)
def test_a_wrong_command_is_told_and_the_next_one_answered(line):
    wrong, hello = answers(line, "hello")
    assert error(wrong)
    assert hello[0]["ranks"] == 1


@pytest.mark.parametrize("timing", ["mpptest", "barrier", "computation"])
@pytest.mark.parametrize("settle", [0, 1])
def test_a_time_for_each_repetition_of_each_routine(timing, settle):
    begin = monotonic()
    (times,) = answers(f"measure bcast 8 {timing} 1 {settle} 4 3 flat binomial")
    whole = monotonic() - begin
    assert [time["routine"] for time in times] == ["flat", "binomial"]
    assert all(len(time["seconds"]) == 3 for time in times)
    every = [seconds for time in times for seconds in time["seconds"]]
    assert min(every) >= 0
    assert 4 * sum(every) <= whole, "its time is the mean of its four calls"


#: What follows each of these is done on so many ranks.
COMMUNICATORS = {"communicator 3 1": 2, "communicator 4 2 0": 3, "communicator 2": 1,
                 "communicator": 5}  # fmt: skip


def test_some_ranks_check_and_time_and_the_others_wait(tmp_path):
    """Also where rank 0, which talks, is none of them."""
    lines = [
        line
        for command in COMMUNICATORS
        for line in (command, "check bcast flat", "measure bcast 64 barrier 0 1 2 3 flat native")
    ]
    (tmp_path / "commands").write_text("\n".join([*lines, "hello", "quit", ""]))
    with (tmp_path / "commands").open() as commands, (tmp_path / "answers").open("wb") as out:
        job = Job((str(session()),), {"LIBCOLL_PLACEMENT": "rank"})
        job = replace(job, streams=Streams(commands, out, subprocess.STDOUT))
        with LocalLauncher().start(job, support.cluster(5)) as running:
            assert running.wait(120) == 0
    found = [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]
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
