"""Loads a topology file: checks everything, and reports every mistake with its line.

The sections of the file are read in the order in which they depend on each other; every
section has a module of its own. The format is in ``docs/interfaces.md``.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from stagegen.errors import InputError
from stagegen.topology.document import Document, read_document
from stagegen.topology.links_section import read_links, read_spanning_root, to_tree
from stagegen.topology.model import Topology
from stagegen.topology.named_groups import read_groups
from stagegen.topology.nodes_section import read_hosts, read_switches
from stagegen.topology.rank_order import read_ranks
from stagegen.topology.sections import Wiring, read_rate
from stagegen.topology.sites_section import read_sites

_TOP_KEYS = (
    "name",
    "defaults",
    "switches",
    "links",
    "hosts",
    "ranks",
    "groups",
    "sites",
    "spanning_tree",
    "launcher",
)


def _read_word(doc: Document, node: yaml.Node, what: str, example: str) -> str:
    word = doc.text(node, what)
    if not re.fullmatch(r"[a-z0-9-]+", word) or word.startswith("-"):
        doc.fail(node, f"{what} {word!r} must consist of a-z, 0-9 and '-', as in {example}")
    return word


def line_of_key(path: Path | str, key: str) -> int:
    """Return the line, counted from 1, on which a topology file gives a key of its top level.

    For whoever knows more of a value than this stage does, and finds it wrong.

    Raises:
        InputError: the file cannot be read, or has no such key.
    """
    doc = Document(Path(path))
    keys = doc.mapping(read_document(doc.path), "the topology")
    if key not in keys:
        raise InputError(f"the topology has no {key!r}", path)
    return keys[key][0].start_mark.line + 1


def _read_defaults(doc: Document, node: yaml.Node, wiring: Wiring) -> None:
    keys = doc.known_keys(node, "defaults", ("bandwidth", "latency"))
    wiring.bandwidth, wiring.latency = read_rate(doc, keys, wiring)


def load_topology(path: Path | str) -> Topology:
    """Load and check a topology file.

    Args:
        path: a YAML file as described in ``docs/interfaces.md``.

    Raises:
        InputError: the file cannot be read or is wrong; with the line of the mistake.
    """
    doc = Document(Path(path))
    root = read_document(doc.path)
    keys = doc.known_keys(root, "the topology", _TOP_KEYS, required=("name", "switches"))
    wiring = Wiring()
    name = _read_word(doc, keys["name"], "name", "two-switch")
    if "defaults" in keys and not doc.is_null(keys["defaults"]):
        _read_defaults(doc, keys["defaults"], wiring)
    switches = read_switches(doc, keys["switches"], wiring)
    hosts = read_hosts(doc, keys.get("hosts"), wiring)
    links = read_links(doc, keys["links"], wiring) if "links" in keys else []
    spanning = keys.get("spanning_tree")
    spanning_root = read_spanning_root(doc, spanning, wiring) if spanning else None
    tree_links, blocked = to_tree(doc, links, spanning_root, wiring)
    rank_map = read_ranks(doc, keys.get("ranks"), hosts)
    return Topology(
        name=name,
        switches=switches,
        hosts=hosts,
        links=tree_links,
        rank_map=rank_map,
        launcher=_read_word(doc, keys["launcher"], "launcher", "hydra")
        if "launcher" in keys
        else None,
        spanning_root=spanning_root,
        blocked=blocked,
        groups=read_groups(doc, keys.get("groups"), {host.name for host in hosts}, rank_map),
        sites=read_sites(doc, keys.get("sites"), switches),
    )
