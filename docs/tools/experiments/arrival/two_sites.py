"""Proficz et al. 2020: allreduce on two sites 13 ms apart (Table 1, Figs. 5 to 9)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import interval, milliseconds, table
from docs.tools.experiments.stagegen import answer
from docs.tools.target import Target
from stagegen.measure.statistics import paired_ratio
from stagegen.report.units import format_bytes

PAGE = Path("docs/wide-area.md")

#: As topologies/two-sites-20.yaml, with as many hosts at each site as asked for.
TOPOLOGY = """\
name: two-sites
defaults: {{bandwidth: 20Mbit, latency: 50us}}
launcher: lab
switches:
  gdansk: {{hosts: "g[0-{last}]"}}
  warsaw: {{hosts: "w[0-{last}]"}}
links:
  - {{ends: [gdansk, warsaw], latency: 13ms}}
sites:
  ci-task: [gdansk]
  icm: [warsaw]
"""

#: The algorithms of the source's §2 by its names, MPICH's own, and what the repository adds.
SIX = {
    "Ring": "ring",
    "PRR": "pre_reduced_ring",
    "Rab": "rabenseifner",
    "Bfly": "recursive_doubling",
    "HR1": "hr1_sites",
    "HR2": "hr2_sites",
}
LANES, RINGS = "lanes", "rings"
ALGORITHMS = {"native": "native", **SIX, LANES: "lanes_sites", RINGS: "lane_rings_sites"}
#: The new algorithm has two forms; from this size on it is that with rings.
RINGS_FROM = 1 << 20

HOSTS = 20
#: 2 MiB at the source's 40 Gbit/s last as long as 1 KiB at the lab's 20 Mbit/s.
SIZE = 1 << 10
#: The source's longest delay, in ms.
LATE = 500
#: Experiments; the source has 128 to 256. Equal experiments have equal delays for all algorithms.
EXPERIMENTS = 6

#: Where ranks can learn which one is late: the rank that is, the calls of an experiment, and the
#: experiments by size.
SAME_RANK = 5
CALLS = 3
LEARNING = {SIZE: 16, 128 << 10: 16, 1 << 20: 8}

#: What the source's Table 1 has for 2 MiB: the mean elapsed time in ms.
TABLE_1 = {"Ring": 468, "PRR": 339, "Rab": 162, "Bfly": 91, "HR1": 44, "HR2": 47}


@dataclass(frozen=True)
class _Setting:
    """Hosts of both sites, bytes, and the longest delay in ms; or the delay of the same rank."""

    hosts: int = HOSTS
    size: int = SIZE
    late: int = 0
    same: bool = False

    @property
    def name(self) -> str:
        who = f"rank {SAME_RANK} " if self.same else ""
        return f"{self.hosts} hosts {format_bytes(self.size)} {who}{self.late} ms"

    @property
    def plan(self) -> str:
        if self.same:
            return f"replay:{SAME_RANK}={self.late}ms"
        # By less than 1 µs no rank is late, but all is measured in the same way.
        return f"imbalance:{f'{self.late}ms' if self.late else '1us'}"

    @property
    def experiments(self) -> int:
        return LEARNING[self.size] if self.same else EXPERIMENTS


PLAIN = _Setting()
DELAYED = _Setting(late=LATE)
OF_SIZE = [replace(PLAIN, size=size) for size in (SIZE, 16 << 10, 128 << 10, 1 << 20)]
OF_HOSTS = [replace(PLAIN, hosts=hosts) for hosts in (4, 8, HOSTS)]
OF_DELAY = [_Setting(hosts=18, late=late) for late in (0, 100, LATE)]


def _late(settings: Iterable[_Setting]) -> list[_Setting]:
    return [replace(one, late=LATE) for one in settings]


OF_SAME = [_Setting(size=size, late=LATE, same=True) for size in LEARNING]

#: The tables: what they are of, their first column's title, and their rows.
TABLES: tuple[tuple[str, str, Sequence[_Setting]], ...] = (
    ("Fig. 5: hosts, nobody late", "hosts", OF_HOSTS),
    ("Fig. 6: sizes, nobody late", "size", OF_SIZE),
    ("Fig. 7: delays, 18 hosts", "up to, ms", OF_DELAY),
    (f"Fig. 8: sizes, delays up to {LATE} ms", "size", _late(OF_SIZE)),
    (f"Fig. 9: hosts, delays up to {LATE} ms", "hosts", _late(OF_HOSTS)),
    (f"Sizes, rank {SAME_RANK} late by {LATE} ms in each call", "size", OF_SAME),
)


def _measure(setting: _Setting, folder: Path) -> Any:
    path = folder / "topology.yaml"
    path.write_text(TOPOLOGY.format(last=setting.hosts // 2 - 1), encoding="utf-8")
    return answer(
        "compare",
        *("--topology", path, "--collective", "allreduce", "--sizes", setting.size),
        *("--algorithms", ",".join(ALGORITHMS.values()), "--timing", setting.plan),
        *("--repetitions", setting.experiments, "--iterations", CALLS if setting.same else 1),
        *("--output", folder.parent / f"{setting.hosts}-hosts"),
    )


def _points() -> Mapping[str, Any]:
    settings = dict.fromkeys(setting for _, _, rows in TABLES for setting in rows)
    return {setting.name: partial(_measure, setting) for setting in settings}


def _summary(result: Mapping[str, Any]) -> Any:
    """Return for each algorithm ē, its σ, and native over it in ē and in the last exit."""
    mean, last = (_rounds(result, metric) for metric in ("mean", "last"))
    new = new_at(result["rows"][0]["size"])
    return {
        name: {
            "mean_s": statistics.fmean(mean[name]),
            "sigma_s": statistics.pstdev(mean[name]),
            "gain_mean": (gain := paired_ratio(mean["native"], mean[name])).median,
            "gain_mean_ends": [gain.low, gain.high],
            "gain_last": (gain := paired_ratio(last["native"], last[name])).median,
            "gain_last_ends": [gain.low, gain.high],
            "new_over_this": (ratio := paired_ratio(mean[new], mean[name])).median,
            "new_over_this_ends": [ratio.low, ratio.high],
        }
        for name in ALGORITHMS
    }


def new_at(size: int) -> str:
    """Return the form of the new algorithm for a size in bytes."""
    return RINGS if size >= RINGS_FROM else LANES


def _rounds(result: Mapping[str, Any], metric: str) -> dict[str, list[float]]:
    """Return a metric of each experiment, in seconds, by the source's names of the algorithms."""
    of = {row["routine"].partition(":")[0]: row["late"]["rounds"][metric] for row in result["rows"]}
    return {name: of[routine] for name, routine in ALGORITHMS.items()}


