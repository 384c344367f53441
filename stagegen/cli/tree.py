"""``stagegen tree``: configured trees: make one from the cluster, check a file, show it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from stagegen.catalogue import load_catalogue
from stagegen.cli._options import columns, format_option, print_json, topology_option
from stagegen.cli._output import form_option, output_option, put_out
from stagegen.cli._parts import added_to
from stagegen.errors import InputError
from stagegen.generate.write import write_file
from stagegen.parts.trees import require_free
from stagegen.report.pictures import FORMATS, draw
from stagegen.report.units import format_seconds
from stagegen.schedule.verify import facts_of
from stagegen.schedule.verify.configured import TreeFacts
from stagegen.topology import Topology, load_topology
from stagegen.trees import SHAPES, ConfiguredTree, make_tree, read_tree, shape_of, tree_yaml
from stagegen.trees.cost import hotspots, node_seconds, seconds_up
from stagegen.trees.model import LEVELS_MOST, NODES_MOST
from stagegen.trees.moves import moves

#: How many links the text names.
_LINKS = 4

#: How many nodes it names: those with the most time on the longest way up.
_HOTSPOTS = 3


@click.group()
def command() -> None:
    """Make, check, show and change tree files: trees of allreduce, reduce, bcast and barrier."""


@command.command("make")
@topology_option
@click.option(
    "--shape",
    required=True,
    metavar="SHAPE",
    help=f"N-ary with a number for N, or {', '.join(SHAPES)}; see docs/trees.md.",
)
@click.option("--host-arity", type=click.IntRange(min=2), help="The most contributors on a host.")
@click.option("--root-arity", type=click.IntRange(min=2), help="The same between hosts.")
@click.option(
    "--split",
    type=click.IntRange(min=0),
    help="How many of the lowest levels between hosts have their nodes on hosts that contribute.",
)
@click.option(
    "--root", "root_host", metavar="HOST", default="", help="Host of the root; default: rank 0's."
)
@click.option("--name", metavar="NAME", help="Name of the tree; default: the shape's.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File to write, such as NAME.tree.yaml; default: standard output.",
)
def make(
    topology_file: str,
    shape: str,
    host_arity: int | None,
    root_arity: int | None,
    split: int | None,
    root_host: str,
    name: str | None,
    output: Path | None,
) -> None:
    """Write a tree file for all ranks of a cluster."""
    topology = load_topology(topology_file)
    changes: dict[str, Any] = {
        "host_arity": host_arity, "root_arity": root_arity, "split": split
    }  # fmt: skip
    wanted = replace(shape_of(shape), **{k: v for k, v in changes.items() if v is not None})
    default = f"ary-{shape.partition('-')[0]}" if shape[0].isdigit() else shape
    named = default if name is None else name
    _require_free(named, "--name", topology_file, topology)
    text = _text(make_tree(topology, wanted, named, root_host), topology)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_file(output, text)


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@topology_option
@format_option
def check(file: Path, topology_file: str, output_format: str) -> None:
    """Check that FILE is a tree over all ranks of a cluster, and report what it costs.

    Ends with status 2, the line and the mistake if it is not.
    """
    topology = load_topology(topology_file)
    tree = read_tree(file, topology)
    facts = facts_of(topology, tree.rows)
    if output_format == "json":
        print_json(_form(tree, facts))
        return
    for line in _facts(topology, tree, facts):
        click.echo(line)


@command.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@topology_option
@form_option(("text", *FORMATS), "Text, or a picture.")
@output_option
def show(file: Path, topology_file: str, output_format: str, output: Path | None) -> None:
    """Show the tree of FILE as text or as a picture."""
    topology = load_topology(topology_file)
    tree = read_tree(file, topology)
    if output_format in FORMATS:
        form = draw(topology, tree, output_format)
    else:
        facts = facts_of(topology, tree.rows)
        lines = (*_facts(topology, tree, facts), "", *_drawn(topology, tree, tree.root.name))
        form = "".join(f"{line}\n" for line in lines).encode()
    put_out(form, output)


@command.command("changes")
@click.argument("file", type=click.Path(path_type=Path))
@topology_option
@click.option(
    "--times",
    type=click.Path(path_type=Path),
    metavar="JSON",
    help="Seconds of each node's work, as {node: seconds}; default: those of a model.",
)
@click.option(
    "--take", type=click.IntRange(min=1), help="Write the tree after change N of the list."
)
@click.option(
    "--name", metavar="NAME", help="Name of the changed tree; default: the name of the file's tree."
)
@output_option
def changes(
    file: Path,
    topology_file: str,
    times: Path | None,
    take: int | None,
    name: str | None,
    output: Path | None,
) -> None:
    """List changes of FILE by one step, the hottest nodes first, or write one of them."""
    topology = load_topology(topology_file)
    if name is not None and take is None:
        raise InputError("--name is the name of a tree that --take writes; add --take")
    tree = read_tree(file, topology)
    seconds = node_seconds(topology, tree) if times is None else _times(times, tree)
    found = moves(topology, tree, seconds)
    if take is not None:
        if take > len(found):
            raise InputError(f"there are {len(found)} changes; take one of them, not {take}")
        named = tree.name if name is None else name
        what = "the name that the change keeps," if name is None else "--name"
        _require_free(named, what, topology_file, topology)
        text = _text(found[take - 1].tree.renamed(named), topology)
        put_out(text.encode(), output)
        return
    hot = {one.node for one in hotspots(tree, seconds)}
    before = seconds_up(tree, node_seconds(topology, tree))
    rows = [("", "node", "on the longest way", "change", "up by the model")]
    for number, move in enumerate(found, 1):
        after = seconds_up(move.tree, node_seconds(topology, move.tree))
        way = format_seconds(seconds[move.node]) if move.node in hot else "no"
        rows.append((str(number), move.node, way, move.what, _quotient(after, before)))
    for line in columns(rows):
        click.echo(line)


def _quotient(after: float, before: float) -> str:
    """Return the ratio of two times; a tree of one rank takes no time."""
    return f"{after / before:.2f} ×" if before > 0 else "–"


def _text(tree: ConfiguredTree, topology: Topology) -> str:
    """Return the text of a tree file.

    Raises:
        InputError: its reader would refuse it.
    """
    counts = ((len(tree.nodes), NODES_MOST, "nodes"), (tree.height, LEVELS_MOST, "levels"))
    for count, most, what in counts:
        if count > most:
            problem = f"the tree would have {count} {what}, and a file may have {most}"
            raise InputError(f"{problem}; take nodes with more contributors")
    return tree_yaml(tree, topology)


def _require_free(name: str, what: str, topology_file: str, topology: Topology) -> None:
    """Check that tuning will take a tree of this name, beside the user's own parts."""
    require_free(name, what, load_catalogue(added=added_to(topology_file, topology)))


