"""Faraj 2006, §4.3.2.1 and §4.3.2.3: invocations and times of selection, overheads."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import COLLECTIVES, KIB, NATIVE, PAGE, STATIC, calls
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from stagegen.adaptive.learned import read_learned

#: Calls of the micro-benchmark (Fig. 4.26), and its sizes here: 100 Mbit/s are 20 Mbit/s in the
#: lab, and 16 hosts are 8.
CALLS = 500
SIZES = (512, 2 * KIB, 8 * KIB)

POLICIES = ("star-basic", "star-enhanced", "star")


def _measure(collective: str, size: int, folder: Path) -> Any:
    result: dict[str, Any] = {
        name: fmean(calls(folder, name, collective, size, CALLS // 2)["elapsed"])
        for name in (NATIVE, STATIC)
    }
    for policy in POLICIES:
        file = folder / f"{policy}.json"
        times = calls(folder, policy, collective, size, CALLS, learn=file)["elapsed"]
        (one,) = (s for s in read_learned(file).situations if s.size == size)
        costs = one.overheads()
        first = one.selected_after or 0
        result[policy] = {
            "selected_after": one.selected_after,
            "selection_s": sum(times[:first]),
            "before_s": fmean(times[:first]) if first else None,
            "after_s": fmean(times[first:]),
            "chosen": one.candidates[one.current].spec,
            "overheads": None if costs is None else costs.to_json(),
        }
    return result


def _cell(seconds: float | None) -> str:
    return "–" if seconds is None else milliseconds(seconds)


def _report(found: Found) -> str:
    selection = [
        [f"{point}, `{policy}`", str(one["selected_after"]), _cell(one["selection_s"]),
         f"`{one['chosen']}`"]
        for point, result in found.items()
        for policy, one in ((name, result[name]) for name in POLICIES)
    ]  # fmt: skip
    times = [
        [point, _cell(result[NATIVE]), _cell(result[STATIC]),
         *(_cell(result[policy][name]) for policy in POLICIES for name in ("before_s", "after_s"))]
        for point, result in found.items()
    ]  # fmt: skip
    costs = [
        [f"{point}, `{policy}`",
         *(_cell(one["overheads"] and one["overheads"][name])
           for name in ("o_ms_a_s", "o_ms_c_s", "o_ma_s", "excess_s"))]
        for point, result in found.items()
        for policy, one in ((name, result[name]) for name in POLICIES)
    ]  # fmt: skip
    per_policy = [f"`{policy}` {when}" for policy in POLICIES for when in ("selecting", "after")]
    return "\n\n".join(
        (
            "As Table 4.13: calls until selection, their time, and what was selected.",
            table(["calls", "selected after", "ms in all", "selected"], selection),
            "As Table 4.18: milliseconds of a call.",
            table(["calls", "MPICH", "table", *per_policy], times),
            "As Table 4.19: milliseconds per call, and in all beyond what the best routine takes.",
            table(["calls", "O_MS^a", "O_MS^c", "O_MA", "excess before selection"], costs),
        )
    )


EXPERIMENT = Experiment(
    "tables_4_13_to_4_19",
    "selection and overheads in the micro-benchmark (Faraj 2006, Tables 4.13, 4.18 and 4.19)",
    {
        f"{collective} {size} B": partial(_measure, collective, size)
        for collective in COLLECTIVES
        for size in SIZES
    },
    _report,
    PAGE,
)
