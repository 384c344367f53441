"""Writes tree files: YAML, the root first, one node on a line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from stagegen.topology import Topology
from stagegen.trees.model import ConfiguredTree, Contributor, Node, spans

#: Names that YAML would read as something else than text.
_WORDS = frozenset({"yes", "no", "true", "false", "on", "off", "null"})


def tree_yaml(tree: ConfiguredTree, topology: Topology | None = None, about: str = "") -> str:
    """Return the text of a tree file; :func:`stagegen.trees.read_tree` reads it.

    Args:
        tree: to write.
        topology: if given, a comment says on which host each node's work is done.
        about: if given, a comment of one line before all else.
    """
    nodes = list(reversed(tree.nodes))
    width = max(len(_name(node.name)) for node in nodes) + 1
    lines = [f"# {about}"] if about else []
    lines += [f"name: {_name(tree.name)}", f"ranks: {tree.ranks}", "nodes:"]
    for node in nodes:
        line = f"  {f'{_name(node.name)}:'.ljust(width)} {_node(node)}"
        where = "" if topology is None else f"  # on {topology.ranks[node.worker]}"
        lines.append(line + where)
    return "\n".join(lines) + "\n"


def _node(node: Node) -> str:
    return f"{{rank: {node.worker}, contributors: [{', '.join(_listed(node.contributors))}]}}"


def _listed(contributors: tuple[Contributor, ...]) -> Iterator[str]:
    for is_rank, run in groupby(contributors, lambda one: isinstance(one, int)):
        if is_rank:
            yield from spans([one for one in run if isinstance(one, int)])
        else:
            yield from (_name(str(one)) for one in run)


def _name(name: str) -> str:
    return f'"{name}"' if name.lower() in _WORDS else name
