"""``stagegen validate``: measures a sample of a folder's decisions again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table as TextTable

from stagegen.catalogue import Catalogue, load_catalogue, with_native
from stagegen.cli._checks import FiniteRange
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import format_option, launcher_option, mpicc_option, print_json
from stagegen.cli._parts import register_launchers
from stagegen.cli._timing import Chosen, as_logged, timing_chosen, timing_of
from stagegen.cli._tune_log import LOG, new_header
from stagegen.cli._used import algorithms_used
from stagegen.errors import InputError
from stagegen.generate import Renderer, measuring_sources, session_build
from stagegen.generate.timings import BUILT_IN, Mechanism, require_sound
from stagegen.measure.arrivals import Replay
from stagegen.measure.comparable import mixed_facts
from stagegen.measure.launch.base import Environment
from stagegen.measure.live import SessionStarter, environments
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter
from stagegen.measure.records import Candidate
from stagegen.measure.session import Members
from stagegen.measure.source import LogSource
from stagegen.measure.timing import TIMINGS, Timing
from stagegen.measure.validity import changed, last_routines
from stagegen.parts import templates_beside
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import WHOLE, Topology
from stagegen.tune.bounds import patience
from stagegen.tune.communicators import Communicator, default_names
from stagegen.tune.loss import Key, by_key
from stagegen.tune.measured import communicators_of_tables
from stagegen.tune.recorded import TOPOLOGY, Recorded, read_recorded
from stagegen.tune.scope import SIZES, Options
from stagegen.tune.serving import Serving
from stagegen.tune.sizes import sizes_of
from stagegen.tune.validation import Decision, Verdict, decisions_of, draw, judge

_COMMAND = "stagegen validate"
"""The command that the headers of the generated files name."""

_BY_BARRIER = (Timing(), BUILT_IN[Timing().mechanism])
"""How decisions are timed if nothing says how the table was made."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@launcher_option
@click.option(
    "--timing",
    "timing_text",
    metavar="FILE.c|PLAN",
    help="How the folder was tuned, if its log lacks a part of that: the C file, or "
    "replay:FILE#SITE. Default: the timing in the log, or else barrier.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many decisions to measure again, at most.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the sample.")
@click.option(
    "--budget",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    help="Begin no further decision after this many seconds.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=4),
    default=9,
    show_default=True,
    help="Repetitions of each routine; more if a call takes milliseconds, fewer if it takes "
    "seconds.",
)
@mpicc_option
@format_option
def command(
    folder: Path,
    launcher: str | None,
    timing_text: str | None,
    sample: int,
    seed: int,
    budget: float | None,
    repetitions: int,
    mpicc: str | None,
    output_format: str,
) -> None:
    """Measure a sample of the decisions of a generated folder again.

    Each is timed in turn with the native routine and with the best alternative. It holds unless one
    of them is faster, twice. Sizes at crossovers and large sizes are drawn more often. Ends with
    status 1 if a decision does not hold.
    """
    recorded = read_recorded(folder)
    if recorded.topology is None or recorded.decision is None:
        raise InputError(
            "not a generated folder: it has no topology.yaml or decision.json; give one of "
            "`stagegen tune`",
            folder,
        )
    catalogue = load_catalogue(added=templates_beside(folder))
    console = Console(stderr=True, highlight=False)
    given = timing_chosen(timing_text, str(folder / TOPOLOGY)) if timing_text else None
    timing, mechanism = _timing(recorded, given, console)
    known = _decisions(recorded, recorded.topology, catalogue)
    drawn = draw((one for one in known if _can_be_timed(one, timing)), sample, seed)
    if not drawn:
        other = "; or the recording has another number of ranks" if given else ""
        why = f"there is no decision to measure again: all its rules are native{other}"
        raise InputError(why, folder)
    verdicts: list[Verdict] = []
    used = _used(catalogue, recorded, drawn)
    how = (timing, mechanism)
    with _open(recorded.topology, used, drawn, folder, launcher, mpicc, how, console) as source:
        begin = monotonic()
        for decision in track(drawn, "validating", console=console, transient=True):
            if budget is not None and verdicts and monotonic() - begin > budget:
                break
            verdicts.append(judge(source.checked_once, decision, repetitions, timing))
        environment = source.environment()
    differ = mixed_facts([environment, *recorded.environments])
    if output_format == "json":
        form = {
            "environment": environment.to_json(),
            "environments_differ": list(differ),
            "timing": timing.mechanism,
            "seed": seed,
            "drawn": len(drawn),
            "measured": len(verdicts),
            "holds": all(verdict.holds for verdict in verdicts),
            "rows": [_row(verdict) for verdict in verdicts],
        }
        print_json(form)
    else:
        _print(verdicts, len(drawn), differ)
    sys.exit(0 if all(verdict.holds for verdict in verdicts) else 1)


