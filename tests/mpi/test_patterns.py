"""Routines for patterns: right for any counts, proven from their tables, in any order of ranks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.adaptive.known import NOTHING_KNOWN
from stagegen.audit import audit_folder
from stagegen.errors import InputError, ScheduleError
from stagegen.generate import run_make
from stagegen.generate.pattern_templates import pattern_root
from stagegen.library import write_library
from stagegen.patterns import Pattern, make_pattern
from stagegen.tune import Rule
from stagegen.tune.candidates import default_candidate
from stagegen.tune.communicators import name_of
from tests.mpi import builds, support
from tests.mpi.conformance import BOTH, PLAIN, built
from tests.mpi.patterned import (
    ADAPTS,
    EVEN,
    FAMILIES,
    FEW,
    GENERAL,
    ONE_LONG,
    RANKS,
    SAME_FOR_ALL,
    SKEWED,
    catalogue,
    decision,
    patterns,
)
from tests.mpi.test_example_programs import programs

pytestmark = pytest.mark.mpi


@lru_cache
def library(ranks: int, slots: int = 1, classes: bool = False, adapts: bool = False) -> Path:
    """The folder of a library with a routine for each pattern, and maybe classes of alltoallv.

    Its calls may adapt, too.
    """
    topology = support.cluster(ranks, slots)
    own = patterns(ranks) if slots == 1 else patterns(ranks, 40000)[:2]
    others = tuple(f"alltoallv/{name}" for name in ADAPTS) if adapts else ()
    found = catalogue(topology, own, others)
    folder = support.scratch() / f"patterns-{ranks}-{slots}-{classes}-{adapts}"
    rules = decision(topology, found, own)
    kept = tuple(one for one in rules.patterns if classes or not one.is_class)
    left = {name_of(one) for one in rules.patterns if one not in kept}
    tables = tuple(table for table in rules.tables if table.communicator not in left)
    chosen = replace(rules, tables=tables, patterns=kept)
    write_library(folder, topology, found, chosen, {}, NOTHING_KNOWN if adapts else None)
    return folder


#: What test programs count, or make fail.
WRAPPED = {
    "patterned.c": ("PMPI_Allreduce", "PMPI_Op_create", "PMPI_Op_free"),
    "lacking.c": ("calloc",),
    "persistent_uses.c": (),
}
#: What serves allgatherv, but has no plan.
WITHOUT_STEPS = "bruck"


@lru_cache
def program(folder: Path, source: str = "patterned.c") -> Path:
    """A program with the library of a folder."""
    tools = support.toolchain()
    run_make(folder, tools, "libcoll.a")
    command = [tools.mpicc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g"]
    command += [f"-I{folder / place}" for place in ("src", "check", "include")]
    made = folder / Path(source).stem
    command += [f"-Wl,--wrap={name}" for name in WRAPPED[source]]
    command += [str(support.HERE / source), "-o", str(made)]
    command += [str(folder / "libcoll.a"), "-pthread", "-lm"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return made


@pytest.mark.parametrize(
    ("ranks", "slots", "calls"),
    [(RANKS, 1, 300), (RANKS, 1, 3000), (RANKS, 2, 400),
     *(pytest.param(*row, marks=pytest.mark.slow)
       for row in ((5, 1, 200000), (9, 2, 20000), (16, 4, 20000)))],
)  # fmt: skip
def test_random_counts_arrive_whatever_the_pattern_is(ranks, slots, calls):
    result = support.run(ranks, program(library(ranks, slots)), 7, calls, timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.fullmatch(rf"{calls} calls, \d+ routines\n", result.stdout)


WAYS = [
    (RANKS, 1, PLAIN),
    (RANKS, 2, PLAIN),
    pytest.param(16, 1, PLAIN, marks=pytest.mark.slow),
    pytest.param(9, 4, PLAIN, marks=pytest.mark.slow),
    pytest.param(RANKS, 1, BOTH, marks=pytest.mark.slow),
    pytest.param(RANKS, 2, BOTH, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("ranks", "slots", "way"), WAYS)
def test_routines_of_patterns_give_the_bytes_of_native(ranks, slots, way):
    """Any datatypes, in place, most blocks empty, on all ranks and on parts, in any order."""
    folder = library(ranks, slots)
    check = built(folder, way)
    variables = way.environment(folder)
    result = support.run(ranks, check, "quick", timeout=600, variables=variables)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    (passed,) = re.findall(r"^alltoallv +(\d+) passed, 0 failed", result.stdout, re.MULTILINE)
    assert int(passed) > 50 * len(FAMILIES)


def with_flags(made: Path, folder: Path, flags: str) -> Path:
    """Copy a library's folder, to be built with other flags."""
    shutil.copytree(made, folder, ignore=shutil.ignore_patterns("build", "*.a", "*.so"))
    builds.add_flags(folder, flags)
    return folder


