"""From traces of programs to what is worth tuning for them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stagegen.errors import InputError
from stagegen.tune.program import LEFT_OUT, Calls, program_of, read_trace
from stagegen.tune.scope import Wanted
from tests.strategies import make_topology

CLUSTER = make_topology([4, 4], [0], slots={f"n{n}": 2 for n in range(8)})
ON_ALL = Calls("alltoall", "cluster", 16, 8, 4096, 10, 1.0)


def wanted(*calls: Calls) -> tuple[Wanted, ...]:
    return program_of(calls, CLUSTER).wanted


@pytest.mark.parametrize(
    ("kind", "ranks", "hosts", "name"),
    [
        ("cluster", 16, 8, "whole"),
        ("group left", 6, 3, "left"),
        ("hosts", 15, 8, "whole"),
        ("hosts", 8, 4, "4x2"),
        ("hosts", 4, 4, "4x1"),
        ("hosts", 5, 3, "3x2"),
        ("one-host", 2, 1, "1x2"),
    ],
)
def test_each_communicator_is_measured_as_what_is_like_it(kind, ranks, hosts, name):
    calls = replace(ON_ALL, communicator=kind, ranks=ranks, hosts=hosts)
    assert wanted(calls) == (Wanted("alltoall", name, (4096,)),)


def test_a_job_of_uneven_hosts_is_one_that_the_cluster_has():
    uneven = make_topology([3], [], slots={"n0": 3, "n1": 1})
    calls = replace(ON_ALL, communicator="hosts", ranks=4, hosts=2)
    assert program_of([calls], uneven).wanted == (Wanted("alltoall", "2x1", (4096,)),)


@pytest.mark.parametrize(
    ("kind", "ranks", "hosts"), [("other", 8, None), ("native", 8, 4), ("hosts", 20, 20)]
)
def test_what_no_table_can_serve_is_told_apart(kind, ranks, hosts):
    unknown = replace(ON_ALL, communicator=kind, ranks=ranks, hosts=hosts, seconds=3.0)
    program = program_of([ON_ALL, unknown], CLUSTER)
    spent = 1.0 * 16, 3.0 * ranks
    assert (program.seconds, program.covered, program.unknown) == (sum(spent), *spent)
    with pytest.raises(InputError, match="no call that a table could serve"):
        program_of([unknown], CLUSTER)


def test_the_most_time_comes_first_whatever_the_order_of_the_calls():
    often = replace(ON_ALL, collective="bcast", seconds=0.4)
    calls = [often, ON_ALL, replace(often, seconds=0.8)]
    expected = (Wanted("bcast", "whole", (4096,)), Wanted("alltoall", "whole", (4096,)))
    assert wanted(*calls) == wanted(*reversed(calls)) == expected


def test_what_takes_next_to_no_time_is_left_out():
    little = [replace(ON_ALL, size=2**n, seconds=LEFT_OUT / 20) for n in range(8)]
    program = program_of([*little, ON_ALL], CLUSTER)
    assert program.wanted == (Wanted("alltoall", "whole", (4096,)),)
    assert program.covered >= (1 - LEFT_OUT) * program.seconds


def test_calls_of_many_ranks_count_as_often():
    """All of 64 ranks are in one call for 1 s, and each is in a call with another one for 9 s."""
    pairs = [replace(ON_ALL, communicator="hosts", ranks=2, hosts=2, seconds=8 * 9.0)]
    program = program_of([ON_ALL, *pairs], CLUSTER)
    assert [one.communicator for one in program.wanted] == ["2x1", "whole"]
    assert program.seconds == 16 * 1.0 + 16 * 9.0


def test_calls_that_take_no_time_at_all_are_not_lost():
    assert wanted(replace(ON_ALL, seconds=0.0)) == (Wanted("alltoall", "whole", (4096,)),)


def test_the_most_important_of_sizes_near_each_other_is_measured():
    sizes = {4000: 0.2, 4096: 0.5, 4400: 0.3, 9000: 0.1}
    calls = [replace(ON_ALL, size=size, seconds=seconds) for size, seconds in sizes.items()]
    assert wanted(*calls) == (Wanted("alltoall", "whole", (4096, 9000)),)


def trace(path: Path, **changes: object) -> Path:
    call = {"collective": "bcast", "communicator": "hosts", "ranks": 4, "hosts": 2, "bytes": 8}
    call |= {"routine": "native", "calls": 3, "seconds": 0.5}
    form = {"version": 1, "topology_hash": CLUSTER.hash, "calls": [call], **changes}
    path.write_text(json.dumps(form), encoding="utf-8")
    return path


def test_a_trace_has_the_calls_that_were_written(tmp_path):
    found = read_trace(trace(tmp_path / "t"), CLUSTER)
    assert found == (Calls("bcast", "hosts", 4, 2, 8, 3, 0.5),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology_hash": "0" * 64}, "for another topology"),
        ({"version": 2}, "a trace of version 2"),
        ({"calls": [{}]}, "not a file of LIBCOLL_TRACE"),
        ({"calls": None}, "not a file of LIBCOLL_TRACE"),
    ],
)
def test_a_wrong_trace_is_reported_with_its_file(tmp_path, changes, message):
    with pytest.raises(InputError, match=message) as caught:
        read_trace(trace(tmp_path / "t", **changes), CLUSTER)
    assert str(tmp_path / "t") in str(caught.value)


def test_a_file_that_is_no_trace_is_reported(tmp_path):
    (tmp_path / "t").write_text("libcoll: rank 0", encoding="utf-8")
    with pytest.raises(InputError, match="not a file of LIBCOLL_TRACE"):
        read_trace(tmp_path / "t", CLUSTER)
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "none", CLUSTER)
