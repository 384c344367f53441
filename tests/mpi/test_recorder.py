"""Programs that are recorded: what is found of them is what they did."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.recording import Recording, arrival_patterns, read
from stagegen.recording.build import RECORDER, built
from stagegen.recording.calls import Calls, align
from stagegen.recording.functions import BLOCKING, NONBLOCKING, PERSISTENT
from stagegen.recording.read import recordings_of
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 4
#: Each rank has a clock of its own, 2000 s ahead of the one before, that runs too fast: by a
#: millisecond in 0.1 s on rank 3.
WRONG_CLOCKS = {"STAGEGEN_RECORD_CLOCK": "2000,3000"}
#: Seconds between the program's reading of the clock and the recorder's, if nothing comes between.
PROMPT = 1e-3
#: Seconds in which what a rank leaves behind is written.
PATIENCE = 20.0


@lru_cache
def recorder() -> Path:
    with support.to_be_made("recorder") as (folder, _):
        folder.mkdir(exist_ok=True)
        return built(RECORDER, folder, support.toolchain())


@lru_cache
def plain_program() -> Path:
    flags = ("-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread")
    return builds.compiled(support.toolchain().mpicc, support.HERE / "recorded.c", *flags)


def run(folder: Path, *words: str | Path, program: Path | None = None, library: bool = False,
        **variables: str):  # fmt: skip
    """Run a program with the recorder; return the folder of its parts and the result."""
    preload = [recorder(), *([support.library(RANKS) / "libcoll.so"] if library else [])]
    settings = {"STAGEGEN_RECORD": str(folder / "out"), **variables}
    (folder / "out.parts").mkdir(exist_ok=True)
    compiled = program or plain_program()
    result = support.run(RANKS, compiled, *words, variables=settings, preload=tuple(preload))
    parts = folder / "out.parts"
    deadline = time.monotonic() + PATIENCE
    while list(parts.glob("*.writing")) and time.monotonic() < deadline:
        time.sleep(0.02)
    return parts, result


def recorded(folder: Path, *words: str | Path, **options) -> Recording:
    parts, result = run(folder, *words, **options)
    assert result.returncode == 0, result.stderr
    assert [path.suffix for path in parts.iterdir()] == [".part"]
    return read(parts)


def found(recording: Recording, collective: str, mode: str = BLOCKING) -> list[Calls]:
    aligned = align(recording)
    assert aligned.unmatched == 0
    return [one for one in aligned.calls if (one.collective, one.mode) == (collective, mode)]


@pytest.mark.parametrize("variables", [{}, WRONG_CLOCKS], ids=["one clock", "wrong clocks"])
def test_injected_delays_come_back_within_the_stated_error(tmp_path, variables):
    """The program reads the right clock right before each call: that is the arrival."""
    parts, result = run(tmp_path, "delays", **variables)
    assert result.returncode == 0, result.stderr
    expect_delays(read(parts), result.stdout, wrong_clocks=bool(variables))


def expect_delays(recording: Recording, stdout: str, wrong_clocks: bool) -> None:
    """The delays are those that the program prints, within the stated error of the clocks."""
    aligned = align(recording)
    (calls,) = (one for one in aligned.calls if one.collective == "allreduce")
    error = aligned.clocks.error + 1e-8
    assert (error > 1e-8) == wrong_clocks
    told = [tuple(map(int, line.split())) for line in stdout.splitlines()]
    assert len(told) == 4 * recording.size
    late = defaultdict(list)
    for rank, call, before, after in told:
        seconds = calls.arrivals[call][calls.ranks.index(rank)] + aligned.clocks.origin
        assert before * 1e-9 - error <= seconds <= after * 1e-9 + error
        late[rank].append(seconds - before * 1e-9)
    assert all(min(of_rank) <= error + PROMPT for of_rank in late.values())
    (pattern,) = (one for one in arrival_patterns(recording) if one.collective == "allreduce")
    off = []
    for call, offsets in enumerate(pattern.offsets):
        before = [one[2] * 1e-9 for one in told if one[1] == call]
        off.append(abs(max(offsets) - (max(before) - min(before))))
    assert min(off) <= error + PROMPT


@pytest.mark.parametrize("library", [False, True], ids=["alone", "with libcoll"])
def test_calls_of_all_kinds_are_kept_as_they_were_made(tmp_path, library):
    parts, result = run(tmp_path, "kinds", library=library, LIBCOLL_TRACE="1")
    assert result.returncode == 0, result.stderr
    served = re.search(r"libcoll: rank 0: bcast +(?!native)\w+", result.stderr)
    assert bool(served) == library
    recording = read(parts)
    assert recording.finished
    whole = tuple(range(RANKS))
    both = found(recording, "alltoall")
    assert [(one.size, one.ranks, len(one.sequences)) for one in both] == [(8, whole, 1)] * 2
    assert len({one.site for one in both}) == 2
    sizes = {
        ("allreduce", BLOCKING): 16, ("gather", BLOCKING): 12, ("scan", BLOCKING): 28,
        ("allreduce", NONBLOCKING): 20, ("gatherv", BLOCKING): 10,
    }  # fmt: skip
    for (collective, mode), size in sizes.items():
        assert [one.size for one in found(recording, collective, mode)] == [size]
    persistent = [one.size for one in found(recording, "bcast", PERSISTENT)]
    assert persistent in ([8], [])
    own = [0, 2], [1, 3]
    broadcasts = {(one.size, one.ranks) for one in found(recording, "bcast")}
    halves = {(size, tuple(ranks)) for size in (12, 20) for ranks in own}
    assert broadcasts == {(8, whole), *halves, (24, (0, 2, 1, 3))}
    barriers = [one.ranks for one in found(recording, "barrier")]
    assert sorted(map(sorted, barriers)) == [[0, 1, 2, 3]] * 2


def test_a_rank_keeps_its_own_counts_its_types_and_its_operation(tmp_path):
    recording = recorded(tmp_path, "kinds")
    for rank in recording.ranks:
        names = [recording.functions[i] for i in rank.events["function"]]
        of = {name: rank.events[names.index(name)] for name in names}
        counts = tuple((rank.rank + i) % 3 for i in range(RANKS))
        assert rank.counts_at(int(of["alltoallv"]["send_counts"])) == counts
        assert of["alltoallv"]["sent"] == sum(counts)
        assert (of["gather"]["root"], of["alltoall"]["root"]) == (1, -1)
        assert recording.operations[of["allreduce"]["operation"]] == "max"
        vector = rank.events[names.index("bcast")]
        assert (vector["received_bytes"], vector["recv_extent"]) == (8, 16)


def test_a_reduction_between_groups_has_a_count_for_each_rank_of_the_own_one(tmp_path):
    recording = recorded(tmp_path, "uneven")
    counts = []
    for rank in recording.ranks:
        names = [recording.functions[i] for i in rank.events["function"]]
        event = rank.events[names.index("reduce_scatter")]
        assert event["received"] == 6
        counts.append(rank.counts_at(int(event["recv_counts"])))
    assert counts == [(6,), *[(1, 2, 3)] * (RANKS - 1)]


def test_calls_of_threads_are_told_apart_by_their_communicators(tmp_path):
    recording = recorded(tmp_path, "threads", "200")
    first, second = found(recording, "allreduce")
    assert first.communicator != second.communicator
    assert first.site == second.site
    for calls in (first, second):
        assert list(calls.sequences) == list(range(200))
        assert (calls.exits >= calls.arrivals).all()


def test_memory_is_bounded_and_what_is_left_out_is_counted(tmp_path):
    room, calls = 9557, 12000
    recording = recorded(tmp_path, "many", str(calls), STAGEGEN_RECORD_LIMIT="1")
    for rank in recording.ranks:
        assert len(rank.events) == room
        assert rank.dropped == calls - room
    (barriers,) = found(recording, "barrier")
    assert len(barriers.sequences) == room


@pytest.mark.parametrize("how", ["abort", "exit", "kill", "term", "error"])
def test_however_a_program_ends_it_leaves_what_it_did(tmp_path, how):
    parts, result = run(tmp_path, how)
    assert result.returncode != 0
    recording = read(parts)
    assert recording.missing == ()
    assert not recording.finished
    done = Counter(len(one.sequences) for one in found_of_all(recording))
    assert done == {3: 1}


def found_of_all(recording: Recording) -> list[Calls]:
    return [one for one in align(recording).calls if one.collective == "barrier"]


def test_spawned_processes_have_a_recording_of_their_own(tmp_path):
    parts, result = run(tmp_path, "spawn", "7")
    assert result.returncode == 0, result.stderr
    own, spawned = recordings_of(parts)
    assert (own.size, spawned.size) == (RANKS, 2)
    assert [len(one.sequences) for one in found(spawned, "barrier")] == [7]
    assert [len(one.sequences) for one in found(own, "barrier")] == [1]


def test_hosts_that_do_not_see_the_folder_send_what_they_have(tmp_path):
    """Only rank 0 can write where the recording is to be."""
    elsewhere = tmp_path / "missing" / "out"
    pick = f'[ $PMI_RANK = 0 ] || export STAGEGEN_RECORD={elsewhere}; exec "$@"'
    words = ("-c", pick, "sh", plain_program(), "many", "5")
    recording = recorded(tmp_path, *words, program=Path("/bin/sh"))
    assert recording.missing == ()
    assert [len(one.sequences) for one in found(recording, "barrier")] == [5]


def test_a_recording_that_nobody_can_write_harms_nothing(tmp_path):
    missing = {"STAGEGEN_RECORD": str(tmp_path / "missing" / "out")}
    result = support.run(
        RANKS, plain_program(), "many", "3", variables=missing, preload=(recorder(),)
    )
    assert result.returncode == 0
    told = [line for line in result.stderr.splitlines() if "cannot write" in line]
    assert len(told) == 1 + RANKS
    assert all(line.endswith(": No such file or directory") for line in told)


@pytest.mark.parametrize("mistake", ["communicator", "type"])
def test_mistakes_are_as_without_a_recorder_and_leave_a_recording_that_can_be_read(
    tmp_path, mistake
):
    recording = recorded(tmp_path, "mistake", mistake)
    assert [len(one.sequences) for one in found(recording, "barrier")] == [1]


def test_a_program_goes_on_without_its_keepers(tmp_path):
    recording = recorded(tmp_path, "alone")
    assert len(found(recording, "barrier")) == 2


def test_signals_of_the_program_leave_it_its_keeper(tmp_path):
    """A profiler's timer is set before MPI_Init; then a rank ends without MPI_Finalize."""
    parts, result = run(tmp_path, "signals")
    assert result.returncode != 0
    assert "no second process" not in result.stderr
    assert read(parts).missing == ()


