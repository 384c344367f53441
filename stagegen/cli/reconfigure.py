"""``stagegen reconfigure``: changes a configured tree step by step, and keeps what is faster."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from stagegen.catalogue import load_catalogue
from stagegen.cli._checks import FiniteRange
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import (
    columns,
    launcher_option,
    mpicc_option,
    to_size,
    topology_option,
)
from stagegen.cli._parts import added_to
from stagegen.cli._reconfigure_live import Bed
from stagegen.cli._reconfigure_rule import RULE, make_rule, require_the_cluster, target_of
from stagegen.errors import InputError
from stagegen.generate.write import write_file
from stagegen.inspection.parts import SlowestRank, merged, typical_parts, typical_stages
from stagegen.library.manifest import MANIFEST
from stagegen.parts.trees import COLLECTIVES, algorithm_of
from stagegen.report.units import format_seconds
from stagegen.topology import Topology, load_topology
from stagegen.trees import read_tree, require_name, tree_yaml
from stagegen.tune.reconfigure import reconfigure, shares
from stagegen.tune.reconfigure_log import check_record
from stagegen.tune.reconfigure_steps import HANDED_BY, Setup, Step

LOG = "steps.jsonl"
RESULT = "result.tree.yaml"
GAIN = "gain.json"
LIBRARY = "library"

_DAMAGED = "no line of a log of `stagegen reconfigure`, or a damaged one"


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
    help="Launches of the job that decide on a change.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=3),
    default=9,
    show_default=True,
    help="The least number of repetitions of each tree in a launch; short calls have more.",
)
@click.option(
    "--gain",
    type=FiniteRange(0, 0.9),
    default=0.03,
    show_default=True,
    help="The least share by which a change must be faster.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=48,
    show_default=True,
    help="The most changes to try.",
)
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Changes that are tried together.",
)
@click.option(
    "--name", default="reconfigured", show_default=True, help="The name of the resulting tree."
)
@click.option(
    "--library",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="A folder of `stagegen tune` that gets the rule; default: a new one below --output.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the log and the result; default: generated/NAME/reconfigure.",
)
@click.option("--resume", is_flag=True, help="Go on where the folder's log ends.")
@mpicc_option
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
    at_once: int,
    name: str,
    library: Path | None,
    output: Path | None,
    resume: bool,
    mpicc: str | None,
) -> None:
    """Change a tree step by step, measure each change, and keep what is faster.

    The changes are tried first where the events of the tree's calls say that time goes. The best
    tree becomes a tree file, and a rule of a library if it is faster than the routine that serves
    there.
    """
    topology = load_topology(topology_file)
    tree = read_tree(file, topology)
    require_name(name, "--name")
    folder = output or Path("generated") / topology.name / "reconfigure"
    if not load_catalogue().collective(collective).has_data:
        size = 0
    target = target_of(library, topology, collective, size, name)
    added_to(topology_file, topology)
    found = launcher_and_toolchain(topology, topology_file, launcher, mpicc)
    header = {
        "topology": topology.hash, "tree": tree_yaml(tree), "collective": collective,
        "size": size, "launches": launches, "repetitions": repetitions, "gain": gain,
        "at_once": at_once, "launcher": found[0].name, "mpi": found[1].flavour,
    }  # fmt: skip
    known = _known(folder / LOG, header) if resume and (folder / LOG).exists() else []
    click.echo(found[2], err=True)
    require_the_cluster(target, topology, found[0], found[1])
    bed = Bed(topology, folder / "build", found[0], found[1], collective, size, repetitions)
    _write(folder / LOG, [header, *known])
    _remove_old(folder, has_library=library is None)
    done: list[Step] = []
    for step in reconfigure(
        topology, Setup(tree), bed.look, bed.nodes, gain, steps, at_once, launches, known
    ):
        _keep(folder / LOG, header, known, step)
        done.append(step)
        _tell(step)
    kept = [step.accepted for step in done if step.accepted is not None]
    best = kept[-1].setup if kept else Setup(tree)
    result = best.tree.renamed(name)
    about = f"{collective}{f' of {size} bytes' if size else ''}: {_routine(topology, best, name)}"
    write_file(folder / RESULT, tree_yaml(result, topology, about))
    click.echo(f"{folder / RESULT}: {len(kept)} changes kept")
    if kept:
        _explain(folder / GAIN, *bed.explain((Setup(tree), best)))
    make_rule(
        bed, target, folder / LIBRARY, folder / RULE, result, best.on_host, gain, launches,
        (tree.name, sum(len(step.challengers) for step in done), tuple(k.change for k in kept)),
    )  # fmt: skip


def _remove_old(folder: Path, *, has_library: bool) -> None:
    """Remove what an earlier search left and this one may not write.

    Raises:
        InputError: there is a folder in the way of the library that is none of stagegen's.
    """
    library = folder / LIBRARY
    if has_library and library.exists() and not (library / MANIFEST).is_file():
        raise InputError(f"{library} is no generated folder; choose another --output")
    for name in (GAIN, RULE):
        (folder / name).unlink(missing_ok=True)
    if has_library:
        shutil.rmtree(library, ignore_errors=True)


def _tell(step: Step) -> None:
    for one in step.challengers:
        mark = "+" if one is step.accepted else " "
        click.echo(f"{mark} {step.number}: {one.change}: {step.why(one)}")


def _routine(topology: Topology, setup: Setup, name: str) -> str:
    """Return the routine of a setup once its tree has a name, and its meaning in words."""
    routine = algorithm_of(name)
    if not shares(topology, setup.tree):
        return f"{routine}; no rank hands over data to another one of its host"
    by = HANDED_BY[setup.on_host]
    return f"{routine}:on_host={setup.on_host}; ranks of a host hand over data by {by}"


def _explain(file: Path, first: Sequence[SlowestRank], last: Sequence[SlowestRank]) -> None:
    """Tell where the last tree takes less time than the first one: by parts, and by stages."""
    if not first or not last:
        return
    parts = typical_parts(first), typical_parts(last)
    stages = typical_stages(first), typical_stages(last)
    form = {
        "first_s": parts[0],
        "last_s": parts[1],
        "first_stages_s": stages[0],
        "last_stages_s": stages[1],
    }
    write_file(file, json.dumps(form, indent=2) + "\n")
    for by, (one, other) in (("part of the tree", parts), ("stage", stages)):
        rows = [[f"slowest rank of a call, by {by}", "first", "last"], *_beside(one, other)]
        click.echo()
        for line in columns(rows):
            click.echo(line)


def _beside(first: Mapping[str, float], last: Mapping[str, float]) -> Iterator[list[str]]:
    """Yield rows of times; a tree that has no such stage has a dash."""
    for name in merged([first, last]):
        yield [name, *(format_seconds(one[name]) if name in one else "–" for one in (first, last))]


def _known(path: Path, header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a log that was made with the same options; a last line may be cut.

    Raises:
        InputError: it was made with other options or elsewhere, is no log, or cannot be read; names
            the line.
    """
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    if not lines:
        raise InputError("it has no whole line; leave out --resume to begin anew", path, 1)
    first, *steps = [_record(path, number, line) for number, line in enumerate(lines, 1)]
    for key, value in header.items():
        if key not in first:
            raise InputError(
                f"it does not say its {key}; leave out --resume to begin anew", path, 1
            )
        if first[key] != value:
            raise InputError(f"it is of another {key}; leave out --resume to begin anew", path, 1)
    for number, step in enumerate(steps, 2):
        try:
            check_record(step)
        except ValueError as error:
            raise InputError(f"{_DAMAGED}: {error}", path, number) from error
    return steps


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{_DAMAGED}: {error}", path, number) from error
    if not isinstance(record, dict):
        raise InputError(f"{_DAMAGED}: expected {{…}}", path, number)
    return record


def _write(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    write_file(path, "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in records))


def _keep(path: Path, header: Mapping[str, Any], known: list[dict[str, Any]], step: Step) -> None:
    """Put a step into the log, and into the steps known so far.

    If the log has another step in its place, that one and all later ones go: they are of another
    search, such as one with fewer changes.
    """
    record, at = step.to_json(), step.number - 1
    if known[at : at + 1] == [record]:
        return
    if at < len(known):
        del known[at:]
        _write(path, [header, *known])
    known.append(record)
    _append(path, record)


def _append(path: Path, record: Mapping[str, Any]) -> None:
    """Add a record; it is on the disk before the next step begins."""
    with path.open("a", encoding="utf-8") as log:
        log.write(f"{json.dumps(record, ensure_ascii=False)}\n")
        log.flush()
        os.fsync(log.fileno())