def _options(recorded: Recorded) -> Options | None:
    return None if recorded.header is None else Options.from_json(recorded.header)


def _communicators(
    recorded: Recorded, topology: Topology
) -> dict[tuple[str, int, int], Communicator]:
    """Return the communicators that the tables were made from; without a log, the default ones."""
    options = _options(recorded)
    names = default_names(topology) if options is None else options.communicators
    return communicators_of_tables(topology, names)


def _decisions(recorded: Recorded, topology: Topology, catalogue: Catalogue) -> Iterator[Decision]:
    """Yield all decisions that can be measured again."""
    options = _options(recorded) or Options(catalogue.collectives, SIZES, Timing(), 0.0)
    may_serve, times = Serving(catalogue), recorded.times()
    made_from = _communicators(recorded, topology)
    tables = {} if recorded.decision is None else by_key(recorded.decision)

    def able(key: Key, candidate: Candidate, size: int) -> bool:
        collective, kind, ranks, _ = key
        return may_serve(collective, kind, candidate) and may_serve.handles(
            collective, candidate, size, ranks
        )

    for key, table in tables.items():
        if key[1:] in made_from:
            described = catalogue.collective(key[0])
            one, protocol = made_from[key[1:]], options.protocol
            sizes = sizes_of(described, options, key[2], one.name)
            gain = (protocol.elsewhere() if one.stands_for_others else protocol).gain
            yield from decisions_of(key, table, one.name, sizes, times, able, gain)


def _timing(recorded: Recorded, given: Chosen | None, console: Console) -> tuple[Timing, Mechanism]:
    """Return the timing that the table was made with; if part of it is missing, that by barrier.

    A log has neither the C file of a user's own mechanism nor the delays of a replay.

    Raises:
        InputError: the given timing differs from the log's.
    """
    options = _options(recorded)
    if options is None:
        return _BY_BARRIER if given is None else (timing_of(given), given.mechanism)
    logged = options.timing
    if given is not None:
        return as_logged(given, logged, recorded.path / LOG)
    replayed = isinstance(logged.arrivals, Replay)
    if logged.mechanism in TIMINGS and not logged.operations and not replayed:
        return logged, BUILT_IN[logged.mechanism]
    lacks = "the recording" if replayed else f"{logged.mechanism}.c" if logged.hash else ""
    advice = f": name {lacks} with --timing" if lacks else ""
    console.print(f"the table was made with another timing; this is by barrier{advice}")
    return _BY_BARRIER


def _can_be_timed(decision: Decision, timing: Timing) -> bool:
    """Whether a timing fits the ranks: a recording is replayed on as many as it has."""
    plan, (_, _, ranks, _) = timing.arrivals, decision.key
    return not isinstance(plan, Replay) or plan.ranks == ranks


def _used(catalogue: Catalogue, recorded: Recorded, drawn: Sequence[Decision]) -> Catalogue:
    """Return the catalogue with only what the candidates need.

    Raises:
        InputError: the catalogue lacks one, or one has changed since it was measured.
    """
    chosen = algorithms_used(catalogue, ((d.key[0], c) for d in drawn for c in d.candidates))
    hashes = None if recorded.header is None else last_routines(recorded.header, recorded.records)
    other = changed(hashes or {}, catalogue.hashes) & {a.full_name for a in chosen}
    if other:
        listed = ", ".join(sorted(other))
        raise InputError(
            f"these routines have changed since they were measured: {listed}; make the folder "
            "again with `stagegen tune --resume`",
            recorded.path,
        )
    return replace(catalogue, algorithms=with_native(catalogue, chosen))


class _Opened:
    """A source of measurements with its log.

    Attributes:
        checked_once: the source; it checks each candidate once on each communicator.
    """

    def __init__(self, live: LiveSource, log: LogWriter, expected: Callable[[], Environment]):
        self.checked_once = LogSource((), live)
        self._live, self._log, self._expected = live, log, expected

    def environment(self) -> Environment:
        """Return the environment of its last session; without one, the one that is expected."""
        sessions = environments(self._log.written)
        return sessions[-1] if sessions else self._expected()

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self._log), closing(self._live):
            pass