def test_messages_of_more_elements_than_one_may_have_are_cut(tmp_path):
    """As before MPI 4, where packed bytes may be more than an int counts; here more than 1,000."""
    folder = with_flags(library(RANKS), tmp_path / "cut", "-DCOLL_COUNT_MOST=1000")
    result = support.run(RANKS, program(folder), 7, 300, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr
    # Where MPI counts further than an int, nothing else would have it.
    assert b"coll_many_type" in (folder / "libcoll.a").read_bytes()


@pytest.mark.parametrize("bytes_held", [0, 300_000])
def test_leaders_without_room_for_long_blocks_leave_them_to_their_ranks(tmp_path, bytes_held):
    """All blocks, or those of more than 6,250 bytes."""
    flags = f"-DCOLL_LEADER_MOST={bytes_held}"
    folder = with_flags(library(RANKS, 2), tmp_path / "less", flags)
    result = support.run(RANKS, program(folder), 7, 300, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr


def served(
    tmp_path: Path,
    plan: str,
    calls: int,
    *words: str,
    seed: int = 11,
    collective: str = "alltoallv",
    classes: bool = False,
    adapts: str | None = None,
    folder: Path | None = None,
    ranks: int = RANKS,
) -> dict[str, int]:
    """Which routines served how many calls of a plan, each checked byte by byte.

    With `adapts`, a policy and its settings, what was learned is in `learned.json`.
    """
    variables = {"LIBCOLL_TRACE": f"json:{tmp_path / 'trace-%r.json'}"}
    if adapts is not None:
        learned = str(tmp_path / "learned.json")
        variables |= {"LIBCOLL_ADAPTIVE": adapts, "LIBCOLL_LEARN": learned}
    folder = folder or library(RANKS, classes=classes, adapts=adapts is not None)
    result = support.run(
        ranks, program(folder), seed, calls, plan, *words, variables=variables, timeout=900
    )
    assert result.returncode == 0, result.stdout + result.stderr
    counts: Counter[str] = Counter()
    for trace in tmp_path.glob("trace-*.json"):  # rank 0 of each communicator counts its calls
        for row in json.loads(trace.read_text())["calls"]:
            if row["collective"] == collective:
                counts[row["routine"]] += row["calls"]
    assert words or counts.total() == calls
    return dict(counts)


#: The last call of a pattern may be taken for one until its place has its 64th visit again.
LATEST = 12 * 64


@pytest.mark.parametrize("plan", ["a", "n", "aab", "ab", "abaabb", "A", "aabab", "aaababb"])
def test_calls_of_a_pattern_are_served_by_its_routine(tmp_path, plan):
    calls = 36 * len(plan)
    found = served(tmp_path, plan, calls)
    share = {
        "pattern_zipf": sum(c in "anA" for c in plan), "pattern_banded": plan.count("b"),
    }  # fmt: skip
    assert found == {name: 36 * count for name, count in share.items() if count}


def test_the_pattern_serves_the_first_calls_of_every_round(tmp_path):
    """So the times of `first_calls`, which `make bench-patterns` shows, include recognition."""
    folder, counts, trace = library(RANKS), tmp_path / "counts.txt", tmp_path / "trace.json"
    run_make(folder, support.toolchain(), "libcoll.so")
    (zipf,) = (one for one in patterns(RANKS) if one.name == "zipf")
    counts.write_text("".join(f"{' '.join(map(str, row))}\n" for row in zipf.sizes))
    result = support.run(
        RANKS, programs() / "first_calls", counts, 3,
        preload=(folder / "libcoll.so",), variables={"LIBCOLL_TRACE": f"json:{trace}"},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    rows = [row for row in json.loads(trace.read_text())["calls"]
            if row["collective"] == "alltoallv"]  # fmt: skip
    assert sum(row["calls"] for row in rows) == 30
    assert {row["routine"] for row in rows} == {"pattern_zipf"}


def test_a_rank_that_can_keep_nothing_makes_no_rank_wait():
    """Once for each rank: calls of that communicator then have no pattern."""
    lacking = program(library(RANKS), "lacking.c")
    result = support.run(RANKS, lacking, "alltoallv", timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_general_routine_takes_over_where_a_program_leaves_its_pattern(tmp_path):
    plan = "a" * 600 + "x" * 1000
    found = served(tmp_path, plan, len(plan))
    of_pattern = found.pop("pattern_zipf")
    assert 600 <= of_pattern <= 600 + LATEST
    assert not [name for name in found if name.startswith("pattern_")]


@pytest.mark.parametrize("first", ["aabab" * 10, "ab" * 25])
def test_a_program_may_begin_another_cycle(tmp_path, first):
    """With five places, or with twelve, half of the later calls would be taken for others."""
    last = {"aabab" * 10: "ax", "ab" * 25: "aabax"}[first]
    plan = first + 400 * last
    found = served(tmp_path, plan, len(plan))
    assert abs(found["pattern_zipf"] - plan.count("a")) <= 20
    assert abs(found["pattern_banded"] - plan.count("b")) <= 20


#: A million in all, in jobs that each end within the time limit.
MANY = [pytest.param(25_000, seed, marks=pytest.mark.slow) for seed in range(11, 31)]


@pytest.mark.parametrize(("calls", "seed"), [(1500, 11), *MANY])
@pytest.mark.parametrize("words", [(), ("communicators",)])
@pytest.mark.parametrize("classes", [False, True])
def test_ranks_that_disagree_neither_hang_nor_corrupt(tmp_path, words, calls, seed, classes):
    """One rank, or several, or all have other counts than the pattern's, in any order of calls."""
    found = served(tmp_path, "?", calls, *words, seed=seed, classes=classes)
    of_patterns = [name for name in found if name.startswith("pattern_")]
    assert len(of_patterns) > 1
    assert set(found) - set(of_patterns), "nothing general took over"


def test_a_general_routine_serves_if_one_rank_has_other_counts(tmp_path):
    found = served(tmp_path, "x", 500)
    assert not [name for name in found if name.startswith("pattern_")]


def test_a_general_routine_serves_if_several_ranks_have_other_counts(tmp_path):
    """By chance all ranks may have four times as much, or what they have in the last pattern."""
    found = served(tmp_path, "m", 2000)
    assert sum(n for name, n in found.items() if name.startswith("pattern_")) < 100


def test_a_pattern_is_recognised_on_every_communicator_of_all_ranks(tmp_path):
    """Duplicated and reordered ones; a half of the ranks has no pattern."""
    found = served(tmp_path, "a", 2000, "communicators")
    assert 1400 < found.pop("pattern_zipf") < 1600
    assert not [name for name in found if name.startswith("pattern_")]


#: Letters of a plan, how often each in 30 calls, and what serves them.
CLASSES = [
    ("E", {EVEN: 30}),
    ("L", {SKEWED: 30}),
    ("S", {EVEN: 30}),
    ("EL", {EVEN: 15, SKEWED: 15}),
    ("ELS", {EVEN: 20, SKEWED: 10}),
]


@pytest.mark.parametrize(("plan", "wanted"), CLASSES)
def test_allgatherv_is_served_by_the_class_of_its_blocks(tmp_path, plan, wanted):
    assert served(tmp_path, plan, 30, collective="allgatherv") == wanted


def test_a_persistent_allgatherv_has_the_plan_of_its_class(tmp_path):
    """The routine of even blocks has no plan, that of a long one has."""
    topology, own = support.cluster(RANKS), patterns(RANKS)
    found = catalogue(topology, own, (f"allgatherv/{WITHOUT_STEPS}",))
    usual = decision(topology, found, own)
    rules = (Rule(0, default_candidate(found.find("allgatherv", WITHOUT_STEPS))),)
    even = [("allgatherv", name) for name in ("cluster", name_of(SAME_FOR_ALL))]
    tables = [
        replace(one, rules=rules) if (one.collective, one.communicator) in even else one
        for one in usual.tables
    ]
    write_library(tmp_path, topology, found, replace(usual, tables=tuple(tables)), {}, None)
    made = program(tmp_path, "persistent_uses.c")
    told = support.run(RANKS, made, "even and long", variables={"LIBCOLL_TRACE": "1"})
    assert told.returncode == 0, told.stdout + told.stderr
    line = r"rank 0: allgatherv +persistent, planned +(\d+)\.\.\d+ +bytes +(\d+) starts"
    assert re.findall(line, told.stderr) == [("1024", "1")]


#: The same for alltoallv, in 60 calls.
AGREED_CLASSES = [
    ("v", {GENERAL: 60}),
    ("V", {FEW: 60}),
    ("h", {ONE_LONG: 60}),
    ("s", {GENERAL: 60}),
    ("i", {ONE_LONG: 60}),
    ("q", {FEW: 60}),
    ("0", {GENERAL: 60}),
    ("ahqv", {"pattern_zipf": 15, ONE_LONG: 15, FEW: 15, GENERAL: 15}),
    ("hvqbi", {ONE_LONG: 24, GENERAL: 12, FEW: 12, "pattern_banded": 12}),
]


@pytest.mark.parametrize(("plan", "wanted"), AGREED_CLASSES)
def test_alltoallv_of_no_pattern_is_served_by_the_class_of_its_blocks(tmp_path, plan, wanted):
    """Only two ranks see a long block, others each time, and no rank sees all blocks."""
    assert served(tmp_path, plan, 60, classes=True) == wanted


def test_a_class_is_found_on_every_communicator_of_all_ranks(tmp_path):
    found = served(tmp_path, "h", 2000, "communicators", classes=True)
    assert 1400 < found.pop(ONE_LONG) < 1600
    assert found, "a half of the ranks has no class"


#: Settings with which a stage has few calls.
POLICIES = ["star,iter=2,bound=4", "guard,iter=2,bound=4"]


@pytest.mark.parametrize("policy", POLICIES)
def test_calls_of_a_pattern_keep_their_routine_where_others_adapt(tmp_path, policy):
    """They count for no stage; other calls, which take turns with them, do: up to the last one."""
    found = served(tmp_path, "av", 240, adapts=policy)
    assert found.pop("pattern_zipf") == 120
    assert found.keys() <= {GENERAL, "native", *ADAPTS}
    assert len(found) > 1 or policy.startswith("guard")  # which only leaves what turns slow
    situations = json.loads((tmp_path / "learned.json").read_text())["situations"]
    learned = [one for one in situations if one["collective"] == "alltoallv"]
    assert 100 < sum(one["calls"] for one in learned if one["site"] is None) <= 120
    names = {one["algorithm"] for each in learned for one in each["candidates"]}
    assert set(ADAPTS) <= names <= {GENERAL, "native", *ADAPTS}


@pytest.mark.parametrize("policy", POLICIES)
def test_ranks_that_disagree_neither_hang_nor_corrupt_where_calls_adapt(tmp_path, policy):
    """Any calls, on communicators that come and go."""
    found = served(tmp_path, "?", 700, "communicators", adapts=policy)
    assert len([name for name in found if name.startswith("pattern_")]) > 1
    assert set(ADAPTS) & found.keys() or policy.startswith("guard")


@pytest.mark.parametrize(("calls", "most"), [(24, 24), (768, 84), (1536, 96)])
@pytest.mark.parametrize("plan", ["h", "a"])
def test_ranks_ask_each_other_as_often_as_the_documentation_says(plan, calls, most):
    folder = library(RANKS, classes=True)
    result = support.run(RANKS, program(folder), 7, calls, plan, "asked", timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == f"asked {most} times\n"


def test_tables_of_patterns_are_proven_from_the_c_files():
    proven = {one.routine: one for one in audit_folder(library(RANKS))}
    found = [one for name, one in proven.items() if name.startswith("alltoallv_pattern_")]
    assert len(found) >= len(FAMILIES)
    for one in found:
        assert not one.unproven
        assert len(one.proofs) == 1
        assert "every message that is not empty is sent exactly once" in str(one.proofs[0][1])


#: A change to the tables, and what the proof says of it.
CHANGES = [
    (r"(sizes\[\] = \{\n    0, )\d+", r"\g<1>0", "none of the pattern|pieces|is not a piece"),
    (r"(parts\[\] = .*?\{)0(, \d+, )", r"\g<1>1\2", "does not (send|receive) it|no such part"),
    (r"(\.awaited_most = )(\d)", r"\g<1>9", "awaited_most"),
    (r"(steps\[\] = .*?\{0, )\d+", r"\g<1>0", "does not (send|receive) it|phase 0|rank 0"),
]


def test_schedules_of_hosts_are_proven_between_their_leaders():
    proven = {one.routine: one for one in audit_folder(library(RANKS, 2))}
    for family in FAMILIES[:2]:
        ((label, proof),) = proven[f"alltoallv_pattern_{family}_by_host"].proofs
        assert label == "between hosts, ranks being their leaders"
        assert "every message that is not empty is sent exactly once" in str(proof)


def test_changed_leaders_fail_their_proof(tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(library(RANKS, 2), folder)
    path = folder / "src" / "alltoallv_pattern_zipf_by_host.tables.h"
    text, count = re.subn(r"(leader_of\[\] = \{\n    )0", r"\g<1>1", path.read_text())
    assert count == 1
    path.write_text(text)
    with pytest.raises(ScheduleError, match="not its first position"):
        list(audit_folder(folder))


def test_a_pattern_within_hosts_has_no_schedule_of_hosts():
    """Nor has one with blocks that leaders lack room for, or one on hosts with one rank each."""
    within = tuple(tuple(9 * (u // 2 == v // 2 and u != v) for v in range(4)) for u in range(4))
    own = Pattern("within", "alltoallv", within)
    assert list(pattern_root(support.cluster(4, 2), [own], "x.yaml").files) == [
        "alltoallv/pattern_within.c.j2"
    ]
    long = tuple(tuple(2**26 * (u != v) for v in range(4)) for u in range(4))
    own = Pattern("long", "alltoallv", long)
    assert [f for f in pattern_root(support.cluster(4, 2), [own], "x.yaml").files
            if "by_host" in f] == []  # fmt: skip
    across = patterns(4)[0]
    by_host = "alltoallv/pattern_zipf_by_host.c.j2"
    files = pattern_root(support.cluster(4, 2), [across], "x.yaml", scales=(1.0, 16.0)).files
    longest = int(re.search(r"set longest = (\d+)", files[by_host])[1])
    assert longest == 24 * int(across.array.max())
    own = [[2**33 * (u == v) or size for v, size in enumerate(row)]
           for u, row in enumerate(across.sizes)]  # fmt: skip
    kept = replace(across, sizes=tuple(map(tuple, own)))  # no rank sends itself anything
    assert pattern_root(support.cluster(4, 2), [kept], "x.yaml", scales=(1.0, 16.0)).files == files
    assert by_host in pattern_root(support.cluster(4, 2), [across], "x.yaml").files
    assert by_host not in pattern_root(support.cluster(4), [across], "x.yaml").files


@pytest.mark.parametrize(("pattern", "change", "why"), CHANGES)
def test_changed_tables_fail_their_proof(tmp_path, pattern, change, why):
    topology = support.cluster(4)
    found = catalogue(topology, patterns(4)[:1])
    write_library(tmp_path, topology, found, support.decision(topology, found), {})
    path = tmp_path / "src" / "alltoallv_pattern_zipf.tables.h"
    text, count = re.subn(pattern, change, path.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    path.write_text(text)
    with pytest.raises(ScheduleError, match=why):
        list(audit_folder(tmp_path))


def test_a_pattern_of_other_ranks_or_of_a_taken_name_is_refused():
    topology = support.cluster(4)
    with pytest.raises(InputError, match="4 ranks is needed"):
        pattern_root(topology, patterns(5)[:1], "x.yaml")
    own = patterns(4)[0]
    with pytest.raises(InputError, match="both become pattern_a_b"):
        pattern_root(topology, [replace(own, name="a b"), replace(own, name="A-b")], "x.yaml")
    with pytest.raises(InputError, match="both become pattern_a_greedy"):
        pattern_root(topology, [replace(own, name="a"), replace(own, name="a greedy")], "x.yaml")


def test_parts_of_several_segments_from_one_sender_do_not_change_places():
    """This schedule has such parts, one after the other."""
    ranks, topology = 4, support.cluster(4)
    own = [replace(make_pattern("zipf", ranks, 100_000, 2), name="parts")]
    found = catalogue(topology, own)
    folder = support.scratch() / "patterns-in-parts"
    write_library(folder, topology, found, decision(topology, found, own), {})
    result = support.run(ranks, program(folder), 7, 60, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
