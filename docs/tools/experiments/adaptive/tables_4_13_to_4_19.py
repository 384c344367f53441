"""Faraj 2006, §4.3.2.1 and §4.3.2.3: invocations and times of selection, overheads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import (
    COLLECTIVES,
    KIB,
    NATIVE,
    PAGE,
    STATIC,
    alone,
    calls,
    in_turn,
    ratio,
    situation,
)  # fmt: skip
from docs.tools.experiments.adaptive._source import CLUSTERS, MICRO, SELECTIONS
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.target import Target

#: The sizes of Table 4.13, and the least of Tables 4.18 and 4.19.
SIZES = (2 * KIB, 16 * KIB, 128 * KIB)

#: Calls of the micro-benchmark (Fig. 4.26). Where these would last longer than minutes: how many
#: calls follow the selection by `star-basic`, which is two monitoring periods.
CALLS, MONITORED, LONG = 500, 60, 128 * KIB

#: Calls of MPICH and of the table alone, and of each choice against the other.
ALONE, OPENING = 40, 4

#: By how much the computation is longer than MPICH's call, and the longest one in ms: processes
#: sleep, so a longer rest changes nothing but the time of the experiment.
COMPUTATION, REST_MOST_MS = 5, 200

BASIC, ENHANCED, STAR = "star-basic", "star-enhanced", "star"
POLICIES = (BASIC, ENHANCED, STAR)

#: The targets: the excess of `star` before selection over the excess of `star-basic`, and the time
#: of its choice over the time of the other choice.
FIFTH, NOT_WORSE = 0.2, 1.02


def _measure(collective: str, size: int, folder: Path) -> Any:
    opened = calls(folder, NATIVE, collective, size, ALONE)["elapsed"][OPENING:]
    rest_ms = min(COMPUTATION * 1e3 * fmean(opened), REST_MOST_MS)
    selecting = SELECTIONS[collective, LONG, BASIC].calls
    count = CALLS if size < LONG else selecting + MONITORED

    def elapsed(served: str, many: int, learn: Path | None = None) -> list[float]:
        words = (collective, size, many, f"rest={rest_ms:.3f}")
        return calls(folder, served, *words, learn=learn)["elapsed"]

    result: dict[str, Any] = {"rest_ms": rest_ms, "calls": count}
    for name in (NATIVE, STATIC):
        result[name] = fmean(elapsed(name, ALONE + OPENING)[OPENING:])
    chosen = {}
    for policy in POLICIES:
        file = folder / f"{policy}.json"
        times = elapsed(policy, count, learn=file)
        one = situation(file, size)
        chosen[policy] = alone(one, one.current, of_source=policy != STAR)
        costs = one.overheads()
        first = one.selected_after or 0
        result[policy] = {
            "selected_after": one.selected_after,
            "selection_s": sum(times[:first]),
            "before_s": fmean(times[:first]) if first else None,
            "after_s": fmean(times[first:]) if times[first:] else None,
            "chosen": one.candidates[one.current].spec,
            "overheads": None if costs is None else costs.to_json(),
        }
    return result | {"choices": _choices(chosen[STAR], chosen[BASIC], elapsed)}


def _choices(star: str, basic: str, elapsed: Any) -> dict[str, list[float]]:
    """Return the times of the choices of `star` and `star-basic`, run in turn."""

    def mean(served: str) -> float:
        return fmean(elapsed(served, ALONE + OPENING)[OPENING:])

    if star == basic:
        return {}
    return in_turn({STAR: lambda _: mean(star), BASIC: lambda _: mean(basic)})


def excess(result: Any, policy: str) -> float | None:
    """Return the seconds of a policy's selection beyond what the best of all would have taken.

    The best is what any policy, MPICH or the table took after selection; so it is the same for all
    policies. None if the policy did not select.
    """
    one = result[policy]
    if one["selected_after"] is None:
        return None
    after = [result[name]["after_s"] for name in POLICIES]
    best = min(time for time in (*after, result[NATIVE], result[STATIC]) if time is not None)
    return float(one["selection_s"] - one["selected_after"] * best)


def _cell(seconds: float | None) -> str:
    return "–" if seconds is None else milliseconds(seconds)


def _key(point: str) -> tuple[str, int]:
    """Return the collective and the bytes of a point, as the source's tables have them."""
    collective, size, _ = point.split()
    return collective, int(size)


def _selections(found: Found) -> str:
    rows = []
    for point, result in found.items():
        for policy in POLICIES:
            one, theirs = result[policy], SELECTIONS.get((*_key(point), policy))
            rows.append(
                [f"{point}, `{policy}`", str(one["selected_after"]), _cell(one["selection_s"]),
                 _cell(excess(result, policy)), f"`{one['chosen']}`",
                 *(("–",) * 3 if theirs is None else map(str, theirs))]
            )  # fmt: skip
    titles = ["calls", "selected after", "ms in all", "excess, ms", "selected",
              "source: after", "source: ms in all", "source: selected"]  # fmt: skip
    return table(titles, rows)


