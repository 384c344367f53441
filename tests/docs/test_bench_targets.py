"""Targets on made-up results, and the pages that are made from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from docs.tools.bench.__main__ import judge
from docs.tools.bench.families import entrants, meetings, samples_of
from docs.tools.bench.page import BEGIN, END, PAGE_BEGIN, PAGE_END, page, readme, summary, table
from docs.tools.bench.picture import plot
from docs.tools.bench.plan import CLUSTERS, FIXED, KIB
from docs.tools.bench.results import Result
from docs.tools.bench.targets import GOALS, targets
from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate
from stagegen.topology import load_topology
from stagegen.tune.candidates import default_candidate
from stagegen.tune.field import Sample
from tests.docs.bench_rows import carried, launched_again, meeting, row

CATALOGUE = load_catalogue()
MEETINGS = tuple(meeting(size, 0.99) for size in (32 * KIB, 64 * KIB, 256 * KIB))
RANDOM = next(name for name in CLUSTERS if name != FIXED.name)


def good(cluster: str = FIXED.name, congestion: str = "cubic") -> Result:
    """All goals met."""
    rows = {}
    for goal in GOALS:
        if goal.everywhere or cluster == FIXED.name:
            speedup = max(goal.speedup, 1.0 if congestion == "cubic" else 1.8)
            rows[goal.collective, goal.size] = row(goal.collective, goal.size, speedup, 1.1)
    return Result(cluster, congestion, 16, tuple(rows.values()), MEETINGS, {"bcast": 3.0})


def with_rows(result: Result, *rows) -> Result:
    known = {(one.collective, one.size): one for one in (*result.rows, *rows)}
    return replace(result, rows=tuple(known.values()))


def without(result: Result, collective: str, size: int) -> Result:
    left = (one for one in result.rows if (one.collective, one.size) != (collective, size))
    return replace(result, rows=tuple(left))


#: What was measured otherwise, and how many targets are missed by that, and not measured.
MEASURED = {
    "all met": (good(), 0, 0),
    "slower than an earlier run": (good(congestion="bbr"), 1, 0),
    "all met on a random cluster": (good(RANDOM), 0, 0),
    "slower than native": (with_rows(good(), row("bcast", 64, 0.96, 0.5)), 1, 0),
    "slower than native in one job": (
        with_rows(good(), launched_again(row("bcast", 64, 0.96, 0.5), [1.0] * 3, [1.0] * 3)), 0, 0,
    ),
    "slower than native in further launches": (
        with_rows(good(), launched_again(row("bcast", 64, 1.0, 0.5), [1.0] * 3, [1.1] * 3)), 1, 0,
    ),
    "told apart from native in one job": (
        with_rows(good(), launched_again(
            row("gather", 64 * KIB, 0.96, 1.1), [1.0] * 3, [1.0] * 3
        )), 0, 0,
    ),
    "a little slower": (with_rows(good(), row("bcast", 64, 0.98, 0.5)), 0, 0),
    "a speed-up": (with_rows(good(), row("allgather", 64 * KIB, 3.4, 1.1)), 1, 0),
    "over the bound": (with_rows(good(), row("bcast", 1 << 20, 4, 1.16)), 1, 0),
    "over the bound everywhere": (
        with_rows(good(RANDOM), row("alltoall", 64 * KIB, 2, 1.13)), 1, 0,
    ),
    "told apart from native": (with_rows(good(), row("gather", 64 * KIB, 0.975, 1.1)), 1, 0),
    "not told apart": (with_rows(good(), row("gather", 64 * KIB, 0.99, 1.1)), 0, 0),
    "carried": (with_rows(good(), carried(row("gather", 64 * KIB, 0.975, 1.1))), 0, 0),
    "carried, below the least": (
        with_rows(good(), carried(row("gather", 64 * KIB, 0.965, 1.1))), 2, 0,
    ),
    "without a point": (without(good(), "alltoall", 32 * KIB), 0, 1),
    "AAPC is behind": (replace(good(), meetings=(meeting(32 * KIB, 1.02), *MEETINGS[1:])), 1, 0),
    "AAPC is behind by noise": (
        replace(good(), meetings=(meeting(32 * KIB, 1.02, 0.05), *MEETINGS[1:])), 0, 0,
    ),
    "AAPC did not meet the rest": (replace(good(), meetings=()), 0, 3),
    "a guideline": (
        with_rows(good(), row("gather", 8, 2, 1.2), row("allgather", 8, 2, 1.0)), 1, 0,
    ),
    "a guideline in one job": (
        with_rows(good(), *(
            launched_again(row(name, 8, 2, over), [1.0] * 3, [1.0] * 3)
            for name, over in (("gather", 1.13), ("allgather", 1.0))
        )), 0, 0,
    ),
    "intercepting costs": (replace(good(), overheads={"bcast": 3.0, "reduce": 100.1}), 1, 0),
    "intercepting was not measured": (replace(good(), overheads={}), 0, 1),
}  # fmt: skip


@pytest.mark.parametrize(("result", "missed", "unknown"), MEASURED.values(), ids=MEASURED)
def test_as_many_targets_are_missed_and_unknown_as_the_results_say(result, missed, unknown, capsys):
    unknown += (result.cluster, result.congestion) == (FIXED.name, "cubic")  # of an earlier run
    met = [target.met for target in targets(result)]
    assert (met.count(False), met.count(None)) == (missed, unknown)
    assert judge([result]) is (missed == 0)
    said = capsys.readouterr().out
    assert (said.count("MISSED"), said.count("not measured")) == (missed, unknown)
    assert result.name in said


def test_one_missed_target_is_enough():
    assert not judge([good(), replace(good(RANDOM), meetings=(meeting(32 * KIB, 1.5),))])


def samples(**seconds: float) -> dict[Candidate, Sample]:
    return {Candidate(name): Sample((value,), value > 1.5) for name, value in seconds.items()}


def test_the_best_two_of_each_family_enter():
    seen = {
        64: samples(native=1.0, bruck=0.1, aapc_barrier=0.2),
        64 * KIB: samples(
            native=1.0, ring=0.9, pair=1.6, aapc_sender=0.8, aapc_receiver=0.7, aapc_barrier=2,
            hierarchical=0.1,
        ),
    }  # fmt: skip
    for size in (64 * KIB, 256 * KIB):
        assert _names(seen, size) == ["aapc_receiver", "aapc_sender", "ring", "native"]
    del seen[64 * KIB]
    seen[KIB] = samples(native=1.0)
    assert _names(seen, 64 * KIB) == ["aapc_barrier", "bruck", "native"]


def _names(seen, size) -> list[str]:
    """The algorithms that enter, each once."""
    return list(dict.fromkeys(one.algorithm for one in entrants(seen, CATALOGUE, size)))


def test_the_best_one_enters_with_its_defaults_too():
    wide = Candidate("aapc_rounds", (("in_flight", 32), ("segment_size", 4096)))
    usual = default_candidate(CATALOGUE.find("alltoall", "aapc_rounds"))
    seen = {1: {wide: Sample((0.1,), False), **samples(native=1.0)}}
    assert entrants(seen, CATALOGUE, 64 * KIB) == (wide, usual, Candidate("native"))
    seen[32 * KIB] = {usual: Sample((0.1,), False), **samples(native=1.0)}
    assert entrants(seen, CATALOGUE, 64 * KIB) == (usual, Candidate("native"))


def test_the_best_ones_of_the_next_larger_size_enter_too():
    seen = {
        64 * KIB: samples(native=1.0, ring=0.9, aapc_sender=0.8, pair=1.1),
        128 * KIB: samples(native=1.0, pair=0.9, ring=1.2, aapc_rounds=0.8, aapc_sender=0.9),
        256 * KIB: samples(native=1.0, bruck=0.9, aapc_barrier=0.8),
    }
    names = ["aapc_sender", "aapc_rounds", "ring", "pair", "native"]
    assert _names(seen, 64 * KIB) == names


def test_entrants_are_found_in_a_log_of_all_collectives():
    folder = Path("generated/reference")
    topology = load_topology(folder / "topology.yaml")
    seen = samples_of(folder / "measurements.jsonl", topology)
    assert set(seen) >= {1, 4 * KIB, 64 * KIB}
    known = {one.full_name for one in CATALOGUE.of("alltoall")}
    assert {f"alltoall/{one.algorithm}" for some in seen.values() for one in some} <= known
    names = [one.algorithm for one in entrants(seen, CATALOGUE, 64 * KIB)]
    assert names[0].startswith("aapc_")
    assert names[-1] == "native"


def test_a_meeting_is_of_the_best_by_pairs():
    def told(routine: str, *seconds: float) -> dict[str, object]:
        return {
            "size": 64, "routine": routine, "median_s": sorted(seconds)[1], "interval_s": [1, 2],
            "over_bound": 1.5, "repetitions": 3, "seconds": list(seconds),
        }  # fmt: skip

    rows = [
        told("aapc_barrier", 9.0, 9.0, 9.0),
        told("aapc_receiver:window=2", 1.0, 2.0, 3.0),
        told("ring", 2.0, 1.0, 3.0),
        told("native", 1.0, 9.0, 9.0),
    ]
    (one,) = meetings(rows, CATALOGUE)
    assert (one.aapc.routine, one.unaware.routine) == ("aapc_receiver:window=2", "ring")
    assert (one.ratio.median, one.ratio.low, one.ratio.high) == (1.0, 0.5, 2.0)
    assert one.is_level


def test_the_table_has_columns_for_each_congestion_control():
    cubic = replace(good(), rows=(row("bcast", 64), row("barrier", 0, 1.25, 1.0, None)))
    bbr = replace(good(congestion="bbr"), rows=(row("bcast", 64, 3, 1.5),))
    titles, _, *lines = table([cubic, bbr]).splitlines()
    assert titles.index("cubic: MPICH ms") < titles.index("bbr: MPICH ms")
    assert lines == [
        "| barrier | 0 | – | 625 | 500 | 1.25 | – | some | – | – | – | – | – |",
        "| bcast | 64 | 500 | 1100 | 550 | 2.00 | 1.10 | some | 2250 | 750 | 3.00 | 1.50 | some |",
    ]
    assert summary([cubic, bbr]).splitlines()[2:] == ["| barrier | 0 | 1.25 | – | – | – |"]


def test_the_page_lists_what_is_broken_and_what_is_missed():
    rows = row("gather", 8, 2, 1.2), row("allgather", 8, 2, 1.0)
    before = f"# Written\n{PAGE_BEGIN}\nold\n{PAGE_END}\nby hand\n"
    text = page(before, [with_rows(good(), *rows), good(RANDOM, "bbr")])
    assert text.startswith(f"# Written\n{PAGE_BEGIN}\n## {FIXED.name}\n")
    assert text.endswith(f"\n{PAGE_END}\nby hand\n")
    broken = "| gather(n) ≼ allgather(n) | 8 | 600 [594, 606] | 500 [495, 505] | 20.0% | – |  |"
    assert broken in text
    assert f"## {FIXED.name}\n" in text
    assert f"## {RANDOM}\n" in text
    assert " guidelines not comparable here.\n" in text
    assert "MISSED       no guideline broken" in text
    assert "| cubic | 32768 | aapc_receiver | 0.99 | ring | 1.00 | 0.990 [0.980, 1.000] |" in text


def test_the_page_shows_what_further_launches_said():
    slow = launched_again(row("bcast", 64, 0.96, 0.5), [1.0, 1.0, 1.0], [1.0, 0.5, 0.8])
    left = launched_again(row("gather", 8, 2, 1.13), [1.0] * 3, [1.0, 1.1, 1.2])
    right = launched_again(row("allgather", 8, 2, 1.0), [1.0] * 3, [1.0] * 3)
    before = f"{PAGE_BEGIN}\n{PAGE_END}\n"
    text = page(before, [with_rows(good(), slow, left, right)])
    assert "| 500 [495, 505] | 13.0% | 10.0% [0.0%, 20.0%], cleared |  |" in text
    assert "| cubic | bcast | 64 | some | 0.960 | 1.250 [1.000, 2.000] |" in text
    assert "no guideline broken by more than 3% and the noise: 0 of " in text
    assert "; further launches cleared 1" in text
    assert "3 rows were launched again" in text
    slow = launched_again(row("bcast", 64, 1.0, 0.5), [1.0] * 3, [1.25] * 3)
    text = page(before, [with_rows(good(), slow)])
    assert "| cubic | bcast | 64 | some | 1.000 | 0.800 [0.800, 0.800] |" in text
    left = launched_again(left, [2.0] * 3, [1.1, 1.1, 1.2])
    text = page(before, [with_rows(good(), left, right)])
    assert "| 500 [495, 505] | 13.0% | 10.0% [10.0%, 20.0%] |  |" in text
    assert "in further launches\n" not in text


def test_the_page_says_where_there_is_no_earlier_run_to_compare_with():
    text = page(f"{PAGE_BEGIN}\n{PAGE_END}\n", [good(), good(congestion="bbr"), good(RANDOM)])
    lines = [line for line in text.splitlines() if "slower than before" in line]
    what = "no row slower than before by more than 5% and the noise"
    assert lines[0] == f"- not measured {what}: no earlier run to compare with"
    assert [line.startswith(f"- MISSED       {what}: ") for line in lines] == [False, True]


PAGES = {
    "made up": f"text\n{BEGIN}\nold\n{END}\nmore\n",
    "ours": Path("README.md").read_text(encoding="utf-8"),
}


@pytest.mark.parametrize("before", PAGES.values(), ids=PAGES)
def test_the_readme_gets_a_new_table_and_nothing_else(before):
    head, _, rest = before.partition(f"{BEGIN}\n")
    _, end, tail = rest.partition(END)
    assert end == END
    after = readme(before, [good(RANDOM), with_rows(good(), row("gather", 12))])
    assert after.startswith(f"{head}{BEGIN}\n| collective |")
    assert after.endswith(f" |\n{END}{tail}")
    assert "| gather | 65536 |" in after
    assert "| gather | 12 |" not in after


def test_the_picture_has_a_panel_for_every_collective_with_sizes(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="pictures need the extra `report`")
    names = [name for name in CATALOGUE.collectives if name != "barrier"]
    rows = [row(name, size) for name in names for size in (1, 1024)]
    rows += [replace(row("barrier", 0), bound=None)]
    rows[0] = replace(rows[0], bound=None)
    results = [replace(good(congestion=name), rows=tuple(rows)) for name in ("cubic", "bbr")]
    plot(results, str(tmp_path / "a.svg"))
    picture = (tmp_path / "a.svg").read_text(encoding="utf-8")
    words = ("MPICH, cubic", "libcoll, cubic", "MPICH, bbr", "libcoll, bbr", "lower bound")
    assert all(f">{name}<" in picture for name in (*names, *words))
    assert ">barrier<" not in picture