def _open(
    topology: Topology,
    catalogue: Catalogue,
    drawn: Sequence[Decision],
    folder: Path,
    launcher: str | None,
    mpicc: str | None,
    how: tuple[Timing, Mechanism],
    console: Console,
) -> _Opened:
    """Return a source that measures the candidates, in a program below the folder."""
    register_launchers(None)
    file = str(folder / TOPOLOGY)
    chosen, toolchain, why = launcher_and_toolchain(topology, file, launcher, mpicc)
    console.print(why)
    timing, mechanism = how
    require_sound(mechanism, toolchain)
    collectives = tuple(sorted({decision.key[0] for decision in drawn}))
    sizes = tuple(sorted({max(1, decision.size) for decision in drawn}))
    names = tuple(dict.fromkeys(decision.communicator for decision in drawn))
    options = Options(collectives, sizes, timing, 0.0, names)
    build = folder / "build" / "validate"
    log = LogWriter(build / LOG, new_header(topology, catalogue, options))
    hashes = (topology.hash, catalogue.hash)
    renderer = Renderer(_COMMAND, topology.name, *hashes, catalogue.templates)
    needed = tuple(sorted({algorithm.collective for algorithm in catalogue.algorithms}))
    files = measuring_sources(session_build(topology, catalogue, needed), renderer, (mechanism,))
    starter = SessionStarter(
        build,
        files,
        toolchain,
        chosen,
        topology,
        log,
        computes=timing.computation_ms > 0,
    )
    live = LiveSource(
        starter,
        log,
        lambda name, size: patience(topology, catalogue.collective(name), size),
        _ranks(topology, names),
        starter.start_here if chosen.emulates else None,
    )
    return _Opened(live, log, lambda: chosen.environment(topology, toolchain.flavour))


def _ranks(topology: Topology, names: Sequence[str]) -> dict[str, Members]:
    """Return the ranks of each communicator but the whole."""
    found = communicators_of_tables(topology, names).values()
    return {one.name: Members(one.ranks) for one in found if one.name != WHOLE}


def _row(verdict: Verdict) -> dict[str, Any]:
    decision = verdict.decision
    collective, kind, ranks, hosts = decision.key
    return {
        "collective": collective,
        "communicator": kind,
        "ranks": ranks,
        "hosts": hosts,
        "size": decision.size,
        "choice": decision.choice.spec,
        "holds": verdict.holds,
        "beaten_by": [candidate.spec for candidate in verdict.beaten_by],
        "why": verdict.why,
        "routines": [
            {
                "routine": one.candidate.spec,
                "median_s": one.seconds.median,
                "interval_s": [one.seconds.low, one.seconds.high],
                "ratio": one.ratio.median,
                "ratio_interval": [one.ratio.low, one.ratio.high],
                "repetitions": one.seconds.count,
            }
            for one in verdict.contestants
        ],
    }


def _print(verdicts: Sequence[Verdict], drawn: int, differ: Sequence[str]) -> None:
    table = TextTable(box=None, header_style="bold")
    for title in (
        "collective",
        "communicator",
        "ranks",
        "hosts",
        "size",
        "choice",
        "median",
        "holds",
    ):
        table.add_column(title)
    for verdict in verdicts:
        decision = verdict.decision
        key = map(str, decision.key)
        medians = [format_seconds(one.seconds.median) for one in verdict.contestants[:1]]
        holds = "yes" if verdict.holds else f"no: {_reason(verdict)}"
        size = format_bytes(decision.size)
        table.add_row(*key, size, decision.choice.spec, *(medians or ["–"]), holds)
    console = Console(width=160 if not Console().is_terminal else None, highlight=False)
    console.print(table)
    held = sum(verdict.holds for verdict in verdicts)
    console.print(f"{held} of {len(verdicts)} decisions hold; {drawn} were drawn")
    if differ:
        console.print(f"the table was made in another environment: {', '.join(differ)} differ")


def _reason(verdict: Verdict) -> str:
    """Return which candidates are faster and by how much, or why the choice cannot run."""
    ratios = {one.candidate: one.ratio.median for one in verdict.contestants}
    return verdict.why or ", ".join(
        f"{candidate.spec} takes {ratios[candidate]:.2f} of its time"
        for candidate in verdict.beaten_by
    )
