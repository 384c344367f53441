"""A library with TRACE=1 keeps what happens within its calls, and does the same otherwise."""

from __future__ import annotations

import math
import subprocess
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from click.testing import CliRunner

from stagegen.cli import group
from stagegen.errors import InputError
from stagegen.inspection.trace import EventType, read_trace
from tests.mpi import support, test_meeting, tracing

pytestmark = pytest.mark.mpi

CALLS = 12
#: As many readings of the clock take longer than an event of each type, and than to note a call.
EVENTS_MOST, CALL_MOST = {"event": 1.5, "arrival": 3, "message": 3}, 4
NOWHERE = {"LIBCOLL_EVENTS": "/dev/null"}
PROCESSES = 3


def types(events):
    return [EventType(int(what) & 0xFF) for what in events["what"]]


#: With LIBCOLL_FORCE, the MPI library serves the parts of a composition.
COMPOSITION = "allreduce/of_reduce_and_bcast"


@pytest.mark.parametrize("name", [name for name in tracing.ROUTINES if name != COMPOSITION])
def test_every_message_of_a_call_is_sent_and_received(tmp_path, name):
    trace = tracing.traced(tmp_path / "events", name, CALLS, 4)
    chosen = trace.routines.index(name)
    assert len(trace.ranks) == tracing.RANKS
    for call in range(CALLS):
        sent, received = Counter(), Counter()
        for rank in trace.ranks:
            own = np.flatnonzero(rank.calls["routine"] == chosen)
            assert len(own) == CALLS
            one = rank.calls[own[call]]
            events = tracing.events_of(rank, int(own[call]))
            assert np.all(np.diff(events["time"]) >= 0)
            assert one["begun"] <= events["time"][0] <= events["time"][-1] <= one["ended"]
            for type_, event in zip(types(events), events, strict=True):
                peer = int(event["a"])
                if type_ is EventType.SENT and peer != rank.rank:
                    sent[rank.rank, peer] += 1
                elif type_ is EventType.RECEIVED and peer != rank.rank:
                    received[peer, rank.rank] += 1
        assert sent
        assert sent == received


def test_messages_of_plans_are_no_events_of_the_calls_that_carry_them_on(tmp_path):
    """A call on two ranks has a peer of its own and no other, whatever goes on inside it."""
    variables = {
        "LIBCOLL_FORCE": "allreduce=recursive_doubling",
        "LIBCOLL_PERSISTENT": "tokens",
        "LIBCOLL_EVENTS": str(tmp_path / "e"),
    }
    run = support.run(tracing.RANKS, tracing.program("traced_plans.c"), variables=variables)
    assert run.returncode == 0, run.stdout + run.stderr
    trace = read_trace(tmp_path / "e")
    chosen = trace.routines.index("allreduce/recursive_doubling")
    for rank in trace.ranks:
        own = np.flatnonzero(rank.calls["routine"] == chosen)
        assert len(own) > 0
        for call in own:
            events = tracing.events_of(rank, int(call))
            peers = [
                int(event["a"])
                for type_, event in zip(types(events), events, strict=True)
                if type_ is EventType.SENT
            ]
            assert peers == [1 - rank.rank % 2]


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("aapc_barrier", range(tracing.RANKS)),
        ("aapc_receiver", range(tracing.RANKS)),
        ("aapc_sender", range(tracing.RANKS)),
        ("hierarchical", range(0, tracing.RANKS, tracing.SLOTS)),
    ],
)
def test_phases_of_a_schedule_are_events(tmp_path, name, positions):
    """Between ranks, also where the schedule is of hosts, whose first ranks carry it out."""
    trace = tracing.traced(tmp_path / "events", f"alltoall/{name}", CALLS, 64)
    pairs = {EventType.STARTED: set(), EventType.ARRIVED: set()}
    for rank in trace.ranks:
        events = tracing.events_of(rank, 0)
        for type_, event in zip(types(events), events, strict=True):
            ends = (rank.rank, int(event["a"]))
            if type_ in pairs:
                ordered = ends if type_ is EventType.STARTED else ends[::-1]
                pairs[type_].add((*ordered, int(event["what"]) >> 8))
    assert {pair[:2] for pair in pairs[EventType.STARTED]} == set(permutations(positions, 2))
    assert pairs[EventType.STARTED] == pairs[EventType.ARRIVED]


