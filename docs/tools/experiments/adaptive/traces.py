"""All policies on traces that were recorded in the lab: what each would have taken."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.adaptive._jobs import KIB, TOPOLOGY
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import stagegen
from stagegen.adaptive.policies import policy_names
from stagegen.adaptive.replay import replay
from stagegen.adaptive.trace import read_trace

#: Calls of each candidate, besides those that say what is known of it.
CALLS = 300

CASES = (
    ("allgather", 2 * KIB),
    ("allreduce", 2 * KIB),
    ("allreduce", 8 * KIB),
    ("alltoall", 512),
    ("alltoall", 2 * KIB),
)


def _measure(collective: str, size: int, folder: Path) -> Any:
    file = folder / "trace.json"
    if not file.exists():  # the times do not depend on the policies, so they stay
        stagegen(
            *("adapt", "trace", "--topology", TOPOLOGY, "--collective", collective),
            *("--size", size, "--calls", CALLS, "--output", file),
        )
    trace = read_trace(file).as_tuned()
    played = {name: replay(trace, name) for name in policy_names()}
    return {
        "candidates": len(trace.candidates),
        "table": trace.candidates[0],
        "policies": {
            name: {
                "loss": one.loss,
                "own_loss": one.own_loss,
                "excess_s": one.overheads.excess_s,
                "selected_after": one.overheads.selected_after,
                "chosen": one.last,
                "meetings": len(one.stages),
            }
            for name, one in played.items()
        },
    }


def _report(found: Found) -> str:
    rows = [
        [
            f"{point}, {result['candidates']} candidates",
            f"`{name}`",
            f"{one['loss']:+.1%}",
            f"{one['own_loss']:+.1%}",
            milliseconds(one["excess_s"]),
            "–" if one["selected_after"] is None else str(one["selected_after"]),
            str(one["meetings"]),
            f"`{one['chosen']}`",
        ]
        for point, result in found.items()
        for name, one in result["policies"].items()
    ]
    titles = ["trace", "policy", "loss", "loss against own candidates", "excess, ms",
              "selected after", "meetings", "in the end"]  # fmt: skip
    return table(titles, rows)


EXPERIMENT = Experiment(
    "traces",
    "all policies on recorded traces",
    {f"{collective} {size} B": partial(_measure, collective, size) for collective, size in CASES},
    _report,
    Path("docs/adaptive-policies.md"),
)
