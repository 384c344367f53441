"""From the n-ary tree that knows the hosts, `stagegen reconfigure` alone finds a faster one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.paths._trees import SHAPES, cluster
from docs.tools.experiments.stagegen import answer, stagegen
from docs.tools.experiments.tuned import Tuned, read_tuned
from docs.tools.target import Target
from stagegen.catalogue.algorithm import NATIVE
from stagegen.inspection.parts import merged
from stagegen.tune.reconfigure import MESSAGES

COLLECTIVES = ("allreduce", "reduce", "bcast", "barrier")

SIZE = 4

#: Of `stagegen reconfigure`: changes that are tried at most.
STEPS = 32

#: What was promised: the first tree over the last one, and the last one over all others.
GAIN, LEVEL = 1.2, 1.03

#: The names of both trees.
FIRST, LAST = "first", "result"

#: What is compared in the end, in turn in each of some launches, besides the best others.
ROUTINES = ("first", "last", "native")
LAUNCHES, REPETITIONS = 5, 25

#: How many of the other candidates are in the end, and how many are looked at again for this.
#: Tuning looks at each of a hundred and more only once or twice, so the best look is mostly luck.
OTHERS, LIKELY = 3, 12
LOOKS, LOOK_REPETITIONS = 3, 3


def on_host_of(search: Path) -> int:
    """Return how ranks of a host hand over data in the result of a search."""
    steps = [json.loads(line) for line in (search / "steps.jsonl").read_text().splitlines()[1:]]
    kept = [one for step in steps for one in step["tried"] if one["accepted"]]
    return int(kept[-1]["after"]["on_host"]) if kept else MESSAGES


def _measure(hosts: int, slots: int, collective: str, folder: Path) -> Any:
    (topology, _), first = cluster(folder, hosts, slots), folder / f"{FIRST}.tree.yaml"
    shape = ("--shape", "nary", "--name", FIRST)
    stagegen("tree", "make", "--topology", topology, *shape, "--output", first)
    what = ("--collective", collective, "--size", SIZE)
    search = folder / "search"
    again = ("--resume",) if (search / "steps.jsonl").exists() else ()
    stagegen(
        *("reconfigure", "--topology", topology, "--tree", first, *what, "--steps", STEPS),
        *("--launches", 5, "--repetitions", 5, "--name", LAST, "--output", search, *again),
    )
    every = _tune(topology, collective, search, folder / "tuned")
    likely = sorted(filter(_is_other, every.seconds), key=every.seconds.__getitem__)[:LIKELY]
    looks = [
        in_turn(topology, collective, likely, folder / "likely", LOOK_REPETITIONS)
        for _ in range(LOOKS)
    ]
    others = best(likely, looks)
    last = f"configured_tree_{LAST}:on_host={on_host_of(search)}"
    names = (f"configured_tree_{FIRST}", last, NATIVE, *others)
    trees = ("--tree", first, "--tree", search / "result.tree.yaml")
    times = [
        in_turn(topology, collective, names, search / "compare", REPETITIONS, trees)
        for _ in range(LAUNCHES)
    ]
    steps = [json.loads(line) for line in (search / "steps.jsonl").read_text().splitlines()[1:]]
    kept = [one for step in steps for one in step["tried"] if one["accepted"]]
    gain = search / "gain.json"
    return {
        "seconds": {
            name: [one[place] for one in times] for place, name in enumerate((*ROUTINES, *others))
        },
        "others": others,
        "raced": len(every.seconds),
        "rule": (search / "library" / "decision.json").exists(),
        "chosen": every.chosen,
        "tried": sum(len(step["tried"]) for step in steps),
        "kept": [one["change"] for one in kept],
        "why": [one["why"] for one in kept],
        "gain": json.loads(gain.read_text()) if kept and gain.exists() else None,
    }


def _tune(topology: Path, collective: str, search: Path, output: Path) -> Tuned:
    """Tune the last tree and all others together; return what came of it."""
    again = ("--resume",) if (output / "measurements.jsonl").exists() else ()
    sizes = () if collective == "barrier" else ("--sizes", SIZE)
    stagegen(
        *("tune", "--topology", topology, "--collectives", collective, *sizes),
        *("--tree", search / "result.tree.yaml", "--communicators", "whole"),
        *("--budget", 1, "--launches", 5, "--output", output, "--quiet", *again),
    )
    return read_tuned(output)


def in_turn(
    topology: Path,
    collective: str,
    names: Sequence[str],
    output: Path,
    repetitions: int,
    trees: Sequence[object] = (),
) -> list[float]:
    """Return the median seconds of routines in one job, in which they take turns."""
    found = answer(
        *("compare", "--topology", topology, "--collective", collective, *trees),
        *("--algorithms", ",".join(names), "--sizes", SIZE, "--repetitions", repetitions),
        *("--output", output),
    )
    return [row["median_s"] for row in found["rows"]]


def _is_other(spec: str) -> bool:
    """Whether it is neither native nor the tree that was found, nor has that as a part."""
    return spec != NATIVE and f"configured_tree_{LAST}" not in spec


def best(names: Sequence[str], looks: Sequence[Sequence[float]]) -> list[str]:
    """Return those with the least medians of the looks, the best first.

    Args:
        names: candidates.
        looks: the seconds of all of them, look by look.
    """
    medians = dict(zip(names, map(median, zip(*looks, strict=True)), strict=True))
    return sorted(medians, key=medians.__getitem__)[:OTHERS]


def over(one: Mapping[str, Any], above: str, below: str) -> list[float]:
    """Return one routine's time over another's, launch by launch."""
    times: Mapping[str, Sequence[float]] = one["seconds"]
    return [a / b for a, b in zip(times[above], times[below], strict=True)]


def _over(one: Mapping[str, Any], above: str, below: str) -> float:
    """Return the median over launches of one routine's time over another's."""
    return median(over(one, above, below))


def _against_others(one: Mapping[str, Any]) -> float:
    """Return the last tree's time over that of the best of native and the others."""
    return max(_over(one, "last", name) for name in ("native", *one["others"]))


