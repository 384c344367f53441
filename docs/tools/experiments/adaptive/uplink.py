"""The guard, while the link between the switches loses half of its rate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import (
    COLLECTIVES,
    GUARD,
    KIB,
    PAGE,
    STATIC,
    TOPOLOGY,
    calls,
    fastest,
    finalists,
    in_turn,
    ratio,
    singles,
    situation,
)  # fmt: skip
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target
from stagegen.adaptive.learned import Situation
from stagegen.measure.launch.lab.network import QUEUE_BYTES, burst, switch_namespace
from stagegen.topology import load_topology

SIZE = 8 * KIB

#: Calls, the one before which the rate is halved, and those after it in which the guard may react.
CALLS, AT, REACTION = 400, 150, 50

#: Calls of a single routine, all of them at half of the rate; of the short run of each; and those
#: that open connections.
SINGLE, SHORT, OPENING = 180, 24, 4

NEAR, OVERHEAD = 1.05, 1.01


def _halving() -> str:
    """Return the command that halves the rate of the first link, in both directions."""
    (link, *_) = load_topology(TOPOLOGY).links
    rate = link.rate / 2
    return " && ".join(
        f"nsenter --net=/run/netns/{switch_namespace(switch)} tc qdisc change dev l0 root "
        f"tbf rate {round(rate)}bit burst {burst(rate)} limit {QUEUE_BYTES}"
        for switch in link.ends
    )


def reaction(one: Situation) -> int | None:
    """Return how many calls after the change another routine than the table's choice served.

    That is, when it was chosen, not when it was tried. None if it never was.
    """
    before = 0
    for stage in one.stages:
        if stage.is_monitoring and stage.candidate != 0 and before > AT:
            return before - AT
        before += stage.calls
    return None


def _measure(collective: str, folder: Path) -> Any:
    file = folder / "learned.json"
    words = (collective, SIZE, CALLS, f"at={AT}", f"command={_halving()}")
    reactions: list[int | None] = []
    at_once = ("at=0", f"command={_halving()}")

    def whole(served: str) -> dict[str, float]:
        last = calls(folder, served, *words, learn=file if served == GUARD else None)["last"]
        if served == GUARD:
            reactions.append(reaction(situation(file, SIZE)))
        return {"before": fmean(last[OPENING:AT]), "after": fmean(last[AT + REACTION :])}

    def single(name: str, count: int) -> dict[str, float]:
        last = calls(folder, name, collective, SIZE, count, *at_once)["last"]
        return {"after": fmean(last[OPENING:])}

    whole(GUARD)
    names = finalists(singles(file, SIZE), lambda name: single(name, SHORT)["after"])
    found = in_turn(
        {
            **{served: lambda _, served=served: whole(served) for served in (GUARD, STATIC)},
            **{name: lambda _, name=name: single(name, SINGLE) for name in names if name != STATIC},
        }
    )
    after = {name: [one["after"] for one in rounds] for name, rounds in found.items()}
    return {
        "before": {served: [one["before"] for one in found[served]] for served in (GUARD, STATIC)},
        "after": after,
        "best": fastest(after, [name for name in after if name != GUARD]),
        "reactions": reactions[1:],
    }


def _before(one: Any) -> float:
    return ratio(one["before"][GUARD], one["before"][STATIC])


def _over_best(one: Any) -> float:
    return ratio(one["after"][GUARD], one["after"][one["best"]])


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{_before(one):.3f}",
            *(milliseconds(fmean(one["after"][name])) for name in (STATIC, GUARD, one["best"])),
            f"`{one['best']}`",
            f"{_over_best(one):.3f}",
            f"{ratio(one['after'][STATIC], one['after'][GUARD]):.3f}",
            ", ".join("–" if calls is None else str(calls) for calls in one["reactions"]),
        ]
        for point, one in found.items()
    ]
    titles = ["calls", "guard / table before", "table, ms", "guard, ms", "best, ms", "best",
              "guard / best", "table / guard", "changed after, calls"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    after = {point: _over_best(one) for point, one in found.items()}
    before = {point: _before(one) for point, one in found.items()}
    late = {
        point: max(calls for calls in one["reactions"] if calls is not None)
        for point, one in found.items()
        if any(calls is not None for calls in one["reactions"])
    }
    return [
        Target.at_most(NEAR, after, f"{REACTION} calls after the change, over the best routine"),
        Target.at_most(OVERHEAD, before, "before it, over the table"),
        Target.at_most(REACTION, late, "calls until the guard changes, if it does"),
    ]


EXPERIMENT = Experiment(
    "uplink",
    "the guard, while the link between the switches loses half of its rate",
    {collective: partial(_measure, collective) for collective in COLLECTIVES},
    _report,
    PAGE,
    _targets,
)
