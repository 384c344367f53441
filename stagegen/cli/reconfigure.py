"""``stagegen reconfigure``: changes a configured tree step by step, and keeps what is faster."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from stagegen.adaptive.known import KNOWN, Known, read_known
from stagegen.catalogue import load_catalogue
from stagegen.catalogue.templates import Root
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
from stagegen.data import TEMPLATES
from stagegen.errors import InputError
from stagegen.generate import Toolchain
from stagegen.generate.write import write_file
from stagegen.library import write_library
from stagegen.library.tree import candidate_of
from stagegen.measure.launch.base import Launcher
from stagegen.measure.records import Candidate
from stagegen.measure.statistics import Launches, is_faster_in_launches
from stagegen.parts.trees import COLLECTIVES, algorithm_of, root_of
from stagegen.report.units import format_seconds
from stagegen.topology import Topology, load_topology
from stagegen.trees import ConfiguredTree, read_tree, require_name, tree_yaml
from stagegen.tune.decision import (
    CLUSTER,
    NATIVE_CANDIDATE,
    DecisionTable,
    Reconfigured,
    Rule,
    Table,
    with_rule,
)
from stagegen.tune.reconfigure import Setup, Step, reconfigure
from stagegen.tune.recorded import DECISION, TOPOLOGY, read_decision

LOG = "steps.jsonl"
RESULT = "result.tree.yaml"
GAIN = "gain.json"
LIBRARY = "library"
REPORT = "report.html"


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

    The changes are tried first where the events of the tree's calls say that time goes. What is
    found becomes a tree file, and a rule of a library where it is faster than what serves there.
    """
    topology = load_topology(topology_file)
    tree = read_tree(file, topology)
    require_name(name, "--name")
    folder = output or Path("generated") / topology.name / "reconfigure"
    size = 0 if collective == "barrier" else size
    target = _target(library, topology, collective, size, name)
    header = {
        "topology": topology.hash, "tree": tree_yaml(tree), "collective": collective,
        "size": size, "launches": launches, "repetitions": repetitions, "gain": gain,
        "at_once": at_once,
    }  # fmt: skip
    known = _known(folder / LOG, header) if resume and (folder / LOG).exists() else []
    added_to(topology_file, topology)
    found = launcher_and_toolchain(topology, topology_file, launcher, mpicc)
    click.echo(found[2], err=True)
    _require_the_cluster(target, topology, found[0], found[1])
    bed = Bed(topology, folder / "build", found[0], found[1], collective, size, repetitions)
    _write(folder / LOG, [header, *known])
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
    write_file(folder / RESULT, tree_yaml(result, topology))
    click.echo(f"{folder / RESULT}: {len(kept)} changes kept")
    if kept:
        last = done[-1].nodes if done[-1].before == best else bed.nodes(best)
        _explain(folder / GAIN, done[0].nodes.parts, last.parts)
    _make_rule(
        bed, target, folder / LIBRARY, result, best.on_host, gain, launches,
        (tree.name, sum(len(step.challengers) for step in done), tuple(k.change for k in kept)),
    )  # fmt: skip


def _tell(step: Step) -> None:
    for one in step.challengers:
        mark = "+" if one is step.accepted else " "
        click.echo(f"{mark} {step.number}: {one.change}: {step.why(one)}")


def _explain(file: Path, first: Mapping[str, float], last: Mapping[str, float]) -> None:
    """Tell where the last tree takes less time than the first one, by parts of the tree."""
    write_file(file, json.dumps({"first_s": dict(first), "last_s": dict(last)}, indent=2) + "\n")
    rows = [["mean of all ranks, by part of the tree", "first", "last"]]
    rows += [[name, *map(format_seconds, (first[name], last.get(name, 0.0)))] for name in first]
    for line in columns(rows):
        click.echo(line)


@dataclass(frozen=True)
class _Target:
    """The library that gets the rule.

    Attributes:
        folder: the library; None if it is new.
        decision: its table; None if it is new.
        roots: its templates besides stagegen's.
        present: what serves the size now.
        known: what tuning measured, if calls of the library can adapt; else None.
    """

    folder: Path | None
    decision: DecisionTable | None
    roots: tuple[Root, ...]
    present: Candidate
    known: Known | None = None


def _target(
    library: Path | None, topology: Topology, collective: str, size: int, name: str
) -> _Target:
    """Return the library that gets the rule, before anything is measured.

    Raises:
        InputError: it is of another cluster or catalogue, or has a tree of that name.
    """
    if library is None:
        return _Target(None, None, (), NATIVE_CANDIDATE)
    decision = read_decision(library / DECISION)
    if decision.topology_hash != topology.hash:
        raise InputError("is of another topology; give the folder of this cluster", library)
    roots = added_to(str(library / TOPOLOGY), topology)
    catalogue = load_catalogue(TEMPLATES, roots)
    if catalogue.hash != decision.catalogue_hash:
        raise InputError("is of another catalogue of algorithms; tune anew", library)
    taken = {one.name for one in catalogue.algorithms if one.collective == collective}
    if algorithm_of(name) in taken:
        raise InputError(f"has a tree {name!r} already; give another --name", library)
    table = _table_of(decision, collective)
    present = NATIVE_CANDIDATE if table is None else table.choice(size)
    return _Target(library, decision, roots, present, _known_times(library))


