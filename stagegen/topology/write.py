"""Writes a topology as the YAML file that goes with the files generated for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from stagegen.topology.model import Host, Link, Topology
from stagegen.topology.units import format_bandwidth, format_latency

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*[0-9]")


def _word(text: str) -> str:
    """Return a text as YAML, in JSON's quotes unless YAML is sure to read it as text."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _words(texts: Sequence[str]) -> str:
    return "[" + ", ".join(_word(text) for text in texts) + "]"


def _rate(part: Host | Link) -> str:
    rate, latency = format_bandwidth(part.bandwidth), format_latency(part.latency)
    return f"bandwidth: {rate}, latency: {latency}"


def _link(link: Link) -> str:
    count = f", count: {link.count}" if link.count > 1 else ""
    return f"  - {{ends: {_words(link.ends)}, {_rate(link)}{count}}}"


def _host(host: Host) -> str:
    slots = f", slots: {host.slots}" if host.slots > 1 else ""
    address = f", address: {json.dumps(host.address)}" if host.address else ""
    return f"  {_word(host.name)}: {{{_rate(host)}{slots}{address}}}"


def _lines(topology: Topology) -> Iterator[str]:
    default = topology.hosts[0]
    yield f"name: {_word(topology.name)}"
    yield f"defaults: {{{_rate(default)}}}"
    if topology.launcher:
        yield f"launcher: {topology.launcher}"
    yield "switches:"
    for switch in topology.switches:
        yield f"  {_word(switch.name)}: {{hosts: {_words(switch.hosts)}}}"
    if topology.links:
        yield "links:"
        # The tree's links come first, so that the spanning tree's search finds them again.
        yield from (_link(link) for link in (*topology.links, *topology.blocked))
    plain = (default.bandwidth, default.latency, 1, None)
    special = [h for h in topology.hosts if (h.bandwidth, h.latency, h.slots, h.address) != plain]
    if special:
        yield "hosts:"
        yield from (_host(host) for host in special)
    if topology.spanning_root:
        yield f"spanning_tree: {{root: {_word(topology.spanning_root)}}}"
    listed = topology.rank_map.order == "list"
    yield f"ranks: {_words(topology.ranks) if listed else topology.rank_map.order}"
    if topology.groups:
        yield "groups:"
        yield from (f"  {_word(group.name)}: {_words(group.hosts)}" for group in topology.groups)
    if topology.sites:
        yield "sites:"
        yield from (f"  {_word(site.name)}: {_words(site.switches)}" for site in topology.sites)


def topology_yaml(topology: Topology) -> str:
    """Return a topology file that loads to an equal topology.

    The rate and latency of the first host become the defaults; every link states its own.
    """
    return "\n".join(_lines(topology)) + "\n"
