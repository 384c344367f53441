"""From the n-ary tree that knows the hosts, `stagegen reconfigure` alone finds a faster one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.paths._trees import SHAPES, cluster
from docs.tools.experiments.stagegen import stagegen
from docs.tools.experiments.tuned import Tuned, read_tuned
from docs.tools.target import Target
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Candidate
from stagegen.tune.reconfigure import MESSAGES

COLLECTIVES = ("allreduce", "reduce", "bcast", "barrier")

SIZE = 4

#: Of `stagegen reconfigure`: changes that are tried at most.
STEPS = 32

#: What was promised: the first tree over the last one, and the last one over all others.
GAIN, LEVEL = 1.2, 1.03

#: What is not tuned: 70 routines that divide long messages into a block for each rank. To check
#: them takes a minute.
LEFT_OUT = "rab1_*,rab2_*"

#: The names of both trees.
FIRST, LAST = "first", "result"


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
    left_out = ("--without-algorithms", LEFT_OUT) if collective == "allreduce" else ()
    every = _tune(topology, collective, search, folder / "tuned", left_out)
    other = _best([spec for spec in every.seconds if not _is_own(spec)], every.seconds)
    names = ",".join({NATIVE, f"configured_tree_{LAST}", Candidate.from_spec(other).algorithm})
    final = _tune(topology, collective, search, folder / "final", ("--algorithms", names))
    steps = [json.loads(line) for line in (search / "steps.jsonl").read_text().splitlines()[1:]]
    kept = [one for step in steps for one in step["tried"] if one["accepted"]]
    gain = search / "gain.json"
    first_s = steps[0]["times"]
    return {
        "first_s": median(median(one) for one in first_s["raced_s"].values())
        if first_s["raced_s"]
        else median(first_s["looked_s"]),
        **_times(final.seconds),
        "chosen": final.chosen,
        "tried": sum(len(step["tried"]) for step in steps),
        "kept": [one["change"] for one in kept],
        "why": [one["why"] for one in kept],
        "ratios": [one["ratio"] for one in kept],
        "gain": json.loads(gain.read_text()) if kept and gain.exists() else None,
    }


def _tune(
    topology: Path, collective: str, search: Path, output: Path, which: Sequence[str]
) -> Tuned:
    """Tune the last tree and others together; return what came of it."""
    again = ("--resume",) if (output / "measurements.jsonl").exists() else ()
    sizes = () if collective == "barrier" else ("--sizes", SIZE)
    stagegen(
        *("tune", "--topology", topology, "--collectives", collective, *sizes),
        *("--tree", search / "result.tree.yaml", "--communicators", "whole", *which),
        *("--budget", 1, "--launches", 5, "--output", output, "--quiet", *again),
    )
    return read_tuned(output)


def _is_own(spec: str) -> bool:
    return spec == NATIVE or spec.startswith(f"configured_tree_{LAST}")


def _best(specs: Sequence[str], seconds: Mapping[str, float]) -> str:
    return min(specs, key=lambda spec: seconds[spec])


def _times(seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return the times of the last tree, of native, and of the best of the rest."""
    last = _best([spec for spec in seconds if _is_own(spec) and spec != NATIVE], seconds)
    other = _best([spec for spec in seconds if not _is_own(spec)], seconds)
    return {
        "last_s": seconds[last],
        "native_s": seconds[NATIVE],
        "other_s": seconds[other],
        "other": other,
    }


def _gain(one: Mapping[str, Any]) -> float:
    """Return the first tree's time over the last one's: each change was raced with its tree."""
    return 1 / prod(one["ratios"])


def _report(found: Found) -> str:
    rows = [
        [
            point,
            *(milliseconds(one[name]) for name in ("first_s", "last_s", "native_s", "other_s")),
            f"`{one['other']}`",
            f"{_gain(one):.2f}",
            f"`{one['chosen']}`",
            f"{one['tried']}, {len(one['kept'])}",
        ]
        for point, one in found.items()
    ]
    titles = ["hosts × ranks, collective", "first tree, ms", "last tree, ms", "native, ms",
              "best other, ms", "best other", "first / last", "serves", "tried, kept"]  # fmt: skip
    changes = [
        f"- {point}: {change}: {why}"
        for point, one in found.items()
        for change, why in zip(one["kept"], one["why"], strict=True)
    ]
    kept = ["Kept:", "\n".join(changes)] if changes else []
    gains = {point: one["gain"] for point, one in found.items() if one["gain"]}
    return "\n\n".join([table(titles, rows), *kept, *_gains(gains)])


def _gains(gains: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the gain is from: parts of the tree in µs, first tree → last one."""
    if not gains:
        return
    parts = list(next(iter(gains.values()))["first_s"])
    rows = [
        [part, *(_change(one["first_s"][part], one["last_s"][part]) for one in gains.values())]
        for part in parts
    ]
    yield (
        "Time of the slowest rank of a call by part of its path, in µs, with the first tree → with "
        "the last:"
    )
    yield table(["part", *gains], rows)


def _change(first: float, last: float) -> str:
    return f"{1e6 * first:.0f} → {1e6 * last:.0f}"


def _targets(found: Found) -> Sequence[Target]:
    gains = {point: _gain(one) for point, one in found.items()}
    against = {
        point: one["last_s"] / min(one["native_s"], one["other_s"]) for point, one in found.items()
    }
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
)