def _require_the_cluster(
    target: _Target, topology: Topology, launcher: Launcher, toolchain: Toolchain
) -> None:
    """Check that a table of the cluster itself gets no rule from elsewhere.

    Raises:
        InputError: the launcher does not start ranks on the cluster.
    """
    if target.decision is None or not target.decision.representative:
        return
    if not launcher.environment(topology, toolchain.flavour).representative:
        problem = f"its times are of the cluster, and those by --launcher {launcher.name} are not"
        advice = "give another --launcher, or leave out --library"
        raise InputError(f"{problem}; {advice}", target.folder)


def _table_of(decision: DecisionTable, collective: str) -> Table | None:
    """Return the table of exactly the ranks of the cluster; None if there is none."""
    own = (collective, CLUSTER)
    tables = (one for one in decision.tables if (one.collective, one.communicator) == own)
    return next(tables, None)


def _make_rule(
    bed: Bed,
    target: _Target,
    new: Path,
    tree: ConfiguredTree,
    on_host: int,
    gain: float,
    launches: int,
    search: tuple[str, int, tuple[str, ...]],
) -> None:
    """Race the tree against what serves now and against native; if it wins, make it a rule."""
    topology, collective = bed.topology, bed.collective
    catalogue = load_catalogue(TEMPLATES, [*target.roots, root_of([tree], topology)])
    candidate = candidate_of(catalogue, collective, tree, on_host)
    others = tuple(dict.fromkeys((target.present, NATIVE_CANDIDATE)))
    times: dict[Candidate, dict[int, tuple[float, ...]]] = {o: {} for o in (candidate, *others)}
    with closing(bed.timed(catalogue, list(times))) as timed:
        timed.look()
        for launch in range(1, launches + 1):
            found = timed.launch(launch, range(len(times)))
            for one, seconds in zip(times, found, strict=True):
                times[one][launch] = seconds
        representative = timed.is_representative
    medians = {one: _median(launched) for one, launched in times.items()}
    for other in others:
        ratio = medians[candidate] / medians[other]
        click.echo(f"{candidate.spec} takes {ratio:.3f} of the time of {other.spec}")
        if not is_faster_in_launches(times[candidate], times[other], gain):
            click.echo(f"no rule: it is not faster than {other.spec} beyond doubt")
            return
    origin = Reconfigured(*search, medians[candidate], target.present.spec, medians[target.present])
    rule = Rule(bed.size, candidate, reconfigured=origin)
    before = target.decision or DecisionTable(
        topology.name, topology.hash, catalogue.hash, True, ()
    )
    folder = target.folder or new
    decision = replace(
        _with(before, topology, collective, rule),
        catalogue_hash=catalogue.hash,
        representative=before.representative and representative,
    )
    if target.known is not None:
        catalogue = catalogue.selecting(target.known.selection)
    made_by = _made_by(bed, search[0], tree.name, target)
    write_library(folder, topology, catalogue, decision, {}, target.known, made_by)
    click.echo(f"{folder / DECISION}: a rule for {collective} of {bed.size} bytes")
    if not decision.representative:
        click.echo("not representative: this machine was measured, not the cluster")
    if (folder / REPORT).exists():
        (folder / REPORT).unlink()
        click.echo(f"{folder / REPORT}: removed, since it shows the table without the rule")


def _made_by(bed: Bed, start: str, name: str, target: _Target) -> str:
    """Return the command that makes a rule, in its folder; the log has the search's options."""
    size = "" if bed.collective == "barrier" else f" --size {bed.size}"
    return (
        f"stagegen reconfigure --topology {TOPOLOGY} --tree {start}.tree.yaml"
        f" --collective {bed.collective}{size} --name {name}"
        f"{'' if target.folder is None else ' --library .'}"
    )


def _known_times(library: Path) -> Known | None:
    """Return what a library whose calls can adapt knows; None if they cannot."""
    file = library / KNOWN
    return read_known(file) if file.is_file() else None


def _median(launched: Launches) -> float:
    """Return the median over the launches of their medians."""
    return statistics.median(map(statistics.median, launched.values()))


def _with(
    decision: DecisionTable, topology: Topology, collective: str, rule: Rule
) -> DecisionTable:
    """Return a table with the rule; a collective without sizes has this rule only."""
    table = _table_of(decision, collective)
    before = (Rule(0, NATIVE_CANDIDATE),) if table is None else table.rules
    rules = with_rule(before, rule)
    if collective == "barrier":
        rules = rules[:1]
    if table is not None:
        own = replace(table, rules=rules)
        return replace(decision, tables=tuple(own if t is table else t for t in decision.tables))
    ranks, hosts = topology.rank_count, len(set(topology.ranks))
    own = Table.exactly(collective, CLUSTER, ranks, hosts, rules)
    tables = sorted((own, *decision.tables), key=lambda one: one.collective)
    return replace(decision, tables=tuple(tables))


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


def _keep(path: Path, header: Mapping[str, Any], known: list[dict[str, Any]], step: Step) -> None:
    """Put a step into the log that has the known ones, and into these.

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