def _milliseconds(found: Found) -> str:
    rows = [
        [f"{point}, {result['calls']} calls", _cell(result[NATIVE]), _cell(result[STATIC]),
         *(_cell(result[policy][name]) for policy in POLICIES for name in ("before_s", "after_s"))]
        for point, result in found.items()
    ]  # fmt: skip
    per_policy = [f"`{policy}` {when}" for policy in POLICIES for when in ("selecting", "after")]
    return table(["calls", "MPICH", "table", *per_policy], rows)


def _costs(found: Found) -> str:
    rows = [
        [f"{point}, `{policy}`",
         *(_cell(one["overheads"] and one["overheads"][name])
           for name in ("o_ms_a_s", "o_ms_c_s", "o_ma_s"))]
        for point, result in found.items()
        for policy, one in ((name, result[name]) for name in POLICIES)
    ]  # fmt: skip
    return table(["calls", "O_MS^a", "O_MS^c", "O_MA"], rows)


def _times(share: float) -> str:
    return f"{share:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


#: What does not depend on how fast a cluster is: titles, and how a number is written.
SHARES = (
    ("selecting / MPICH", _times),
    ("after / MPICH", _times),
    ("O_MS^a / selecting", _percent),
    ("O_MA / after", _percent),
)


def _our_shares(result: Any) -> list[float | None]:
    one, native = result[ENHANCED], result[NATIVE]
    before, after, costs = one["before_s"], one["after_s"], one["overheads"]
    if not before or not after or costs is None:
        return [None] * len(SHARES)
    return [before / native, after / native, costs["o_ms_a_s"] / before, costs["o_ma_s"] / after]


def _their_shares(collective: str, size: int, cluster: str) -> list[float | None]:
    one = MICRO.get((collective, size, cluster))
    if one is None:
        return [None] * len(SHARES)
    return [one.selecting / one.mpich, one.after / one.mpich,
            one.o_ms_a / one.selecting, one.o_ma / one.after]  # fmt: skip


def _beside(found: Found) -> str:
    """Return Tables 4.18 and 4.19 as shares, ours beside those of the source's clusters."""
    ours = {_key(point): result for point, result in found.items()}
    least = min(size for _, size, _ in MICRO)
    theirs = {(collective, size) for collective, size, _ in MICRO}
    rows = []
    for collective, size in sorted(theirs | {key for key in ours if key[1] >= least}):
        own = ours.get((collective, size))
        all_shares = [[None] * len(SHARES) if own is None else _our_shares(own)]
        all_shares += [_their_shares(collective, size, cluster) for cluster in CLUSTERS]
        rows.append(
            [f"{collective} {size // KIB} KiB",
             *("–" if shares[at] is None else written(shares[at])
               for at, (_, written) in enumerate(SHARES) for shares in all_shares)]
        )  # fmt: skip
    whose = ("ours", *(f"({cluster})" for cluster in CLUSTERS))
    return table(["calls", *(f"{title}: {who}" for title, _ in SHARES for who in whose)], rows)


def _of_source() -> str:
    rows = [
        [f"{collective} ({cluster}) {size // KIB} KB", *(f"{number:g}" for number in one)]
        for (collective, size, cluster), one in MICRO.items()
    ]
    return table(["calls", "MPICH", "selecting", "after", "O_MS^a", "O_MS^c", "O_MA"], rows)


def _report(found: Found) -> str:
    return "\n\n".join(
        (
            "As Table 4.13: calls until selection, their time, and what was selected. The excess\n"
            "is that time beyond what as many calls of the best one would take.",
            _selections(found),
            "As Table 4.18: milliseconds of a call.",
            _milliseconds(found),
            "As Table 4.19: milliseconds per call.",
            _costs(found),
            "As Tables 4.18 and 4.19, `star-enhanced`: ours beside the source's clusters.",
            _beside(found),
            "The source's milliseconds of a call.",
            _of_source(),
        )
    )


def _targets(found: Found) -> Sequence[Target]:
    shares, choices = {}, {}
    for point, result in found.items():
        ours, theirs = excess(result, STAR), excess(result, BASIC)
        if ours is not None and theirs is not None and theirs > 0:
            shares[point] = ours / theirs
        pair = result["choices"]
        choices[point] = ratio(pair[STAR], pair[BASIC]) if pair else 1.0
    return [
        Target.at_most(FIFTH, shares, f"excess of `{STAR}` before selection over `{BASIC}`"),
        Target.at_most(NOT_WORSE, choices, f"the choice of `{STAR}` over that of `{BASIC}`"),
    ]


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
    _targets,
)