def _report(found: Found) -> str:
    sections = [
        _table_1(found),
        _gains(found),
        _of_new(found),
        *(_section(*one, found) for one in TABLES),
    ]
    return "\n\n".join(section for section in sections if section)


def _table_1(found: Found) -> str:
    rows = []
    for setting in (PLAIN, replace(PLAIN, size=1 << 20)):
        if result := found.get(setting.name):
            elapsed = {name: one["mean_s"] for name, one in result.items()}
            cells = [
                _speedup(elapsed[name], elapsed["Ring"]) if name in elapsed else ""
                for name in ALGORITHMS
            ]
            rows.append([format_bytes(setting.size), *cells])
    if not rows:
        return ""
    theirs = {name: _speedup(1e-3 * ms, 1e-3 * TABLE_1["Ring"]) for name, ms in TABLE_1.items()}
    rows.append(["the source, 2 MiB", *(theirs.get(name, "") for name in ALGORITHMS)])
    return (
        f"Table 1: ē in ms, and how much faster than the ring\n\n{table(['', *ALGORITHMS], rows)}"
    )


def _gains(found: Found) -> str:
    """Return how much faster than native each is, in the time of the mean and of the last rank."""
    rows = []
    for setting in (PLAIN, replace(PLAIN, size=1 << 20), *OF_SAME):
        if result := found.get(setting.name):
            late = f", {_when(setting)}" if setting.same else ""
            for metric, what in (("mean", "ē"), ("last", "last arrival to last exit")):
                cells = [
                    _gain(result[name], metric) if name in result else "" for name in ALGORITHMS
                ]
                rows.append([f"{format_bytes(setting.size)}{late}, {what}", *cells])
    what = "Native / this (medians of pairs, with 95 % intervals where they were kept)"
    return f"{what}\n\n{table(['', *ALGORITHMS], rows)}" if rows else ""