def test_a_program_that_ignores_the_end_of_children_has_its_keeper(tmp_path):
    words = ("-c", """trap '' CHLD; exec "$@" """, "sh", plain_program(), "kill")
    parts, result = run(tmp_path, *words, program=Path("/bin/sh"))
    assert result.returncode != 0
    assert "no second process" not in result.stderr
    assert read(parts).missing == ()


def test_the_name_of_a_program_may_have_any_bytes(tmp_path):
    """It has a letter of Latin-1, and is cut within a letter of UTF-8, as it is long."""
    name = tmp_path / os.fsdecode(b"caf\xe9-" + "é".encode() * 100)
    shutil.copy(plain_program(), name)
    (calls,) = found(recorded(tmp_path, "many", "5", program=name), "barrier")
    assert calls.site.startswith("caf�-éé")


def test_a_program_waits_for_no_recorder_without_a_word(tmp_path):
    """Rank 0 has none: the others say so, and the job's time ends."""
    pick = '[ $PMI_RANK = 0 ] && unset STAGEGEN_RECORD; exec "$@"'
    words = ("/bin/sh", "-c", pick, "sh", str(plain_program()), "many", "5")
    settings = {"STAGEGEN_RECORD": str(tmp_path / "out")}
    with pytest.raises(TimeoutError, match="waits for ranks that have no recorder"):
        support.run(2, *words, variables=settings, preload=(recorder(),), timeout=40)


def test_without_the_variable_nothing_is_recorded(tmp_path):
    compiled = plain_program()
    result = support.run(RANKS, compiled, "many", "3", preload=(recorder(),))
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.iterdir()) == []