def _times(file: Path, tree: ConfiguredTree) -> dict[str, float]:
    """Return the seconds of each node of a tree that a file has.

    Raises:
        InputError: the file cannot be read, or a node has no time.
    """
    try:
        form = json.loads(file.read_text(encoding="utf-8"))
        seconds = {str(node): float(value) for node, value in form.items()}
    except RecursionError as error:
        raise InputError("nested too deeply; expected {node: seconds}", file) from error
    except (OSError, ValueError, AttributeError, TypeError, OverflowError) as error:
        raise InputError(f"expected {{node: seconds}}: {error}", file) from error
    for node in tree.nodes:
        if not 0.0 <= seconds.get(node.name, -1.0) < math.inf:
            raise InputError(f"node {node.name} has no seconds of 0 or more; add them", file)
    return seconds


def _form(tree: ConfiguredTree, facts: TreeFacts) -> dict[str, Any]:
    form = asdict(facts)
    form["links"] = [{**asdict(link), "edge": list(link.edge)} for link in facts.links]
    nodes = [
        {"name": node.name, "rank": node.worker, "contributors": list(node.contributors)}
        for node in reversed(tree.nodes)
    ]
    return {"name": tree.name, "ranks": tree.ranks, "nodes": nodes, **form}


def _facts(topology: Topology, tree: ConfiguredTree, facts: TreeFacts) -> Iterator[str]:
    root = tree.root.worker
    yield (
        f"{tree.name}: {tree.ranks} ranks, {len(tree.nodes)} nodes in {facts.height} levels; the "
        f"root is rank {root} on {topology.ranks[root]}"
    )
    yield (
        f"messages up: {facts.up}, {facts.up_between} of them between hosts; down: {facts.down}, "
        f"{facts.down_between} of them between hosts"
    )
    where = topology.ranks[facts.worker]
    yield f"most work: rank {facts.worker} on {where} receives {facts.most_work} contributions"
    if facts.links:
        yield "links with the most messages at once, of nodes of one depth:"
        rows = [("link", "up at once", "up", "down at once", "down")]
        for link in facts.links[:_LINKS]:
            up, down = (str(link.at_once), str(link.up)), (str(link.down_at_once), str(link.down))
            rows.append(("→".join(link.edge), *up, *down))
        yield from (f"  {line}" for line in columns(rows))

    seconds = node_seconds(topology, tree)
    way = sorted(hotspots(tree, seconds), key=lambda one: -one.seconds)[:_HOTSPOTS]
    listed = ", ".join(f"{one.node} {format_seconds(one.seconds)}" for one in way)
    yield f"by a model, up in {format_seconds(seconds_up(tree, seconds))}; most of it: {listed}"


def _drawn(
    topology: Topology, tree: ConfiguredTree, name: str, lead: str = "", rest: str = ""
) -> Iterator[str]:
    """Yield the lines of a node and of all below it, with lines that lead to them."""
    node = tree.by_name[name]
    yield f"{lead}{name}: rank {node.worker} on {topology.ranks[node.worker]}"
    for place, one in enumerate(node.contributors):
        last = place == len(node.contributors) - 1
        here, below = (rest + ("└─ " if last else "├─ ")), rest + ("   " if last else "│  ")
        mark = _mark(topology, tree.worker_of(one), node.worker)
        if isinstance(one, int):
            yield f"{here}{mark}rank {one} on {topology.ranks[one]}"
        else:
            yield from _drawn(topology, tree, one, f"{here}{mark}", below)


def _mark(topology: Topology, giver: int, worker: int) -> str:
    """Return the mark before a contributor: ``=`` is the worker, ``»`` one over the network."""
    if giver == worker:
        return "= "
    return "- " if topology.ranks[giver] == topology.ranks[worker] else "» "
