"""``stagegen patterns`` and ``stagegen schedule alltoallv``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from stagegen.cli import group
from stagegen.cli._tune_patterns import patterns_of
from stagegen.errors import InputError, NotFoundError
from stagegen.patterns import (
    COLLECTIVES,
    FAMILIES,
    Pattern,
    make_pattern,
    patterns_yaml,
    read_patterns,
)
from stagegen.recording.functions import arguments_of
from stagegen.topology import Group, load_topology
from tests.recording.test_blocks import COLUMNS, ROWS, made

CLUSTER = "topologies/chain-4x4-cyclic.yaml"


def run(*words: str) -> str:
    result = CliRunner().invoke(group, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(run("patterns", "make", "zipf", "--ranks", "16", "--name", "z"))
    return path


@pytest.mark.parametrize("family", FAMILIES)
def test_make_writes_what_can_be_read(tmp_path, family):
    path = tmp_path / "p.yaml"
    path.write_text(run("patterns", "make", family, "--ranks", "8", "--average", "1000"))
    (pattern,) = read_patterns(path)
    assert pattern.ranks == 8


def test_make_writes_a_class(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(run("patterns", "make", "heavy", "--ranks", "8", "--class"))
    (pattern,) = read_patterns(path)
    assert pattern.is_class
    (form,) = json.loads(run("patterns", str(path), "--format", "json"))["patterns"]
    assert form["class"] is True
    assert form["largest_over_mean"] == pytest.approx(pattern.largest_over_mean)
    head, row = run("patterns", str(path)).splitlines()[-2:]
    assert row.split()[head.split().index("largest")] == f"{pattern.largest_over_mean:.3g}"


def test_a_name_is_checked():
    for name in ("", "a\nb", " a"):
        with pytest.raises(InputError, match=r"--name .* has to have 1 to 80 printable characters"):
            run("patterns", "make", "zipf", "--ranks", "8", "--name", name)


def test_text_and_json_tell_the_patterns_of_a_file(file):
    text = run("patterns", str(file), "--topology", CLUSTER)
    assert "patterns by threshold: 0: 1" in text
    assert "z: at least" in text
    form = json.loads(run("patterns", str(file), "--topology", CLUSTER, "--format", "json"))
    schema = json.loads(Path("docs/schemas/patterns.json").read_text())
    jsonschema.validate(form, schema)
    (one,) = form["patterns"]
    assert one["bound_seconds"] == max(link["seconds"] for link in one["links"])


def test_output_holds_the_same_patterns_and_the_picture_is_the_same_again(file, tmp_path):
    output, picture = tmp_path / "o.yaml", tmp_path / "p.svg"
    run("patterns", str(file), "--output", str(output), "--picture", str(picture))
    assert read_patterns(output) == read_patterns(file)
    first = picture.read_text()
    assert first.startswith("<svg")
    run("patterns", str(file), "--picture", str(picture))
    assert picture.read_text() == first


def placed(path: Path, *patterns: Pattern) -> str:
    path.write_text(patterns_yaml(patterns))
    return str(path)


@pytest.fixture
def turned():
    """A pattern, and what is recorded of it on a communicator in the reverse order."""
    plain = make_pattern("zipf", 16, 20000, 3)
    rows = tuple(row[::-1] for row in plain.sizes[::-1])
    return plain, replace(plain, sizes=rows, communicator=tuple(range(16))[::-1])


def test_a_reversed_communicator_has_the_bound_the_schedule_and_the_library_of_its_ranks(
    turned, tmp_path
):
    forms, schedules, tuned = [], [], []
    for number, pattern in enumerate(turned):
        file = placed(tmp_path / f"{number}.yaml", pattern)
        where = ("--topology", CLUSTER, "--format", "json")
        forms.append(json.loads(run("patterns", file, *where))["patterns"][0])
        schedules.append(json.loads(run("schedule", "alltoallv", "--pattern", file, *where)))
        tuned += patterns_of(Path(file), load_topology(CLUSTER))
    assert forms[0]["bytes"] != forms[1]["bytes"]
    assert forms[0]["links"] == forms[1]["links"]
    assert schedules[0] == schedules[1]
    assert tuned[0].sizes == tuned[1].sizes


def test_patterns_are_tuned_for_on_all_ranks_or_on_the_group_that_has_them(tmp_path, capsys):
    cluster = load_topology(CLUSTER)
    first = cluster.switches[0].hosts
    ranks = [rank for rank, host in enumerate(cluster.ranks) if host in first]
    grouped = replace(cluster, groups=(Group("first", tuple(first)),))
    few = make_pattern("zipf", 4, 1000)
    turned = tuple(ranks[::-1])
    file = placed(
        tmp_path / "p.yaml",
        replace(make_pattern("zipf", 16, 1000), name="whole"),
        replace(few, name="here", communicator=turned),
        replace(few, name="row", collective="allgatherv", sizes=few.sizes[:1], communicator=turned),
        replace(few, name="there", communicator=tuple(rank + 1 for rank in ranks)),
        replace(few, name="anywhere"),
        replace(few, name="rooted", collective="gatherv", sizes=few.sizes[:1], communicator=turned),
    )
    found = {one.name: one for one in patterns_of(Path(file), grouped)}
    assert {name: one.group for name, one in found.items()} == {
        "whole": None, "here": "first", "row": "first",
    }  # fmt: skip
    assert found["here"].communicator == tuple(ranks)
    assert found["here"].sizes == tuple(row[::-1] for row in few.sizes[::-1])
    told = capsys.readouterr().err
    assert "left out: there, anywhere, rooted. Tuning is for each alltoallv and allgatherv" in told
    assert "ranks of a group in the topology file" in told
    assert [one.name for one in patterns_of(Path(file), cluster)] == ["whole"]


def test_typical_calls_come_after_the_patterns_of_a_file(tmp_path):
    cluster = load_topology(CLUSTER)
    own = replace(make_pattern("zipf", 16, 1000), name="own")
    names = ["class even", "class sparse", "class one-long"]
    assert [one.name for one in patterns_of(None, cluster, has_classes=True)] == names
    file = Path(placed(tmp_path / "p.yaml", own))
    found = patterns_of(file, cluster, has_classes=True)
    assert [one.name for one in found] == ["own", *names]
    placed(file, replace(own, name="class even"))
    for has_classes in (False, True):
        with pytest.raises(InputError, match="'class even' is the name of a pattern of --classes"):
            patterns_of(file, cluster, has_classes=has_classes)


def test_classes_are_refused_where_no_collective_has_any(tmp_path):
    words = ("tune", "--topology", CLUSTER, "--launcher", "local", "--output", str(tmp_path / "o"))
    result = CliRunner().invoke(group, [*words, "--classes", "--collectives", "bcast"])
    assert result.exit_code == 2
    assert "--classes tunes alltoallv and allgatherv; --collectives has neither" in result.output
    assert not (tmp_path / "o").exists()


def test_patterns_of_other_ranks_than_the_clusters_have_a_bound_if_these_are_known(tmp_path):
    """Ranks 0, 4, 8 and 12 are on one switch of CLUSTER: only the links of hosts carry data."""
    whole = replace(make_pattern("zipf", 16, 1000), name="whole")
    few = replace(make_pattern("zipf", 4, 1000), name="few")
    row = replace(few, name="row", collective="allgatherv", sizes=few.sizes[:1])
    near = (0, 4, 8, 12)
    file = placed(
        tmp_path / "p.yaml",
        few,
        whole,
        replace(few, name="near", communicator=near),
        replace(row, communicator=near),
        replace(few, name="beyond", communicator=(0, 1, 2, 16)),
    )
    text = run("patterns", file, "--topology", CLUSTER)
    assert "few: no bound: its 4 ranks are not known among the cluster's 16" in text
    assert "beyond: no bound: `communicator:` has rank 16; the cluster has 0 to 15" in text
    assert "whole: at least" in text
    form = json.loads(run("patterns", file, "--topology", CLUSTER, "--format", "json"))
    jsonschema.validate(form, json.loads(Path("docs/schemas/patterns.json").read_text()))
    by_name = {one["name"]: one for one in form["patterns"]}
    for name in ("few", "beyond"):
        assert (by_name[name]["links"], by_name[name]["bound_seconds"]) == (None, None)
    hosts = {load_topology(CLUSTER).ranks[rank] for rank in near}
    for name in ("near", "row"):
        links = by_name[name]["links"]
        assert all(hosts & {*link["edge"]} for link in links if link["bytes"])
        assert by_name[name]["bound_seconds"] == links[0]["seconds"] > 0
    sent = dict.fromkeys(hosts, 0)
    for rank, blocks in zip(near, few.array.tolist(), strict=True):
        sent[load_topology(CLUSTER).ranks[rank]] += sum(blocks)
    links = {link["edge"][0]: link["bytes"] for link in by_name["near"]["links"]}
    assert {name: links[name] for name in hosts} == sent


@pytest.mark.parametrize("construction", ["greedy", "all-to-all", "segments"])
def test_schedule_prints_the_gap_and_the_proof(file, construction):
    words = ("schedule", "alltoallv", "--topology", CLUSTER, "--pattern", str(file))
    text = run(*words, "--schedule", construction)
    assert "a gap of" in text
    assert "follow each other's arrival" in text
    form = json.loads(run(*words, "--schedule", construction, "--format", "json"))
    assert form["kind"] == construction
    assert form["gap"] == pytest.approx(form["seconds"] / form["bound_seconds"] - 1, abs=1e-9)


def test_a_schedule_goes_to_a_file(file, tmp_path):
    words = ("schedule", "alltoallv", "--topology", CLUSTER, "--pattern", str(file))
    path = tmp_path / "order.txt"
    assert run(*words, "--output", str(path)) == ""
    assert path.read_text() == run(*words)


def test_by_host_leaves_one_rank_on_each_host(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(run("patterns", "make", "zipf", "--ranks", "16"))
    words = ("schedule", "alltoallv", "--topology", "topologies/slots-4x2x2.yaml", "--by-host")
    form = json.loads(run(*words, "--pattern", str(path), "--format", "json"))
    assert len(form["ranks"]) == 8
    for ranks in ("8", "24"):
        path.write_text(run("patterns", "make", "zipf", "--ranks", ranks))
        with pytest.raises(InputError, match=f"on {ranks} ranks; an alltoallv on 16 ranks"):
            run(*words, "--pattern", str(path))


def test_data_within_hosts_has_no_bound(tmp_path):
    path = placed(
        tmp_path / "p.yaml",
        Pattern("w", "alltoallv", tuple(tuple(9 * ((u, v) == (0, 1)) for v in range(16))
                                        for u in range(16))),
    )  # fmt: skip
    words = ("schedule", "alltoallv", "--topology", "topologies/slots-4x2x2.yaml")
    assert "no link carries data, so there is no bound" in run(*words, "--pattern", path)
    form = json.loads(run(*words, "--pattern", path, "--format", "json"))
    assert form["gap"] is None


def test_more_messages_than_a_proof_can_hold_have_no_schedule(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(run("patterns", "make", "zipf", "--ranks", "150"))
    cluster = tmp_path / "t.yaml"
    cluster.write_text(
        'name: t\ndefaults: {bandwidth: 1Gbit, latency: 1us}\nswitches: {s: {hosts: "n[0-149]"}}\n'
    )
    words = ("schedule", "alltoallv", "--topology", str(cluster), "--pattern", str(path))
    with pytest.raises(NotFoundError, match="22350 messages; at most 20000"):
        run(*words)


def test_parts_of_a_length_are_of_one_schedule(file):
    words = ["schedule", "alltoallv", "--topology", CLUSTER, "--pattern", str(file)]
    result = CliRunner().invoke(group, [*words, "--schedule", "greedy", "--segment", "8"])
    assert result.exit_code == 2
    assert "--segment needs --schedule segments" in result.output


def test_a_recording_that_lacks_a_rank_says_so(tmp_path, monkeypatch):
    """Its calls are known, but not whole."""
    whole = made([("alltoallv", ROWS, COLUMNS)] * 3)
    monkeypatch.setattr("stagegen.cli.patterns.is_recording", lambda file: True)
    file = placed(tmp_path / "r", make_pattern("zipf", 4, 9))
    monkeypatch.setattr("stagegen.cli.patterns.read", lambda _: whole)
    assert "nothing is known" not in run("patterns", file)
    gone = replace(whole, ranks=whole.ranks[:2])
    monkeypatch.setattr("stagegen.cli.patterns.read", lambda _: gone)
    with pytest.raises(NotFoundError, match="nothing is known of rank 2; 0 calls left out; 3 lack"):
        run("patterns", file)
    lost = replace(whole.ranks[1], events=whole.ranks[1].events[2:], dropped=2)
    some = replace(whole, ranks=(whole.ranks[0], lost, whole.ranks[2]))
    monkeypatch.setattr("stagegen.cli.patterns.read", lambda _: some)
    assert run("patterns", file).startswith("2 calls left out; 2 lack a rank\n")


def test_patterns_of_other_than_blocking_calls_are_named_and_not_written(tmp_path, monkeypatch):
    calls = [("alltoallv", ROWS, COLUMNS), ("ialltoallv", ROWS, COLUMNS)]
    monkeypatch.setattr("stagegen.cli.patterns.is_recording", lambda file: True)
    monkeypatch.setattr("stagegen.cli.patterns.read", lambda _: made(calls))
    file = placed(tmp_path / "r", make_pattern("zipf", 4, 9))
    output = tmp_path / "p.yaml"
    text = run("patterns", file, "--output", str(output))
    assert text.startswith("not of blocking calls, so no rule serves them")
    assert [one.name for one in read_patterns(output)] == ["alltoallv-0"]
    form = json.loads(run("patterns", file, "--format", "json"))
    assert [one["blocking"] for one in form["patterns"]] == [True, False]
    monkeypatch.setattr("stagegen.cli.patterns.read", lambda _: made(calls[1:]))
    with pytest.raises(NotFoundError, match="no pattern of blocking calls"):
        run("patterns", file, "--output", str(output))


def test_a_file_has_equal_patterns_of_communicators_with_the_same_ranks_once(tmp_path, monkeypatch):
    """It cannot tell these communicators apart."""
    plain = made([("alltoallv", ROWS, COLUMNS)] * 2)
    world = plain.communicators[0]
    ranks = [replace(rank, communicators=(0, 1)) for rank in plain.ranks]
    for rank in ranks:
        rank.events["communicator"], rank.events["sequence"] = [0, 1], [0, 0]
    both = replace(plain, communicators=(world, replace(world, ordinal=1)), ranks=tuple(ranks))
    monkeypatch.setattr("stagegen.cli.patterns.is_recording", lambda file: True)
    monkeypatch.setattr("stagegen.cli.patterns.read", lambda _: both)
    file, output = placed(tmp_path / "r", make_pattern("zipf", 4, 9)), tmp_path / "p.yaml"
    form = json.loads(run("patterns", file, "--output", str(output), "--format", "json"))
    assert len(form["patterns"]) == 2
    assert len(read_patterns(output)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "-1"], "-1 is not in the range"),
        (["--ranks", "20000"], "20000 is not in the range"),
    ],
)
def test_make_refuses_what_has_no_pattern(words, said):
    given = ["patterns", "make", "zipf", "--ranks", "4", *words]
    result = CliRunner().invoke(group, given)
    assert (result.exit_code, said in result.output) == (2, True), result.output


def test_an_unknown_name_has_status_3(file):
    words = ["schedule", "alltoallv", "--topology", CLUSTER, "--pattern", str(file), "--name", "q"]
    result = CliRunner().invoke(group, words)
    assert type(result.exception).__name__ == "NotFoundError"


def test_the_recorder_finds_counts_in_all_collectives_that_have_patterns():
    for name in COLLECTIVES:
        assert {"sendcounts", "recvcounts"} & set(arguments_of(name)), name
