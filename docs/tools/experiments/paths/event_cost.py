"""What the events of a 4-byte allreduce cost: calls with and without events in turn, in one job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from stagegen.measure.statistics import summarize
from stagegen.tune.reconfigure_steps import MESSAGES, SHARED

#: An even number: as many pairs begin with the call that has events as end with it.
PAIRS = 8000

#: What was promised: events take at most this share of the time of a call.
MOST = 0.02

#: Of how many calls one is kept; with the greatest number none is.
KEPT, NONE = 3, 2**32 - 1

#: The places of the call with events in its pair.
PLACES = ("first", "second")

WAYS = {"messages": MESSAGES, "shared memory": SHARED}

#: Two ranks have a CPU each, so their calls are much alike. Those of the other clusters take turns.
CLUSTERS = ((2, 1), *SHAPES)


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


def _pairs(text: str) -> dict[str, Any]:
    """Return what the calls with events take, beside the others of their pairs.

    A call may take longer because it is the second one. So there is a median for each place, and
    one of the geometric means of two pairs, in which the call has both places.
    """
    rows = [line.split() for line in text.splitlines()]
    ratios: dict[str, list[float]] = {place: [] for place in PLACES}
    for place, plain, kept in rows:
        ratios[PLACES[int(place) - 1]].append(float(kept) / float(plain))
    both = [math.sqrt(a * b) for a, b in zip(*ratios.values(), strict=True)]
    return {
        "plain_us": summarize([float(plain) for _, plain, _ in rows]).median,
        **{place: _more(values) for place, values in {**ratios, "both": both}.items()},
    }


def _more(ratios: Sequence[float]) -> dict[str, float]:
    found = summarize(ratios)
    return {"more": found.median - 1, "low": found.low - 1, "high": found.high - 1}


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{one['kept']['plain_us']:.0f}",
            *(_percent(one["kept"][place]) for place in (*PLACES, "both")),
            _percent(one["none"]["both"]),
        ]
        for point, one in found.items()
    ]
    titles = ["hosts × ranks, on hosts", "a call, µs", "more with events, first of a pair",
              "second of a pair", "**both**", "both, where none has events"]  # fmt: skip
    return table(titles, rows)


def _percent(one: Mapping[str, float]) -> str:
    more, low, high = (100 * one[name] for name in ("more", "low", "high"))
    return f"{more:+.2f} % ({low:+.2f} to {high:+.2f})"


def _tells(one: Mapping[str, Any]) -> bool:
    """Whether a point is precise enough: without events, the interval is within the goal."""
    control = one["none"]["both"]
    return bool(control["low"] >= -MOST and control["high"] <= MOST)


def _targets(found: Found) -> Sequence[Target]:
    what = "events, as a share of a 4-byte allreduce"
    high = {point: one["kept"]["both"]["high"] for point, one in found.items() if _tells(one)}
    told = [
        f"{point} {_percent(one['kept']['both'])}"
        for point, one in found.items()
        if not _tells(one)
    ]
    unknown = f"{what}, where calls differ by more than {MOST} without events: {', '.join(told)}"
    return [Target.at_most(MOST, high, what), *([Target(None, unknown)] if told else [])]


EXPERIMENT = Experiment(
    "event_cost",
    "what events cost: calls with and without them in turn",
    {
        f"{hosts} × {slots} {way}": partial(_measure, hosts, slots, on_host)
        for hosts, slots in CLUSTERS
        for way, on_host in WAYS.items()
        if slots > 1 or on_host == MESSAGES
    },
    _report,
    Path("docs/inspect.md"),
    _targets,
)
