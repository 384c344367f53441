"""Reads the section `ranks`: which host each rank runs on."""

from __future__ import annotations

import itertools
from collections import Counter

import yaml

from stagegen.topology.document import Document, did_you_mean
from stagegen.topology.model import RANK_ORDERS, Host, RankMap
from stagegen.topology.sections import host_names, read_choice


def _block(hosts: tuple[Host, ...]) -> tuple[str, ...]:
    """All slots of a host together, hosts in file order."""
    return tuple(host.name for host in hosts for _ in range(host.slots))


def _cyclic(hosts: tuple[Host, ...]) -> tuple[str, ...]:
    """One host of each switch in turn; when all hosts are used, their second slots in turn."""
    names: list[str] = []
    for slot in range(max(host.slots for host in hosts)):
        with_slot = [host for host in hosts if host.slots > slot]
        groups = [list(g) for _, g in itertools.groupby(with_slot, key=lambda host: host.switch)]
        for turn in itertools.zip_longest(*groups):
            names += [host.name for host in turn if host is not None]
    return tuple(names)


_ORDERS = {"block": _block, "cyclic": _cyclic}


def read_ranks(doc: Document, node: yaml.Node | None, hosts: tuple[Host, ...]) -> RankMap:
    """Read the order of ranks; an explicit list may leave hosts or slots without a rank."""
    if node is None or not isinstance(node, yaml.SequenceNode):
        order = "block" if node is None else read_choice(doc, node, "ranks", RANK_ORDERS)
        return RankMap(order, _ORDERS[order](hosts))
    by_name, used, names = {host.name: host for host in hosts}, Counter[str](), []
    for name, entry in host_names(doc, node, "ranks"):
        if name not in by_name:
            doc.fail(entry, f"ranks names the unknown host {name!r}{did_you_mean(name, by_name)}")
        used[name] += 1
        if used[name] > by_name[name].slots:
            doc.fail(
                entry,
                f"ranks names host {name} {used[name]} times, but it has slots: "
                f"{by_name[name].slots}; raise its slots under hosts, or name it less often",
            )
        names.append(name)
    if not names:
        doc.fail(node, "ranks is an empty list; name one host per rank, or write block or cyclic")
    return RankMap("list", tuple(names))
