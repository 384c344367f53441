"""The rule of a decision table that ``stagegen reconfigure`` makes of the tree that it found."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import click

from stagegen.adaptive.known import KNOWN, Known, read_known
from stagegen.catalogue import Collective, load_catalogue
from stagegen.catalogue.templates import Root
from stagegen.cli._parts import added_to
from stagegen.cli._reconfigure_live import Bed
from stagegen.cli._reconfigure_race import raced
from stagegen.cli._report import remove_report
from stagegen.data import TEMPLATES
from stagegen.errors import InputError
from stagegen.generate import Toolchain
from stagegen.generate.write import write_file
from stagegen.library import read_manifest, require_unchanged, write_library
from stagegen.library.tree import candidate_of
from stagegen.measure.comparable import differences
from stagegen.measure.launch.base import Environment, Launcher
from stagegen.measure.live import environments
from stagegen.measure.log import read_log
from stagegen.measure.records import Candidate
from stagegen.parts.trees import require_free, root_of
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree
from stagegen.tune.decision import (
    CLUSTER,
    NATIVE_CANDIDATE,
    DecisionTable,
    Reconfigured,
    Rule,
    Table,
    with_rule,
)
from stagegen.tune.recorded import DECISION, LOG, TOPOLOGY, read_decision

#: The file of the last race.
RULE = "rule.json"

#: The facts of an environment that are known before any rank starts, and decide which routine wins.
_SAME = frozenset({"launcher", "scale", "latency", "mpi", "mpi_version"})


@dataclass(frozen=True)
class Target:
    """The library that gets the rule.

    Attributes:
        folder: the library; None if it is new.
        decision: its table; None if it is new.
        roots: its templates besides stagegen's.
        present: the routine that serves the size now.
        known: the times of tuning, if calls of the library can adapt; else None.
    """

    folder: Path | None
    decision: DecisionTable | None
    roots: tuple[Root, ...]
    present: Candidate
    known: Known | None = None


def target_of(
    library: Path | None, topology: Topology, collective: str, size: int, name: str
) -> Target:
    """Return the library that gets the rule, before anything is measured.

    Raises:
        InputError: it is of another cluster, one of its routines has changed, or it has a tree of
            that name.
    """
    if library is None:
        return Target(None, None, (), NATIVE_CANDIDATE)
    decision = read_decision(library / DECISION)
    if decision.topology_hash != topology.hash:
        raise InputError("is of another topology; give the folder of this cluster", library)
    roots = added_to(str(library / TOPOLOGY), topology)
    catalogue = load_catalogue(TEMPLATES, roots)
    require_unchanged(library, read_manifest(library), catalogue)
    try:
        require_free(name, "--name", catalogue)
    except InputError as error:
        raise InputError(error.message, library) from error
    table = _table_of(decision, collective)
    present = NATIVE_CANDIDATE if table is None else table.choice(size)
    return Target(library, decision, roots, present, _known_times(library))


def require_the_cluster(
    target: Target, topology: Topology, launcher: Launcher, toolchain: Toolchain
) -> None:
    """Check that a table with times of the cluster gets no rule measured elsewhere.

    Raises:
        InputError: the launcher does not start ranks on the cluster, or what it starts differs
            from what the library's log was measured with.
    """
    if target.folder is None or target.decision is None or not target.decision.representative:
        return
    now = launcher.environment(topology, toolchain.flavour)
    advice = "give another --launcher or --mpicc, or leave out --library"
    if not now.representative:
        problem = (
            f"its times are of the cluster, but --launcher {launcher.name} does not measure it"
        )
        raise InputError(f"{problem}; {advice}", target.folder)
    for then in _environments(target.folder):
        found = [one.text for one in differences(then, now) if one.fact in _SAME]
        if found:
            raise InputError(f"it was measured with {'; '.join(found)}; {advice}", target.folder)


def _environments(folder: Path) -> list[Environment]:
    """Return the environments in a library's log; none if it has no log."""
    log = folder / LOG
    return environments(read_log(log)[1]) if log.is_file() else []


