"""Faraj 2006, §4.2.2: how processes arrive in programs (Tables 4.8 to 4.12, Figs. 4.12 to 4.15)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import stagegen
from stagegen.data import TOPOLOGIES
from stagegen.report.units import format_bytes

#: Eight hosts on two switches, ranks dealt to them in turn, 20 Mbit/s.
TOPOLOGY = TOPOLOGIES / "quickstart.yaml"

#: Example programs, with arguments for some seconds.
PROGRAMS = {
    "fourier": ("128", "40"),
    "cube": ("32", "20"),
    "bodies": ("256", "40"),
    "sort": ("20000", "20"),
    "stencil": ("4", "2000"),
}

#: How many call sites of a program are shown: those that take the most time.
SITES = 3

_FACTS = ("program_s", "collectives_s", "clock_error_s", "average_factor", "worst_factor",
          "classes", "distribution")  # fmt: skip
_OF_SITE = ("collective", "size", "calls", "average_factor", "worst_factor", "balanced",
            "elapsed_s", "waiting_s", "synchronisation_delay_s", "phases")  # fmt: skip


def _measure(name: str, folder: Path) -> Any:
    program = lab.compiled(folder.parent / "compiled", name)
    messages, file = folder.parent / "messages.json", folder / "recording"
    if not messages.exists():
        words = ("stagegen", "lab", "run", "--topology", TOPOLOGY.absolute(), "--")
        stagegen("arrivals", "--calibrate", messages, "--", *words)
    before = ("stagegen", "record", "--output", file, "--")
    lab.run(TOPOLOGY, program, *PROGRAMS[name], before=before)
    return json.loads(stagegen("arrivals", "--messages", messages, "--json", file).stdout)


def _summary(arrivals: Mapping[str, Any]) -> Any:
    """Return the facts of the whole, what share of the collectives is waiting, and some sites."""
    blocking = [one for one in arrivals["sites"] if one["elapsed_s"] is not None]
    elapsed, waiting = (
        sum(one["calls"] * one[what] for one in blocking) for what in ("elapsed_s", "waiting_s")
    )
    return {
        **{fact: arrivals[fact] for fact in _FACTS},
        "waiting": waiting / elapsed if elapsed else 0.0,
        "sites": [{key: site[key] for key in _OF_SITE} for site in blocking[:SITES]],
    }


def _report(found: Found) -> str:
    known = {name: found[name] for name in PROGRAMS if name in found}
    if not known:
        return ""
    classes = next(iter(known.values()))["classes"]
    return "\n\n".join(
        (
            "Programs; factors are means over all calls (Tables 4.8, 4.10 and 4.11)",
            table(
                ["program", "seconds", "in collectives", "of it waiting", "δ̄ / T", "ω / T"],
                [_of_program(name, one) for name, one in known.items()],
            ),
            f"Call sites that take the most time, at most {SITES} of each (Tables 4.9 and 4.12)",
            table(
                ["program", "collective", "size", "calls", "δ̄ / T", "ω / T", "balanced",
                 "ē, ms", "waiting, ms", "delay, ms", "phases of ω, ms"],
                [row for name, one in known.items() for row in _of_sites(name, one)],
            ),
            "Shares of calls by their ω / T (Figs. 4.12 to 4.14)",
            table(
                ["program", "messages", *_titles(classes)],
                [row for name, one in known.items() for row in _of_classes(name, one)],
            ),
        )
    )  # fmt: skip


def _of_program(name: str, one: Mapping[str, Any]) -> list[str]:
    share = one["collectives_s"] / one["program_s"]
    factors = (f"{one[key]:.1f}" for key in ("average_factor", "worst_factor"))
    return [
        " ".join((name, *PROGRAMS[name])),
        f"{one['program_s']:.2f}", f"{share:.0%}", f"{one['waiting']:.0%}", *factors,
    ]  # fmt: skip


def _of_sites(name: str, one: Mapping[str, Any]) -> Iterator[list[str]]:
    for site in one["sites"]:
        times = (site[key] for key in ("elapsed_s", "waiting_s", "synchronisation_delay_s"))
        yield [
            name, site["collective"], format_bytes(site["size"]), str(site["calls"]),
            f"{site['average_factor']:.1f}", f"{site['worst_factor']:.1f}",
            f"{site['balanced']:.0%}", *map(milliseconds, times), _phases(site["phases"]),
        ]  # fmt: skip


def _phases(phases: Sequence[tuple[int, int, float]]) -> str:
    return ", ".join(f"{milliseconds(worst)} ({a}–{b})" for a, b, worst in phases)


def _titles(classes: Sequence[float | None]) -> list[str]:
    """Return the titles of classes; the last one has no end."""
    ends = [f"{end:g}" for end in classes if end is not None]
    return [*(f"to {end}" for end in ends), f"above {ends[-1]}"]


def _of_classes(name: str, one: Mapping[str, Any]) -> Iterator[list[str]]:
    for imbalance, shares in one["distribution"].items():
        if shares:
            yield [name, imbalance.replace("_", " "), *(f"{share:.0%}" for share in shares)]


EXPERIMENT = Experiment(
    "programs",
    "how processes arrive in programs (Faraj 2006, §4.2.2)",
    {name: partial(_measure, name) for name in PROGRAMS},
    _report,
    Path("docs/arrival.md"),
    summary=_summary,
)
