"""`stagegen learn`: what programs learned becomes rules, and nothing else changes."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from statistics import median

import pytest
from click.testing import CliRunner

from stagegen.adaptive.known import NOTHING_KNOWN, KnownTime, Origin, read_known
from stagegen.adaptive.learned import Learned, LearnedStage, Situation
from stagegen.adaptive.merge import merge
from stagegen.adaptive.subjects import with_missing_tables
from stagegen.adaptive.times import Updated, update
from stagegen.catalogue import load_catalogue
from stagegen.catalogue.selection import Selection
from stagegen.cli import group
from stagegen.errors import InputError
from stagegen.library import write_library
from stagegen.measure.records import Candidate
from stagegen.tune.decision import DecisionTable, Rule, Table
from stagegen.tune.shapes import Range
from tests.library.schemas import validate
from tests.mpi import support

NATIVE, RING, SIMPLE = (Candidate(name) for name in ("native", "ring", "spreading_simple"))


def table(*rules):
    return Table.exactly("allgather", "cluster", 4, 4, rules)


def decision(*tables, topology_hash="a" * 64, catalogue_hash="b" * 64):
    return DecisionTable("cluster", topology_hash, catalogue_hash, True, tables)


TABLE = table(Rule(0, NATIVE), Rule(1024, SIMPLE))


def situation(size=2048, current=1, seconds=(2.0, 1.0), candidates=(SIMPLE, RING), **changes):
    stages = tuple(
        LearnedStage(i, 2, False, (time, time), (time, time), 0.0, "to be examined")
        for i, time in enumerate(seconds)
    )
    made = Situation("allgather", size, "cluster", 4, 4, 0, None, 100, 0.1, 4, current,
                     tuple(candidates), (0.0,) * len(candidates), stages, 0)  # fmt: skip
    return replace(made, **changes)


def learned(*situations, name="a.json", **changes):
    made = Learned(name, "cluster", "a" * 64, None, "halving", situations, 0)
    return replace(made, **changes)


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 2048])
def test_one_size_gets_a_rule_with_its_provenance_and_all_others_keep_their_choice(size):
    before = decision(TABLE)
    old = TABLE.choice(size)
    found = merge(before, [learned(situation(size, candidates=(old, RING)))], None)
    (after,) = found.decision.tables
    assert after.choice(size) == RING
    lesson = after.rule(size).learned
    assert (lesson.files, lesson.calls, lesson.seconds) == (("a.json",), 100, 1.0)
    assert (lesson.instead_of, lesson.instead_of_seconds) == (old.spec, 2.0)
    others = {0, 1, 2, 1022, 1023, 1024, 1025, 1026, 2047, 2048, 2049, 1 << 20} - {size}
    assert {s: after.choice(s) for s in others} == {s: TABLE.choice(s) for s in others}
    assert all(a.first < b.first for a, b in pairwise(after.rules))
    form = found.decision.to_json()
    validate("decision", form)
    assert DecisionTable.from_json(form) == found.decision


def test_a_collective_without_sizes_has_the_learned_rule_alone():
    before = Table.exactly("barrier", "cluster", 4, 4, (Rule(0, SIMPLE),))
    seen = situation(0, collective="barrier")
    (after,) = merge(decision(before), [learned(seen)], None).decision.tables
    assert [(rule.first, rule.candidate) for rule in after.rules] == [(0, RING)]


def test_the_report_has_means_where_maxima_decide():
    stages = (LearnedStage(0, 1, False, (1e-3,), (5e-3,), 0.0, "to be examined"),)
    one = situation(stages=stages, decided_by="max")
    assert (one.means[0], one.medians[0], one.longest[0]) == (1e-3, 5e-3, 5e-3)


LEFT_OUT = {
    "already": [situation(current=0)],
    "not faster": [situation(seconds=(1.02, 1.0))],
    "beside each other": [situation(candidates=(NATIVE, RING))],
    "differ": [situation(), situation(current=0, number=1)],
    "no table": [situation(ranks=3)],
    "had not selected": [situation(selected_after=None)],
    "not known": [situation(hosts=None)],
}


@pytest.mark.parametrize("why", LEFT_OUT)
def test_what_is_not_taken_over_says_why(why):
    before = decision(TABLE)
    found = merge(before, [learned(*LEFT_OUT[why])], None)
    assert found.decision == before
    assert not found.added
    (said,) = found.left_out
    assert why in said


def test_what_never_selected_or_stopped_where_sites_began_vetoes_nothing():
    """A call on a duplicate, and the search before sites were told apart, say nothing."""
    good = situation(site="program+0x1")
    once = situation(current=0, stages=(), selected_after=None, calls=1, number=7)
    before = situation(current=0, seconds=(1.0, 2.0), is_paused=True)
    other = situation(site="program+0x2")
    expected = merge(decision(TABLE), [learned(good, other)], None)
    assert expected.added
    found = merge(decision(TABLE), [learned(before, good, other, once)], None)
    assert found.decision == expected.decision
    assert found.added == expected.added


def test_a_composition_in_the_table_is_found_though_learned_files_do_not_name_its_parts():
    composed = Candidate.from_spec("of_gather_and_bcast+gather/native+bcast/native")
    plain = replace(composed, bound=())
    before = decision(table(Rule(0, NATIVE), Rule(1024, composed)))
    found = merge(before, [learned(situation(candidates=(plain, RING)))], None)
    (after,) = found.decision.tables
    assert after.choice(2048) == RING
    assert after.rule(2048).learned.instead_of == composed.spec
    same = merge(before, [learned(situation(current=0, candidates=(plain, RING)))], None)
    assert same.decision == before
    assert "already" in same.left_out[0]


def test_with_a_root_the_longest_rank_is_compared():
    """The mean over the ranks would say that the routine is slower."""
    stages = tuple(
        LearnedStage(i, 2, False, mean, most, 0.0, "to be examined")
        for i, (mean, most) in enumerate([((1.0, 1.0), (4.0, 4.0)), ((2.0, 2.0), (2.0, 2.0))])
    )
    assert not merge(decision(TABLE), [learned(situation(stages=stages))], None).added
    by_max = situation(stages=stages, decided_by="max")
    assert merge(decision(TABLE), [learned(by_max)], None).added


def test_calls_of_stages_that_were_left_out_count_in_the_report():
    stages = tuple(
        LearnedStage(i % 2, 2, i > 90, (1.0, 1.0), (1.0, 1.0), 0.0, "because") for i in range(128)
    )
    one = situation(stages=stages, left_out=10, calls=500, selected_after=3)
    numbers = [call for call, _, _ in one.changes()]
    assert numbers[:96] == [2 * i for i in range(96)]
    assert numbers[96] == 500 - 2 * 32
    assert one.overheads().selected_after == 3


def test_a_table_that_serves_other_shapes_stays_as_it_is():
    before = decision(replace(TABLE, hosts=Range(3, None)))
    found = merge(before, [learned(situation())], None)
    assert found.decision == before
    assert "other communicators" in found.left_out[0]


def of_bcast(**changes):
    """What a program learned of a collective that tuning left out."""
    chain = Candidate("binomial")
    changes = {"collective": "bcast", "candidates": (NATIVE, chain), "decided_by": "max"} | changes
    return situation(**changes)


def test_a_collective_that_tuning_left_out_gets_a_table_for_the_same_ranks():
    files = [learned(of_bcast())]
    before = with_missing_tables(decision(TABLE), files)
    assert before.tables[0] == TABLE
    (made,) = before.tables[1:]
    assert (made.collective, made.communicator, made.ranks) == ("bcast", "cluster", 4)
    assert made.is_native
    merged = merge(before, files, None)
    (after,) = (one for one in merged.decision.tables if one.collective == "bcast")
    served = [after.choice(size).algorithm for size in (0, 2047, 2048, 2049)]
    assert served == ["native", "native", "binomial", "native"]
    known_now = update(NOTHING_KNOWN, before, files, None).known
    assert {one.candidate.algorithm for one in known_now.of_table(after)} == {"native", "binomial"}


@pytest.mark.parametrize(
    "changes",
    [
        {"collective": "allgather"},
        {"hosts": 2},
        {"communicator": "group near"},
        {"selected_after": None},
        {"hosts": None},
    ],
)
def test_no_table_is_made_beside_another_one_or_for_other_ranks(changes):
    files = [learned(of_bcast(**changes))]
    assert with_missing_tables(decision(TABLE), files) == decision(TABLE)


def test_the_order_of_files_does_not_matter():
    files = [learned(situation(size), name=f"{size}.json") for size in (10, 2048, 2049, 4096)]
    files = [replace(f, situations=tuple(replace(s, candidates=(TABLE.choice(s.size), RING))
                                         for s in f.situations)) for f in files]  # fmt: skip
    expected = merge(decision(TABLE), files, None)
    assert len(expected.added) == 4
    random.Random(1).shuffle(files)
    assert merge(decision(TABLE), files, None) == expected


@pytest.mark.parametrize(
    ("changes", "build"), [({"topology_hash": "c" * 64}, None), ({"build_hash": "1"}, "2")]
)
def test_a_file_of_another_cluster_or_build_is_refused(changes, build):
    with pytest.raises(InputError, match="another"):
        merge(decision(TABLE), [learned(situation(), **changes)], build)


def learned_file(topology):
    """What a program leaves that found ring faster than spreading_simple."""
    row = {"parameters": {}, "group": 0, "is_representative": False, "known_s": None}
    return {
        "version": 1, "library": "0", "cluster": topology.name, "topology_hash": topology.hash,
        "policy": "halving", "settings": {}, "left_out": 0,
        "situations": [{
            "collective": "allgather", "bytes": 2048, "communicator": "cluster", "number": 0,
            "ranks": 4, "hosts": 4, "site": None, "calls": 100, "meetings_s": 0.1,
            "selected_after": 4, "current": 1, "stages_left_out": 0,
            "candidates": [{"algorithm": one.algorithm, **row} for one in (SIMPLE, RING)],
            "stages": [
                {"candidate": i, "calls": 1, "is_monitoring": False, "mean_s": [2.0 - i],
                 "max_s": [2.0 - i], "skew_s": 0, "decision": "x"}
                for i in (0, 1)
            ],
        }],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("adaptive", "made_by"), [(None, None), (NOTHING_KNOWN, "stagegen reconfigure …")]
)
def test_the_command_makes_the_library_anew(tmp_path, adaptive, made_by):
    """A library whose calls adapt still does so, whatever command made it."""
    topology, catalogue = support.cluster(4), load_catalogue()
    catalogue = catalogue.selecting(Selection(("allgather/ring", "allgather/spreading_simple")))
    library, file = tmp_path / "library", tmp_path / "learned.json"
    hashes = {"topology_hash": topology.hash, "catalogue_hash": catalogue.hash}
    tuned = decision(TABLE, **hashes)
    write_library(library, topology, catalogue, tuned, {}, adaptive, made_by)
    command = json.loads((library / "manifest.json").read_text())["command"]
    assert command == made_by or made_by is None
    form = learned_file(topology)
    file.write_text(json.dumps(form))
    words = ["learn", str(file), "--library", str(library)]
    (library / "report.html").write_text("the old table")
    done = CliRunner().invoke(group, words)
    assert "report.html: removed, since it shows the table without what was learned" in done.output
    assert not (library / "report.html").exists()
    assert done.exit_code == 0, (done.output, done.exception)
    assert "ring instead of spreading_simple" in done.output
    made = json.loads((library / "decision.json").read_text())
    assert [rule.get("learned", {}).get("calls") for rule in made["tables"][0]["rules"]] == [
        None, None, 100, None,
    ]  # fmt: skip
    assert (library / "src" / "allgather_ring.c").is_file()
    assert [one["collective"] for one in made["tables"]] == ["allgather"]
    assert json.loads((library / "manifest.json").read_text())["command"] == command
    assert (library / "known.json").is_file() == (adaptive is not None)
    file.write_text(json.dumps(form | {"build_hash": "0" * 16}))
    assert "another build" in str(CliRunner().invoke(group, words).exception)


def tuned_library(folder, algorithms):
    """Write a library of a catalogue with these algorithms; return the command that learns."""
    topology = support.cluster(4)
    catalogue = replace(load_catalogue(), algorithms=tuple(algorithms))
    hashes = {"topology_hash": topology.hash, "catalogue_hash": catalogue.hash}
    table = Table.exactly("allgather", "cluster", 4, 4, (Rule(0, SIMPLE, alternatives=(RING,)),))
    write_library(folder / "library", topology, catalogue, decision(table, **hashes), {})
    file = folder / "learned.json"
    file.write_text(json.dumps(learned_file(topology)))
    return ["learn", str(file), "--library", str(folder / "library")]


def with_hash(name, value):
    """Return all algorithms, one of them with the hash of another source."""
    for one in load_catalogue().algorithms:
        yield replace(one, hash=value) if one.full_name == name else one


def test_an_algorithm_that_was_added_since_is_no_obstacle(tmp_path):
    before = [one for one in load_catalogue().algorithms if one.full_name != "alltoall/ring"]
    done = CliRunner().invoke(group, tuned_library(tmp_path, before), catch_exceptions=False)
    assert "learned: " in done.output
    made = json.loads((tmp_path / "library" / "decision.json").read_text())
    manifest = json.loads((tmp_path / "library" / "manifest.json").read_text())
    assert made["catalogue_hash"] == manifest["catalogue_hash"] == load_catalogue().hash
    validate("manifest", manifest)


def test_a_change_of_a_routine_that_the_library_lacks_is_no_obstacle(tmp_path):
    words = tuned_library(tmp_path, with_hash("allgather/bruck", "0" * 64))
    assert "learned: " in CliRunner().invoke(group, words, catch_exceptions=False).output


@pytest.mark.parametrize("name", ["allgather/ring", "allgather/spreading_simple"])
def test_a_routine_of_the_library_that_has_changed_since_is_named(tmp_path, name):
    words = tuned_library(tmp_path, with_hash(name, "0" * 64))
    before = (tmp_path / "library" / "decision.json").read_bytes()
    wrong = f"changed since they were measured: {name}; measure them anew with `stagegen tune --re"
    with pytest.raises(InputError, match=wrong):
        CliRunner().invoke(group, words, catch_exceptions=False)
    assert (tmp_path / "library" / "decision.json").read_bytes() == before


def test_a_manifest_without_routines_says_how_to_make_it_again(tmp_path):
    words = tuned_library(tmp_path, load_catalogue().algorithms)
    file = tmp_path / "library" / "manifest.json"
    form = json.loads(file.read_text())
    del form["routines"]
    file.write_text(json.dumps(form))
    with pytest.raises(InputError, match=r"lists no `routines`.* `stagegen tune --from-log`"):
        CliRunner().invoke(group, words, catch_exceptions=False)


def known(*rows):
    return NOTHING_KNOWN.having(TABLE, [KnownTime(*row) for row in rows])


def known_at(found, size):
    rows = found.known.of_table(TABLE)
    return {one.candidate.algorithm: one for one in rows if one.size == size}


#: A program's calls take ten times as long as tuning's. It does not try `native`.
TUNED = known((1024, SIMPLE, 0.2), (4096, RING, 0.1), (4096, SIMPLE, 0.3), (1024, NATIVE, 0.4))


@pytest.mark.parametrize("size", [1024, 2000, 4096])
def test_what_programs_measured_is_known_and_the_rest_is_scaled(size):
    found = update(TUNED, decision(TABLE), [learned(situation(size))], None)
    (line,) = found.added
    assert "2 of programs, 1 scaled" in line
    rows, old = known_at(found, size), 0.2 + 0.1 * (size - 1024) / (4096 - 1024)
    factor = (2.0 / old + 1.0 / 0.1) / 2
    assert {name: one.seconds for name, one in rows.items()} == pytest.approx(
        {"spreading_simple": 2.0, "ring": 1.0, "native": 0.4 * size / 1024 * factor}
    )
    assert rows["ring"].learned == Origin(("a.json",), 2)
    assert rows["native"].learned == Origin(("a.json",), 0, pytest.approx(factor))
    others = [one for one in found.known.of_table(TABLE) if one.size != size]
    assert others == [one for one in TUNED.of_table(TABLE) if one.size != size]


def test_only_candidates_that_all_programs_tried_count():
    late = situation(number=1, seconds=(20.0, 30.0), candidates=(SIMPLE, NATIVE))
    found = update(TUNED, decision(TABLE), [learned(situation(), late)], None)
    rows = known_at(found, 2048)
    assert {name for name, one in rows.items() if one.learned.calls} == {"spreading_simple"}
    assert rows["spreading_simple"].seconds == median([2.0, 2.0, 20.0, 20.0])
    ratios = {name: one.learned.factor for name, one in rows.items() if not one.learned.calls}
    assert len(set(ratios.values())) == 1


@pytest.mark.parametrize(
    ("why", "before", "seen"),
    [
        ("no table", TUNED, situation(ranks=3)),
        ("all situations", TUNED, situation(seconds=())),
        ("tuning knows nothing", known((64, NATIVE, 1.0)), situation()),
    ],
)
def test_times_that_are_not_taken_over_say_why(why, before, seen):
    found = update(before, decision(TABLE), [learned(seen)], None)
    assert (found.known, found.added) == (before, ())
    (said,) = found.left_out
    assert why in said


def test_the_order_of_files_does_not_matter_for_times():
    files = [learned(situation(2048, number=i, seconds=(2.0 + i, 1.0)), name=f"{i}.json")
             for i in range(4)]  # fmt: skip
    expected = update(TUNED, decision(TABLE), files, None)
    assert update(TUNED, decision(TABLE), files[::-1], None) == expected
    validate("known", json.loads(expected.known.to_text()))


def test_known_times_are_read_as_they_were_written(tmp_path):
    composed = Candidate.from_spec("of_gather_and_bcast+gather/native+bcast/knomial:radix=4")
    before = TUNED.having(TABLE, [*TUNED.of_table(TABLE), KnownTime(2048, composed, 1.5)])
    found = update(before, decision(TABLE), [learned(situation())], None).known
    (tmp_path / "known.json").write_text(found.to_text())
    assert read_known(tmp_path / "known.json") == found
    assert known_at(Updated(found, (), ()), 2048)[composed.algorithm].candidate == composed


@pytest.mark.parametrize("text", [None, "{", "[]", '{"version": 2}', '{"version": 1}'])
def test_a_damaged_table_of_known_times_is_refused(tmp_path, text):
    file = tmp_path / "known.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=r"known times|--adaptive"):
        read_known(file)
