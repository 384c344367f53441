"""The measurements of ``stagegen reconfigure``: trees in turn, and the times of nodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from stagegen.catalogue import Catalogue, load_catalogue, with_native
from stagegen.cli._tune_log import LOG, new_header
from stagegen.cli._used import algorithms_used
from stagegen.data import TEMPLATES
from stagegen.errors import MeasurementError
from stagegen.generate import (
    Renderer,
    Toolchain,
    measuring_sources,
    session_build,
)
from stagegen.inspection.findings import TreeFindings
from stagegen.inspection.look import looks_at
from stagegen.inspection.parts import SlowestRank, typical_parts
from stagegen.library.tree import ANY_CATALOGUE, Served, candidate_of, write_tree_library
from stagegen.measure.comparison import Bench
from stagegen.measure.launch.base import Launcher
from stagegen.measure.live import SessionStarter, environments
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter
from stagegen.measure.records import Candidate, Request
from stagegen.measure.timing import Timing
from stagegen.parts.trees import root_of
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree
from stagegen.trees.cost import node_seconds
from stagegen.tune.bounds import patience
from stagegen.tune.contest import require_right
from stagegen.tune.race import decisive
from stagegen.tune.reconfigure import Timed
from stagegen.tune.reconfigure_steps import Nodes, Setup
from stagegen.tune.scope import Options

#: Calls whose events are kept; the first SKIPPED ones are left out.
CALLS, SKIPPED = 160, 10

#: Jobs that find where a gain comes from, and turns of the setups in a job.
EXPLAINING, TURNS = 3, 4

#: Bytes of an element where the driver reduces doubles (drivers/message.h).
REAL = 8

#: Repetitions of each candidate in a first look, at least.
LOOKS = 4

#: Single short calls differ by more than what a change gains, and a launch takes seconds anyway. So
#: the candidates of a launch have more repetitions, up to REPETITIONS_MOST, as long as all of them
#: together take less than LAUNCH_SECONDS.
LAUNCH_SECONDS, REPETITIONS_MOST = 1.0, 200

_COMMAND = "stagegen reconfigure"

_EVENTS = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bed:
    """Where and how trees are measured.

    Attributes:
        topology: the cluster.
        folder: where programs are built.
        launcher: starts them.
        toolchain: builds them.
        collective: the one that is timed.
        size: of the message, in bytes.
        repetitions: of each candidate in a launch, at least (:func:`repetitions_of`).
    """

    topology: Topology
    folder: Path
    launcher: Launcher
    toolchain: Toolchain
    collective: str
    size: int
    repetitions: int

    def look(self, setups: Sequence[Setup]) -> Timed:
        """Build a program with setups and check them; the same tree is one routine.

        Raises:
            MeasurementError: a tree gives wrong results, or the job fails.
        """
        trees = list(dict.fromkeys(setup.tree.nodes for setup in setups))
        named = {
            nodes: ConfiguredTree(f"t{place}", nodes, self.topology.rank_count)
            for place, nodes in enumerate(trees)
        }
        catalogue = load_catalogue(TEMPLATES, [root_of(named.values(), self.topology)])
        candidates = [
            candidate_of(catalogue, self.collective, named[one.tree.nodes], one.on_host)
            for one in setups
        ]
        return self.timed(catalogue, candidates)

    def timed(self, catalogue: Catalogue, candidates: Sequence[Candidate]) -> Live:
        """Build a program with candidates, and check them.

        Raises:
            MeasurementError: one gives wrong results, or the job fails.
        """
        return Live(self, catalogue, tuple(candidates))

    def nodes(self, setup: Setup) -> Nodes:
        """Return the times of the nodes of a tree, from the events of its library with TRACE=1.

        Raises:
            GenerateError, MeasurementError: it cannot be built or run.
        """
        (found,) = self._traced([setup], "traced")
        if found is None:
            return Nodes(node_seconds(self.topology, setup.tree), measured=False)
        own = seconds_by_name(setup.tree, found.node_seconds())
        return Nodes(own, measured=True, parts=typical_parts(found.slowest_ranks))

    def explain(self, setups: Sequence[Setup]) -> list[list[SlowestRank]]:
        """Return where the time of each setup's calls goes: the slowest rank of each call.

        One launch differs from the next, so the setups take turns in one job: they serve messages
        of slightly different sizes. Barriers have no size; their setups have jobs of their own, in
        turn. A setup whose calls have no events is left out.

        Raises:
            GenerateError, MeasurementError: one cannot be built or run.
        """
        together = [setups] if self.size else [[one] for one in setups]
        calls: list[list[SlowestRank]] = [[] for _ in together for _ in together[0]]
        for _ in range(EXPLAINING):
            found = [
                one
                for number, group in enumerate(together)
                for one in self._traced(group, f"traced-{number}")
            ]
            for own, one in zip(calls, found, strict=True):
                own.extend([] if one is None else one.slowest_ranks)
        return calls

    def _sizes(self, count: int) -> list[int]:
        """Return the size and another one near it, smaller if it can be.

        Both are multiples of 8, or neither is: the driver reduces doubles or bytes by this.
        """
        are_reals = self.size % REAL == 0
        step = REAL if are_reals else 1
        near = (self.size - step, self.size + step, self.size + 2 * step)
        other = next(size for size in near if size > 0 and (size % REAL == 0) == are_reals)
        return [self.size, other][:count]

    def _traced(self, setups: Sequence[Setup], name: str) -> list[TreeFindings | None]:
        """Return the times of one or two setups by the events of one job; None without events."""
        topology, folder, sizes = self.topology, self.folder / name, self._sizes(len(setups))
        served = sorted(zip(sizes, setups, strict=True), key=lambda pair: pair[0])
        starts = [0, *(size for size, _ in served[1:])]
        write_tree_library(
            folder,
            topology,
            self.collective,
            [
                Served(setup.tree, setup.on_host, start)
                for start, (_, setup) in zip(starts, served, strict=True)
            ],
        )
        file = (folder / "events").with_suffix(".bin").absolute()
        file.unlink(missing_ok=True)
        variables = {"LIBCOLL_EVENTS": str(file)}
        bound = patience(topology, load_catalogue().collective(self.collective), self.size)
        with closing(
            Bench(self.launcher, topology, folder, self.toolchain, variables, traced=True)
        ) as bench:
            for _ in range(TURNS):
                for size in sizes:
                    bench.call(self.collective, size, CALLS // TURNS, bound)
        if not file.is_file():
            raise MeasurementError(
                f"no events of {self.collective} along {setups[0].tree.name}: the job wrote no "
                f"{file}; see that every host may write there"
            )
        looks = looks_at(file, SKIPPED)
        file.unlink()
        trees = {one.series.size: one.tree for one in reversed(looks) if one.tree is not None}
        return [trees.get(size) for size in sizes]


class Live:
    """A program with candidates; each launch is a job of its own."""

    def __init__(self, bed: Bed, catalogue: Catalogue, candidates: tuple[Candidate, ...]):
        self._bed, self._candidates = bed, candidates
        topology, collective = bed.topology, bed.collective
        chosen = algorithms_used(catalogue, ((collective, one) for one in candidates))
        used = replace(catalogue, algorithms=with_native(catalogue, chosen))
        self._timing = Timing()
        needed = tuple(sorted({one.collective for one in used.algorithms}))
        options = Options((collective,), (bed.size,), self._timing, 0.0)
        path = bed.folder / "session" / LOG
        path.unlink(missing_ok=True)
        self._log = LogWriter(path, new_header(topology, used, options))
        renderer = Renderer(_COMMAND, topology.name, topology.hash, ANY_CATALOGUE, used.templates)
        files = measuring_sources(session_build(topology, used, needed), renderer)
        starter = SessionStarter(
            bed.folder / "session", files, bed.toolchain, bed.launcher, topology, self._log
        )
        self._source = LiveSource(
            starter,
            self._log,
            lambda name, size: patience(topology, used.collective(name), size),
            start_check=starter.start_here if bed.launcher.emulates else None,
        )
        try:
            require_right(self._source, collective, candidates)
        except BaseException:
            self.close()
            raise
        self._fastest = 0.0

    def _request(self, launch: int, candidates: Sequence[Candidate]) -> Request:
        calls = self._timing.calls(self._bed.size)
        return Request(
            self._bed.collective, self._bed.size, self._timing, False, calls, 1, tuple(candidates),
            launch=launch,
        )  # fmt: skip

    @property
    def is_representative(self) -> bool:
        """Whether the times so far are of the cluster itself."""
        seen = environments(self._log.written)
        return bool(seen) and all(one.representative for one in seen)

    def look(self) -> list[tuple[float, ...]]:
        request = self._request(0, self._candidates)
        self._source.measure(request)  # connections are made
        self._fastest = min(map(min, self._source.measure(request).seconds))
        return self._times(request, LOOKS)

    def launch(self, number: int, places: Sequence[int]) -> list[tuple[float, ...]]:
        request = self._request(number, [self._candidates[i] for i in places])
        self._source.measure(request)  # connections are made
        return self._times(request, self._bed.repetitions)

    def _times(self, request: Request, least: int) -> list[tuple[float, ...]]:
        single = decisive(request, self._fastest, 1)
        seconds = self._fastest * single.calls * len(single.candidates)
        asked = replace(single, repetitions=repetitions_of(seconds, least))
        times = self._source.measure(asked).by_candidate()
        return [tuple(times[one]) for one in request.candidates]

    def close(self) -> None:
        self._source.close()
        self._log.close()


def seconds_by_name(tree: ConfiguredTree, seconds: Mapping[int, float]) -> dict[str, float]:
    """Return the seconds of a tree's nodes by their names.

    Args:
        tree: the tree.
        seconds: of nodes by their numbers in the events. The tree's nodes come after the ranks.
            Other numbers are ranks, and the call's root if it is outside of the tree.
    """
    return {
        node.name: seconds.get(tree.ranks + place, 0.0) for place, node in enumerate(tree.nodes)
    }


def repetitions_of(seconds: float, least: int) -> int:
    """Return the repetitions of a launch.

    Args:
        seconds: of one repetition of all candidates.
        least: repetitions that there are however long they take.
    """
    return max(least, min(REPETITIONS_MOST, int(LAUNCH_SECONDS / max(seconds, 1e-9))))
