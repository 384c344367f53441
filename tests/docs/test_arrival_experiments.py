"""Reports and targets of the experiments about late ranks, from results made up here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from docs.tools.experiments.arrival import overhead, skew, two_sites

#: What the fixed tree takes, in seconds, in eight experiments of unequal luck.
FIXED = (0.020, 0.022, 0.018, 0.030, 0.020, 0.021, 0.019, 0.020)


def result(times: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """What `stagegen compare` answers, as far as it is read."""
    return {
        "rows": [
            {
                "routine": spec,
                "size": 1 << 20,
                "late": {"rounds": {"last": list(some), "mean": list(some)}},
            }
            for spec, some in times.items()
        ]
    }


def kept(times: Mapping[str, Sequence[float]]) -> Any:
    """What is kept of it for the report of skew."""
    return skew.EXPERIMENT.summary(result(times))


def trees(shallow: float, deep: float, *, ranks: int = 16) -> dict[str, Any]:
    """A result in which adaptive trees are faster than the fixed ones by these factors."""
    times = {"native": FIXED, "dissemination": FIXED}
    for most, gain in ((8, shallow), (2, deep)):
        arity = min(most, ranks - 1)
        times[f"fixed_tree:arity={arity}"] = FIXED
        for tree in skew.ADAPTIVE:
            spec = f"{tree}:arity={arity},patience=200"
            times[spec] = [seconds / gain for seconds in FIXED]
    return kept(times)


def name(collective: str, *how: int, multicast: bool = False) -> str:
    return skew._Setting(collective, *how, multicast).name


ONE_LATE, NOBODY = name("barrier", *skew.ONE_LATE), name("barrier", *skew.NOBODY)


def test_the_adaptive_trees_that_are_compared_are_all_that_there_are():
    wanted = {f"{tree}:arity={k}" for tree in skew.TREES for k in skew.ARITIES}
    for setting in skew.SETTINGS:
        if setting.ranks == 16:
            assert wanted <= set(skew._algorithms(setting))


def test_skew_reports_medians_and_paired_ratios_of_every_tree():
    found = {name("barrier", 4, 1, 40): trees(2.0, 4.0, ranks=4), ONE_LATE: trees(1.25, 1.5)}
    text = skew.EXPERIMENT.report(found)
    medians, ratios = (part.splitlines() for part in text.split("fixed / this"))
    names = ("semi-dynamic", "remembering", "several")
    assert [medians[2].count(name) for name in names] == [2, 2, 2]
    assert [line for line in medians if line.startswith("| 16 | 1, by 40 ms | 20 | 20 | 20 | 16 ")]
    assert ratios[-2].count("2.00 [2.00, 2.00]") == ratios[-2].count("4.00 [4.00, 4.00]") == 4
    assert ratios[-1].count("1.25 [1.25, 1.25]") == ratios[-1].count("1.50 [1.50, 1.50]") == 4
    assert "allreduce" not in text


def test_skew_pairs_the_experiments():
    """In each pair but one, the token is faster, by more than the medians show."""
    token = [0.9 * seconds for seconds in FIXED[:-1]] + [0.1]
    found = {ONE_LATE: kept({"native": FIXED, "dissemination": FIXED, "fixed_tree:arity=8": FIXED,
                               "token_tree:arity=8,patience=200": token})}  # fmt: skip
    assert re.search(r"\| 1\.11 \[0\.20, 1\.11\] \|", skew.EXPERIMENT.report(found))


def test_skew_states_the_gain_of_multicast_where_both_are_measured():
    halved = trees(2.0, 2.0)
    for one in halved.values():
        one["last_s"] /= 2
    told = name("barrier", *skew.ONE_LATE, multicast=True)
    text = skew.EXPERIMENT.report({ONE_LATE: trees(1.0, 1.0), told: halved})
    assert text.count("| 16 | 1, by 40 ms; multicast |") == 2
    assert "| 16 | 1, by 40 ms | 2.00 | 4.00 | 4.00 | 4.00 | 4.00 | 2.00 |" in text
    assert "by multicast" not in skew.EXPERIMENT.report({ONE_LATE: trees(1.0, 1.0)})
    assert "by multicast" not in skew.EXPERIMENT.report({told: halved})


def test_points_with_multicast_set_the_variable(monkeypatch, tmp_path):
    asked = {}
    monkeypatch.setattr(skew, "answer", lambda *words, variables: asked.update(variables))
    folder = tmp_path / "point"
    folder.mkdir()
    skew.EXPERIMENT.points[ONE_LATE](folder)
    assert asked == {}
    skew.EXPERIMENT.points[name("barrier", *skew.ONE_LATE, multicast=True)](folder)
    assert asked == {"LIBCOLL_MULTICAST": skew.GROUP}


def test_what_earlier_runs_kept_has_ratios_of_medians_and_judges_nothing():
    old = {who: {"last_s": one["last_s"]} for who, one in trees(1.25, 1.5).items()}
    found = {ONE_LATE: old, NOBODY: old}
    assert "| 16 | 1, by 40 ms | 1.25 | 1.25 | 1.25 | 1.25 | 1.50 |" in skew.EXPERIMENT.report(
        found
    )
    assert {target.met for target in skew.EXPERIMENT.targets(found)} == {None}


def test_a_result_without_some_trees_has_empty_cells():
    found = {ONE_LATE: kept({"native": FIXED, "dissemination": FIXED})}
    assert "| 16 | 1, by 40 ms |  |  |  |  |  |  |  |  |" in skew.EXPERIMENT.report(found)


@pytest.mark.parametrize(
    ("late", "nobody", "met"),
    [
        ((1.2, 1.5), (0.97, 1.0), [True, True]),
        ((1.5, 1.2), (0.97, 1.0), [False, True]),
        ((0.8, 0.9), (1.0, 0.90), [False, False]),
    ],
)
def test_skew_says_which_targets_are_met(late, nobody, met):
    """The same is promised of the tree with one token and of the one with several."""
    for multicast in (False, True):
        found = {
            name("barrier", *skew.ONE_LATE, multicast=multicast): trees(*late),
            name("barrier", *skew.NOBODY, multicast=multicast): trees(*nobody),
        }
        targets = skew.EXPERIMENT.targets(found)
        measured = [
            target.met
            for target in targets
            if target.text.startswith("barrier") and ("multicast" in target.text) == multicast
        ]
        assert measured == met * len(skew.TOKENS)
        assert [target.met for target in targets].count(None) == len(targets) - len(measured)


def sites(**faster: float) -> dict[str, Any]:
    """A result in which some algorithms are faster than all others by these factors."""
    times = {}
    for label, routine in two_sites.ALGORITHMS.items():
        times[routine] = [seconds / faster.get(label, 1.0) for seconds in FIXED[:6]]
    return two_sites.EXPERIMENT.summary(result(times))


PLAIN = two_sites.LARGE.name
DELAYED = two_sites.replace(two_sites.LARGE, late=two_sites.LATE).name
SAME = two_sites.replace(two_sites.LARGE, late=two_sites.LATE, same=True).name


@pytest.mark.parametrize(
    ("found", "met"),
    [
        ({}, [None, None, None, None]),
        ({PLAIN: sites(HR2=1.6, rings=1.58)}, [True, True, None, None]),
        ({PLAIN: sites(HR1=1.4, Ring=2.0, rings=1.45)}, [False, False, None, None]),
        ({DELAYED: sites(HR1=1.2, rings=1.4)}, [None, None, True, None]),
        ({DELAYED: sites(HR1=1.2, rings=1.3)}, [None, None, False, None]),
        ({SAME: sites(PRR=1.2, rings=1.4)}, [None, None, None, True]),
        ({SAME: sites(PRR=1.2, rings=1.3)}, [None, None, None, False]),
    ],
)
def test_two_sites_says_which_targets_are_met(found, met):
    assert [target.met for target in two_sites.EXPERIMENT.targets(found)] == met


def test_the_new_algorithm_stands_beside_the_best_of_the_six():
    text = two_sites.EXPERIMENT.report({SAME: sites(PRR=1.2, rings=1.5), PLAIN: sites(Ring=2)})
    rank = f"rank {two_sites.SAME_RANK} by {two_sites.LATE} ms"
    assert f"| 1 MiB | {rank} | rings | 0.80 [0.80, 0.80] (PRR) |" in text
    assert "| 1 MiB | nobody | rings | 2.00 [2.00, 2.00] (Ring) |" in text


def test_two_sites_reports_paired_ratios_with_intervals():
    text = two_sites.EXPERIMENT.report({PLAIN: sites(HR1=1.6)})
    assert "| 1 MiB, ē | 1.00 [1.00, 1.00] |" in text
    assert "1.60 [1.60, 1.60]" in text


#: What `stagegen record --overhead` prints, of two collectives.
PRINTED = """\
ns                       direct     called   overhead
barrier                    12.0      151.5      139.5
scatter                    40.1      264.3      {:5.1f}
"""


def overheads(*scatter: float) -> dict[str, Any]:
    """Results of runs in which recording a scatter costs so many nanoseconds."""
    return {
        f"run {number}": overhead.nanoseconds(PRINTED.format(ns))
        for number, ns in enumerate(scatter, start=1)
    }


@pytest.mark.parametrize(
    ("found", "met", "told"),
    [
        ({}, None, "at most 300: "),
        (overheads(224.2, 250.0, 199.0), True, "of 3 runs, at most 300: barrier 139.500, sc"),
        (overheads(224.2, 300.4, 199.0), False, "scatter 300.400"),
    ],
)
def test_the_greatest_overhead_of_the_recorder_is_judged(found, met, told):
    (target,) = overhead.EXPERIMENT.targets(found)
    assert target.met is met
    assert told in target.text


def test_the_overhead_of_the_recorder_is_reported_in_nanoseconds():
    text = overhead.EXPERIMENT.report(overheads(224.2, 250.0, 199.0))
    _, _, *rows = text.splitlines()
    assert rows == ["| barrier | 140 | 140 | 140 |", "| scatter | 224 | 199 | 250 |"]


def test_a_run_records_the_benchmark_on_one_rank(monkeypatch, tmp_path):
    asked = []

    def answered(*words: object) -> CompletedProcess[bytes]:
        asked.append([Path(str(word)).name for word in words])
        return CompletedProcess((), 0, PRINTED.format(224.2).encode())

    monkeypatch.setattr(overhead, "stagegen", answered)
    assert overhead.EXPERIMENT.points["run 1"](tmp_path) == {"barrier": 139.5, "scatter": 224.2}
    assert asked == [["record", "--overhead", "--", "mpiexec", "-n", "1"]]
