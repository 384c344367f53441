"""What the events of a 4-byte allreduce cost: calls with and without events in turn, in one job."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.paths._trees import (
    SHAPES,
    TRACED,
    built,
    cluster,
    shaped,
)
from docs.tools.target import Target
from stagegen.measure.statistics import paired_ratio, summarize
from stagegen.tune.reconfigure import MESSAGES, SHARED

PAIRS = 8000

#: What was promised: events take at most this share of the time of a call.
MOST = 0.02

#: Of how many calls one is kept; with the greatest number none is.
KEPT, NONE = 2, 2**32 - 1

WAYS = {"messages": MESSAGES, "shared memory": SHARED}


def _measure(hosts: int, slots: int, on_host: int, folder: Path) -> Any:
    file, topology = cluster(folder, hosts, slots)
    library = built(folder, topology, shaped(topology, "nary"), on_host) / TRACED
    program = lab.compiled(folder.parents[1] / "compiled", "in_turn")
    return {
        name: _pairs(
            lab.run(
                file,
                program,
                PAIRS,
                preload=library,
                variables={"LIBCOLL_EVENTS": "/dev/null", "LIBCOLL_EVENTS_EACH": str(each)},
            )
        )
        for name, each in (("kept", KEPT), ("none", NONE))
    }


def _pairs(text: str) -> dict[str, float]:
    """Return what the second calls of pairs take, beside the first ones."""
    rows = [line.split() for line in text.splitlines()]
    first, second = ([float(row[side]) for row in rows] for side in (0, 1))
    ratio = paired_ratio(second, first)
    return {
        "plain_us": summarize(first).median,
        "more": ratio.median - 1,
        "low": ratio.low - 1,
        "high": ratio.high - 1,
    }


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{one['kept']['plain_us']:.0f}",
            *(
                f"{100 * one[name]['more']:+.2f} % ({100 * one[name]['low']:+.2f} to "
                f"{100 * one[name]['high']:+.2f})"
                for name in ("kept", "none")
            ),
        ]
        for point, one in found.items()
    ]
    titles = ["hosts × ranks, on hosts", "a call, µs", "more with events",
              "more where none has events"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    high = {point: one["kept"]["high"] for point, one in found.items()}
    return [Target.at_most(MOST, high, "events, as a share of a 4-byte allreduce")]


EXPERIMENT = Experiment(
    "event_cost",
    "what events cost: calls with and without them in turn",
    {
        f"{hosts} × {slots} {way}": partial(_measure, hosts, slots, on_host)
        for hosts, slots in SHAPES
        for way, on_host in WAYS.items()
    },
    _report,
    Path("docs/inspect.md"),
    _targets,
)
