"""``stagegen reconfigure``: changes a configured tree step by step, and keeps what is faster."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from stagegen.catalogue import load_catalogue, with_native
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import launcher_option, to_size, topology_option
from stagegen.cli._tune_log import new_header
from stagegen.errors import InputError
from stagegen.generate import Renderer, Toolchain, measuring_sources, session_build
from stagegen.generate.write import write_file
from stagegen.measure.launch.base import Launcher
from stagegen.measure.live import SessionStarter
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter
from stagegen.measure.records import Request
from stagegen.measure.statistics import Launches
from stagegen.measure.timing import Timing
from stagegen.parts.trees import COLLECTIVES, algorithm_of, root_of
from stagegen.topology import Topology, load_topology
from stagegen.trees import ConfiguredTree, read_tree, tree_yaml
from stagegen.trees.cost import node_seconds
from stagegen.tune.bounds import patience
from stagegen.tune.candidates import default_candidate
from stagegen.tune.contest import require_right
from stagegen.tune.race import decisive
from stagegen.tune.reconfigure import reconfigure, recorded
from stagegen.tune.scope import Options

LOG = "steps.jsonl"
RESULT = "result.tree.yaml"


@click.command()
@topology_option
@launcher_option
@click.option(
    "--tree",
    "file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The tree to begin with.",
)
@click.option(
    "--collective",
    type=click.Choice(tuple(COLLECTIVES)),
    default="allreduce",
    show_default=True,
    help="The collective to time.",
)
@click.option(
    "--size",
    callback=to_size,
    default="4",
    show_default=True,
    metavar="SIZE",
    help="The message size; a barrier has none.",
)
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Launches of the job for each step.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=3),
    default=9,
    show_default=True,
    help="Repetitions of each tree in a launch.",
)
@click.option(
    "--gain",
    type=click.FloatRange(0, 0.9),
    default=0.03,
    show_default=True,
    help="The least share by which a change must be faster.",
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=40, show_default=True, help="The most steps."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the log and the result; default: generated/NAME/reconfigure.",
)
@click.option("--resume", is_flag=True, help="Go on where the folder's log ends.")
@click.option("--mpicc", metavar="PROGRAM", help="MPI compiler; default: $MPICC, or as installed.")
def command(
    topology_file: str,
    launcher: str | None,
    file: Path,
    collective: str,
    size: int,
    launches: int,
    repetitions: int,
    gain: float,
    steps: int,
    output: Path | None,
    resume: bool,
    mpicc: str | None,
) -> None:
    """Change a tree step by step, measure each step, and keep what is faster."""
    topology = load_topology(topology_file)
    tree = read_tree(file, topology)
    folder = output or Path("generated") / topology.name / "reconfigure"
    size = 0 if collective == "barrier" else size
    header = {
        "topology": topology.hash, "tree": tree_yaml(tree), "collective": collective,
        "size": size, "launches": launches, "repetitions": repetitions, "gain": gain,
    }  # fmt: skip
    known = _known(folder / LOG, header) if resume and (folder / LOG).exists() else []
    found = launcher_and_toolchain(topology, topology_file, launcher, mpicc)
    click.echo(found[2], err=True)
    live = _Live(topology, folder, found[0], found[1], collective, size, launches, repetitions)
    _write(folder / LOG, [header, *known])
    best = tree
    for step in reconfigure(
        topology, tree, recorded(known, live), lambda one: node_seconds(topology, one), gain, steps
    ):
        if step.number > len(known):
            _append(folder / LOG, step.to_json())
        mark = "+" if step.accepted else " "
        click.echo(f"{mark} {step.number}: {step.move.what}: {step.why}")
        best = step.move.tree if step.accepted else best
    write_file(folder / RESULT, tree_yaml(best, topology))
    click.echo(f"{folder / RESULT}: stagegen tune --tree {folder / RESULT} makes it a rule")


def _known(path: Path, header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a log that was made with the same options; a last line may be cut.

    Raises:
        InputError: it was made with other options, or cannot be read.
    """
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    try:
        first, *steps = [json.loads(line) for line in whole]
    except ValueError as error:
        raise InputError(f"no log of `stagegen reconfigure`: {error}", path) from error
    for key, value in header.items():
        if first.get(key) != value:
            raise InputError(f"it is of another {key}; leave out --resume to begin anew", path, 1)
    return steps


def _write(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    write_file(path, "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in records))


def _append(path: Path, record: Mapping[str, Any]) -> None:
    """Add a record; it is on the disk before the next step begins."""
    with path.open("a", encoding="utf-8") as log:
        log.write(f"{json.dumps(record, ensure_ascii=False)}\n")
        log.flush()
        os.fsync(log.fileno())


class _Live:
    """Builds a program with two trees, and times them in turn in several launches."""

    def __init__(
        self,
        topology: Topology,
        folder: Path,
        launcher: Launcher,
        toolchain: Toolchain,
        collective: str,
        size: int,
        launches: int,
        repetitions: int,
    ):
        self._topology, self._folder = topology, folder
        self._launcher, self._toolchain = launcher, toolchain
        self._collective, self._size = collective, size
        self._launches, self._repetitions = launches, repetitions

    def __call__(self, old: ConfiguredTree, new: ConfiguredTree) -> tuple[Launches, Launches]:
        """Return the times of two trees by launch; both are checked against the native routine."""
        topology, collective = self._topology, self._collective
        trees = [old.renamed("before"), new.renamed("after")]
        whole = load_catalogue(added=[root_of(trees, topology)])
        chosen = [whole.find(collective, algorithm_of(tree.name)) for tree in trees]
        catalogue = replace(whole, algorithms=with_native(whole, chosen))
        candidates = tuple(default_candidate(one) for one in chosen)
        timing = Timing()
        options = Options((collective,), (self._size,), timing, 0.0)
        path = self._folder / "build" / "measurements.jsonl"
        path.unlink(missing_ok=True)
        log = LogWriter(path, new_header(topology, catalogue, options))
        hashes = (topology.hash, catalogue.hash)
        renderer = Renderer("stagegen reconfigure", topology.name, *hashes, catalogue.templates)
        build = session_build(topology, catalogue, (collective,))
        files = measuring_sources(build, renderer)
        starter = SessionStarter(
            self._folder / "build", files, self._toolchain, self._launcher, topology, log
        )
        source = LiveSource(
            starter,
            log,
            lambda name, size: patience(topology, catalogue.collective(name), size),
            start_check=starter.start_here if self._launcher.emulates else None,
        )
        found: tuple[dict[int, Sequence[float]], dict[int, Sequence[float]]] = ({}, {})
        with closing(log), closing(source):
            require_right(source, collective, candidates)
            calls = timing.calls(self._size)
            scout = Request(collective, self._size, timing, False, calls, 1, candidates)
            for launch in range(self._launches):
                asked = replace(scout, launch=launch)
                fastest = min(map(min, source.measure(asked).seconds))
                times = source.measure(decisive(asked, fastest, self._repetitions)).by_candidate()
                for one, candidate in zip(found, candidates, strict=True):
                    one[launch] = tuple(times[candidate])
        return found
