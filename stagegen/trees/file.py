"""Reads tree files: checks everything, and reports a mistake with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from stagegen.errors import InputError
from stagegen.topology import Topology
from stagegen.topology.document import Document, did_you_mean, read_document
from stagegen.trees.model import LEVELS_MOST, NODES_MOST, ConfiguredTree, Contributor, Node, ordered

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,79}", re.ASCII)
_RANKS = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.ASCII)
_KEYS = ("rank", "host", "contributors")


def read_tree(path: Path | str, topology: Topology) -> ConfiguredTree:
    """Return the tree of a file.

    Args:
        path: the file.
        topology: the cluster that the tree is for.

    Raises:
        InputError: the file cannot be read, or is no tree over all ranks; with the line.
    """
    doc = Document(Path(path))
    root = read_document(doc.path, "name and nodes")
    keys = doc.known_keys(root, "the file", ("name", "ranks", "nodes"), ("name", "nodes"))
    if "ranks" in keys:
        ranks = doc.count(keys["ranks"], "ranks")
        if ranks != topology.rank_count:
            problem = f"the tree is for {ranks} ranks, and {topology.name} has"
            doc.fail(keys["ranks"], f"{problem} {topology.rank_count}; make a tree for it")
    entries = _entries(doc, keys["nodes"], topology)
    found = _Found(doc, entries, topology)
    found.check()
    name = _named(doc, keys["name"], "name")
    tree = ConfiguredTree(name, ordered(found.nodes()), topology.rank_count)
    if tree.height > LEVELS_MOST:
        problem = f"the tree has {tree.height} levels; use at most {LEVELS_MOST}"
        doc.fail(entries[tree.root.name].key, problem)
    return tree


@dataclass(frozen=True)
class _Entry:
    """A node of the file.

    Attributes:
        key: where its name is.
        contributors: each with its place.
        rank: its worker, if the file gives a rank.
        host: that of its worker, if the file gives a host.
    """

    key: yaml.Node
    contributors: tuple[tuple[Contributor, yaml.Node], ...]
    rank: int | None
    host: str | None


def require_name(name: str, what: str) -> None:
    """Check the name of a tree or of a node.

    Args:
        name: to check.
        what: has this name, for the error.

    Raises:
        InputError: a tree file may not have such a name.
    """
    if not _NAME.fullmatch(name):
        rule = "begin with a letter, and have at most 80 letters, digits, '.', '_' and '-'"
        raise InputError(f"{what} {name!r} has to {rule}")


def _named(doc: Document, node: yaml.Node, what: str) -> str:
    name = doc.text(node, what)
    try:
        require_name(name, what)
    except InputError as error:
        doc.fail(node, error.message)
    return name


def _entries(doc: Document, node: yaml.Node, topology: Topology) -> dict[str, _Entry]:
    mapping = doc.mapping(node, "nodes")
    if not mapping:
        doc.fail(node, "there is no node; write at least the root")
    if len(mapping) > NODES_MOST:
        doc.fail(node, f"there are {len(mapping)} nodes; use at most {NODES_MOST}")
    names = [_named(doc, key, "the node") for key, _ in mapping.values()]
    return {
        name: _entry(doc, key, value, topology, mapping)
        for name, (key, value) in zip(names, mapping.values(), strict=True)
    }


def _entry(
    doc: Document,
    key: yaml.Node,
    value: yaml.Node,
    topology: Topology,
    names: dict[str, tuple[yaml.Node, yaml.Node]],
) -> _Entry:
    what = f"node {doc.text(key, 'a node')}"
    keys = doc.known_keys(value, what, _KEYS, ("contributors",))
    if ("rank" in keys) == ("host" in keys):
        problem = "both a rank and a host" if "rank" in keys else "neither a rank nor a host"
        doc.fail(value, f"{what} has {problem} that does its work; write one of them")
    rank = host = None
    if "rank" in keys:
        rank = doc.parsed(keys["rank"], "rank", lambda text: _rank(text, topology.rank_count))
    else:
        host = doc.scalar(keys["host"], "host")
        if host not in topology.ranks:
            known = sorted(set(topology.ranks))
            problem = (
                "has no rank; take a host with ranks"
                if host in topology.host_by_name
                else f"does not exist{did_you_mean(host, known)}"
            )
            doc.fail(keys["host"], f"host {host!r} {problem}")
    contributors: list[tuple[Contributor, yaml.Node]] = []
    for entry in doc.items(keys["contributors"], "contributors"):
        text = doc.scalar(entry, "a contributor")
        if text in names:
            contributors.append((text, entry))
            continue
        span = _RANKS.fullmatch(text)
        if span is None:
            doc.fail(entry, f"there is no node {text!r}{did_you_mean(text, names)}")
        first, last = int(span["first"]), int(span["last"] or span["first"])
        if last < first:
            doc.fail(entry, f"{text!r} goes backwards; write {last}-{first}")
        if last >= topology.rank_count:
            doc.fail(entry, f"rank {last} does not exist; ranks are 0 to {topology.rank_count - 1}")
        contributors += [(one, entry) for one in range(first, last + 1)]
    if not contributors:
        doc.fail(
            keys["contributors"], f"{what} has no contributor; write ranks or nodes, or delete it"
        )
    return _Entry(key, tuple(contributors), rank, host)


def _rank(text: str, count: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        raise ValueError(f"the rank {text!r} is not a whole number; ranks are 0 to {count - 1}")
    if int(text) >= count:
        raise ValueError(f"rank {text} does not exist; ranks are 0 to {count - 1}")
    return int(text)


def first_circle(names: Iterable[str], above: Mapping[Contributor, str]) -> list[str]:
    """Return the first node that contributes to itself, with its way; none if there is none.

    It looks at each node once, however deep the tree is.

    Args:
        names: of the nodes, in the order of the file.
        above: the node that each node contributes to.
    """
    order = list(names)
    seen: set[str] = set()
    in_circles: set[str] = set()
    for name in order:
        way: dict[str, None] = {}
        at: str | None = name
        while at is not None and at not in seen:
            seen.add(at)
            way[at] = None
            at = above.get(at)
        if at in way:  # the way comes back to itself; else it ends, or goes on as an earlier one
            walked = list(way)
            in_circles.update(walked[walked.index(at) :])
    first = next((name for name in order if name in in_circles), None)
    if first is None:
        return []
    circle = [first, above[first]]
    while circle[-1] != first:
        circle.append(above[circle[-1]])
    return circle


@dataclass(frozen=True)
class _Found:
    """The nodes of a file, which need not be a tree."""

    doc: Document
    entries: dict[str, _Entry]
    topology: Topology

    def check(self) -> None:
        """Check that the nodes are one tree, and that each rank is in it exactly once."""
        above: dict[Contributor, str] = {}
        for name, entry in self.entries.items():
            for one, place in entry.contributors:
                what = f"rank {one}" if isinstance(one, int) else f"node {one}"
                if one in above:
                    where = f"node {above[one]}" if above[one] != name else "this node"
                    problem = f"{what} contributes to {where} already; keep one of them"
                    self.doc.fail(place, problem)
                above[one] = name
        tops = [name for name in self.entries if name not in above]
        if circle := first_circle(self.entries, above):
            way = " → ".join(circle)
            problem = f"nodes contribute in a circle: {way}; take one of them out"
            self.doc.fail(self.entries[circle[0]].key, problem)
        if len(tops) > 1:
            problem = f"node {tops[1]} contributes to no node, nor does {tops[0]}"
            wanted = "let one of them contribute: a tree has one root"
            self.doc.fail(self.entries[tops[1]].key, f"{problem}; {wanted}")
        for rank in range(self.topology.rank_count):
            if rank not in above:
                problem = f"rank {rank} contributes to no node below {tops[0]}"
                self.doc.fail(self.entries[tops[0]].key, f"{problem}; add it to a node")

    def nodes(self) -> list[Node]:
        """Return the nodes of the tree, with the workers that hosts stand for."""
        plain = {
            name: Node(name, 0 if entry.rank is None else entry.rank, tuple(
                one for one, _ in entry.contributors
            ))
            for name, entry in self.entries.items()
        }  # fmt: skip
        worker: dict[str, int] = {}
        for node in ordered(plain.values()):
            entry = self.entries[node.name]
            worker[node.name] = (
                node.worker if entry.host is None else self._on(entry.host, node, worker)
            )
        return [Node(name, worker[name], node.contributors) for name, node in plain.items()]

    def _on(self, host: str, node: Node, worker: dict[str, int]) -> int:
        """Return the rank of a host that does a node's work.

        That is the lowest rank there that hands over data to the node, or else the host's lowest.
        """
        below = [one if isinstance(one, int) else worker[one] for one in node.contributors]
        near = [rank for rank in below if self.topology.ranks[rank] == host]
        return min(near) if near else self.topology.ranks.index(host)
