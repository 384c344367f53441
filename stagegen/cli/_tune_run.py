"""A run of ``stagegen tune``: measures, or reads a log; searches; writes the folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from stagegen.catalogue import Catalogue
from stagegen.cli._alone import alone_in
from stagegen.cli._endings import Stopped, StoppedError, endings
from stagegen.cli._progress import Display, Watch, shown
from stagegen.cli._timing import Chosen, to_resume
from stagegen.cli._tune_folder import copy_log, write_folder
from stagegen.cli._tune_log import LOG, new_header, read_tuning
from stagegen.errors import InputError, MeasurementError, StagegenError
from stagegen.generate import Build, Renderer, Toolchain, measuring_sources
from stagegen.generate.timings import require_sound
from stagegen.library.folder import COMMAND
from stagegen.measure.comparable import Admission, mixed_facts
from stagegen.measure.launch.base import Launcher
from stagegen.measure.live import SessionStarter, environments
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter
from stagegen.measure.session import Members
from stagegen.measure.source import LogSource, Source
from stagegen.topology import Topology
from stagegen.tune import bounds
from stagegen.tune.communicators import Communicator, find_communicators
from stagegen.tune.forecast import BudgetForecast, Forecast, races
from stagegen.tune.scope import Options
from stagegen.tune.together import RunSearches, in_turn
from stagegen.tune.tuner import Tuned, tune

#: The events of the runs that wrote into a folder.
EVENTS = "tune.log"

_EVENTS = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """One call of the command.

    Attributes:
        topology: the cluster.
        catalogue: the algorithms.
        output: the folder to write.
        mix: whether measurements of different environments may be put together.
        adaptive: whether the library's calls can adapt.
    """

    topology: Topology
    catalogue: Catalogue
    output: Path
    mix: bool
    adaptive: bool = False

    @cached_property
    def build(self) -> Build:
        """The build of all that can run: the session and the library are parts of it."""
        return Build.of_all(self.topology, self.catalogue)

    @cached_property
    def bound(self) -> Callable[[str, int], float]:
        """The seconds that a call's time is compared with: its lower bound, or a higher one.

        It is found once for each collective and size, as each command asks for it.
        """
        return cache(self._bound)

    def _bound(self, collective: str, size: int) -> float:
        return bounds.patience(self.topology, self.catalogue.collective(collective), size)


def from_log(run: Run, wished: Options, path: Path, display: Display) -> None:
    """Decide and generate from a log alone, and put a copy of it into the folder."""
    log = read_tuning(path, run.topology, run.catalogue, wished, resume=False)
    run = replace(run, catalogue=log.catalogue)
    allowed = _admission(log.records, run.mix).admit()
    with shown(display, None):
        tuned = _tune(run, log.options, LogSource(log.records), lambda: log.records)
        with alone_in(run.output):
            if path.resolve() != (run.output / LOG).resolve():
                copy_log(path, run.output / LOG)
            if allowed:
                with closing(LogWriter(run.output / LOG)) as copy:
                    copy.write(*allowed)
            _write(run, tuned, log.records)


def measure(
    run: Run,
    options: Options,
    launcher: Launcher,
    toolchain: Toolchain,
    why: str,
    timing: Chosen,
    resume: bool,
    patience: float,
    display: Display,
    *,
    at_once: bool,
) -> None:
    """Measure what the search asks for, unless a log to resume holds it; generate."""
    path = run.output / LOG
    with endings() as ends, alone_in(run.output):
        known: list[dict[str, Any]] = []
        restated: tuple[dict[str, Any], ...] = ()
        resume = resume and path.exists()
        if resume:
            tuning = read_tuning(path, run.topology, run.catalogue, options, resume)
            options, known, restated = tuning.options, tuning.records, tuning.restated
            run = replace(run, catalogue=tuning.catalogue)
            timing = to_resume(timing, options.timing, path)
            # A log does not hold the delays of a replay.
            options = replace(options, timing=replace(options.timing, arrivals=timing.arrivals))
        require_sound(timing.mechanism, toolchain)
        admission = _admission(known, run.mix)
        restated = (*restated, *admission.admit())
        log = LogWriter(path, None if resume else new_header(run.topology, run.catalogue, options))
        live = _live(run, options, launcher, toolchain, timing, log, admission, patience)
        with shown(display, run.output / EVENTS), _resumable(log, path):
            _EVENTS.info("%s", why)
            to_come = races(
                run.topology,
                run.catalogue,
                options,
                options.protocol.launches,
                at_once=at_once,
            )
            forecast = (
                Forecast(to_come, run.bound)
                if options.total is None
                else BudgetForecast(to_come, options.total)
            )
            watch = Watch(display, forecast)
            try:
                if restated:
                    log.write(*restated)
                source = watch.over(LogSource(known, watch.timed(live)))
                tuned = _tune(
                    run,
                    options,
                    source,
                    lambda: [*known, *log.written],
                    watch.step,
                    live.at_once if at_once else in_turn,
                )
            finally:
                live.close()
                log.close()
            ends.finish()
            _write(run, tuned, [*known, *log.written])


def _write(run: Run, tuned: Tuned, records: Sequence[Mapping[str, Any]]) -> None:
    """Write the folder."""
    write_folder(run.output, run.build, tuned, records, run.adaptive)


def _admission(records: Sequence[Mapping[str, Any]], mix: bool) -> Admission:
    """Return what decides whether the sessions of a log, and further ones, may be put together."""
    return Admission.to(records, environments(records), mix=mix)


@contextmanager
def _resumable(log: LogWriter, path: Path) -> Iterator[None]:
    """Add to the error or signal that ends a run how to go on, if there is a log of it.

    Raises:
        MeasurementError, StoppedError: with that advice.
    """
    advice = f"what was measured is in {path}; go on with --resume"
    try:
        yield
    except InputError:
        raise
    except Stopped as stopped:
        if not log.begun:
            raise
        raise StoppedError(stopped, f"ended by {stopped}: {advice}") from None
    except (StagegenError, OSError) as error:
        if not log.begun:
            raise
        raise MeasurementError(f"{error}\n{advice}") from error


def _live(
    run: Run,
    options: Options,
    launcher: Launcher,
    toolchain: Toolchain,
    timing: Chosen,
    log: LogWriter,
    admission: Admission,
    patience: float,
) -> LiveSource:
    """Return the source that measures the cluster, with all routines to tune in one program.

    The lab's network is slow, and has no effect on whether a routine is right: the same program
    checks the routines without it.
    """
    hashes = (run.topology.hash, run.catalogue.hash)
    renderer = Renderer(COMMAND, run.topology.name, *hashes, run.catalogue.templates)
    session = run.build.session(options.collectives)
    files = measuring_sources(session, renderer, (timing.mechanism,))
    folder = run.output / "build" / "session"
    computes = options.timing.computation_ms > 0
    starter = SessionStarter(
        folder, files, toolchain, launcher, run.topology, log, admission, computes=computes
    )
    return LiveSource(
        starter,
        log,
        run.bound,
        _members(run.topology, options),
        starter.start_here if launcher.emulates else None,
        patience,
        starter.build,
    )


def _members(topology: Topology, options: Options) -> dict[str, Members]:
    """Return the ranks of each communicator, and the blocks that they have for each other."""
    found = find_communicators(topology, options.communicators, options.patterns)
    return {one.name: _members_of(one) for one in found}


def _members_of(one: Communicator) -> Members:
    if one.pattern is None:
        return Members(one.ranks)
    return Members(one.ranks if one.group else (), one.pattern.sizes)  # (): all, in their order


def _tune(
    run: Run,
    options: Options,
    source: Source,
    records: Callable[[], Sequence[Mapping[str, Any]]],
    progress: Callable[[str], None] = _EVENTS.debug,
    run_searches: RunSearches = in_turn,
) -> Tuned:
    def representative() -> bool:
        seen = environments(records())
        return bool(seen) and all(environment.representative for environment in seen)

    tuned = tune(
        run.topology, run.catalogue, options, source, representative, progress, run_searches
    )
    mixed = mixed_facts(environments(records()))
    return replace(tuned, decision=replace(tuned.decision, mixed=mixed))