def _of_new(found: Found) -> str:
    """Return how long the new algorithm takes beside the best of the six, where pairs were kept."""
    rows = []
    for _, _, settings in TABLES:
        for one in settings:
            kept = found.get(one.name, {})
            if one.hosts != HOSTS or not all("new_over_this_ends" in kept.get(n, {}) for n in SIX):
                continue
            best = min(SIX, key=lambda name: kept[name]["mean_s"])
            of = kept[best]
            ratio = interval(of["new_over_this"], *of["new_over_this_ends"])
            new = new_at(one.size)
            rows.append((format_bytes(one.size), _when(one), new, f"{ratio} ({best})"))
    what = (
        f"The new algorithm / the best of the six, ē, {HOSTS} hosts (medians of pairs, with 95 % "
        "intervals)"
    )
    distinct = [list(row) for row in dict.fromkeys(rows)]
    head = ["size", "late", "the new one", "it / the best"]
    return f"{what}\n\n{table(head, distinct)}" if rows else ""


def _when(setting: _Setting) -> str:
    if setting.same:
        return f"rank {SAME_RANK} by {setting.late} ms"
    return f"all, by up to {setting.late} ms" if setting.late else "nobody"


def _gain(of: Mapping[str, Any], metric: str) -> str:
    """Return a gain; earlier runs kept no intervals."""
    median: float = of[f"gain_{metric}"]
    ends = of.get(f"gain_{metric}_ends")
    return interval(median, *ends) if ends else f"{median:.2f}"


def _speedup(seconds: float, ring: float) -> str:
    return f"{milliseconds(seconds)}, {ring / seconds:.2f} ×"


def _section(what: str, title: str, settings: Sequence[_Setting], found: Found) -> str:
    value = {
        "hosts": lambda one: str(one.hosts),
        "size": lambda one: format_bytes(one.size),
        "up to, ms": lambda one: str(one.late),
    }[title]
    rows = [[value(one), *_cells(found[one.name])] for one in settings if one.name in found]
    return f"{what}: ē ± σ, ms\n\n{table([title, *ALGORITHMS], rows)}" if rows else ""


def _cells(of: Mapping[str, Mapping[str, float]]) -> list[str]:
    best = min(one["mean_s"] for one in of.values())
    texts = {
        name: f"{milliseconds(one['mean_s'])} ± {milliseconds(one['sigma_s'])}"
        for name, one in of.items()
    }
    return [
        f"**{texts[name]}**" if of.get(name, {}).get("mean_s") == best else texts.get(name, "")
        for name in ALGORITHMS
    ]


#: What was promised of 1 MiB on 10 + 10 hosts: hierarchical algorithms against native; the new one
#: against the best of the six, if nobody is late, and under delays.
HIERARCHICAL = ("HR1", "HR2", LANES, RINGS)
GAIN, MATCH, GAIN_LATE = 1.5, 1.03, 1.1
LARGE = replace(PLAIN, size=1 << 20)


def _targets(found: Found) -> Sequence[Target]:
    what = "1 MiB on 10 + 10 hosts"
    plain, late = (found.get(one.name, {}) for one in (LARGE, replace(LARGE, late=LATE)))
    gains = {name: plain[name]["gain_mean"] for name in HIERARCHICAL if name in plain}
    best = dict(sorted(gains.items(), key=lambda one: one[1])[-1:])
    match, cost = (_new_over_best(of) for of in (plain, late))
    gain = {name: 1 / ratio for name, ratio in cost.items()}
    same = found.get(replace(LARGE, late=LATE, same=True).name, {})
    steady = {name: 1 / ratio for name, ratio in _new_over_best(same).items()}
    return [
        Target.at_least(GAIN, best, f"{what}: native / HR1, HR2 or better"),
        Target.at_most(MATCH, match, f"{what}, nobody late: {RINGS} / the best of the six"),
        Target.at_least(
            GAIN_LATE, gain, f"{what}, up to {LATE} ms late: the best of the six / {RINGS}"
        ),
        Target.at_least(
            GAIN_LATE,
            steady,
            f"{what}, rank {SAME_RANK} late by {LATE} ms: the best of the six / {RINGS}",
        ),
    ]


def _new_over_best(of: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the time of the new algorithm over that of the best of the six, by its name.

    Nothing if no pairs were kept.
    """
    if not all("new_over_this" in of.get(name, {}) for name in SIX):
        return {}
    best = min(SIX, key=lambda name: of[name]["mean_s"])
    return {best: of[best]["new_over_this"]}


EXPERIMENT = Experiment(
    "two_sites",
    "allreduce on two sites 13 ms apart (Proficz et al. 2020, Table 1 and Figs. 5 to 9)",
    _points(),
    _report,
    PAGE,
    _targets,
    _summary,
)
