"""``stagegen diff``: two tunings side by side, by hand-made tables and logs."""

from __future__ import annotations

import itertools
import json
import shutil

import jsonschema
import pytest

from tests.cli.test_tune import recorded, stagegen

__all__ = ["recorded"]  # the fixture

#: The medians of the model that made the logs vary by less.
NOISE = 0.005

SHARE = {"type": ["number", "null"]}
KEY = {
    "collective": {"type": "string"},
    "communicator": {"type": "string"},
    "ranks": {},
    "hosts": {},
}
LOSS = {
    name: schema
    for way in ("a_in_b", "b_in_a")
    for name, schema in (
        (way, SHARE),
        (f"{way}_ratios", {"type": "object", "additionalProperties": {"type": "number"}}),
        (f"{way}_unmeasured", {"type": "array", "items": {"type": "integer"}}),
    )
}
RANGE = {"from": {"type": "integer"}, "to": {"type": ["integer", "null"]}, "a": {}, "b": {}, **LOSS}


def exactly(properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SIDE = exactly({"path": {}, "topology_hash": {}, "table": {}, "log": {}})
KEYS = {"type": "array", "items": exactly(KEY)}
TABLE = exactly(
    {
        **KEY,
        "a_in_b": SHARE,
        "b_in_a": SHARE,
        "ranges": {"type": "array", "minItems": 1, "items": exactly(RANGE)},
    }
)
SCHEMA = exactly(
    {
        "a": SIDE,
        "b": SIDE,
        "environments_differ": {"type": "array", "items": {"type": "string"}},
        "total": exactly({"a_in_b": SHARE, "b_in_a": SHARE}),
        "tables": {"type": "array", "items": TABLE},
        "only_in_a": KEYS,
        "only_in_b": KEYS,
    }
)


def compared(*words):
    result = stagegen("diff", *words, "--format", "json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, SCHEMA)
    return answer


@pytest.fixture(scope="module")
def folders(recorded, tmp_path_factory):
    """A folder, and one whose alltoall is native throughout, with all times of it doubled."""
    place = tmp_path_factory.mktemp("folders")
    for name in ("a", "b"):
        shutil.copytree(recorded[2], place / name)
    decision = json.loads((place / "b" / "decision.json").read_text())
    for table in decision["tables"]:
        if table["collective"] == "alltoall":
            first = table["rules"][0]
            native = {"algorithm": "native", "parameters": {}, "alternatives": []}
            table["rules"] = [{**first, **native, "to": None}]
    (place / "b" / "decision.json").write_text(json.dumps(decision))
    return place / "a", place / "b"


def test_a_tuning_loses_nothing_against_itself(folders):
    answer = compared(folders[0], folders[0])
    assert answer["total"] == {"a_in_b": 0.0, "b_in_a": 0.0}
    assert answer["only_in_a"] == answer["only_in_b"] == answer["environments_differ"] == []
    for table in answer["tables"]:
        assert table["a_in_b"] == table["b_in_a"] == 0.0
        assert table["ranges"][0]["from"] == 0
        assert table["ranges"][-1]["to"] is None
        for one in table["ranges"]:
            assert one["a"] == one["b"]
    text = stagegen("diff", folders[0], folders[0])
    assert text.returncode == 0
    assert " 0 ranges of sizes with different choices" in text.stdout


def test_choosing_native_is_as_much_slower_as_the_log_says(folders):
    """Exactly at a size where both were timed, and in the same way in both directions."""
    answer = compared(*folders)
    back = compared(*reversed(folders))
    assert answer["total"]["a_in_b"] == back["total"]["b_in_a"] < 0 < answer["total"]["b_in_a"]
    wanted = ("alltoall", "cluster")
    (table,) = (t for t in answer["tables"] if (t["collective"], t["communicator"]) == wanted)
    assert table["b_in_a"] > 0
    assert (1 + table["b_in_a"]) * (1 + table["a_in_b"]) == pytest.approx(1)
    others = [t for t in answer["tables"] if t["collective"] != "alltoall"]
    assert {t["b_in_a"] for t in others} == {0.0}
    differing = [one for one in table["ranges"] if one["a"] != one["b"]]
    assert {one["b"] for one in differing} == {"native"}
    ends = [(one["from"], one["to"]) for one in table["ranges"]]
    assert all(last + 1 == first for (_, last), (first, _) in itertools.pairwise(ends))
    text = stagegen("diff", *folders).stdout
    assert "B's choices lose" in text
    assert "alltoall" in text


def test_without_logs_only_the_choices_are_compared(folders):
    answer = compared(*(folder / "decision.json" for folder in folders))
    assert answer["total"] == {"a_in_b": None, "b_in_a": None}
    assert (answer["a"]["table"], answer["a"]["log"]) == (True, False)
    assert any(one["a"] != one["b"] for table in answer["tables"] for one in table["ranges"])


def test_one_log_is_enough_for_one_direction(folders):
    a, b = folders
    answer = compared(a / "decision.json", b)
    assert answer["total"]["a_in_b"] is not None
    assert answer["total"]["b_in_a"] is None


def test_a_log_alone_chooses_what_was_fastest(folders):
    log = folders[0] / "measurements.jsonl"
    answer = compared(folders[0], log)
    assert (answer["b"]["table"], answer["b"]["log"]) == (False, True)
    assert answer["tables"]
    assert answer["total"]["a_in_b"] > -NOISE
    same = compared(log, log)
    assert same["total"] == {"a_in_b": 0.0, "b_in_a": 0.0}


def test_a_log_without_its_topology_asks_for_it(recorded, folders, tmp_path):
    lone = tmp_path / "log.jsonl"
    lone.write_bytes(recorded[0].read_bytes())
    result = stagegen("diff", folders[0], lone)
    assert result.returncode == 2
    assert "--topology" in result.stderr
    topology = folders[0] / "topology.yaml"
    assert compared(folders[0], lone, "--topology", topology)["total"]["a_in_b"] > -NOISE


def test_other_topologies_are_compared_only_if_asked_for(folders, tmp_path):
    form = json.loads((folders[0] / "decision.json").read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**form, "topology_hash": "0" * 64}))
    result = stagegen("diff", folders[0] / "decision.json", other)
    assert result.returncode == 2
    assert "different topologies" in result.stderr
    assert compared(folders[0] / "decision.json", other, "--any-topology")["tables"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', '{"version": 9}'])
def test_a_damaged_table_is_reported_with_its_file(folders, tmp_path, text):
    (tmp_path / "decision.json").write_text(text)
    result = stagegen("diff", folders[0], tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(f"{tmp_path / 'decision.json'}: ")


def test_a_folder_with_neither_and_a_file_that_is_not_there_are_reported(folders, tmp_path):
    for path in (tmp_path, tmp_path / "none.json", tmp_path / "none.jsonl"):
        result = stagegen("diff", path, folders[0])
        assert result.returncode == 2
        assert result.stderr.startswith(f"{path}: ")


@pytest.mark.parametrize("words", [("validate",), ("diff", ".")])
def test_a_folder_that_does_not_exist_is_reported_as_such(words, tmp_path):
    nowhere = tmp_path / "nowhere"
    command, *rest = words
    ended = stagegen(command, nowhere, *rest)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"{nowhere}: there is nothing of this name; give a folder of")
