"""Whatever a log holds, it is read, or an error names its file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagegen.errors import InputError
from stagegen.measure.log import read_log
from tests.measure.fakes import ENVIRONMENT
from tests.measure.test_log import HEADER, RECORDS

MACHINE = {
    "hosts": ["n0"], "ranks": 1, "cores": 2, "binding": ["0-1"], "kernel": "6.1", "governor": "",
    "network": {}, "variables": {}, "controls": {},
}  # fmt: skip
SESSION = {"kind": "session", "environment": ENVIRONMENT.to_json(), "mpi": "a model"}


def damaged(tmp_path: Path, record: dict) -> str:
    """Return what is said of a log with such a record in its third line."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in (HEADER, RECORDS[0], record)))
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}:3: damaged record: ")
    assert caught.value.exit_status == 2
    return caught.value.message


DAMAGE = [
    (2, {"seconds": {}}),
    (2, {"seconds": {"native": []}}),
    (2, {"seconds": {"native": [1.0, 2.0], "ring": [1.0]}}),
    (2, {"seconds": {"native": ["soon"]}}),
    (2, {"seconds": {"native": [True]}}),
    (2, {"seconds": {"native": [float("nan")]}}),
    (2, {"seconds": {"native": [10**400]}}),
    (2, {"seconds": {"native": [-1.0]}}),
    (2, {"seconds": {"native": [0.0]}}),
    (2, {"seconds": {"native": 1.0}}),
    (2, {"seconds": None}),
    (2, {"seconds": [1]}),
    (2, {"seconds": {"native:x": [1.0]}}),
    (2, {"seconds": {"": [1.0]}}),
    (2, {"size": "big"}),
    (2, {"size": -1}),
    (2, {"size": 1.5}),
    (2, {"calls": 0}),
    (2, {"settle": 1}),
    (2, {"timing": "stopwatch"}),
    (2, {"timing": ["barrier"]}),
    (2, {"timing": "arrival", "timing_hash": 5}),
    (2, {"metric": "fastest"}),
    (2, {"computation_ms": -1.0}),
    (2, {"computation_ms": "25"}),
    (2, {"collective": 3}),
    (2, {"communicator": 3}),
    (2, {"launch": -1}),
    (0, {"communicator": None}),
    (3, {"communicator": ["whole"]}),
    (0, {"routine": 3}),
    (0, {"wrong": -2}),
    (0, {"wrong": "no"}),
    (0, {"first_wrong": None}),
    (3, {"routine": "a b"}),
    (3, {"routine": "native"}),
    (3, {"size": None}),
    (3, {"kind": "gossip"}),
]


@pytest.mark.parametrize(("number", "damage"), DAMAGE)
def test_a_damaged_record_is_reported_with_file_and_line(tmp_path, number, damage):
    damaged(tmp_path, {**RECORDS[number], **damage})


#: Old logs have none of these.
LATER = {"communicator", "launch", "computation_ms", "metric"}

MISSING = [
    (record, key)
    for record in [*RECORDS[1:], SESSION]
    for key in record
    if key not in {"kind", *LATER}
]


@pytest.mark.parametrize(("record", "missing"), MISSING)
def test_a_record_without_one_of_its_keys_is_reported_with_it(tmp_path, record, missing):
    left = {key: value for key, value in record.items() if key != missing}
    assert missing in damaged(tmp_path, left)


#: Old logs have none of these.
OLD = {"congestion_control", "emulated", "mpi_library", "machines", "program_hash"}


@pytest.mark.parametrize("name", sorted(SESSION["environment"].keys() - OLD))
def test_an_environment_that_lacks_something_is_reported_with_it(tmp_path, name):
    form = {key: value for key, value in SESSION["environment"].items() if key != name}
    assert name in damaged(tmp_path, {**SESSION, "environment": form})


@pytest.mark.parametrize(
    "change",
    [{"scale": 0}, {"scale": "1"}, {"scale": 2.0}, {"cpus": 0}, {"notes": "a"}, {"notes": [1]},
     {"representative": "yes"}, {"launcher": None}, {"more": 1}, {"emulated": "lab"},
     {"congestion_control": 3}, {"mpi_library": 3}, {"program_hash": []}, {"machines": 3},
     {"machines": [3]}, {"machines": [{}]}, {"machines": [{**MACHINE, "hosts": []}]},
     {"machines": [{**MACHINE, "hosts": "n0"}]}, {"machines": [{**MACHINE, "ranks": 0}]},
     {"machines": [{**MACHINE, "cores": -1}]}, {"machines": [{**MACHINE, "binding": [0]}]},
     {"machines": [{**MACHINE, "kernel": None}]}, {"machines": [{**MACHINE, "network": []}]},
     {"machines": [{**MACHINE, "variables": {"FI_PROVIDER": 1}}]}],
)  # fmt: skip
def test_an_environment_with_something_strange_is_reported(tmp_path, change):
    damaged(tmp_path, {**SESSION, "environment": {**SESSION["environment"], **change}})


def test_a_machine_that_lacks_something_is_reported_with_it(tmp_path):
    for name in MACHINE:
        machine = {key: value for key, value in MACHINE.items() if key != name}
        environment = {**SESSION["environment"], "machines": [machine]}
        assert name in damaged(tmp_path, {**SESSION, "environment": environment})


@pytest.mark.parametrize("facts", [None, "kernel", [3], {}])
def test_a_record_that_allows_nothing_sensible_is_reported(tmp_path, facts):
    damaged(tmp_path, {"kind": "mixed", "facts": facts})


def test_an_environment_that_is_none_is_reported(tmp_path):
    damaged(tmp_path, {**SESSION, "environment": [1]})


@pytest.mark.parametrize("line", ["[" * 100_000, '{"kind": ' + "9" * 5000 + "}"])
def test_json_that_python_cannot_read_is_reported_as_no_json(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(HEADER)}\n{line}\n")
    with pytest.raises(InputError, match="not JSON"):
        read_log(path)
