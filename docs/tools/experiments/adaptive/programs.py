"""Faraj 2006, §4.3.2.2: whole programs, unmodified, with the library before them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments.adaptive._jobs import (
    GUARD,
    NATIVE,
    PAGE,
    STAR,
    STATIC,
    alone,
    in_turn,
    ratio,
    run,
)  # fmt: skip
from docs.tools.experiments.adaptive._source import APPLICATIONS, CLUSTERS
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.programs import OF_FFTW, Program, loop_seconds
from docs.tools.target import Target
from stagegen.adaptive.learned import Situation, read_learned

#: Each with arguments for some seconds, and the source's program that it stands for. The library
#: was not tuned for the collective that takes most of the time of `frames`: bcast has no rules.
PROGRAMS = {
    "fourier": (Program("fourier", ("128", "120")), "FFTW"),
    "bodies": (Program("bodies", ("64", "600")), "NBODY"),
    "sort": (Program("sort", ("4000", "120")), "–"),
    "cube": (Program("cube", ("32", "50")), "FT"),
    "frames": (Program("frames", ("4096", "600")), "–"),
    "fftw": (Program("fftw", ("32", "120", "out-of-place", "estimate"), OF_FFTW), "FFTW"),
}
ENHANCED = "star-enhanced"
POLICIES = (ENHANCED, STAR, GUARD)
SERVED = (NATIVE, STATIC, *POLICIES)

#: Without tuning and monitoring: what a policy selected serves from the first call on.
PRIMED = {policy: f"{policy}′" for policy in (ENHANCED, STAR)}

#: The ratios that are beside the source's: STAGE is its static table.
BESIDE = (
    (NATIVE, ENHANCED),
    (STATIC, ENHANCED),
    (NATIVE, STATIC),
    (ENHANCED, PRIMED[ENHANCED]),
)

#: The targets: in at least one program, adapting is this many times as fast as the table; in all of
#: them, watching takes so many times as long as the table, at the most.
GAIN, WATCHING = 1.1, 1.01


def _spent(one: Situation) -> float:
    """Return about how many seconds the calls of a situation took."""
    return one.calls * one.medians.get(one.current, 0.0)


def largest(situations: Iterable[Situation]) -> list[Situation]:
    """Return for each collective the situation with the most time, the longest first."""
    by_collective: dict[str, list[Situation]] = defaultdict(list)
    for one in situations:
        by_collective[one.collective].append(one)
    chosen = [max(each, key=_spent) for each in by_collective.values()]
    return sorted(chosen, key=_spent, reverse=True)


def selected(situations: Iterable[Situation], *, of_source: bool) -> str:
    """Return the selected routines, which then serve from the first call on, as ``run`` names them.

    LIBCOLL_FORCE names one routine for each collective, so the situation with the most time
    decides. Where that kept the table's choice, the table serves.
    """
    names = [alone(one, one.current, of_source=of_source) for one in largest(situations)]
    return ",".join(name for name in names if name != STATIC) or STATIC


def _facts(situations: Sequence[Situation]) -> list[dict[str, Any]]:
    facts = []
    for one in largest(situations):
        costs = one.overheads()
        facts.append(
            {
                "collective": one.collective,
                "bytes": one.size,
                "ranks": one.ranks,
                "calls": one.calls,
                "chosen": one.candidates[one.current].spec,
                "meetings_s": one.meetings_s,
                "overheads": None if costs is None else costs.to_json(),
            }
        )
    return facts


def _measure(name: str, folder: Path) -> Any:
    program, _ = PROGRAMS[name]

    def seconds(served: str, learn: Path | None = None) -> float:
        return loop_seconds(run(folder, served, program, learn=learn))

    files = {policy: folder / f"{policy}.json" for policy in POLICIES}
    for policy in POLICIES:
        seconds(policy, files[policy])
    found = {policy: read_learned(files[policy]).situations for policy in POLICIES}
    primed = {
        PRIMED[policy]: selected(found[policy], of_source=policy == ENHANCED) for policy in PRIMED
    }
    arms: dict[str, Callable[[int], float]] = {
        served: lambda _, served=served: seconds(served) for served in SERVED
    }
    arms |= {
        arm: lambda _, served=served: seconds(served)
        for arm, served in primed.items()
        if served != STATIC
    }
    times = in_turn(arms)
    times |= {arm: times[STATIC] for arm, served in primed.items() if served == STATIC}
    facts = {policy: _facts(found[policy]) for policy in POLICIES}
    return {"times": times, "primed": primed, "learned": facts}


def _report(found: Found) -> str:
    columns = (*SERVED, *PRIMED.values())
    times = [
        [
            f"`{PROGRAMS[name][0]}`",
            PROGRAMS[name][1],
            *(f"{fmean(one['times'][column]):.3f}" for column in columns),
            f"{ratio(one['times'][STATIC], one['times'][STAR]):.3f}",
            f"{max(max(each) / min(each) for each in one['times'].values()):.2f}",
        ]
        for name, one in found.items()
    ]
    routines = [
        [
            f"{name}: {one['collective']} of {one['bytes']} B, {one['ranks']} ranks, `{policy}`",
            f"`{one['chosen']}`",
            *_costs(one["overheads"]),
            milliseconds(one["meetings_s"]),
        ]
        for name, result in found.items()
        for policy in POLICIES
        for one in result["learned"][policy]
    ]
    titles = ["program", "as", *(f"{column}, s" for column in columns), "table / star",
              "largest spread"]  # fmt: skip
    costs = ["routine", "serves in the end", "selected after", "O_MS^a, ms", "O_MS^c, ms",
             "O_MA, ms", "all meetings, ms"]  # fmt: skip
    return "\n\n".join(
        (
            "As Tables 4.16 and 4.17: seconds of the loop.",
            table(titles, times),
            "As Tables 4.16 and 4.17: ratios, ours beside those of the source's program. Above 1,\n"
            "what stands behind the stroke is faster.",
            _beside(found),
            "As Tables 4.14 and 4.15, with the overheads per call: of each collective the calls "
            "that took the most time.",
            table(costs, routines),
            "The source's programs, from Tables 4.14 to 4.17.",
            _of_source(),
        )
    )


def _row(title: str, times: Mapping[str, Sequence[float] | None]) -> list[str]:
    pairs = [(times.get(over), times.get(under)) for over, under in BESIDE]
    return [title, *("–" if a is None or b is None else f"{ratio(a, b):.2f}" for a, b in pairs)]


def _beside(found: Found) -> str:
    """Return ratios of our programs, each followed by those of what it stands for."""
    rows = []
    for theirs in dict.fromkeys(name for name, _ in APPLICATIONS):
        for ours in (name for name in found if PROGRAMS[name][1] == theirs):
            rows.append(_row(f"{theirs}: our `{ours}`", found[ours]["times"]))
        for cluster in CLUSTERS:
            one = APPLICATIONS[theirs, cluster]
            times = {NATIVE: [one.mpich], STATIC: [one.stage], ENHANCED: [one.star]}
            if one.star_primed is not None:
                times[PRIMED[ENHANCED]] = [one.star_primed]
            rows.append(_row(f"{theirs}: the source's, on ({cluster})", times))
    return table(["program", *(f"{over} / {under}" for over, under in BESIDE)], rows)


def _of_source() -> str:
    rows = [
        [f"{name} ({cluster}), {one.collective}", f"{one.size} B", one.star_chose,
         one.stage_chose, one.mpich_routine, f"{one.star:g}", f"{one.stage:g}", f"{one.mpich:g}",
         "–" if one.star_primed is None else f"{one.star_primed:g}"]
        for (name, cluster), one in APPLICATIONS.items()
    ]  # fmt: skip
    titles = ["program", "message", "STAR selects", "STAGE selects", "MPICH has", "STAR, s",
              "STAGE, s", "MPICH, s", "STAR′, s"]  # fmt: skip
    return table(titles, rows)


def _costs(overheads: Any) -> list[str]:
    if overheads is None:
        return ["–"] * 4
    after = overheads["selected_after"]
    return [
        "–" if after is None else str(after),
        *(milliseconds(overheads[name]) for name in ("o_ms_a_s", "o_ms_c_s", "o_ma_s")),
    ]


def _targets(found: Found) -> Sequence[Target]:
    gains = {name: ratio(one["times"][STATIC], one["times"][STAR]) for name, one in found.items()}
    told = ", ".join(f"{name} {gain:.3f}" for name, gain in gains.items())
    met = max(gains.values()) >= GAIN if gains else None
    watching = {
        name: ratio(one["times"][GUARD], one["times"][STATIC]) for name, one in found.items()
    }
    return [
        Target(met, f"star at least {GAIN} × as fast as the table in one program: {told}"),
        Target.at_most(WATCHING, watching, "guard over the table"),
    ]


EXPERIMENT = Experiment(
    "programs",
    "whole programs (Faraj 2006, Tables 4.14 to 4.17)",
    {name: partial(_measure, name) for name in PROGRAMS},
    _report,
    PAGE,
    _targets,
)
