"""The guard, while the link between the switches loses half of its rate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.adaptive._jobs import (
    COLLECTIVES,
    KIB,
    PAGE,
    STATIC,
    TOPOLOGY,
    best_single,
    calls,
    candidates,
)  # fmt: skip
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target
from stagegen.measure.launch.lab.network import QUEUE_BYTES, burst, switch_namespace
from stagegen.topology import load_topology

SIZE = 8 * KIB

#: Calls, the one before which the rate is halved, and those after it in which the guard may react.
CALLS, AT, REACTION = 400, 150, 50

#: Calls that find the best single routine at half of the rate.
SINGLE = 60

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


def _measure(collective: str, folder: Path) -> Any:
    file = folder / "learned.json"
    halved = (f"at={AT}", f"command={_halving()}")
    words = (collective, SIZE, CALLS, *halved)
    guard = calls(folder, "guard", *words, learn=file)["last"]
    static = calls(folder, STATIC, *words)["last"]
    names = [name for name in candidates(file, SIZE) if not name.endswith("=native")]
    at_once = ("at=0", f"command={_halving()}")
    best, _, _ = best_single(folder, names, SINGLE // 4, collective, SIZE, SINGLE, *at_once)
    single = calls(folder, best, collective, SIZE, 3 * SINGLE, *at_once)["last"]
    return {
        "before": median(guard[:AT]) / median(static[:AT]),
        "guard_s": median(guard[AT + REACTION :]),
        "table_s": median(static[AT + REACTION :]),
        "best": best.partition("=")[2],
        "best_s": median(single[SINGLE // 4 :]),
    }


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{one['before']:.3f}",
            *(milliseconds(one[name]) for name in ("table_s", "guard_s", "best_s")),
            f"`{one['best']}`",
            f"{one['guard_s'] / one['best_s']:.3f}",
            f"{one['table_s'] / one['guard_s']:.3f}",
        ]
        for point, one in found.items()
    ]
    titles = ["calls", "guard / table before", "table, ms", "guard, ms", "best, ms", "best",
              "guard / best", "table / guard"]  # fmt: skip
    return table(titles, rows)


def _targets(found: Found) -> Sequence[Target]:
    after = {point: one["guard_s"] / one["best_s"] for point, one in found.items()}
    before = {point: one["before"] for point, one in found.items()}
    return [
        Target.at_most(NEAR, after, f"{REACTION} calls after the change, over the best routine"),
        Target.at_most(OVERHEAD, before, "before it, over the table"),
    ]


EXPERIMENT = Experiment(
    "uplink",
    "the guard, while the link between the switches loses half of its rate",
    {collective: partial(_measure, collective) for collective in COLLECTIVES},
    _report,
    PAGE,
    _targets,
)