def test_the_ring_keeps_the_latest_calls(tmp_path):
    calls = 400
    whole = tracing.traced(tmp_path / "whole", "allreduce/fixed_tree", calls, 4)
    latest = tracing.traced(
        tmp_path / "latest", "allreduce/fixed_tree", calls, 4, LIBCOLL_EVENTS_ROOM="4k"
    )
    assert whole.ranks[0].overwritten == 0
    assert whole.ranks[0].calls["sequence"].tolist() == list(range(calls))
    kept = latest.ranks[0].calls["sequence"].tolist()
    assert 5 < len(kept) < calls
    assert kept == list(range(calls - len(kept), calls))
    assert latest.ranks[0].overwritten == calls - len(kept)
    for rank in latest.ranks:
        assert rank.calls["count"].sum() == len(rank.entries)


def test_one_of_three_calls_is_kept(tmp_path):
    trace = tracing.traced(
        tmp_path / "events", "allreduce/fixed_tree", CALLS, 4, LIBCOLL_EVENTS_EACH="3"
    )
    for rank in trace.ranks:
        assert rank.calls["sequence"].tolist() == list(range(CALLS // 3))
        assert rank.calls["count"].all()
        assert rank.calls["count"].sum() == len(rank.entries)


def test_a_file_that_cannot_be_written_is_reported_and_harms_nothing(tmp_path):
    name = str(tmp_path / "missing" / "events")
    told = tracing.run("barrier", 1, 0, variables={"LIBCOLL_EVENTS": name})
    assert f"libcoll: LIBCOLL_EVENTS: cannot write {name}: No such file or directory" in told


def test_a_wrong_room_is_reported_once(tmp_path):
    settings = {"LIBCOLL_EVENTS": str(tmp_path / "events"), "LIBCOLL_EVENTS_ROOM": "many"}
    assert tracing.run("barrier", 1, 0, variables=settings).count("'many' is ignored") == 1


@pytest.mark.parametrize("setting", ["0", "ten", "-1"])
def test_a_wrong_number_of_calls_is_reported_once_and_each_call_is_kept(tmp_path, setting):
    settings = {"LIBCOLL_EVENTS": str(tmp_path / "events"), "LIBCOLL_EVENTS_EACH": setting}
    assert tracing.run("barrier", 3, 0, variables=settings).count(f"'{setting}' is ignored") == 1
    assert {len(rank.calls) for rank in read_trace(tmp_path / "events").ranks} == {3}


def test_a_damaged_file_of_events_is_refused(tmp_path):
    file = tmp_path / "events"
    tracing.traced(file, "barrier/fixed_tree", 2, 0)
    data = file.read_bytes()
    for wrong in (b"", data[:100], data[: len(data) // 2], b"x" + data[1:], data + b"x"):
        file.write_bytes(wrong)
        with pytest.raises(InputError, match="not a trace, or a damaged one"):
            read_trace(file)


def costs(**variables):
    """How many readings of the clock take as long as each thing that the program prints.

    Each is the least of many times in a few processes, so that the machine and its load hardly
    count, and where the system has put a process's memory does not count either.
    """
    nanoseconds = {}
    for _ in range(PROCESSES):
        told = tracing.run("cost", ranks=2, variables={**NOWHERE, **variables})
        print(told)
        for name, value in map(str.split, told.splitlines()):
            nanoseconds[name] = min(float(value), nanoseconds.get(name, math.inf))
    return {name: value / nanoseconds["clock"] for name, value in nanoseconds.items()}


@pytest.mark.alone
def test_an_event_takes_little_more_than_a_reading_of_the_clock():
    found = costs()
    for name, most in EVENTS_MOST.items():
        assert 0 < found[name] < most, name


@pytest.mark.alone
def test_a_call_that_is_not_kept_costs_less_than_half_of_one_that_is():
    """It is only counted; calls with and without events in one job have this cost alike."""
    kept, counted = (costs(LIBCOLL_EVENTS_EACH=each)["call"] for each in ("1", str(2**32 - 1)))
    assert kept < CALL_MOST
    assert counted < kept / 2


def test_calls_on_too_many_communicators_are_reported_and_counted(tmp_path):
    """What is kept of a communicator stays, as its calls do, when it is freed."""
    file, room, more = tmp_path / "events", 4096, 5
    settings = {"LIBCOLL_FORCE": "allreduce=ring", "LIBCOLL_EVENTS": str(file), **support.MEMORY}
    told = tracing.run("communicators", room + more, ranks=2, variables=settings)
    assert told.count("calls on further communicators are not kept") == 1
    for rank in read_trace(file).ranks:
        assert (len(rank.calls), rank.lost, rank.overwritten) == (room, more, 0)
    result = CliRunner().invoke(group, ["inspect", "--skip", "0", str(file)])
    assert result.exit_code == 0, result.output
    assert (
        f"{more} calls of the file were overwritten (see LIBCOLL_EVENTS_ROOM), or " in result.output
    )


@pytest.mark.parametrize("ranks", [1, 4])
def test_each_of_many_receives_under_way_is_one_event(ranks):
    """200 in a call, of known or of any ranks and tags, end in any order and in all ways.

    In shared memory: over TCP, MPICH itself stalls in receives of any rank, also without the
    library.
    """
    assert tracing.run("many", 5, ranks=ranks, variables={**NOWHERE, **support.MEMORY}) == "6000\n"


def test_receives_of_a_call_that_is_not_kept_are_not_looked_at():
    """However many they are."""
    options = "detect_leaks=0:verify_asan_link_order=0"  # MPICH keeps memory to its end
    settings = {**NOWHERE, "ASAN_OPTIONS": options}
    program = tracing.program(sanitizer="address")
    done = support.run(1, program, "unkept", variables=settings)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr


def test_parts_of_a_composition_begin_and_end(tmp_path):
    trace = tracing.traced(tmp_path / "events", COMPOSITION, 1, 4)
    for rank in trace.ranks:
        events = tracing.events_of(rank, 0)
        assert types(events) == [EventType.PART] * 4
        assert (events["what"] >> 8).tolist() == [0, 0, 1, 1]
        assert events["a"][1] == events["a"][3] == -1
        assert -1 < events["a"][0] != events["a"][2] > -1


@pytest.mark.parametrize("last", ["fast", "traced"])
def test_ranks_with_another_library_do_not_wait_for_events(tmp_path, last):
    """One rank has the fast library and the others the traced one, or the other way round."""
    fast = support.library(test_meeting.RANKS) / "libcoll.so"
    traced = tracing.library() / "libcoll-trace.so"
    others, one = (traced, fast) if last == "fast" else (fast, traced)
    file = tmp_path / "events"
    found, errors = test_meeting.run(
        f"COLL={one}", library=others, variables={"LIBCOLL_EVENTS": str(file)}
    )
    assert {found[shared] for shared in test_meeting.SHARED} == {"native"}
    assert "the build of libcoll" in errors
    assert not file.exists()


def test_ranks_that_keep_other_calls_are_reported_and_keep_none(tmp_path):
    """Otherwise some ranks would keep events of a call, and others none of it."""
    file = tmp_path / "events"
    found, errors = test_meeting.run(
        "export LIBCOLL_EVENTS_EACH=2",
        library=tracing.library() / "libcoll-trace.so",
        variables={"LIBCOLL_EVENTS": str(file), "LIBCOLL_EVENTS_EACH": "3"},
    )
    assert {found[shared] for shared in test_meeting.SHARED} == {"native"}
    assert "differs from rank 0 in LIBCOLL_SCRATCH (or LIBCOLL_EVENTS_EACH):" in errors
    assert not file.exists()


def test_threads_that_have_ended_leave_their_memory_to_others(tmp_path):
    """Of 200 threads, one after the other, each has 2 MiB: the program fails if they add up."""
    file, threads = tmp_path / "events", 200
    program = tracing.program("short_threads.c")
    settings = {
        "LIBCOLL_FORCE": "allreduce=ring",
        "LIBCOLL_EVENTS": str(file),
        "LIBCOLL_EVENTS_ROOM": "2M",
    }
    done = support.run(2, program, threads, variables=settings, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in read_trace(file).ranks:
        assert len(rank.calls) == threads
        assert len(set(rank.calls["thread"].tolist())) == threads
        assert rank.calls["count"].all()


def test_the_fast_library_has_nothing_of_it():
    """The same sources, without TRACE=1: their objects define and call nothing of events."""
    folder = tracing.library()
    sources = [file.stem for file in (folder / "src").glob("*.c")]
    objects = [f"build/{name}.o" for name in sources]
    make = ["make", "-s", "-C", folder, "TRACE=0", f"MPICC={support.toolchain().mpicc}"]
    subprocess.run([*make, *objects], check=True)
    names = subprocess.run(
        ["nm", *objects], capture_output=True, text=True, check=True, cwd=folder
    ).stdout
    assert "coll_run" in names
    assert not any(word in names for word in ("coll_traced", "coll_event", "clocks_"))
