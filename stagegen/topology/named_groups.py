"""Reads the section `groups`: hosts whose ranks get schedules of their own."""

from __future__ import annotations

import re
from collections.abc import Collection

import yaml

from stagegen.topology.document import Document, did_you_mean
from stagegen.topology.model import WHOLE, Group, RankMap
from stagegen.topology.sections import host_names, line_of

#: Names of groups and of sites.
NAME = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII)


def read_groups(
    doc: Document, node: yaml.Node | None, hosts: Collection[str], ranks: RankMap
) -> tuple[Group, ...]:
    """Read the groups; each has at least two ranks, not all, and no two have the same hosts."""
    if node is None or doc.is_null(node):
        return ()
    groups: list[Group] = []
    lines: dict[frozenset[str], str] = {frozenset(ranks.hosts): f"{WHOLE}, which is always there"}
    for name, (key, value) in doc.mapping(node, "groups").items():
        group = Group(_read_name(doc, key), _read_hosts(doc, value, name, hosts, ranks))
        members = frozenset(group.hosts)
        if members in lines:
            doc.fail(value, f"group {name} has the same hosts as {lines[members]}; leave it out")
        lines[members] = f"{name} (line {line_of(key)})"
        groups.append(group)
    return tuple(groups)


def _read_name(doc: Document, node: yaml.Node) -> str:
    name = doc.text(node, "the name of a group")
    if not NAME.fullmatch(name):
        doc.fail(node, f"group {name!r} must consist of a-z, 0-9 and '-', as in left-half")
    if name == WHOLE:
        doc.fail(node, f"the group {WHOLE} is all ranks; give this one another name")
    return name


def _read_hosts(
    doc: Document, node: yaml.Node, group: str, hosts: Collection[str], ranks: RankMap
) -> tuple[str, ...]:
    names: list[str] = []
    for name, entry in host_names(doc, node, f"group {group}"):
        if name not in hosts:
            meant = did_you_mean(name, hosts)
            doc.fail(entry, f"group {group} names the unknown host {name!r}{meant}")
        if name not in ranks.hosts:
            doc.fail(entry, f"group {group}: host {name} has no rank; add it under ranks")
        if name in names:
            doc.fail(entry, f"group {group} names host {name} twice; name it once")
        names.append(name)
    count = sum(host in names for host in ranks.hosts)
    if count < 2:
        has = "no rank" if count == 0 else "one rank only"
        doc.fail(node, f"group {group} has {has}; name hosts with two ranks or more together")
    return tuple(names)
