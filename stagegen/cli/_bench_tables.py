"""``stagegen bench`` for several libraries, or for late ranks: the routines that tables choose.

A program can have only one library. So a measuring session times the routines in turn, with the
native one. Thus one job can compare any number of tables, call by call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from stagegen.catalogue import Catalogue, load_catalogue, with_native
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import print_json
from stagegen.cli._sizes import timed
from stagegen.cli._timing import Chosen
from stagegen.cli._tune_log import LOG, new_header
from stagegen.cli._used import algorithms_used
from stagegen.errors import InputError
from stagegen.generate import Renderer, measuring_sources, session_build
from stagegen.generate.timings import require_sound
from stagegen.measure.launch.base import Environment
from stagegen.measure.live import SessionStarter, environments
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter
from stagegen.measure.records import Candidate
from stagegen.measure.timing import Timing
from stagegen.parts import templates_beside
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import Topology
from stagegen.tune.bounds import bound_or_none, patience
from stagegen.tune.contest import Contestant, require_right, time_in_turn
from stagegen.tune.decision import NATIVE_CANDIDATE, DecisionTable
from stagegen.tune.recorded import read_decision
from stagegen.tune.scope import Options
from stagegen.tune.served import Served, choice_of, served
from stagegen.tune.serving import Serving

_COMMAND = "stagegen bench"
_ROOT = 0


@dataclass(frozen=True)
class Asked:
    """What is to be compared.

    Attributes:
        topology: the cluster.
        topology_file: where it was read from.
        libraries: the generated folders, the first one as the reference for the others.
        collectives: names; None for all.
        sizes: in bytes.
        repetitions: of each candidate.
        timing: how calls are timed.
        chosen: the timing mechanism, and how late ranks come.
    """

    topology: Topology
    topology_file: str
    libraries: tuple[Path, ...]
    collectives: tuple[str, ...] | None
    sizes: tuple[int, ...]
    repetitions: int
    timing: Timing
    chosen: Chosen


@dataclass(frozen=True)
class _Row:
    collective: str
    size: int
    native: Contestant
    tables: tuple[Served, ...]
    bound: float | None

    def to_json(self, libraries: Sequence[Path]) -> dict[str, Any]:
        seconds = self.native.seconds
        return {
            "collective": self.collective,
            "size": self.size,
            "native_s": seconds.median,
            "native_interval_s": [seconds.low, seconds.high],
            "bound_s": self.bound,
            "repetitions": seconds.count,
            **({"late": self.native.late.to_json()} if self.native.late else {}),
            "tables": [
                _served_form(library, one)
                for library, one in zip(libraries, self.tables, strict=True)
            ],
        }


def _served_form(library: Path, one: Served) -> dict[str, Any]:
    seconds = one.contestant.seconds
    return {
        "library": str(library),
        "routine": one.contestant.candidate.spec,
        "tuned_s": seconds.median,
        "tuned_interval_s": [seconds.low, seconds.high],
        "over_native": one.over_native.median,
        "over_native_interval": [one.over_native.low, one.over_native.high],
        "over_first": one.over_first.median,
        "over_first_interval": [one.over_first.low, one.over_first.high],
        **({"late": one.contestant.late.to_json()} if one.contestant.late else {}),
    }


def read_tables(libraries: Sequence[Path], topology: Topology) -> tuple[DecisionTable, ...]:
    """Return the decision tables of generated folders.

    Raises:
        InputError: one is no generated folder, or of another cluster.
    """
    found = []
    for library in libraries:
        path = library / "decision.json"
        if not path.is_file():
            raise InputError(
                "not a generated folder: it has no decision.json; give one of `stagegen tune`",
                library,
            )
        decision = read_decision(path)
        if decision.topology_hash != topology.hash:
            raise InputError(
                f"this library was made for another topology than {topology.name}; name its own "
                "file with --topology",
                library,
            )
        found.append(decision)
    return tuple(found)


def bench_tables(asked: Asked, launcher: str | None, mpicc: str | None, as_json: bool) -> None:
    """Compare the choices of the tables with the native routine and with each other; print it.

    Raises:
        InputError: a folder is no library of this cluster, or a collective is unknown.
        MeasurementError: a routine is wrong, or could not be timed.
    """
    topology = asked.topology
    decisions = read_tables(asked.libraries, topology)
    roots = dict.fromkeys(root for one in asked.libraries for root in templates_beside(one))
    catalogue = load_catalogue(added=tuple(roots))
    known = {one.name: one for one in catalogue.descriptions}
    names = asked.collectives or tuple(known)
    if unknown := set(names) - set(known):
        listed = ", ".join(sorted(unknown))
        raise InputError(f"unknown collective {listed}; choose from {', '.join(known)}")
    serving = Serving(catalogue)
    points = {
        (name, size): tuple(
            choice_of(decision, serving, topology, name, size) for decision in decisions
        )
        for name in names
        for size in timed(known[name], asked.sizes)
    }
    console = Console(stderr=True, highlight=False)
    rows, environment = _measure(asked, catalogue, points, launcher, mpicc, console)
    if as_json:
        forms = [row.to_json(asked.libraries) for row in rows]
        timing = asked.timing.to_json()
        print_json({"environment": environment.to_json(), "timing": timing, "rows": forms})
    else:
        _print_table(asked, rows)


def _measure(
    asked: Asked,
    catalogue: Catalogue,
    points: Mapping[tuple[str, int], tuple[Candidate, ...]],
    launcher: str | None,
    mpicc: str | None,
    console: Console,
) -> tuple[list[_Row], Environment]:
    topology, timing = asked.topology, asked.timing
    found, toolchain, why = launcher_and_toolchain(topology, asked.topology_file, launcher, mpicc)
    console.print(why)
    require_sound(asked.chosen.mechanism, toolchain)
    chosen = {(name, one) for (name, _), choices in points.items() for one in choices}
    chosen |= {(name, NATIVE_CANDIDATE) for name, _ in points}
    used = replace(catalogue, algorithms=with_native(catalogue, algorithms_used(catalogue, chosen)))
    folder = asked.libraries[0] / "build" / "bench-tables"
    names = tuple(sorted({name for name, _ in points}))
    options = Options(names, tuple(sorted({max(1, size) for _, size in points})), timing, 0.0)
    log = LogWriter(folder / LOG, new_header(topology, used, options))
    renderer = Renderer(_COMMAND, topology.name, topology.hash, used.hash, used.templates)
    needed = tuple(sorted({algorithm.collective for algorithm in used.algorithms}))
    files = measuring_sources(
        session_build(topology, used, needed), renderer, (asked.chosen.mechanism,)
    )
    starter = SessionStarter(folder, files, toolchain, found, topology, log)
    source = LiveSource(
        starter,
        log,
        lambda name, size: patience(topology, used.collective(name), size, _ROOT),
        start_check=starter.start_here if found.emulates else None,
    )
    rows = []
    with closing(log), closing(source):
        for name in names:
            require_right(source, name, _candidates(points, name))
        for (name, size), choices in track(
            points.items(), "comparing", console=console, transient=True
        ):
            candidates = tuple(dict.fromkeys((NATIVE_CANDIDATE, *choices)))
            contestants = time_in_turn(
                source, name, size, candidates, asked.repetitions, timing=timing
            )
            bound = bound_or_none(topology, catalogue.collective(name), size, _ROOT)
            scale = environments(log.written)[-1].scale
            seconds = None if bound is None else bound.seconds / scale
            rows.append(_Row(name, size, contestants[0], served(contestants, choices), seconds))
        environment = environments(log.written)[-1]
    return rows, environment


def _candidates(
    points: Mapping[tuple[str, int], tuple[Candidate, ...]], collective: str
) -> tuple[Candidate, ...]:
    """Return the routines that the tables choose for a collective, each once."""
    of = (c for (name, _), choices in points.items() if name == collective for c in choices)
    return tuple(dict.fromkeys(of))


def _print_table(asked: Asked, rows: Sequence[_Row]) -> None:
    how = asked.timing.arrivals.text if asked.timing.arrivals else asked.timing.mechanism
    caption = f"{how}; time: {asked.timing.metric}; ratio: to the first library"
    table = Table(box=None, header_style="bold", caption=caption)
    for title in ("collective", "size", "native", "tuned", "speed-up", "ratio", "interval"):
        table.add_column(title, justify="left" if title == "collective" else "right")
    table.add_column("library")
    table.add_column("served by")
    for row in rows:
        for library, one in zip(asked.libraries, row.tables, strict=True):
            table.add_row(
                row.collective,
                format_bytes(row.size),
                format_seconds(row.native.seconds.median),
                format_seconds(one.contestant.seconds.median),
                f"{1 / one.over_native.median:.2f}",
                f"{one.over_first.median:.3f}",
                f"{one.over_first.low:.3f} – {one.over_first.high:.3f}",
                str(library),
                one.contestant.candidate.spec,
            )
    Console(width=140 if not Console().is_terminal else None).print(table)