def _table_of(decision: DecisionTable, collective: str) -> Table | None:
    """Return the table of exactly the ranks of the cluster; None if there is none."""
    own = (collective, CLUSTER)
    tables = (one for one in decision.tables if (one.collective, one.communicator) == own)
    return next(tables, None)


def make_rule(
    bed: Bed,
    target: Target,
    new: Path,
    record: Path,
    tree: ConfiguredTree,
    on_host: int,
    gain: float,
    launches: int,
    search: tuple[str, int, tuple[str, ...]],
) -> None:
    """Race the tree against what serves now and against native; if it wins, make it a rule.

    Args:
        bed: where it is timed.
        target: the library that gets the rule.
        new: the folder of a new library, if the target has none.
        record: the file that gets the times of the race, and its outcome.
        tree: the one that was found.
        on_host: how its ranks of a host hand over data.
        gain: the least share by which it must be faster.
        launches: of the race.
        search: the name of the first tree, how many changes were tried, and those that were kept.
    """
    topology, collective = bed.topology, bed.collective
    catalogue = load_catalogue(TEMPLATES, [*target.roots, root_of([tree], topology)])
    candidate = candidate_of(catalogue, collective, tree, on_host)
    race = raced(bed, catalogue, (candidate, target.present, NATIVE_CANDIDATE), gain, launches)
    about = {"collective": collective, "size": bed.size}
    write_file(record, json.dumps({**about, **race.to_json()}, indent=2) + "\n")
    for other in race.others:
        click.echo(f"{candidate.spec} takes {race.ratio(other):.3f} of the time of {other.spec}")
    if race.not_beaten:
        click.echo(race.verdict)
        return
    instead = target.present.spec, race.median(target.present)
    origin = Reconfigured(*search, race.median(candidate), *instead)
    rule = Rule(bed.size, candidate, reconfigured=origin)
    before = target.decision or DecisionTable(
        topology.name, topology.hash, catalogue.hash, True, ()
    )
    folder = target.folder or new
    decision = replace(
        _with(before, topology, catalogue.collective(collective), rule),
        catalogue_hash=catalogue.hash,
        representative=before.representative and race.representative,
    )
    if target.known is not None:
        catalogue = catalogue.selecting(target.known.selection)
    made_by = _made_by(bed, catalogue.collective(collective), search[0], tree.name, target)
    write_library(folder, topology, catalogue, decision, {}, target.known, made_by)
    click.echo(f"{folder / DECISION}: a rule for {collective} of {bed.size} bytes")
    if not decision.representative:
        click.echo("not representative: this machine was measured, not the cluster")
    remove_report(folder, "the rule")


def _made_by(bed: Bed, collective: Collective, start: str, name: str, target: Target) -> str:
    """Return the command that makes a rule, in its folder; the log has the search's options."""
    size = f" --size {bed.size}" if collective.has_data else ""
    return (
        f"stagegen reconfigure --topology {TOPOLOGY} --tree {start}.tree.yaml"
        f" --collective {collective.name}{size} --name {name}"
        f"{'' if target.folder is None else ' --library .'}"
    )


def _known_times(library: Path) -> Known | None:
    """Return the known times of a library whose calls can adapt; None if they cannot."""
    file = library / KNOWN
    return read_known(file) if file.is_file() else None


def _with(
    decision: DecisionTable, topology: Topology, collective: Collective, rule: Rule
) -> DecisionTable:
    """Return a table with the rule; a collective without sizes has this rule only."""
    table = _table_of(decision, collective.name)
    before = (Rule(0, NATIVE_CANDIDATE),) if table is None else table.rules
    rules = with_rule(before, rule)
    if collective.has_one_rule:
        rules = rules[:1]
    if table is not None:
        own = replace(table, rules=rules)
        return replace(decision, tables=tuple(own if t is table else t for t in decision.tables))
    ranks, hosts = topology.rank_count, len(set(topology.ranks))
    own = Table.exactly(collective.name, CLUSTER, ranks, hosts, rules)
    tables = sorted((own, *decision.tables), key=lambda one: one.collective)
    return replace(decision, tables=tuple(tables))