def _summary(result: Mapping[str, Any]) -> Any:
    """Return medians over the launches in place of their times."""
    times = {name: median(each) for name, each in result["seconds"].items()}
    gains = over(result, "first", "last")
    quotients = {
        "last_over": {name: _over(result, "last", name) for name in result["others"]},
        "first_over_last": median(gains),
        "first_over_last_range": [min(gains), max(gains)],
        "last_over_best": _against_others(result),
    }
    return {**result, "seconds": times, **quotients}


def _gain(one: Mapping[str, Any]) -> str:
    """Return the first tree's time over the last one's; carried points have no range."""
    median_gain = f"{one['first_over_last']:.2f}"
    if "first_over_last_range" not in one:
        return median_gain
    least, greatest = one["first_over_last_range"]
    return f"{median_gain} ({least:.2f}–{greatest:.2f})"


#: Whether `reconfigure` wrote a rule; not known of points that were carried.
_RULES = {True: "yes", False: "no", None: "–"}


def _report(found: Found) -> str:
    rows = [
        [
            point,
            *(milliseconds(one["seconds"][name]) for name in ROUTINES),
            _gain(one),
            f"{one['last_over_best']:.2f}",
            _RULES[one["rule"]],
            f"`{one['chosen']}`",
            f"{one['tried']}, {len(one['kept'])}",
        ]
        for point, one in found.items()
    ]
    titles = ["hosts × ranks, collective", "first tree, ms", "last tree, ms", "native, ms",
              "first / last (least–greatest)", "last / best of all", "rule", "serves",
              "tried, kept"]  # fmt: skip
    others = [
        [
            f"{point}: `{name}`",
            milliseconds(one["seconds"][name]),
            f"{one['last_over'][name]:.2f}",
            str(one["raced"] or "–"),
        ]
        for point, one in found.items()
        for name in one["others"]
    ]
    titles_of_others = ["one of the three best others", "ms", "last tree / this one", "of"]
    changes = [
        f"- {point}: {change}: {why}"
        for point, one in found.items()
        for change, why in zip(one["kept"], one["why"], strict=True)
    ]
    kept = ["Kept:", "\n".join(changes)] if changes else []
    gains = {point: one["gain"] for point, one in found.items() if one["gain"]}
    tables = table(titles, rows), table(titles_of_others, others)
    return "\n\n".join([*tables, *kept, *_gains(gains)])


def _gains(gains: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the gain is from: parts and stages in µs, first tree → last one."""
    if not gains:
        return
    yield (
        "Time of the slowest rank of a call by part of its path, in µs, with the first tree → with "
        "the last:"
    )
    yield _changes("part", "s", gains)
    with_stages = {point: one for point, one in gains.items() if "first_stages_s" in one}
    if with_stages:
        yield "The same by stage; a dash stands for a tree whose paths have no such stage:"
        yield _changes("stage", "stages_s", with_stages)


def _changes(title: str, key: str, gains: Mapping[str, Any]) -> str:
    """Return a table of the times of both trees, by point."""
    pairs = [(one[f"first_{key}"], one[f"last_{key}"]) for one in gains.values()]
    names = merged(times for pair in pairs for times in pair)
    rows = [[name, *(_change(first.get(name), last.get(name)) for first, last in pairs)]
            for name in names]  # fmt: skip
    return table([title, *gains], rows)


def _change(first: float | None, last: float | None) -> str:
    if first is None and last is None:
        return "–"
    return " → ".join("–" if one is None else f"{1e6 * one:.0f}" for one in (first, last))


def _targets(found: Found) -> Sequence[Target]:
    gains = {point: one["first_over_last"] for point, one in found.items()}
    against = {point: one["last_over_best"] for point, one in found.items()}
    return [
        Target.at_least(GAIN, gains, "the first tree over the last"),
        Target.at_most(LEVEL, against, "the last tree over native and all others"),
    ]


EXPERIMENT = Experiment(
    "reconfigured",
    "reconfigured trees against the first one, native and all others (PATHS, §6)",
    {
        f"{hosts} × {slots} {collective}": partial(_measure, hosts, slots, collective)
        for collective in COLLECTIVES
        for hosts, slots in SHAPES
    },
    _report,
    Path("docs/paths.md"),
    _targets,
    _summary,
)
